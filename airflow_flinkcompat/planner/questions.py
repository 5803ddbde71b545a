"""Questions to the planner about a change, repeated for variants of unknown settings and missing jars."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.plan_comparison import Plans
from airflow_flinkcompat.connectors.facts import ConnectorFacts, Known, LookupSupport, SourceFacts
from airflow_flinkcompat.connectors.registry import FORMATS, catalogue
from airflow_flinkcompat.deploy.flink.compiled_plans import give_options, options_of_tables
from airflow_flinkcompat.deploy.flink.statements import as_one_statement
from airflow_flinkcompat.exec_graph.exec_node import PlanError, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import QUERY_SINK
from airflow_flinkcompat.exec_graph.from_planner import PlannedScript, changes_what_lasts
from airflow_flinkcompat.exec_graph.from_savepoint import planned_serializers
from airflow_flinkcompat.exec_graph.model import NOTHING, RestoreEffect
from airflow_flinkcompat.exec_graph.prediction import ConditionKind, Prediction, predicted
from airflow_flinkcompat.planner.assumptions import DECLARE, Assumptions, Variant
from airflow_flinkcompat.planner.daemon import daemon
from airflow_flinkcompat.planner.installation import Installation
from airflow_flinkcompat.secrets.redact import disguise_option, disguise_secrets
from airflow_flinkcompat.sql import Statement, parse_script
from airflow_flinkcompat.sql.nodes import SetOption

if TYPE_CHECKING:
    from airflow_flinkcompat.exec_graph.from_savepoint import StoredJob

PARALLELISM = "parallelism.default"
_RUNTIME_MODE = "execution.runtime-mode"
_PLANNING = {
    "table.plan.compile.catalog-objects": "SCHEMA",  # plans without options of tables, which may contain secrets
    "table.generated-code.max-length": "32000",  # splitting shorter code is useless and takes a fifth of the time
}
_UNKNOWN_PARALLELISM = ("1", "2")
"""Values to try for an unknown parallelism; operator chains differ between one and several subtasks."""
_GUESSED: Sequence[Mapping[str, Any]] = (
    {"changelog": "all", "sink": "upsert"},
    {"changelog": "insert", "push_down": True, "sink": "all"},
    {"push_down": True},  # since Flink 2.1, a watermark in an upsert source changes the operators after it
)
"""Alternative connector abilities for a stand-in source or a stand-in sink with a primary key."""
_LOOKUPS: Sequence[Mapping[str, Any]] = ({"async": True},)
"""Alternative lookup modes to try for a stand-in that a lookup join reads."""

_ASYNCHRONOUS = {LookupSupport.SYNCHRONOUS: "", LookupSupport.BY_OPTION: "lookup.async"}
"""The option that makes a lookup asynchronous; "" if the lookup is always synchronous."""

_OTHER_SETTINGS = (
    "the operators of the {} differ from the operators of the job. The job runs with different settings "
    "or on a different version: pass them ({})"
)
OTHER_SETTINGS = _OTHER_SETTINGS.format("deployed script", "--old-set, --old-engine-version")
OTHER_SETTINGS_OF_SCRIPT = _OTHER_SETTINGS.format("script", "--set, --engine-version")
"""The same fault, if only one script is read."""

_PASS_JAR = "pass its jar with --jar FILE"
_OF_AGGREGATE = "compatible if both versions store the accumulator of {} alike"
_OF_SCALAR = (
    "compatible if {} is a scalar function, or an aggregate function whose accumulator both versions store alike"
)
_OF_PARALLELISM = f"the result depends on {PARALLELISM}. Set it in the script, or with --set {PARALLELISM}=N"
Pair = tuple[Installation, Installation]


@dataclass(frozen=True)
class PlannedChange:
    """The planner's answers about a change.

    Attributes:
        prediction: The predicted result of a restore, or a doubt if variants of the unknown parts have different
            results.
        plans: The compiled plans of both sides; None if Flink cannot compile a job.
    """

    old: PlannedScript
    new: PlannedScript
    prediction: Prediction
    plans: Plans | None = None


def predict(
    old: Side,
    new: Side,
    before: Installation,
    after: Installation,
    operators: Collection[str] = (),
    stored: StoredJob | None = None,
) -> PlannedChange:
    """Predict the result of a restore after a script changed, with Flink's planner."""
    planned = _predicted(old, new, (before, after), frozenset(operators), stored)
    if planned.old.is_incomplete and new.upgrades(old):
        planned = _assuming(old, new, (before, after), frozenset(operators), stored) or planned
    if planned.prediction.doubt or planned.prediction.refuses_script:
        return planned
    if old.version != new.version:
        serializers = planned_serializers(planned.old)
        planned = replace(planned, prediction=replace(planned.prediction, serializers=serializers))
    return replace(planned, plans=compiled(old, new, planned))


def _predicted(
    old: Side,
    new: Side,
    installed: Pair,
    operators: frozenset[str],
    stored: StoredJob | None,
    assumed: Mapping[str, Any] | None = None,
    variants: Sequence[Variant] = (),
) -> PlannedChange:
    base = assumed or {}
    known = all(_sets_parallelism(side) for side in (old, new))
    widths: Sequence[Mapping[str, Any]] = [{"settings": {PARALLELISM: each}} for each in _UNKNOWN_PARALLELISM]
    answers = []
    for width in [{}] if known else widths:
        answers.append((width, answer := _planned(old, new, installed, {**base, **width}, stored)))
        # a refusal does not depend on the parallelism
        if answer.old.refusal is not None or answer.new.refusal is not None:
            break
    fitting = [each for each in answers if _has_operators(each[1].old, operators)]
    if not fitting:
        return _of_another_job([answer for _, answer in answers], stored)
    (width, planned), *others = fitting
    if any(_compared_facts(planned) != _compared_facts(again) for _, again in others):
        return _doubted(planned, _OF_PARALLELISM)
    agreeing: list[PlannedChange] = []
    for variant in (*_stand_ins(planned, bool(base)), *variants):
        again = _planned(old, new, installed, {**base, **width, **variant.question}, stored)
        if again.old.refusal is not None and planned.old.refusal is None:
            continue  # the deployed job runs, so its tables are different
        if _compared_facts(planned) == _compared_facts(again):
            agreeing.append(again)
        elif variant.condition and planned.new.refusal is None and again.new.refusal is not None:
            condition = f"{variant.condition}, which Flink {again.new.flink} then refuses: {DECLARE}"
            planned = _on_condition(planned, ConditionKind.SINK, condition)
        elif variant.case and _differ_in_a_refused_state(planned, again):
            planned = _of_case(planned, again, variant)
        else:
            return _doubted(planned, variant.doubt)
    return next((each for each in (planned, *agreeing) if not each.prediction.contradicted), planned)


def _differ_in_a_refused_state(one: PlannedChange, other: PlannedChange) -> bool:
    """True if Flink plans both, and refuses the state of one of them."""
    scripts = (one.old, one.new, other.old, other.new)
    doubts = one.prediction.doubt or other.prediction.doubt or any(each.refusal for each in scripts)
    return not doubts and (one.prediction.refusal is None) != (other.prediction.refusal is None)


def _of_case(planned: PlannedChange, again: PlannedChange, variant: Variant) -> PlannedChange:
    """The answer with a state that Flink reads, on the condition that the job has this state."""
    refusal = planned.prediction.refusal or again.prediction.refusal
    assert refusal is not None
    right, word, other = (planned, "unless", "then")
    if planned.prediction.refusal is not None:
        right, word, other = (again, "if", "otherwise")
    right = replace(right, prediction=replace(right.prediction, conditions=planned.prediction.conditions))
    condition = f"compatible {word} {variant.case}; {other} {refusal.message}: {DECLARE}"
    return _on_condition(right, ConditionKind.TYPES, condition)


def _assuming(
    old: Side, new: Side, installed: Pair, operators: frozenset[str], stored: StoredJob | None
) -> PlannedChange | None:
    """The answer with assumed declarations; None if Flink's messages do not lead to declarations."""
    statements = _statements(old)
    settings = {PARALLELISM: _UNKNOWN_PARALLELISM[0]}

    def ask(assumed: Mapping[str, Any]) -> Mapping[str, Any]:
        return _answer(old, installed[0], statements, {"settings": settings, **assumed})

    made = Assumptions(statements)
    if not made.settle(ask):
        return _refused_whatever(made, statements)
    base, names, variants = made.question(), made.names, [*made.variants]
    conditions = [_OF_AGGREGATE.format(name) for name in made.functions.of_kind("aggregate")]
    for name in made.functions.perhaps_aggregate([each.tree for each in statements if each.tree is not None]):
        variant = Variant(made.question(aggregate=name), f"{name} may be an aggregate function: {_PASS_JAR}")
        if "refusal" not in ask(variant.question):
            variants.append(variant)
            conditions.append(_OF_SCALAR.format(name))
    variants += made.of_numbers(ask)
    planned = _predicted(old, new, installed, operators, stored, base, variants)
    for condition in conditions:
        planned = _on_condition(planned, ConditionKind.CLASS, f"{condition}: {_PASS_JAR}")
    return replace(planned, prediction=replace(planned.prediction, assumed=names))


def _refused_whatever(made: Assumptions, statements: Sequence[Statement]) -> PlannedChange | None:
    """The answer if a line refuses a script whatever its declarations are; None if they may be the cause."""
    if made.refused is None or not made.refusal_stays:
        return None
    script = PlannedScript.of(made.refused, statements)
    assert script.refusal is not None
    refused = replace(script, refusal=replace(script.refusal, conclusive=True))
    return PlannedChange(refused, PlannedScript(script.flink), Prediction(script.flink, doubt=script.refusal.message))


def _of_another_job(answers: Sequence[PlannedChange], stored: StoredJob | None) -> PlannedChange:
    """The answer if no plan of the deployed script has the operators of the deployed job.

    The deployed job then runs a different script, or runs the same script with different settings or on a different
    version. If every plan of the new script refuses the savepoint, the first answer is returned. Otherwise, the answer
    is a doubt.
    """
    first = answers[0]
    strange = stored is not None and not any(stored.fits(each.old) for each in answers)
    if strange and all(each.prediction.refusal is not None and not each.new.stand_ins for each in answers):
        return first
    absent = ", ".join(dict.fromkeys(first.old.stand_ins.values()))
    jar = f"; or the difference is due to the missing jar of {absent}: name it with --jar FILE" if absent else ""
    return _doubted(first, f"{OTHER_SETTINGS}{jar}")


def plan_of_job(side: Side, installation: Installation, operators: Collection[str]) -> PlannedScript | None:
    """The plan of a script that has the operators of a job; None if no parallelism yields such a plan."""
    widths = ("",) if _sets_parallelism(side) else _UNKNOWN_PARALLELISM
    plans = (plan(side, installation, {"settings": {PARALLELISM: each}} if each else {}) for each in widths)
    return next((each for each in plans if _has_operators(each, frozenset(operators))), None)


def _stand_ins(planned: PlannedChange, assumed: bool) -> list[Variant]:
    """Variants of the stand-ins in a change, with the doubts if the planner's answers differ."""
    sides = (planned.old, planned.new)
    guessed = _GUESSED if any(side.guessed for side in sides) else ()
    absent = ", ".join(planned.prediction.stand_ins)
    doubt = f"the result depends on {absent}, whose jar is missing: pass the jar with --jar FILE"
    if assumed and not absent:
        doubt = f"the result depends on the connectors of tables without a declaration: {DECLARE}"
    return [Variant(each, doubt) for each in (*guessed, *(_LOOKUPS if any(side.lookups for side in sides) else ()))]


def _has_operators(script: PlannedScript, operators: frozenset[str]) -> bool:
    """True if the plan contains these OperatorIDs, or if Flink refuses the script."""
    return script.refusal is not None or operators <= {each.id for job in script.jobs for each in job.operators}


def _doubted(planned: PlannedChange, doubt: str) -> PlannedChange:
    said = planned.prediction
    prediction = replace(said, restore=NOTHING, doubt=doubt, alike=False, bare_sinks=())
    return replace(planned, prediction=prediction)


def _on_condition(planned: PlannedChange, kind: ConditionKind, condition: str) -> PlannedChange:
    conditions = tuple(dict.fromkeys((*planned.prediction.conditions, (kind, condition))))
    return replace(planned, prediction=replace(planned.prediction, conditions=conditions))


def compiled(old: Side, new: Side, planned: PlannedChange) -> Plans | None:
    """The compiled plans of both sides; None if Flink cannot compile a job."""
    made = []
    for side, script in ((old, planned.old), (new, planned.new)):
        if any(job.plan is None for job in script.jobs):
            return None
        try:
            plans = tuple(read_plan(json.dumps(job.plan)) for job in script.jobs)
        except PlanError:
            return None
        options = options_of_tables(side)
        for each in plans:
            give_options(each, options)
        made.append(plans)
    return made[0], made[1]


def _sets_parallelism(side: Side) -> bool:
    return PARALLELISM in side.settings or _value_set(side.parsed.statements, PARALLELISM) is not None


def _value_set(statements: Sequence[Statement], key: str) -> str | None:
    """The last value that a script sets for a key; None if the script does not set the key."""
    trees = (each.tree for each in reversed(statements) if isinstance(each.tree, SetOption))
    return next((tree.expression.name for tree in trees if tree.this is not None and tree.this.name == key), None)


def _planned(
    old: Side, new: Side, installed: Pair, variant: Mapping[str, Any], stored: StoredJob | None
) -> PlannedChange:
    before = plan(old, installed[0], variant)
    deployed = before if stored is None else stored.over(before)
    after = plan(new, installed[1], variant, tuple(job.savepoint for job in deployed.jobs))
    contradicted = () if stored is None else stored.contradictions(before)
    said = predicted(deployed, after, contradicted, upgrade=new.upgrades(old))
    return PlannedChange(before, after, said)


def plan(
    side: Side, installation: Installation, variant: Mapping[str, Any] | None = None, restore: Sequence[str] = ()
) -> PlannedScript:
    """Flink's plan of one script.

    ``variant``: values for unknown inputs. ``restore``: a savepoint for each job. Raises PlannerFailure if the planner
    does not answer. Raises ScriptError if the script contains no statement.
    """
    statements = _statements(side)
    return PlannedScript.of(_answer(side, installation, statements, variant, restore), statements)


def _statements(side: Side) -> tuple[Statement, ...]:
    """The statements of the catalog and the script."""
    declared = parse_script(side.catalog, "<catalog>").statements if side.catalog.strip() else ()
    return tuple(chain(declared, side.parsed.statements))


def _answer(
    side: Side,
    installation: Installation,
    statements: Sequence[Statement],
    variant: Mapping[str, Any] | None,
    restore: Sequence[str] = (),
) -> dict[str, Any]:
    chosen, mode = variant or {}, _value_set(statements, _RUNTIME_MODE)
    question = {
        **chosen,
        "statements": [as_one_statement(disguise_secrets(each.text)) for each in statements],
        "lasting": [number for number, each in enumerate(statements) if changes_what_lasts(each.text)],
        "settings": {
            PARALLELISM: "1",  # by default, the number of cores, which would affect operator chains
            **chosen.get("settings", {}),
            **{key: disguise_option(key, value) for key, value in side.settings.items()},
            **({_RUNTIME_MODE: mode} if mode else {}),  # the runtime mode applies from the start of a session
            **_PLANNING,
        },
        "query_sink": QUERY_SINK,
        "connectors": _known_abilities(" ".join(each.text for each in statements)),
        "jars": list(map(str, installation.jars)),
        "restore": list(restore),
    }
    return daemon(installation).ask(question)


def _known_abilities(script: str) -> dict[str, Any]:
    """Known abilities of stand-ins from the catalogue of connectors, by connector or connector/format."""
    found: dict[str, Any] = {}
    for name, facts in catalogue().items():
        if f"'{name}'" not in script:
            continue
        if facts.formats:
            found |= {f"{name}/{each.name}": _abilities(facts, each.appends) for each in FORMATS.values()}
        else:
            found[name] = _abilities(facts)
    return found


def _abilities(facts: ConnectorFacts, appends: Known = Known.YES) -> dict[str, Any]:
    """The known abilities of one connector; ``appends`` is YES if the format produces only inserts."""
    source, sink, lookup = facts.source, facts.sink, facts.lookup
    known: dict[str, Any] = {}
    if source is not None and (changelog := _changelog(source, appends)) and source.filters is Known.NO:
        pushed = {"projection": source.projection, "watermark": source.watermark}
        if Known.NOT_KNOWN not in pushed.values():
            known["source"] = {"changelog": changelog} | {each: value is Known.YES for each, value in pushed.items()}
    if sink is not None and sink.upserts is sink.upserts_appended is Known.YES:
        known["sink"] = "upsert"
    elif sink is not None and sink.updates is sink.takes_row_before is Known.YES:
        known["sink"] = "all"
    if lookup is not None and lookup.support in _ASYNCHRONOUS:
        known["lookup"] = _ASYNCHRONOUS[lookup.support]
    return known


def _changelog(source: SourceFacts, appends: Known) -> str:
    """The known changes of a source as the planner names them; "" if unknown."""
    if source.upserts is Known.YES:
        return "upsert"
    if source.appends is not Known.YES:
        return ""
    return {Known.YES: "insert", Known.NO: "all"}.get(appends, "")


def _compared_facts(planned: PlannedChange) -> tuple[Any, ...]:
    sides = ((side.refusal is None or side.refusal.message) for side in (planned.old, planned.new))
    said = planned.prediction
    dropped = bool(said.restore.having(RestoreEffect.DROPPED))
    return (*sides, said.refusal and said.refusal.effect, bool(said.doubt), dropped)
