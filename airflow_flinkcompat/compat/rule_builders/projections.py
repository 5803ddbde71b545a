"""Projections and conditions above an operator: where another one was restored right, with doubts.

Measured on open-source Flink 2.3.0, into sinks without state. Where the planner computes or asks something was read
from EXPLAIN.
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
    "the sort may directly follow the source, which is then not chained and gets a different id, so "
    "its positions would find no source"
)


def joins(pair: PipelinePair) -> list[JoinOperator]:
    """The joins nearest the sink, before and after."""
    return [top for top in sinks.tops(pair) if isinstance(top, JoinOperator)]


def moved_by_outer_join(pair: PipelinePair) -> bool:
    """True if a condition above an outer join may require partners, which changes the join's plan."""
    kept = (JoinForm.TEMPORAL, JoinForm.LOOKUP)
    outer = [top for top in joins(pair) if top.join != "INNER" and top.form not in kept]
    return "filters" in pair.parts and bool(outer)


def projection_on_vvr(pair: PipelinePair) -> Verdict | None:
    """Unknown on VVR if the place of a condition or computation, above or below an operator, is unknown."""
    if "filters" in pair.parts:
        if moved_by_outer_join(pair):
            return unknown("it may require a match, which turns an outer join into a different join")
        if any(top.form is JoinForm.TEMPORAL for top in joins(pair)):
            return unknown("it may be evaluated below the temporal join")
        if _asks_about_partitions(pair):
            return unknown("it uses only PARTITION BY columns and may be evaluated below")
    if any(isinstance(top, OverOperator) for top in sinks.tops(pair)) and not _bare(pair):
        return unknown("columns next to an OVER call are computed below it")
    return None


def _asks_about_partitions(pair: PipelinePair) -> bool:
    """True if a differing condition drops whole partitions of the operator below, and might move there.

    Flink 2.3 leaves it above (EXPLAIN); no page describes VVR's planner.
    """
    return any(
        all(isinstance(leaf, Literal) or getattr(leaf, "output", None) in partition for leaf in leaves(part))
        for partition in map(_partition, sinks.tops(pair))
        for part in pair.old.segment.filters ^ pair.new.segment.filters
    )


def _partition(top: object) -> frozenset[object]:
    """The PARTITION BY outputs of an operator other than a ranking; a pattern passes them first."""
    if isinstance(top, OverOperator):
        return frozenset(PassedOutput(0, column) for column in top.partition_by)
    if isinstance(top, OtherOperator) and top.kind == OtherKind.MATCH_RECOGNIZE:
        return frozenset(map(ColumnOutput, range(len(dict(top.attributes)["partition order"]))))
    return frozenset()


def _bare(pair: PipelinePair) -> bool:
    """True if differing columns are passed unchanged."""
    return all(isinstance(column, OperatorColumn) for column in set(pair.old.columns) ^ set(pair.new.columns))


def _join(pair: PipelinePair) -> bool:
    return not moved_by_outer_join(pair)


def _lookup(pair: PipelinePair) -> bool:
    """True for a lookup with other output columns, which was restored right; otherwise unknown.

    Above a windowed aggregation only a synchronous one is known.
    """
    sides = ((pair.old, pair.old_program), (pair.new, pair.new_program))
    tops = [(top, *side) for side in sides if _reads_source(top := side[0].segment.origin) or lookups.from_windows(top)]
    modes = {lookups.mode(*each) for each in tops}
    same = pair.old.segment.filters == pair.new.segment.filters and _bare(pair)
    paired = [each for each in pair.operators if lookups.is_lookup(each.new)]
    alike = len(modes) == 1 and all(map(lookups.possible_modes, paired))  # the same on both sides, whichever it is
    from_source = all(_reads_source(top) for top, *_ in tops)
    return len(tops) == 2 and (modes == {LookupMode.SYNCHRONOUS} or (alike and same and from_source))


def _over(pair: PipelinePair) -> bool:
    """True if other columns of an OVER are computed below it; without a computed call, more are stored."""
    tops = sinks.tops(pair)
    same = pair.old.segment.filters == pair.new.segment.filters
    return _bare(pair) and same and all(isinstance(top, OverOperator) and computed(top) for top in tops)


@dataclass(frozen=True)
class Above:
    """The restores seen above a kind of operator, and where they speak of a pair."""

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
"""A synchronous lookup between a windowed aggregation and a sink that keeps nothing."""


def seen_above(pair: PipelinePair) -> Verdict | None:
    """Verdict on another projection or condition above the nearest operator; None if none was seen."""
    if "operators" in pair.parts:
        return coming_or_going(pair)
    tops = [side.segment.origin for side in (pair.old, pair.new)]
    kinds = {getattr(top, "kind", "") for top in tops}
    found = ABOVE.get(kinds.pop()) if len(kinds) == 1 else None
    if found is None or any(isinstance(top, AggregateOperator) and top.windowed for top in tops):
        return None
    if not found.sure(pair):
        return None
    return ABOVE_WINDOWS if all(map(lookups.from_windows, tops)) else right(*found.ids, note=found.note)


def _reads_source(operator: object) -> TypeGuard[JoinOperator]:
    if not isinstance(operator, JoinOperator) or operator.form is not JoinForm.LOOKUP:
        return False
    return isinstance(operator.segments[0].origin, Source)


def _sort(operator: Operator) -> bool:
    by_time = isinstance(operator, OtherOperator) and operator.kind == OtherKind.TEMPORAL_SORT
    detail = dict(operator.attributes) if isinstance(operator, OtherOperator) else {}
    return by_time and detail["clock"] is TimeAttribute.ROWTIME and isinstance(operator.segments[0].origin, Source)


def coming_or_going(pair: PipelinePair) -> Verdict | None:
    """Verdict on added or removed stateless operators and added sorts, which have no state; else None."""
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
    if not pair.removed and len(pair.added) == 1 and _sort(pair.added[0]) and _handed_on(pair):
        if not _chained(pair.added[0], pair):
            return unknown(STRAIGHT_ON_SOURCE)
        return right("so-added", note="it starts empty after a query without state")
    return None


def _chained(sort: Operator, pair: PipelinePair) -> bool:
    """True if Flink certainly plans an operator between a source and a sort, which keeps the source's id."""
    (segment,), (row,) = sort.segments, sort.rows  # type: ignore[attr-defined]
    assert isinstance(segment.origin, Source)
    try:
        table = derive_source(PlannedJob(pair.new, pair.new_pipeline, pair.new_program), segment.origin)
        ways = stretch_above(table, row, bool(segment.filters), ordered=False)
    except CannotLower:
        return False
    return all(len(kinds) > 1 for kinds in ways)


def _handed_on(pair: PipelinePair) -> bool:
    """True if the output is equal except for the operators that pass it on."""
    old, new = (tuple(_source(column) for column in side.columns) for side in (pair.old, pair.new))
    below = [origin.segments[0] for origin in (pair.new.segment.origin,) if isinstance(origin, OtherOperator)]
    return old == new and all(segment.filters == pair.old.segment.filters for segment in below)


def _source(column: object) -> object:
    passed = isinstance(column, OperatorColumn) and isinstance(column.output, PassedOutput)
    return column.output.column if passed else column  # type: ignore[attr-defined]


def computed(operator: OverOperator) -> bool:
    """True for SUM or AVG, which are computed after the operator, so that only then its input is pruned.

    Without any computed column the planner keeps all columns under an unbounded RANGE, and prunes them under ROWS
    (EXPLAIN; ``oa-del-first``).
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
    """Verdict on ``flink`` on a changed projection in front of the sink; None for the rule's own.

    It has no effect if the sink has no state. If it has, the operators around it must stay the same: a Calc certainly
    precedes the files on both sides. Other sinks, user functions and projections of some operators were not measured. A
    query without state is judged by the states of its job.
    """
    if reason := _event_times(pair):
        return unknown(reason)
    found = _projection(pair)
    return found and stateless.settled(pair, found, *stateless.OUTPUT)


def _projection(pair: PipelinePair) -> Verdict | None:
    if reason := _unmeasured(pair):
        return unknown(reason)
    nameless = not pair.old.sink and not pair.new.sink
    if (seen := _seen(pair)) is not None:
        # Updates may be kept once more, or whole rows, in front of any other sink.
        moved = "" if nameless else sinks.stays(pair)
        return unknown(moved) if moved else seen
    old, new = sinks.connectors(pair)
    if nameless or (old == new and old in sinks.STATELESS_SINKS):
        return WITHOUT_STATE if all(isinstance(top, Source) for top in sinks.tops(pair)) else None
    if old == new and old in sinks.SINKS_WITH_KNOWN_CHAIN and all(map(sinks.surely_projected, (pair.old, pair.new))):
        return IN_FILES
    declared = sinks.tables(pair)
    if any(table is not None and table.primary_key for table in declared):
        return unknown("if a sink has a primary key, Flink may store the rows it receives, and these changed")
    return unknown(f"sink connector {new or 'of an undeclared table'} was not measured with a changed projection")


def _event_times(pair: PipelinePair) -> str:
    """Reason why event-time columns at the sink make another job; "" if they do not."""
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
    """Reason why no measurement covers this projection; "" if one does."""
    if not _measured_top(*sinks.tops(pair), pair) and _seen(pair) is None:
        kinds = " and ".join(dict.fromkeys(getattr(top, "kind", "a source") for top in sinks.tops(pair)))
        return f"a changed projection of {kinds} was not measured"
    if _prunes_otherwise(pair):
        return (
            "the source may read different partitions; it reads an added partition from the beginning, including "
            "old rows"
        )
    own = own_functions(part for side in (pair.old, pair.new) for part in (*side.columns, *side.segment.filters))
    return f"a projection with {', '.join(own)} was not measured" if own else ""


def own_functions(parts: Iterable[Expression]) -> list[str]:
    """Functions that are not Flink's own: a Python or asynchronous one is an operator of its own."""
    names = {call.function for call in called(*parts)}
    return sorted(name for name in names if functions.lookup(name) is None and name not in ACCESSES)


def _prunes_otherwise(pair: PipelinePair) -> bool:
    """True if a condition on partition columns changed: an added partition is new to the source."""
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
    """A windowed aggregation, or a source that is only projected and filtered.

    A condition on a source with a primary key may be planned into the operator that keeps its rows (measured:
    ``cd-normalize-where-change``).
    """
    if isinstance(old, Source) and isinstance(new, Source):
        read = (pair.old_program.table(old.table), pair.new_program.table(new.table))
        kept = any(table is None or table.primary_key for table in read)
        return not kept and not any(side.segment.functions or side.segment.windows for side in (pair.old, pair.new))
    return all(isinstance(top, AggregateOperator) and top.windowed for top in (old, new))


def computed_columns(output: Output) -> list[Expression]:
    """Outputs other than window fields and the number of a rank, which have rules of their own."""
    return [column for column in output.columns if window_field(column) is None and not is_number(column)]


def _seen(pair: PipelinePair) -> Verdict | None:
    old, new = sinks.tops(pair)
    if isinstance(old, RankOperator) and isinstance(new, RankOperator):
        programs = pair.old_program, pair.new_program
        added_alone = all(map(flink_ranking.appends_only, (old.segment, new.segment), programs))
        if (stores_no_row(old) or stores_no_row(new)) and not added_alone:
            return None  # where rows are taken back, whole rows are kept by another operator
        shown = [[column for column in side.columns if not is_number(column)] for side in (pair.old, pair.new)]
        return flink_ranking.projected(old, new, only_number=shown[0] == shown[1])
    return seen_above(pair)
