"""What becomes of the verdict of the rules once Flink's planner has answered."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_flinkcompat.compat import Outcome, Report, Side
from airflow_flinkcompat.compat.checker import check_planned
from airflow_flinkcompat.compat.plan_comparison import Plans, example_plans
from airflow_flinkcompat.compat.report import READ
from airflow_flinkcompat.compat.reports.advice import CONSEQUENCES, if_resumed
from airflow_flinkcompat.exec_graph.model import Restore, RestoreEffect, StateEffect
from airflow_flinkcompat.exec_graph.prediction import Prediction
from airflow_flinkcompat.model import Consequence

TABLE = """\
CREATE TABLE orders (customer STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.group.id' = 'a', 'format' = 'json');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');
"""
QUERY = "INSERT INTO totals SELECT customer, SUM(amount) FROM orders GROUP BY customer;\n"
ALIKE = Prediction("2.3.0", alike=True)
"""Flink refuses nothing, and makes jobs of the same operators."""


def plans(*, equal: bool = True) -> Plans:
    found = example_plans("plan-equal" if equal else "plan-differs")
    assert found is not None
    return (found[0], found[0]) if equal else found


def judged(
    old: str, new: str, said: Prediction = ALIKE, made: Plans | None = None, setting: tuple[str, str] | None = None
) -> Report:
    before, after = (text if "CREATE TABLE" in text else TABLE + text for text in (old, new))
    return check_planned(
        Side(before, engine="flink", source="old"),
        Side(after, dict([setting] if setting else []), engine="flink", source="new"),
        said,
        made or plans(),
    )


def ended(effect: RestoreEffect, message: str) -> Restore:
    return Restore((StateEffect(effect, "GroupAggregate", message=message),))


def told(report: Report) -> str:
    return " ".join(finding.message for finding in report.deciding)


OUTPUT = QUERY.replace("SUM(amount)", "SUM(amount) + 1")
GROUP_ID = (TABLE + QUERY, TABLE.replace("'a'", "'b'") + QUERY)


@pytest.mark.parametrize(("old", "new"), [(QUERY, OUTPUT), GROUP_ID])
def test_what_is_compatible_by_the_rules_stays_so(old: str, new: str) -> None:
    report = judged(old, new)
    assert (report.outcome, report.read_outcome, report.ground) == (Outcome.COMPATIBLE, None, "planned by Flink 2.3.0")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Prediction("2.3.0", doubt="not known", unproven=("whether D is looked up asynchronously",)), "asynchronously"),
        (replace(ALIKE, unproven=("statements differ that change what lasts",)), "what lasts"),
    ],
    ids=["lookup", "lasting"],
)
def test_nothing_is_compatible_over_what_the_planner_cannot_see(said: Prediction, words: str) -> None:
    report = judged(QUERY, OUTPUT, said)
    assert (report.outcome, report.read_outcome) == (Outcome.UNKNOWN, Outcome.COMPATIBLE)
    assert words in told(report)
    assert report.to_dict()["disagrees"] == "compatible"


def test_a_lookup_by_a_stand_in_is_a_doubt_only_where_plans_differ_in_it() -> None:
    said = replace(ALIKE, lookups=("default_catalog.default_database.dim",), stand_ins=("redis",))
    assert judged(QUERY, OUTPUT, said).outcome is Outcome.COMPATIBLE
    old, new = (Side(TABLE + each, engine="flink") for each in (QUERY, OUTPUT))
    unplanned = check_planned(old, new, said, None)
    assert (unplanned.outcome, unplanned.read_outcome) == (Outcome.UNKNOWN, Outcome.COMPATIBLE)
    assert "asynchronously" in told(unplanned)


def test_a_lookup_that_turns_synchronous_may_leave_rows_behind() -> None:
    said = replace(ALIKE, lookups=("default_catalog.default_database.dim",), stand_ins=("redis",))
    tables = TABLE.replace("ts TIMESTAMP(3),", "ts TIMESTAMP(3), pt AS PROCTIME(),")
    tables += "CREATE TABLE dim (k STRING, n STRING) WITH ('connector' = 'redis');\n"
    join = (
        "INSERT INTO totals SELECT {} customer, SUM(amount) FROM orders "
        "JOIN dim FOR SYSTEM_TIME AS OF orders.pt ON customer = dim.k GROUP BY customer;"
    )
    hint = "/*+ LOOKUP('table'='dim', 'async'='{}') */"
    old, waits, answers = (tables + join.format(each) for each in ("", hint.format("true"), hint.format("false")))
    assert judged(old, waits, said).outcome is Outcome.COMPATIBLE
    assert judged(old, answers, said).outcome is Outcome.UNKNOWN


def test_an_unchanged_script_is_compatible_whatever_its_jars_are() -> None:
    said = Prediction("2.3.0", doubt="not known", unproven=("whether D is looked up asynchronously",))
    assert judged(QUERY, QUERY, said).outcome is Outcome.COMPATIBLE


STUB = replace(ALIKE, stand_ins=("kafka",), stubs=("default_catalog.default_database.orders",))


def test_an_option_of_a_stand_in_is_judged_by_restores_alone() -> None:
    assert judged(*GROUP_ID, said=STUB).outcome is Outcome.COMPATIBLE, "restored right with the connector itself"
    assert judged(QUERY, OUTPUT, STUB).outcome is Outcome.COMPATIBLE, "its options are the same"
    other = TABLE.replace("'format' = 'json'", "'format' = 'json', 'my.own' = '1'")
    assert judged(TABLE + QUERY, other + QUERY, STUB).outcome is Outcome.UNKNOWN


def test_a_plan_in_other_words_shows_no_wrong_rows_where_the_rules_found_none() -> None:
    view = TABLE + "CREATE VIEW v AS SELECT * FROM orders WHERE {};\n" + QUERY.replace("orders", "v")
    said = judged(view.format("amount >= 2"), view.format("amount > 1"), made=plans(equal=False))
    assert said.outcome is Outcome.UNKNOWN
    said = judged(view.format("amount >= 2"), view.format("amount > 2"), made=plans(equal=False))
    assert said.outcome is Outcome.INCOMPATIBLE


def test_the_diff_decides_over_rules_that_contradict_it() -> None:
    report = judged(QUERY, OUTPUT, made=plans(equal=False))
    assert (report.outcome, report.read_outcome) == (Outcome.INCOMPATIBLE, Outcome.COMPATIBLE)
    assert [each.consequence for each in report.deciding] == [Consequence.SILENTLY_WRONG]
    assert "the meaning of its state differs" in told(report)


# --- what the rules call unknown or incompatible, and the plans the same ----------------------------------------------

SPELLED = (
    QUERY.replace("GROUP BY", "WHERE amount > 2 GROUP BY"),
    QUERY.replace("GROUP BY", "WHERE amount > 2 AND amount > 1 GROUP BY"),
)
ANOTHER = (QUERY, QUERY.replace("SUM(amount)", "MAX(amount)"))
FILES = "'filesystem', 'path' = '/x', 'format' = 'json'"
KEYS = QUERY.replace("GROUP BY customer", "GROUP BY customer, amount")


@pytest.mark.parametrize(("old", "new"), [SPELLED, ANOTHER, (QUERY, KEYS)])
def test_equal_jobs_decide_over_what_the_rules_say_of_a_query(old: str, new: str) -> None:
    """No rule can know that Flink's planner makes the same of two queries; here it is made to say so."""
    report = judged(old, new)
    assert report.outcome is Outcome.COMPATIBLE
    assert report.read_outcome in (Outcome.UNKNOWN, Outcome.INCOMPATIBLE)
    assert report.to_dict()["disagrees"] == report.read_outcome.value


@pytest.mark.parametrize(
    "said",
    [
        replace(ALIKE, restore=ended(RestoreEffect.DROPPED, "GroupAggregate: state acc is no longer read")),
        replace(ALIKE, restore=ended(RestoreEffect.EMPTY, "GroupAggregate begins without state")),
        replace(ALIKE, unproven=("statements differ that change what lasts",)),
    ],
)
def test_jobs_that_are_not_surely_equal_decide_nothing(said: Prediction) -> None:
    assert judged(*ANOTHER, said).outcome is not Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("'topic' = 'orders'", "'topic' = 'others'"),
        ("'print'", FILES),
        ("FROM orders", "FROM orders /*+ OPTIONS('topic' = 'others') */"),
        ("com.acme.Mine", "com.acme.Other"),
    ],
    ids=["topic", "connector", "hint", "class"],
)
def test_equal_jobs_decide_nothing_that_no_operator_shows(before: str, after: str) -> None:
    old, new = (
        f"CREATE FUNCTION mine AS 'com.acme.Mine';\n{TABLE}{each.replace('amount', 'mine(amount)')}" for each in ANOTHER
    )
    assert judged(old, new).outcome is Outcome.COMPATIBLE
    assert before in new
    assert judged(old, new.replace(before, after)).outcome is not Outcome.COMPATIBLE


def test_equal_jobs_decide_nothing_about_a_setting_of_the_run() -> None:
    assert judged(*ANOTHER, setting=("my.own.setting", "1")).outcome is not Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("setting", "said", "outcome"),
    [
        (("table.optimizer.reuse-sub-plan-enabled", "false"), ALIKE, Outcome.COMPATIBLE),
        (("pipeline.max-parallelism", "128"), ALIKE, Outcome.COMPATIBLE),
        (("table.column-expansion-strategy", "EXCLUDE_DEFAULT_VIRTUAL_METADATA_COLUMNS"), ALIKE, Outcome.COMPATIBLE),
        (("table.plan.force-recompile", "true"), ALIKE, Outcome.COMPATIBLE),
        (("table.optimizer.reuse-sub-plan-enabled", "false"), replace(ALIKE, alike=False), Outcome.UNKNOWN),
        (("table.optimizer.reuse-sub-plan-enabled", "false"), replace(ALIKE, stand_ins=("x",)), Outcome.UNKNOWN),
    ],
)
def test_a_setting_that_only_plans_is_judged_by_the_operators(
    setting: tuple[str, str], said: Prediction, outcome: Outcome
) -> None:
    assert judged(QUERY, QUERY, said, setting=setting).outcome is outcome


SINK = TABLE.replace("'print'", "'jdbc', 'url' = 'jdbc:postgresql://h/d', 'table-name' = 'x'")
BARE = replace(ALIKE, bare_sinks=("totals",))


@pytest.mark.parametrize(("said", "outcome"), [(BARE, Outcome.COMPATIBLE), (ALIKE, Outcome.UNKNOWN)])
def test_options_of_a_sink_that_keeps_nothing_are_no_matter_of_state(said: Prediction, outcome: Outcome) -> None:
    other = SINK.replace("'table-name' = 'x'", "'table-name' = 'x', 'sink.parallelism' = '2'")
    assert judged(SINK + QUERY, other + QUERY, said).outcome is outcome


def test_columns_of_a_table_show_in_a_job_unless_its_source_is_a_stand_in() -> None:
    other = TABLE.replace("FOR ts AS ts", "FOR late AS late").replace("WATERMARK", "late AS ts, WATERMARK")
    assert judged(TABLE + QUERY, other + QUERY).outcome is Outcome.COMPATIBLE
    assert judged(TABLE + QUERY, other + QUERY, STUB).outcome is Outcome.UNKNOWN


def test_an_insert_of_the_same_job_may_come_where_nothing_keeps_state_for_it() -> None:
    second = TABLE + "CREATE TABLE more (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
    both = f"EXECUTE STATEMENT SET BEGIN {QUERY} {QUERY.replace('totals', 'more')} END;"
    one = f"EXECUTE STATEMENT SET BEGIN {QUERY} END;"
    assert judged(TABLE + one, second + both).outcome is Outcome.COMPATIBLE
    files = second.replace("INT) WITH ('connector' = 'print');\n", "INT) WITH ('connector' = 'f');\n").replace(
        "'f'", FILES
    )
    assert files != second
    assert judged(TABLE + one, files + both).outcome is not Outcome.COMPATIBLE


def test_a_doubt_without_a_reason_against_it_leaves_the_verdict_of_the_rules() -> None:
    report = judged(QUERY, OUTPUT, Prediction("2.3.0", doubt="the scripts make 1 and 2 jobs"))
    assert (report.outcome, report.ground) == (Outcome.COMPATIBLE, READ)
    assert json.loads(json.dumps(report.to_dict()))["ground"] == READ


def test_a_plan_that_nobody_can_read_leaves_the_verdict_of_the_rules() -> None:
    (plan,) = plans()[0]
    nodes = (replace(each, config={}) if "aggregate" in each.kind else each for each in plan.nodes)
    broken = replace(plan, nodes=tuple(nodes))
    report = judged(QUERY, QUERY.replace("SUM(amount)", "MAX(amount)"), made=((broken,), (broken,)))
    assert (report.outcome, report.ground) == (Outcome.INCOMPATIBLE, READ)
    assert "has an unknown form" in report.doubt


@pytest.mark.parametrize("effect", [RestoreEffect.REFUSED_AT_SUBMIT, RestoreEffect.REFUSED_AT_RESTORE])
def test_only_the_planner_names_the_end_of_a_restore_that_flink_refuses(effect: RestoreEffect) -> None:
    refused = Prediction("2.3.0", ended(effect, "it is gone"))
    report = judged(QUERY, QUERY.replace("SUM(amount)", "COUNT(*)"), refused)
    ends = {finding.rule: finding.consequence for finding in report.findings if finding.consequence is not None}
    assert ends == {"plan-differs": effect.consequence}
    assert len(report.deciding) > 1
    assert if_resumed(report)[0].startswith(CONSEQUENCES[effect.consequence])


def test_a_doubt_proves_no_lookup_by_a_stand_in() -> None:
    said = Prediction("2.3.0", doubt="it depends on jdbc", stand_ins=("jdbc",), lookups=("names",))
    report = judged(QUERY, OUTPUT, said)
    assert (report.outcome, report.read_outcome) == (Outcome.UNKNOWN, Outcome.COMPATIBLE)


SEQUENCE = TABLE.replace("'connector' = 'kafka'", "'connector' = '{}'") + QUERY.replace("SUM(", "ARRAY_AGG(")


@pytest.mark.parametrize(
    ("connector", "said", "lines", "expected"),
    [
        ("kafka", ALIKE, ("1.20", "2.3"), Outcome.COMPATIBLE),
        ("datagen", ALIKE, ("1.18", "2.3"), Outcome.COMPATIBLE),
        ("pulsar", ALIKE, ("1.20", "2.3"), Outcome.UNKNOWN),
        ("kafka", ALIKE, ("2.3", "1.20"), Outcome.UNKNOWN),
        (
            "kafka",
            replace(ALIKE, restore=ended(RestoreEffect.DROPPED, "its state is no longer read")),
            ("1.20", "2.3"),
            Outcome.INCOMPATIBLE,
        ),
    ],
)
def test_planners_of_two_lines_leave_connectors_alone_to_the_table(
    connector: str, said: Prediction, lines: tuple[str, str], expected: Outcome
) -> None:
    """No restore from line to line had this aggregate; a connector reads its own state."""
    old, new = (Side(SEQUENCE.format(connector), engine="flink", engine_version=each) for each in lines)
    report = check_planned(old, new, said, plans())
    assert report.outcome is expected
    assert ("connector pulsar of table orders" in told(report)) is (connector == "pulsar")
