"""Compiled plans against the measured restores, and what they may do to a verdict."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

import pytest

from airflow_flinkcompat.compat import Consequence, InputError, Outcome, Reason, Report, Side, check, render_text
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.plan_comparison import ComparedPlans, example_plans, migrations
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.compat.reports.catalogue import BY_CODE as RULES
from airflow_flinkcompat.compat.restore_verdict import RestoreVerdict
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, PlanError, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import PlanFacts
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.plan import FunctionDeclaration
from dev.measure.measured import RIGHT, diff_plans, pairs, planned, unplanned

EXAMPLES = json.loads(files("airflow_flinkcompat.exec_graph").joinpath("examples.json").read_text(encoding="utf-8"))
EFFECT_OF = {
    "restored_right": {RestoreEffect.RIGHT, RestoreEffect.EMPTY, RestoreEffect.UNKNOWN},
    "refused_at_submit": {RestoreEffect.REFUSED_AT_SUBMIT},
    "refused_at_restore": {RestoreEffect.REFUSED_AT_RESTORE},
    "restored_WRONG": {RestoreEffect.SILENTLY_WRONG},
}
BESIDE_THE_PLAN = {"x-maxparallelism-change"}
"""Measured pairs refused for what no plan shows."""


@cache
def explained(name: str) -> ComparedPlans:
    old, new = pairs()[name].sides()
    return ComparedPlans(Change(old, new), planned()[name])


@cache
def judged(name: str, *, with_plans: bool) -> Report:
    return check(*pairs()[name].sides(), plans=planned()[name] if with_plans else None)


def worst(name: str) -> RestoreEffect:
    """The effect that decides how a restore ends."""
    return explained(name).restore.worst_effect


@pytest.mark.slow
def test_nearly_every_measured_pair_has_plans() -> None:
    """What has none reads or writes by a connector of the measurement's own."""
    assert len(planned()) > 450
    assert all("Could not find any factory" in why for why in unplanned().values()), unplanned()
    assert set(planned()) | set(unplanned()) == set(pairs())


@pytest.mark.slow
def test_no_pair_refused_or_wrong_comes_out_all_equal() -> None:
    equal = {name for name in planned() if worst(name) is RestoreEffect.RIGHT and pairs()[name].outcome != RIGHT}
    assert equal == BESIDE_THE_PLAN


@pytest.mark.slow
def test_no_pair_refused_or_wrong_is_compatible_with_its_plans() -> None:
    wrong = [name for name in planned() if pairs()[name].outcome != RIGHT]
    assert len(wrong) > 200
    assert not [name for name in wrong if judged(name, with_plans=True).outcome is Outcome.COMPATIBLE]


@pytest.mark.nightly
@pytest.mark.slow
def test_plans_make_worse_or_settle_what_was_unknown() -> None:
    moved: Counter[tuple[str, str]] = Counter()
    for name in planned():
        before, after = (judged(name, with_plans=each).outcome for each in (False, True))
        moved[before.value, after.value] += 1
        better = after.rank < before.rank
        assert not better or (before, after) == (Outcome.UNKNOWN, Outcome.COMPATIBLE), name
    assert moved["unknown", "compatible"] + moved["compatible", "compatible"] >= 100, moved


@pytest.mark.nightly
@pytest.mark.slow
def test_what_restored_right_and_was_called_compatible_stays_so() -> None:
    right = [name for name in planned() if judged(name, with_plans=False).outcome is Outcome.COMPATIBLE]
    assert len(right) >= 90
    assert not [name for name in right if judged(name, with_plans=True).outcome is not Outcome.COMPATIBLE]


@pytest.mark.slow
def test_plans_call_nothing_incompatible_that_restored_right() -> None:
    """Restored right by its upsert key too: an operator that comes has no state to lose, a sort by arrival is none."""
    right = [name for name in planned() if pairs()[name].outcome in (RIGHT, "restored_right_upsert_only")]
    assert len(right) >= 190
    assert not [
        name
        for name in right
        if judged(name, with_plans=True).outcome is Outcome.INCOMPATIBLE
        and judged(name, with_plans=False).outcome is not Outcome.INCOMPATIBLE
    ]


@pytest.mark.slow
def test_an_operator_has_one_finding_with_one_effect() -> None:
    for name in planned():
        known = [each for each in explained(name).restore.differences if each.effect.consequence is not None]
        assert len({(each.operator, each.before, each.after) for each in known}) == len(known), name


@pytest.mark.slow
def test_how_restores_end_is_foretold(record_property: pytest.RecordProperty) -> None:
    told = [name for name in planned() if pairs()[name].outcome in EFFECT_OF]
    right = [name for name in told if worst(name) in EFFECT_OF[pairs()[name].outcome]]
    print(f"\nforetold {len(right)} of {len(told)}; not: {sorted(set(told) - set(right))}")
    record_property("foretold", f"{len(right)}/{len(told)}")
    assert len(right) >= 0.9 * len(told)


# --- what a plan's text may say differently and mean the same ---------------------------------------------------------


def texts(name: str = "plan-differs") -> tuple[Any, Any]:
    return tuple(json.loads(json.dumps(plan)) for plan in EXAMPLES[name])  # type: ignore[return-value]


def differences(old: Any, new: Any) -> tuple[RestoreEffect, ...]:
    plans = [[read_plan(json.dumps(text))] for text in (old, new)]
    facts = PlanFacts({"`default_catalog`.`default_database`.`flinkcompat_query`"})
    return tuple(each.effect for each in diff_plans(*plans, facts).differences)


def _numbered_otherwise(plan: Any) -> None:
    for node in plan["nodes"]:
        node["id"] += 100
    for edge in plan["edges"]:
        edge["source"] += 100
        edge["target"] += 100


def _versions_of_1_20(plan: Any) -> None:
    for node in plan["nodes"]:
        node["type"] = node["type"].replace("_2", "_1")


def _without_defaults(value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, part in value.items() if (part is None or part is False) and key != "value"]:
            del value[key]
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _without_defaults(part)


def _calls_renamed(plan: Any) -> None:
    for node in plan["nodes"]:
        for call in node.get("aggCalls", ()):
            call["name"] = "renamed"


def _described_otherwise(plan: Any) -> None:
    for node in plan["nodes"]:
        node["description"] = "told otherwise"


def _offset_of_a_whole_period(plan: Any) -> None:
    for node in plan["nodes"]:
        if "windowing" in node:
            node["windowing"]["window"]["offset"] = "PT-3M"


@pytest.mark.parametrize(
    "rewrite",
    [
        _offset_of_a_whole_period,
        _numbered_otherwise,
        _versions_of_1_20,
        _without_defaults,
        _calls_renamed,
        _described_otherwise,
    ],
)
def test_what_carries_no_meaning_is_left_out(rewrite: Callable[[Any], None]) -> None:
    old, _ = texts()
    new, _ = texts()
    rewrite(new)
    assert old != new
    assert differences(old, new) == ()


def _node(plan: Any, kind: str) -> Any:
    return next(node for node in plan["nodes"] if kind in node["type"])


def _other_size(plan: Any) -> None:
    for node in plan["nodes"]:
        if "windowing" in node:
            node["windowing"]["window"]["size"] = "PT2M"


def _other_offset(plan: Any) -> None:
    for node in plan["nodes"]:
        if "windowing" in node:
            node["windowing"]["window"]["offset"] = "PT10.5S"


def _other_key(plan: Any) -> None:
    _node(plan, "local-window-aggregate")["grouping"] = [1]


def _other_column(plan: Any) -> None:
    schema = _node(plan, "table-source-scan")["scanTableSource"]["table"]["resolvedTable"]["schema"]
    schema["columns"][1]["name"] = "other"


def _filtered(plan: Any) -> None:
    ability = {"type": "FilterPushDown", "predicates": [{"kind": "LITERAL", "value": True, "type": "BOOLEAN"}]}
    _node(plan, "table-source-scan")["scanTableSource"]["abilities"].append(ability)


def _other_type(plan: Any) -> None:
    for call in _node(plan, "global-window-aggregate")["aggCalls"]:
        call["type"] = "INT"


def _another_operator(plan: Any) -> None:
    _node(plan, "watermark-assigner")["type"] = "stream-exec-something-new_1"


@pytest.mark.parametrize(
    ("change", "effect"),
    [
        (_other_size, RestoreEffect.SILENTLY_WRONG),
        (_other_offset, RestoreEffect.SILENTLY_WRONG),
        (_other_key, RestoreEffect.SILENTLY_WRONG),
        (_other_column, RestoreEffect.SILENTLY_WRONG),
        (_filtered, RestoreEffect.SILENTLY_WRONG),
        (_other_type, RestoreEffect.REFUSED_AT_RESTORE),
        (_another_operator, RestoreEffect.SILENTLY_WRONG),
    ],
)
def test_what_matters_to_state_is_told(change: Callable[[Any], None], effect: RestoreEffect) -> None:
    old, _ = texts()
    new, _ = texts()
    change(new)
    assert effect in differences(old, new)
    assert effect in differences(new, old)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nodes": []}', '{"flinkVersion": "2.3", "nodes": [], "edges": []}'])
def test_what_is_no_plan_is_told(text: str) -> None:
    with pytest.raises(PlanError):
        read_plan(text)


# --- what no plan shows -----------------------------------------------------------------------------------------------

TABLE = """\
CREATE TABLE orders (customer STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'json');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');
"""
QUERY = "INSERT INTO totals SELECT customer, SUM(amount) FROM orders GROUP BY customer;\n"


def _equal() -> Any:
    plans = example_plans("plan-equal")
    assert plans is not None
    return (plans[0], plans[0])


def sharpened(old: str, new: str, **sides: Any) -> Outcome:
    settings_old, settings_new = sides.get("settings", ({}, {}))
    versions = sides.get("versions", (None, None))
    functions = sides.get("functions", ())
    before = Side(old, settings_old, functions, engine="flink", engine_version=versions[0])
    after = Side(new, settings_new, functions, engine="flink", engine_version=versions[1])
    return check(before, after, plans=_equal()).outcome


def settled(rule: str, reason: Reason = Reason.NOT_COVERED, outcome: Outcome = Outcome.UNKNOWN) -> Outcome:
    """What becomes of a finding where the plans are equal and nothing but the output changed."""
    change = Change(
        *(Side(TABLE + text, engine="flink") for text in (QUERY, QUERY.replace("SUM(amount)", "SUM(amount) * 2")))
    )
    (pair,) = change.pipelines
    subjects = {"setting-changed": "setting/x", "function-changed": "function/f", "sink-changed": "totals/sink"}
    subject = subjects.get(rule, "table/orders/options" if "table" in rule else "")
    finding = Finding(
        rule, "", outcome, "doubted", reason=reason if outcome is Outcome.UNKNOWN else None, sink=pair.sink,
        claims=(subject,) if subject else (),
    )  # fmt: skip
    return RestoreVerdict(ComparedPlans(change, _equal())).adjust(finding, RULES[rule]).outcome


def test_equal_plans_settle_what_was_unknown() -> None:
    assert settled("operator-not-covered") is Outcome.COMPATIBLE
    assert settled("pairing-ambiguous", Reason.AMBIGUOUS) is Outcome.COMPATIBLE
    # … but no other outcome, no other reason, and nothing a plan does not show.
    assert settled("operator-not-covered", outcome=Outcome.INCOMPATIBLE) is Outcome.INCOMPATIBLE
    for reason in set(Reason) - {Reason.NOT_COVERED, Reason.AMBIGUOUS, Reason.VERSION}:
        assert settled("operator-not-covered", reason) is Outcome.UNKNOWN
    for rule in (
        "setting-changed",
        "sink-changed",
        "source-table-changed",
        "function-changed",
    ):
        assert settled(rule) is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "setting",
    [
        ("pipeline.max-parallelism", "256"),
        ("pipeline.operator-chaining.enabled", "false"),
        ("table.exec.uid.generation", "ALWAYS"),
        ("table.exec.mini-batch.enabled", "true"),
        ("state.backend.type", "forst"),
        ("my.own.setting", "1"),
    ],
)
def test_settings_are_judged_by_themselves(setting: tuple[str, str]) -> None:
    outcome = sharpened(TABLE + QUERY, TABLE + QUERY, settings=({}, dict([setting])))
    assert (
        outcome
        is check(Side(TABLE + QUERY, engine="flink"), Side(TABLE + QUERY, dict([setting]), engine="flink")).outcome
    )
    assert outcome is not Outcome.COMPATIBLE


FUNCTION = "CREATE FUNCTION mine AS 'com.example.Mine';\n"
USED = QUERY.replace("SUM(amount)", "SUM(mine(amount))")


FILES = "'filesystem', 'path' = '/out', 'format' = 'json'"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(TABLE + QUERY, TABLE.replace("'print'", FILES) + QUERY, id="print sink to filesystem sink"),
        pytest.param(TABLE.replace("'print'", FILES) + QUERY, TABLE + QUERY, id="filesystem sink to print sink"),
        pytest.param(TABLE + QUERY, TABLE.replace("'/in'", "'/elsewhere'") + QUERY, id="other source options"),
        pytest.param(TABLE + FUNCTION + USED, TABLE + FUNCTION.replace("Mine", "Other") + USED, id="another class"),
        pytest.param(QUERY, QUERY.replace("SUM(amount)", "SUM(amount) * 2"), id="undeclared tables"),
        pytest.param(TABLE + QUERY, TABLE + "ADD JAR '/lib/udf.jar';\n" + QUERY, id="another jar"),
        pytest.param(TABLE + QUERY, TABLE + "SOMETHING UNREADABLE;\n" + QUERY, id="a statement nobody reads"),
    ],
)
def test_what_no_plan_shows_is_not_settled(old: str, new: str) -> None:
    assert check(old, new, "flink").outcome in (Outcome.UNKNOWN, Outcome.INCOMPATIBLE)
    assert sharpened(old, new) is not Outcome.COMPATIBLE


@pytest.mark.parametrize("versions", [("1.20", "2.3"), ("2.3", "1.20"), ("2.0", "2.0"), ("2.3", "2.4")])
def test_plans_alone_do_not_prove_a_change_of_versions(versions: tuple[str, str]) -> None:
    changed = QUERY.replace("SUM(amount)", "SUM(amount) * 2")
    assert sharpened(TABLE + QUERY, TABLE + changed, versions=versions) is Outcome.UNKNOWN


SPELLED = [
    ("CASE WHEN amount > 1 THEN amount ELSE 0 END > 1", "IF(amount > 1, amount, 0) > 1"),
    ("amount + 7 > 1", "7 + amount > 1"),
    ("MOD(amount, 7) = 1", "amount % 7 = 1"),
]


@pytest.mark.parametrize(("one", "other"), SPELLED)
def test_two_spellings_are_what_flinks_planner_makes_of_them(one: str, other: str) -> None:
    old, new = filtered(one), filtered(other)
    alone = check(old, new, "flink")
    assert alone.outcome is Outcome.UNKNOWN
    assert "flinkcompat check old new" in render_text(alone), "its planner is advised"
    assert sharpened(old, new) is Outcome.COMPATIBLE
    assert sharpened(old, filtered(f"{other} AND amount < 2")) is not Outcome.COMPATIBLE


def filtered(where: str) -> str:
    return f"{TABLE}SELECT customer, SUM(amount) FROM orders WHERE {where} GROUP BY customer;"


@pytest.mark.parametrize(("one", "other"), SPELLED)
def test_plans_of_two_spellings_claim_no_consequence_that_was_not_measured(one: str, other: str) -> None:
    text, with_filter = texts()[0], texts()[0]
    _filtered(with_filter)
    plans = [read_plan(json.dumps(text))], [read_plan(json.dumps(with_filter))]

    def differs(new: str) -> Finding:
        found = check(Side(filtered(one), engine="flink"), Side(filtered(new), engine="flink"), plans=plans)
        return next(each for each in found.findings if each.rule == "plan-differs")

    spelled, changed = differs(other), differs(f"{other} AND amount < 2")
    assert (spelled.outcome, spelled.consequence) == (Outcome.UNKNOWN, None)
    assert (changed.outcome, changed.consequence) == (Outcome.INCOMPATIBLE, Consequence.SILENTLY_WRONG)


def test_an_aggregate_of_ones_own_is_not_settled() -> None:
    mine = (FunctionDeclaration("weighted", "aggregate", "java"),)
    old = TABLE + QUERY.replace("SUM(amount)", "weighted(amount)")
    assert sharpened(old, old.replace("weighted(amount)", "weighted(amount) * 2"), functions=mine) is Outcome.UNKNOWN


def test_an_unchanged_script_planned_otherwise_is_not_unchanged() -> None:
    plans = example_plans("plan-differs")
    report = check(TABLE + QUERY, TABLE + QUERY, "flink", plans=plans)
    assert report.outcome is Outcome.INCOMPATIBLE
    assert "plan-differs" in {finding.rule for finding in report.deciding}


def test_an_unchanged_script_with_equal_plans_is_just_that() -> None:
    report = check(TABLE + QUERY, TABLE + QUERY, "flink", plans=_equal())
    assert [finding.rule for finding in report.findings] == ["unchanged"]


def test_plans_tell_of_open_source_flink_alone() -> None:
    with pytest.raises(InputError, match="engine flink"):
        check(TABLE + QUERY, TABLE + QUERY, "vvr", plans=_equal())


def test_another_number_of_jobs_is_another_chain() -> None:
    plans = _equal()
    (difference,) = diff_plans(plans[0], (*plans[1], *plans[1])).states
    assert difference.effect is RestoreEffect.REFUSED_AT_SUBMIT


def test_a_job_that_comes_or_goes_leaves_the_others_as_they_are() -> None:
    old, new = texts()
    plan, changed, another = (
        read_plan(json.dumps(old)),
        read_plan(json.dumps(new)),
        read_plan(json.dumps(new).replace("flinkcompat_query", "raw")),
    )
    assert diff_plans([plan], [another, plan]).differences == ()
    assert diff_plans([plan, another], [plan]).differences == ()
    assert diff_plans([plan], [another, changed]) == diff_plans([plan], [changed])
    assert diff_plans([plan], [changed]).differences != ()
    (number,) = diff_plans([plan], [another, another]).states
    assert number.facets == ("number of jobs",)


def test_a_difference_of_no_known_weight_is_a_warning() -> None:
    old, _ = texts()
    new, _ = texts()
    _node(new, "global-window-aggregate")["somethingNew"] = "1"
    plans = ((read_plan(json.dumps(old)),), (read_plan(json.dumps(new)),))
    report = check(TABLE + QUERY, TABLE + QUERY, "flink", plans=plans)
    assert report.outcome is Outcome.COMPATIBLE
    assert any("global-window-aggregate, configuration beside" in warning for warning in report.warnings)
    assert replace(report, warnings=()) == replace(check(TABLE + QUERY, TABLE + QUERY, "flink"), warnings=())


ZONED = "table.local-time-zone"


@pytest.mark.parametrize(("time", "kept"), [("TIMESTAMP(3)", "whole"), ("TIMESTAMP_LTZ(3)", "none")])
def test_values_of_another_time_zone_do_not_go_on(time: str, kept: str) -> None:
    """Where none is converted in it, the zone says nothing of state (restored wrong: zoned-group-other-zone)."""
    script = TABLE.replace("amount BIGINT", f"amount BIGINT, at_ {time}") + QUERY
    old, new = Side(script, {ZONED: "UTC"}, engine="flink"), Side(script, {ZONED: "Asia/Tokyo"}, engine="flink")
    (made,) = migrations(old, new, _equal())
    assert made.kept == kept
    reasons = [line.reason for line in made.operators if line.effect is RestoreEffect.NOT_MIGRATABLE]
    assert reasons == (
        [] if kept == "whole" else ["table.local-time-zone changed, but stored values were computed in the old zone"]
    )


@pytest.mark.parametrize(("version", "kept"), [("2.3", "whole"), ("1.20", "none")])
def test_first_rows_by_event_time_do_not_go_on_across_lines(version: str, kept: str) -> None:
    """What 1.20 stores of them, 2.3 does not find (no savepoint could be written: keep-rows-first-by-time-added)."""
    name = next(name for name, sides in planned().items() if any(map(_keeps_first_rows, sides[0])))
    plans = planned()[name][0]
    old, new = (Side(TABLE + QUERY, engine="flink", engine_version=each) for each in (version, "2.3"))
    (made,) = migrations(old, new, (plans, plans))
    assert made.kept == kept


def _keeps_first_rows(plan: CompiledPlan) -> bool:
    firsts = (node for node in plan.nodes if node.kind == "deduplicate" and not node.config.get("keepLastRow"))
    return any(node.config.get("isRowtime") for node in firsts)


def _nested(*fields: str) -> CompiledPlan:
    """The plan of an example, whose second column is a row of which the first field is read."""
    plan = json.loads(json.dumps(EXAMPLES["plan-equal"][0]))
    scan = plan["nodes"][0]["scanTableSource"]
    scan["table"]["resolvedTable"]["schema"]["columns"][1]["dataType"] = f"ROW<{', '.join(fields)}>"
    for ability in scan["abilities"]:
        if ability["type"] == "ProjectPushDown":
            ability["projectedFields"] = [[*path, 0] if path == [1] else path for path in ability["projectedFields"]]
    return read_plan(json.dumps(plan))


def test_a_field_within_a_column_is_no_other_one_at_its_place() -> None:
    """A source that reads fields of rows by their places: those of a row that was reordered are others."""
    sides = Side(TABLE + QUERY, engine="flink"), Side(TABLE + QUERY, engine="flink")
    told = {}
    for name, fields in (("same", ("`x` BIGINT", "`y` BIGINT")), ("reordered", ("`y` BIGINT", "`x` BIGINT"))):
        plans = (_nested("`x` BIGINT", "`y` BIGINT"),), (_nested(*fields),)
        (made,) = migrations(*sides, plans)
        told[name] = made.kept, diff_plans(*plans).differences == ()
    assert told == {"same": ("whole", True), "reordered": ("none", False)}


def test_what_flink_refuses_of_a_setting_is_seen_by_a_migration() -> None:
    """Mini-batch shows in plans; what nobody measured of a setting asks first."""
    unseen = {}
    for key, value in (("table.exec.mini-batch.enabled", "true"), ("table.exec.legacy-cast-behaviour", "enabled")):
        new = Side(TABLE + QUERY, {key: value}, engine="flink")
        unseen[key] = [each.rule for each in check(Side(TABLE + QUERY, engine="flink"), new).unseen]
    assert list(unseen.values()) == [[], ["setting-changed"]]


def test_windows_that_fire_early_keep_more_than_plans_tell() -> None:
    """None of their state is promised (measured: group-windows-early-call-added)."""
    name = next(
        name
        for name, sides in planned().items()
        if any(node.kind == "group-window-aggregate" for node in sides[0][0].nodes)
    )
    plans, script = planned()[name][0], TABLE + QUERY
    early = {"table.exec.emit.early-fire.enabled": "true", "table.exec.emit.early-fire.delay": "1 s"}
    kept = [
        migrations(Side(script, given, engine="flink"), Side(script, given, engine="flink"), (plans, plans))[0].kept
        for given in ({}, early)
    ]
    assert kept == ["whole", "none"]


def test_where_chaining_is_off_every_operator_has_another_id() -> None:
    """On which identities depend (measured: settings-chaining-off)."""
    off = Side(TABLE + QUERY, {"pipeline.operator-chaining.enabled": "false"}, engine="flink")
    (made,) = migrations(Side(TABLE + QUERY, engine="flink"), off, _equal())
    assert made.kept == "whole"
    moved = [line for line in made.operators if line.effect is RestoreEffect.MOVED]
    assert moved
    assert all(line.old and line.new and line.old.id != line.new.id for line in moved)
