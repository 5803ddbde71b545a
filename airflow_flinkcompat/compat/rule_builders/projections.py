"""Operators above which another projection or condition was restored right, with doubts.

Measured on open-source Flink 2.3.0, into sinks without state. Where the planner computes or asks something was read
from EXPLAIN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import lookups, sinks
from airflow_flinkcompat.compat.engines.flink.lookups import LookupMode
from airflow_flinkcompat.compat.rule import Verdict, inferred, refused_at_submit, right, unknown
from airflow_flinkcompat.exec_graph.layout import CannotLower
from airflow_flinkcompat.exec_graph.lowering import PlannedJob
from airflow_flinkcompat.exec_graph.nodes.source import derive_source, stretch_above
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.expressions import Literal
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    OtherKind,
    OtherOperator,
    OverOperator,
    Source,
)
from airflow_flinkcompat.plan.origins import ColumnOutput, OperatorColumn, PassedOutput, leaves
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


def on_vvr(pair: PipelinePair) -> Mapping[str, Verdict]:
    """Verdicts on VVR if the place of a condition or computation, above or below an operator, is unknown."""
    if moved_by_outer_join(pair):
        return {"vvr": unknown("it may require a match, which turns an outer join into a different join")}
    if "filters" in pair.parts and any(top.form is JoinForm.TEMPORAL for top in joins(pair)):
        return {"vvr": unknown("it may be evaluated below the temporal join")}
    if _asks_about_partitions(pair):
        return {"vvr": unknown("it uses only PARTITION BY columns and may be evaluated below")}
    if any(isinstance(top, OverOperator) for top in sinks.tops(pair)) and not _bare(pair):
        return {"vvr": unknown("columns next to an OVER call are computed below it")}
    return {}


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
    """True if other columns of an OVER are computed below it.

    More columns are stored there without a computed call.
    """
    tops = sinks.tops(pair)
    same = pair.old.segment.filters == pair.new.segment.filters
    return _bare(pair) and same and all(isinstance(top, OverOperator) and computed(top) for top in tops)


def _any(pair: PipelinePair) -> bool:
    return True


@dataclass(frozen=True)
class Above:
    """The restores seen above a kind of operator, and where they speak of a pair."""

    ids: tuple[str, ...]
    sure: Callable[[PipelinePair], bool] = _any
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
    return column.output.column if _passed(column) else column  # type: ignore[attr-defined]


def _passed(column: object) -> bool:
    return isinstance(column, OperatorColumn) and isinstance(column.output, PassedOutput)


def computed(operator: OverOperator) -> bool:
    """True for SUM or AVG, which are computed after the operator, so that only then its input is pruned.

    Without any computed column the planner keeps all columns under an unbounded RANGE, and prunes them under ROWS
    (EXPLAIN; ``oa-del-first``).
    """
    return any(call.function == "$SUM0" for call, _ in operator.planned_calls)
