"""Verdicts on changed projections and conditions over the output of an operator.

The restores were run on open-source Flink 2.3.0 with sinks without state. EXPLAIN showed where the planner evaluates a
computation or a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import lookups, sinks, stateless
from airflow_flinkcompat.compat.engines.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.engines.flink.lookups import LookupMode
from airflow_flinkcompat.compat.engines.flink.ranking import is_number, stores_no_row
from airflow_flinkcompat.compat.verdict import Verdict, inferred, refused_at_submit, right, unknown
from airflow_flinkcompat.connectors.registry import is_stateless_sink
from airflow_flinkcompat.exec_graph.layout import CannotLower
from airflow_flinkcompat.exec_graph.lowering import PlannedJob
from airflow_flinkcompat.exec_graph.nodes.source import derive_source, stretch_above
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import ACCESSES, Expression, Literal, called
from airflow_flinkcompat.plan.nodes import WindowField
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    OtherKind,
    OtherOperator,
    Output,
    OverOperator,
    RankOperator,
    Source,
)
from airflow_flinkcompat.plan.origins import (
    ColumnOutput,
    OperatorColumn,
    PassedOutput,
    SourceColumn,
    leaves,
    window_field,
)
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import TimeAttribute

STRAIGHT_ON_SOURCE = (
    "the sort may directly follow the source. The source is then not chained and gets a different id, so its stored "
    "positions find no source"
)


def joins(pair: PipelinePair) -> list[JoinOperator]:
    """The joins nearest the sink on both sides."""
    return [top for top in sinks.result_origins(pair) if isinstance(top, JoinOperator)]


def moved_by_outer_join(pair: PipelinePair) -> bool:
    """True if a changed condition on the output of an outer join may change the planned join type."""
    kept = (JoinForm.TEMPORAL, JoinForm.LOOKUP)
    outer = [top for top in joins(pair) if top.join != "INNER" and top.form not in kept]
    return "filters" in pair.parts and bool(outer)


def projection_on_vvr(pair: PipelinePair) -> Verdict | None:
    """Unknown on VVR if a condition or computation may be evaluated upstream of an operator; else None."""
    if "filters" in pair.parts:
        if moved_by_outer_join(pair):
            return unknown("the condition may require a match, which turns the outer join into a different join")
        if any(top.form is JoinForm.TEMPORAL for top in joins(pair)):
            return unknown("the condition may be evaluated below the temporal join")
        if _tests_partitions_only(pair):
            return unknown("the condition uses only PARTITION BY columns and may be evaluated below the operator")
    if any(isinstance(top, OverOperator) for top in sinks.result_origins(pair)) and not _passes_columns(pair):
        return unknown("columns next to an OVER call are computed below the OVER operator")
    return None


def _tests_partitions_only(pair: PipelinePair) -> bool:
    """True if a changed condition uses only PARTITION BY columns, so that the planner may push it down.

    Flink 2.3 does not push the condition down (EXPLAIN). No page describes VVR's planner.
    """
    return any(
        all(isinstance(leaf, Literal) or getattr(leaf, "output", None) in partition for leaf in leaves(part))
        for partition in map(_partition, sinks.result_origins(pair))
        for part in pair.old.segment.filters ^ pair.new.segment.filters
    )


def _partition(top: object) -> frozenset[object]:
    """PARTITION BY columns of an OVER operator or MATCH_RECOGNIZE, as outputs; empty for other operators."""
    if isinstance(top, OverOperator):
        return frozenset(PassedOutput(0, column) for column in top.partition_by)
    if isinstance(top, OtherOperator) and top.kind == OtherKind.MATCH_RECOGNIZE:
        return frozenset(map(ColumnOutput, range(len(dict(top.attributes)["partition order"]))))
    return frozenset()


def _passes_columns(pair: PipelinePair) -> bool:
    """True if the changed columns only pass on columns of the upstream operator."""
    return all(isinstance(column, OperatorColumn) for column in set(pair.old.columns) ^ set(pair.new.columns))


def _join(pair: PipelinePair) -> bool:
    return not moved_by_outer_join(pair)


def _lookup(pair: PipelinePair) -> bool:
    """True if restores cover a changed projection downstream of a lookup join.

    If the input of the lookup join is a windowed aggregation, restores cover only a synchronous lookup.
    """
    sides = ((pair.old, pair.old_program), (pair.new, pair.new_program))
    origins = [
        (top, *side) for side in sides if _reads_source(top := side[0].segment.origin) or lookups.from_windows(top)
    ]
    modes = {lookups.mode(*each) for each in origins}
    same = pair.old.segment.filters == pair.new.segment.filters and _passes_columns(pair)
    paired = [each for each in pair.operators if lookups.is_lookup(each.new)]
    alike = len(modes) == 1 and all(map(lookups.possible_modes, paired))  # even if the mode is unknown
    from_source = all(_reads_source(top) for top, *_ in origins)
    return len(origins) == 2 and (modes == {LookupMode.SYNCHRONOUS} or (alike and same and from_source))


def _over(pair: PipelinePair) -> bool:
    """True if restores cover changed output columns of an OVER operator."""
    origins = sinks.result_origins(pair)
    same = pair.old.segment.filters == pair.new.segment.filters
    return _passes_columns(pair) and same and all(isinstance(top, OverOperator) and computed(top) for top in origins)


@dataclass(frozen=True)
class Above:
    """Restores of changed projections over a kind of operator; ``sure`` tests if the ids cover a pair."""

    ids: tuple[str, ...]
    sure: Callable[[PipelinePair], bool] = lambda pair: True
    note: str = ""


ABOVE: Mapping[str, Above] = {
    AggregateKind.GROUP: Above(("ga-outer-calc", "ga-having-add", "ga-dup-agg")),
    JoinForm.REGULAR: Above(("rj-output-expr", "rj-output-expr-one"), _join),
    JoinForm.INTERVAL: Above(("rj-output-expr", "tj-output-expr"), _join, note="as above other joins"),
    JoinForm.WINDOW: Above(("rj-output-expr", "tj-output-expr"), _join, note="as above other joins"),
    JoinForm.TEMPORAL: Above(("tj-output-expr", "tj-output-reorder", "tj-push-left-add", "tj-push-left-change")),
    JoinForm.LOOKUP: Above(("lj-where-add",), _lookup),
    OtherKind.TEMPORAL_SORT: Above(("so-drop-ts",)),
    OtherKind.LIMIT: Above(("li-col-swap",)),
    OtherKind.MATCH_RECOGNIZE: Above(("mr-part-reorder",)),
    OverOperator.KIND: Above(("over-frames-output-computed", "over-frames-output-computed-rows"), _over),
}
ABOVE_WINDOWS = inferred(
    Outcome.COMPATIBLE,
    "no operator above the aggregation keeps state",
    ids=("lj-key-othercol", "lj-where-add", "w-having-add", "w-add-window-start"),
)
"""Verdict for a synchronous lookup between a windowed aggregation and a stateless sink."""


def measured_above(pair: PipelinePair) -> Verdict | None:
    """Verdict on a changed projection or condition downstream of the last operator; None if not measured."""
    if "operators" in pair.parts:
        return judge_added_or_removed(pair)
    origins = [side.segment.origin for side in (pair.old, pair.new)]
    kinds = {getattr(top, "kind", "") for top in origins}
    found = ABOVE.get(kinds.pop()) if len(kinds) == 1 else None
    if found is None or any(isinstance(top, AggregateOperator) and top.windowed for top in origins):
        return None
    if not found.sure(pair):
        return None
    return ABOVE_WINDOWS if all(map(lookups.from_windows, origins)) else right(*found.ids, note=found.note)


def _reads_source(operator: object) -> TypeGuard[JoinOperator]:
    if not isinstance(operator, JoinOperator) or operator.form is not JoinForm.LOOKUP:
        return False
    return isinstance(operator.segments[0].origin, Source)


def _sort(operator: Operator) -> bool:
    by_time = isinstance(operator, OtherOperator) and operator.kind == OtherKind.TEMPORAL_SORT
    detail = dict(operator.attributes) if isinstance(operator, OtherOperator) else {}
    return by_time and detail["clock"] is TimeAttribute.ROWTIME and isinstance(operator.segments[0].origin, Source)


def judge_added_or_removed(pair: PipelinePair) -> Verdict | None:
    """Verdict on added or removed lookup joins and added sorts; None for other operators."""
    moved = sinks.stays(pair) if pair.old.sink or pair.new.sink else ""
    gone, come = lookups.modes_of_unpaired(pair)
    if LookupMode.ASYNCHRONOUS in gone and not pair.added:
        return refused_at_submit("al-stateless-idle-removed")
    if pair.operators:
        return None
    if LookupMode.NOT_KNOWN in gone | come:
        return unknown(lookups.MAY_WAIT)
    if moved:
        return None
    if all(map(_reads_source, (*pair.removed, *pair.added))):
        return right("lj-removed", "al-stateless-idle-added", "sk-stateless-lookup-added")
    if not pair.removed and len(pair.added) == 1 and _sort(pair.added[0]) and _has_same_output(pair):
        if not _chained(pair.added[0], pair):
            return unknown(STRAIGHT_ON_SOURCE)
        return right("so-added", note="the sort starts empty above a query without state")
    return None


def _chained(sort: Operator, pair: PipelinePair) -> bool:
    """True if Flink certainly plans an operator between source and sort, so that the source keeps its id."""
    (segment,), (row,) = sort.segments, sort.rows  # type: ignore[attr-defined]
    assert isinstance(segment.origin, Source)
    try:
        table = derive_source(PlannedJob(pair.new, pair.new_pipeline, pair.new_program), segment.origin)
        ways = stretch_above(table, row, bool(segment.filters), ordered=False)
    except CannotLower:
        return False
    return all(len(kinds) > 1 for kinds in ways)


def _has_same_output(pair: PipelinePair) -> bool:
    """True if both outputs contain the same columns, apart from operators that only pass the columns on."""
    old, new = (tuple(_source(column) for column in side.columns) for side in (pair.old, pair.new))
    below = [origin.segments[0] for origin in (pair.new.segment.origin,) if isinstance(origin, OtherOperator)]
    return old == new and all(segment.filters == pair.old.segment.filters for segment in below)


def _source(column: object) -> object:
    passed = isinstance(column, OperatorColumn) and isinstance(column.output, PassedOutput)
    return column.output.column if passed else column  # type: ignore[attr-defined]


def computed(operator: OverOperator) -> bool:
    """True if an OVER operator has a SUM or AVG, which Flink computes in a downstream operator.

    With a SUM or AVG, the planner always prunes the input of the OVER operator. Without a SUM or AVG, the planner keeps
    all input columns of an unbounded RANGE and prunes unread input columns of ROWS (EXPLAIN; ``oa-del-first``).
    """
    return any(call.function == "$SUM0" for call, _ in operator.planned_calls)


WITHOUT_STATE = right(
    "stateless-column-added",
    "stateless-column-computed",
    "stateless-filter-added",
    "stateless-filter-changed",
    "stateless-filter-removed",
    note="nothing is stored",
)


IN_FILES = right(
    "file-sinks-column-computed",
    "file-sinks-column-computed-removed",
    "file-sinks-columns-swapped",
    "file-sinks-metric-computed",
    "file-sinks-window-start",
    note="a Calc between the aggregation and the files in both versions",
)


def projection_on_flink(pair: PipelinePair) -> Verdict | None:
    """Verdict on ``flink`` on a changed projection before the sink; None for the rule's general verdict.

    The change has no effect if the sink has no state. For a sink with state, restores cover only plans that certainly
    contain a Calc before the sink on both sides. Other sinks, user-defined functions and projections of some operators
    were not measured. If the query has no state, the verdict depends on the state of the whole job.
    """
    if reason := _event_times(pair):
        return unknown(reason)
    found = _projection(pair)
    return found and stateless.settled(pair, found, *stateless.OUTPUT)


def _projection(pair: PipelinePair) -> Verdict | None:
    if reason := _unmeasured(pair):
        return unknown(reason)
    nameless = not pair.old.sink and not pair.new.sink
    if (seen := _measured_projection(pair)) is not None:
        # In front of any other sink, an operator may store the updates or whole rows.
        moved = "" if nameless else sinks.stays(pair)
        return unknown(moved) if moved else seen
    old, new = sinks.connectors(pair)
    if nameless or (old == new and is_stateless_sink(old)):
        return WITHOUT_STATE if all(isinstance(top, Source) for top in sinks.result_origins(pair)) else None
    if old == new and old in sinks.SINKS_WITH_KNOWN_CHAIN and all(map(sinks.surely_projected, (pair.old, pair.new))):
        return IN_FILES
    declared = sinks.tables(pair)
    if any(table is not None and table.primary_key for table in declared):
        return unknown("Flink may store the rows that a sink with a primary key receives, and these rows changed")
    return unknown(f"sink connector {new or 'of an undeclared table'} was not measured with a changed projection")


def _event_times(pair: PipelinePair) -> str:
    """Reason why event-time columns change the operators before the sink; "" if they do not."""
    old = _event_time_columns(pair.old, pair.old_program)
    new = _event_time_columns(pair.new, pair.new_program)
    if new > 1:
        return "Flink may refuse a query that emits several event-time columns to one sink"
    if old != new and set(sinks.connectors(pair)) & {*sinks.SINKS_WITH_KNOWN_CHAIN}:
        return "an event-time column adds an operator before the sink's writer, which changes the writer's id"
    return ""


def _event_time_columns(output: Output, program: Program) -> int:
    origin = output.segment.origin
    read = origin.table if isinstance(origin, Source) else ""
    times = {table.watermark.column for table in program.tables if table.name == read and table.watermark is not None}
    return sum(
        window_field(column) is WindowField.TIME or (isinstance(column, SourceColumn) and column.column in times)
        for column in output.columns
    )


def _unmeasured(pair: PipelinePair) -> str:
    """Reason why no restore covers this projection; "" if a restore covers it."""
    if not _measured_top(*sinks.result_origins(pair), pair) and _measured_projection(pair) is None:
        kinds = " and ".join(dict.fromkeys(getattr(top, "kind", "a source") for top in sinks.result_origins(pair)))
        return f"a changed projection of {kinds} was not measured"
    if _prunes_differently(pair):
        return (
            "the source may read different partitions, and it reads an added partition from the beginning, including "
            "old rows"
        )
    own = own_functions(part for side in (pair.old, pair.new) for part in (*side.columns, *side.segment.filters))
    return f"a projection with {', '.join(own)} was not measured" if own else ""


def own_functions(parts: Iterable[Expression]) -> list[str]:
    """Names of user-defined functions; a Python or asynchronous function runs in a separate operator."""
    names = {call.function for call in called(*parts)}
    return sorted(name for name in names if functions.lookup(name) is None and name not in ACCESSES)


def _prunes_differently(pair: PipelinePair) -> bool:
    """True if a condition on partition columns changed, so that the source may read other partitions."""
    chosen = (
        {condition for condition in output.segment.filters if _partitions(output, program) & _columns(condition)}
        for output, program in ((pair.old, pair.old_program), (pair.new, pair.new_program))
    )
    old, new = chosen
    return old != new


def _partitions(output: Output, program: Program) -> set[str]:
    origin = output.segment.origin
    found = program.table(origin.table) if isinstance(origin, Source) else None
    return set() if found is None else set(found.partitioned_by)


def _columns(condition: Expression) -> set[str]:
    return {leaf.column for leaf in leaves(condition) if isinstance(leaf, SourceColumn)}


def _measured_top(old: object, new: object, pair: PipelinePair) -> bool:
    """True if the projection reads a windowed aggregation, or a plain source without a primary key.

    The planner may push a condition on a source with a primary key into the operator that stores the source's rows
    (measured: ``cd-normalize-where-change``).
    """
    if isinstance(old, Source) and isinstance(new, Source):
        read = (pair.old_program.table(old.table), pair.new_program.table(new.table))
        kept = any(table is None or table.primary_key for table in read)
        return not kept and not any(side.segment.functions or side.segment.windows for side in (pair.old, pair.new))
    return all(isinstance(top, AggregateOperator) and top.windowed for top in (old, new))


def projected_columns(output: Output) -> list[Expression]:
    """Output columns other than window fields and rank numbers, for which separate rules exist."""
    return [column for column in output.columns if window_field(column) is None and not is_number(column)]


def _measured_projection(pair: PipelinePair) -> Verdict | None:
    old, new = sinks.result_origins(pair)
    if isinstance(old, RankOperator) and isinstance(new, RankOperator):
        programs = pair.old_program, pair.new_program
        added_alone = all(map(flink_ranking.appends_only, (old.segment, new.segment), programs))
        if (stores_no_row(old) or stores_no_row(new)) and not added_alone:
            return None  # if rows are retracted, a different operator stores whole rows
        shown = [[column for column in side.columns if not is_number(column)] for side in (pair.old, pair.new)]
        return flink_ranking.projected(old, new, only_number=shown[0] == shown[1])
    return measured_above(pair)
