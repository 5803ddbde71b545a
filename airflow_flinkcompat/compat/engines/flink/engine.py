"""Engine ``flink``: measured restores decide. A verdict is safe only if all its restores were right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.changes.query_form import QueryApi
from airflow_flinkcompat.compat.changes.respelling import may_be_same_operator, may_be_same_query
from airflow_flinkcompat.compat.engines.flink.api_change import api_change_verdict
from airflow_flinkcompat.compat.engines.flink.lookups import STRATEGY, is_lookup
from airflow_flinkcompat.compat.engines.flink.sinks import chain_may_change, surely_projected
from airflow_flinkcompat.compat.engines.flink.stateless import mapped_states
from airflow_flinkcompat.compat.engines.flink.table_api import GROUPED_ALIKE
from airflow_flinkcompat.compat.engines.protocol import (
    MOVED,
    AdjusterContext,
    lowered_to_unknown,
    undeclared_table_adjuster,
    unknown_value_adjuster,
)
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.compat.rule import Level, Rule, TableApiCover
from airflow_flinkcompat.compat.verdict import SAFE, Remedy, Verdict, unknown
from airflow_flinkcompat.exec_graph.model import FAILING_EFFECTS, Restore, RestoreEffect
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import AggregateOperator, Output, operators, sources
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn
from airflow_flinkcompat.plan.types import TimeAttribute

MEASURED_ON_SQL = "this was measured with SQL; Flink may plan the Table API differently"
OF_PROGRAMS = frozenset({"oa-range-narrower", *GROUPED_ALIKE})
"""Cases that were also measured with the Table API: OVER windows (with their ids for SQL) and keys."""
NEWLY_ASKED = frozenset({"sm-clause-dropped"})
"""Cases about a requirement that only the newer version has; no restore on an older version exists."""
_UID_GENERATION = "table.exec.uid.generation"


SPELLED_OTHERWISE = replace(
    unknown("both versions may be two spellings of one query, but Flink may plan them differently"),
    remedy=Remedy.EXPLAIN_PLAN,
)


def respelled_adjuster(verdict: Verdict, target: Any, change: Change) -> Verdict:
    """Lower an incompatible verdict if the new expressions may mean the same as the old expressions."""
    if verdict.outcome is not Outcome.INCOMPATIBLE:
        return verdict
    match target:
        case OperatorPair():
            same = may_be_same_operator(target)
        case PipelinePair():
            same = may_be_same_query(target)
        case _:
            same = False
    return SPELLED_OTHERWISE if same else verdict


def consequence_adjuster(verdict: Verdict, target: Any, change: Change) -> Verdict:
    """Derive the consequence of an incompatible verdict from the pair, if the rule does not name it."""
    if verdict.outcome is not Outcome.INCOMPATIBLE or verdict.consequence is not None:
        return verdict
    if not isinstance(target, OperatorPair):
        return verdict
    found = mapped_states(target.pipeline)
    if not isinstance(found, Restore):
        return verdict
    return replace(verdict, consequence=found.stored.worst_effect.consequence)


def measured_line_adjuster(verdict: Verdict, target: Any, change: Change) -> Verdict:
    """Lower a safe verdict that was not measured on the job's line of Flink.

    An upgrade with an edit consists of two restores on the new line: the unchanged script, which the planners of both
    lines judge, and the edit. A safe edit of a query keeps id, layout and meaning of all state, so both restores can
    happen as one. A setting or a hint may make Flink convert stored values, so its change must be safe on both lines.
    """
    old, new = change.versions
    if old == new or change.old.engine != change.new.engine:
        return verdict.on_line(new)
    if f"{old} to {new}" in verdict.versions:
        return verdict
    found = verdict.on_line(new)
    return found if _is_edit(target) or NEWLY_ASKED.issuperset(verdict.evidence) else found.on_line(old)


def _is_edit(target: Any) -> bool:
    """True if the pair belongs to a query, and no hint of the query differs."""
    pipeline = target.pipeline if isinstance(target, OperatorPair) else target
    if not isinstance(pipeline, PipelinePair):
        return False
    parts = {*pipeline.parts, *(part for pair in pipeline.operators for part in pair.parts)}
    return not any("hints" in part for part in parts)


def table_api_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower a verdict that was measured only with SQL to unknown for Table API queries."""
    if finding.outcome not in SAFE or rule.table_api_cover is TableApiCover.OWN:
        return finding
    pairs = case.change.pipelines_about(finding.sink)
    if not all(map(_keeps_state, pairs)):
        return lowered_to_unknown(finding, MOVED)
    programs = [pair for pair in pairs if any(pair.steps)]
    return (
        finding
        if all(_covered(finding, rule, pair) for pair in programs)
        else lowered_to_unknown(finding, MEASURED_ON_SQL)
    )


def _keeps_state(pair: PipelinePair) -> bool:
    verdict = api_change_verdict(pair)
    return verdict is None or verdict.outcome is Outcome.COMPATIBLE


def _covered(finding: Finding, rule: Rule, pair: PipelinePair) -> bool:
    """True if a finding also applies to the Table API."""
    if rule.table_api_cover is TableApiCover.ALWAYS:
        return True
    if rule.table_api_cover is TableApiCover.ONE_QUERY:
        return all(len(program.pipelines) == 1 for program in (pair.old_program, pair.new_program))
    if any(side.api is not QueryApi.TABLE_API for side in pair.query_forms) or len(pair.operators) != 1:
        return False
    if finding.evidence and OF_PROGRAMS.issuperset(finding.evidence):
        return True
    on_window = isinstance(pair.operators[0].new, AggregateOperator) and pair.operators[0].windowed is not None
    return on_window and rule.table_api_cover is TableApiCover.ONE_WINDOW


def shared_job_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower a safe outcome if a changed query may change the plans of other queries in its statement set."""
    if finding.outcome not in SAFE:
        return finding
    why = "the change may affect the plans of other queries in the statement set"
    changed = case.change.pipelines_into(finding.sink)
    return lowered_to_unknown(finding, why) if any(disturbs(pair, case.change) for pair in changed) else finding


def key_order_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower a safe outcome if the sink's columns may determine the key order in state (plans of 2.3.0)."""
    if finding.outcome not in SAFE:
        return finding
    why = "the output columns may determine the order of keys in state"
    into = case.change.pipelines_into(finding.sink)
    about = case.change.pipelines_about(finding.sink)
    follows = (_may_follow_the_table(side) for pair in about for side in (pair.old, pair.new))
    moved = any(map(keys_may_move, into)) or (any(follows) and not case.change.same_statements)
    return lowered_to_unknown(finding, why) if moved else finding


def unchained_sink_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower a safe outcome if a separate sink parallelism may change the id of the preceding operator."""
    if finding.outcome not in SAFE:
        return finding
    why = "the sink has a separate parallelism: an operator added or removed before the sink may change other ids"
    about = case.change.pipelines_about(finding.sink)
    return lowered_to_unknown(finding, why) if any(chain_may_change(pair, case.change) for pair in about) else finding


def resolved_lookup_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower a safe outcome with the strategy TRY_RESOLVE: a lookup then stores the rows that it finds."""
    if finding.outcome not in SAFE:
        return finding
    asked = any(
        dict(pipeline.settings).get(STRATEGY, "").upper() == "TRY_RESOLVE" and any(map(is_lookup, operators(output)))
        for pair in case.change.pipelines_about(finding.sink)
        for pipeline, output in ((pair.old_pipeline, pair.old), (pair.new_pipeline, pair.new))
    )
    return lowered_to_unknown(finding, f"{STRATEGY} = TRY_RESOLVE may make a lookup store rows") if asked else finding


def mapping_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower a safe finding if the known states of both jobs contradict it."""
    if finding.sink not in case.memo:
        found = (mapped_states(pair) for pair in case.change.pipelines_about(finding.sink))
        effects = (each.stored.worst_effect for each in found if isinstance(each, Restore))
        case.memo[finding.sink] = next((effect for effect in effects if effect in FAILING_EFFECTS), None)
    bad: RestoreEffect | None = case.memo[finding.sink]
    return finding if bad is None else lowered_to_unknown(finding, f"the effect on a state of the job is: {bad.value}")


def exec_graph_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Apply the exec graph diff to a finding about operators that the graphs show."""
    return finding if case.graph_adjuster is None else case.graph_adjuster(finding, rule)


def operator_ids_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower a compatible finding if Flink assigns new operator ids at each start and so refuses a restore."""
    if finding.outcome is not Outcome.COMPATIBLE:
        return finding
    settings = {p.settings for program in case.change.programs for p in program.pipelines}
    always = any(dict(each).get(_UID_GENERATION, "").upper() == "ALWAYS" for each in settings)
    return lowered_to_unknown(finding, f"{_UID_GENERATION} = ALWAYS renumbers operators") if always else finding


def disturbs(pair: PipelinePair, change: Change) -> bool:
    """True if a change to this query may renumber or replan operators of the job's other queries.

    The queries of a statement set are one job, and operator ids depend on the whole topology. An operator added to or
    removed from one query therefore renumbers later operators of other queries. Flink plans queries over the same
    source together, so the columns that one query reads affect the operators of other queries (measured:
    ``ms-mod-stateless``).
    """
    if not pair.changed or not (others := change.companions(pair)):
        return False
    if not _same_topology(pair):
        return True
    return any(_planned_together(pair, other) for other in others)


def _same_topology(pair: PipelinePair) -> bool:
    """True if certainly no operator is added or removed between source and sink."""
    if pair.removed or pair.added or any(operator.differences for operator in pair.operators):
        return False
    return pair.parts <= {"sink"} or (surely_projected(pair.old) and surely_projected(pair.new))


def _planned_together(pair: PipelinePair, other: PipelinePair) -> bool:
    """True if both queries read the same source, and the change affects an operator that both may share."""
    tables = ({source.table for side in (each.old, each.new) for source in sources(side)} for each in (pair, other))
    if not set.intersection(*tables):
        return False
    # True if the results of the two queries differ, on the old side and on the new side.
    alone = _result(pair.old) != _result(other.old) and _result(pair.new) != _result(other.new)
    return any(operator.differences for operator in pair.operators) or not pair.operators or not alone


def _result(output: Output) -> tuple[object, ...]:
    return output.segment, output.columns


def keys_may_move(pair: PipelinePair) -> bool:
    """True if a change downstream of a state may change the order of keys in this state (EXPLAIN, 2.3.0).

    Suppose a group aggregation or group window has a condition on its input, and the output contains only columns of
    the aggregation. The planner then merges the projection into the aggregation, and keys are stored in the order of
    the output. With a construct that needs a separate projection (HAVING, an expression, a different column order),
    keys are in the order of GROUP BY. Aggregations over a window table function keep the order of GROUP BY, except in
    :func:`_may_follow_the_table`.
    """
    return bool(pair.differences) and any(_moved_by_output(output) for output in (pair.old, pair.new))


def _may_follow_the_table(output: Output) -> bool:
    """True if keys may be stored in the order of the table's columns instead of the order of GROUP BY.

    In plans of 2.3.0, the keys follow the table's order in one case: a window table function over processing time has a
    condition on its input, and the table has a watermark. With an expression in the output, or with the condition in a
    view, keys are in the order of GROUP BY.
    """
    return any(
        isinstance(each, AggregateOperator)
        and each.window is not None
        and each.window.notation != "group window"
        and each.window.time_attribute is not TimeAttribute.ROWTIME
        and len(each.keys) > 1
        and bool(each.segment.filters)
        for each in operators(output)
    )


def _moved_by_output(output: Output) -> bool:
    operator = output.segment.origin
    if not isinstance(operator, AggregateOperator) or len(operator.keys) < 2 or not operator.segment.filters:
        return False
    if operator.window is not None and operator.window.notation != "group window":
        return False
    shown = [
        operator.keys.index(column.output.key)
        for column in output.columns
        if isinstance(column, OperatorColumn)
        and isinstance(column.output, KeyOutput)
        and column.output.key in operator.keys
    ]
    return shown != sorted(shown)


class FlinkEngine:
    """Open-source Flink. A restore succeeds or fails for the whole job, so the worst finding decides."""

    name = "flink"
    verdict_adjusters = (respelled_adjuster, consequence_adjuster, measured_line_adjuster)
    finding_adjusters = (
        table_api_adjuster,
        undeclared_table_adjuster,
        unknown_value_adjuster,
        shared_job_adjuster,
        key_order_adjuster,
        unchained_sink_adjuster,
        resolved_lookup_adjuster,
        exec_graph_adjuster,
        operator_ids_adjuster,
    )
    unchanged_adjusters = (key_order_adjuster, operator_ids_adjuster)
    safe_finding_adjusters = (mapping_adjuster,)

    def level(self, rule: Rule) -> Level:
        """One precedence level for all rules."""
        return Level.REST
