"""Query that computes an operator's state, and a preview of what a run would read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource
from airflow_flinkcompat.backfill.protocols import BackfillSource, Locations
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.compat.changes.settings import value
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.exec_graph.from_script import operator_layout
from airflow_flinkcompat.exec_graph.layout import CallPart, CannotLower, StateLayout, Unknown
from airflow_flinkcompat.exec_graph.matching import known_layout, unify
from airflow_flinkcompat.exec_graph.model import StateSpec
from airflow_flinkcompat.exec_graph.stored_columns import TableColumns, in_stored_order
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.history.aggregations import aggregation_query
from airflow_flinkcompat.history.archived_topic import topic_of
from airflow_flinkcompat.history.derived_rows import NotComputable, is_recomputable
from airflow_flinkcompat.history.entries import LocalClock, check_writable
from airflow_flinkcompat.history.joins import interval_join_query, join_query
from airflow_flinkcompat.history.over import over_query
from airflow_flinkcompat.history.ranks import rank_query
from airflow_flinkcompat.history.state_rows import StateQuery
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.plan.nodes import Table, WindowKind
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    OtherOperator,
    OverOperator,
    RankKind,
    RankOperator,
    Source,
    StatelessSegment,
    appends,
)
from airflow_flinkcompat.plan.program import Pipeline
from airflow_flinkcompat.plan.types import APPROXIMATE, TimeAttribute
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable

_RowsOf = Callable[[StatelessSegment], TableRows]
_QUERIES: Mapping[type[Operator], Callable[[_RowsOf, Any, StateLayout], StateQuery]] = {
    AggregateOperator: lambda rows, operator, layout: aggregation_query(rows(operator.segment), operator, layout),
    OverOperator: lambda rows, operator, layout: over_query(rows(operator.segment), operator, layout),
    RankOperator: lambda rows, operator, layout: rank_query(rows(operator.segment), operator, layout),
    JoinOperator: lambda rows, operator, layout: (
        interval_join_query if operator.form is JoinForm.INTERVAL else join_query
    )([*map(rows, operator.segments)], operator, layout),
}
_OFFSETS_SINCE = _OVER_SINCE = "2.3"
_TTL, _STATE_TTL = "table.exec.state.ttl", "STATE_TTL"
_REORDERED = "table.optimizer.join-reorder-enabled"
_CHANGELOGS = frozenset({"upsert-kafka", "hudi", "paimon"})
_CHANGES = re.compile(r"debezium|canal|maxwell|ogg")
_STORED_OTHERWISE = "the plan of the script has no operator that stores this state"


def state_query(side: Side, spec: StateSpec, locations: Locations, watermark: int | None = None) -> StateQuery:
    """Build the query that computes the state of an operator in the script."""
    try:
        pipeline, operator = _of_script(side, spec)
        if (between_windows := _between_windows(side, pipeline, operator, spec, locations)) is not None:
            return between_windows
        operator, layout = _as_stored(side, spec, operator)
        time_to_live = 0
        # The compiled plan does not contain the TTL of an OVER aggregation.
        if any(state.time_to_live for state in layout.states) or (
            isinstance(operator, OverOperator) and value(_TTL, dict(pipeline.settings).get(_TTL, "0")) != "0"
        ):
            time_to_live = _time_to_live(pipeline, operator)
        rows = partial(TableRows, pipeline, locations=locations, watermark=watermark, time_to_live=time_to_live)
        _require_as_written(pipeline, operator)
        query = _QUERIES[type(operator)](rows, operator, layout)
        _require_added_to(query.tables)
        for state in layout.states:
            check_writable(layout.key, state)
        if isinstance(operator, AggregateOperator):
            require_punctual(side, query)
        if isinstance(operator, OverOperator):
            _require_measured(side, operator)
    except (BackfillError, NotMigratable, SavepointUnreadable) as error:
        raise NotComputable(str(error)) from None
    require_plain(operator)
    # Only Spark can find the rows of values that have not expired.
    return replace(query, time_to_live=time_to_live, plain=() if time_to_live else query.plain)


def _require_as_written(pipeline: Pipeline, operator: Operator) -> None:
    """Check that the planner keeps the join order of the script."""
    reordered = value(_REORDERED, dict(pipeline.settings).get(_REORDERED, "false")) != "false"
    if reordered and isinstance(operator, JoinOperator):
        raise NotComputable(f"{_REORDERED} is set, so the planner may reorder the joins of the script")


def _require_added_to(tables: Iterable[Table]) -> None:
    """Check that tables are insert-only. A changelog also removes rows."""
    for table in tables:
        connector = table.option("connector", "") or ""
        formats = [text for key, text in table.options if key.endswith("format")]
        if connector in _CHANGELOGS or connector.endswith("-cdc") or any(map(_CHANGES.match, formats)):
            raise NotComputable(f"table {table.path[2]} is a changelog, so some of its rows delete earlier rows")


def _between_windows(
    side: Side, pipeline: Pipeline, operator: Operator, spec: StateSpec, locations: Locations
) -> StateQuery | None:
    """Build the empty query for a ranking that receives rows of ended windows and emits immediately.

    The watermark that ends a window passes both the aggregation and the ranking before any savepoint. At a savepoint,
    the ranking therefore stores no rows. Returns None for all other operators.
    """
    below = _windows_below(operator) if isinstance(operator, RankOperator) else None
    if below is None:
        return None
    rows = TableRows(pipeline, below[0], locations)
    query = StateQuery(rows.tables, known_layout(spec).key, (), below[1], zone=rows.zone)
    require_punctual(side, query)
    return query


def _windows_below(rank: RankOperator) -> tuple[StatelessSegment, SlicedWindow] | None:
    """The aggregation below a ranking and its windows, if the plan determines where windows end."""
    below, assigned = rank.segment.origin, rank.window
    if assigned is None or assigned.time_attribute is not TimeAttribute.ROWTIME or rank.segment.windows:
        return None
    if not isinstance(below, AggregateOperator) or (below.kind, below.window) != (AggregateKind.WINDOW, assigned):
        return None
    windows = SlicedWindow.of(assigned.window)
    return (below.segment, windows) if windows is not None and below.segment.windows else None


def _time_to_live(pipeline: Pipeline, operator: Operator) -> int:
    """State TTL of an operator in milliseconds."""
    deduplicated = isinstance(operator, RankOperator) and operator.kind is RankKind.DEDUPLICATION
    if not deduplicated and not isinstance(operator, AggregateOperator | JoinOperator):
        raise NotComputable("a state TTL is supported only for GROUP BY, joins and deduplications")
    if not all(isinstance(segment.origin, Source) for segment in operator.segments):
        raise NotComputable("a state TTL is not supported yet if several tables supply the operator's rows")
    if any(name == _STATE_TTL for node in pipeline.sink.nodes for name, _ in getattr(node, "hints", ())):
        raise NotComputable(f"a state TTL that the hint {_STATE_TTL} sets is not supported yet")
    text = dict(pipeline.settings).get(_TTL, "")
    if not (milliseconds := value(_TTL, text)).isdecimal():
        raise NotComputable(f"{_TTL} is {text!r}, which is not a duration. Set a duration such as '1 h'")
    return int(milliseconds)


def require_plain(operator: Operator) -> None:
    """Check that only filters and the operator's window are between an operator and its tables."""
    window = getattr(operator, "window", None)
    for segment in operator.segments:
        if isinstance(segment.origin, Operator):
            require_plain(segment.origin)
        if len(segment.windows) > (window is not None):
            raise NotComputable(
                "rows from windows that are defined differently from the operator's window are not computed from "
                "history yet"
            )
        if segment.window_filters:
            raise NotComputable(
                "conditions on window_start, window_end or window_time are not computed from history yet"
            )
        if segment.hints or (isinstance(segment.origin, Source) and segment.origin.hints):
            raise NotComputable("SQL hints are not supported if state is computed from history")


def require_punctual(side: Side, query: StateQuery) -> None:
    """Check that windows fire as soon as they end, so that the watermark shows which windows have fired."""
    windows = query.windows
    if windows is None:
        return
    if not LocalClock(query.zone).is_punctual(windows.step):
        raise NotComputable(
            f"windows in {query.zone} do not end at the same instants as in UTC, so Flink fires them late"
        )
    if windows.offset % windows.step and _line(side) != _OFFSETS_SINCE:
        raise NotComputable(f"windows with an offset fire late before Flink {_OFFSETS_SINCE}")


def _require_measured(side: Side, over: OverOperator) -> None:
    from_beginning = over.clock is TimeAttribute.ROWTIME and over.frame.preceding is None
    if from_beginning and _line(side) != _OVER_SINCE:
        raise NotComputable(
            f"before Flink {_OVER_SINCE}, the accumulators of an unbounded OVER include rows that are not emitted yet"
        )


def _line(side: Side) -> str | None:
    return ENGINE_FACTS[side.engine].flink_line(side.version)


def _of_script(side: Side, spec: StateSpec) -> tuple[Pipeline, Operator]:
    """Find the pipeline and the operator of the script that match an operator of the compiled plan."""
    if not isinstance(spec.layout, StateLayout):
        raise NotComputable(spec.layout.reason if spec.layout is not None else "it stores no keyed state")
    outputs, problems = side.outputs
    if problems:
        raise NotComputable(f"the script is not supported: {problems[0].message}")
    if spec.compiled is None:
        raise NotComputable("it is not from a compiled plan, so it cannot be matched with an operator of the script")
    plan, place = spec.compiled
    link = unify(plan, outputs, {table.name: table.path[2] for table in side.program.tables})[place]
    if isinstance(link, Unknown):
        raise NotComputable(link.reason)
    return side.program.pipelines[link.query], link.operator


def _as_stored(side: Side, spec: StateSpec, operator: Operator) -> tuple[Operator, StateLayout]:
    """Arrange an operator's columns in the order in which the compiled plan stores them."""
    compiled = known_layout(spec)
    assigned = getattr(operator, "window", None)
    windows = None if assigned is None else SlicedWindow.of(assigned.window)
    aligned = None
    if spec.windows is None or windows is None or spec.windows == windows:
        try:
            aligned = _aligned(operator, compiled, TableColumns(side.program.tables))
        except CannotLower as error:
            raise NotComputable(str(error)) from None
    if aligned is not None:
        return aligned
    if compiled.retracting and not isinstance(operator, OverOperator):
        raise NotComputable(
            "its rows can be retracted, and its tables do not contain the rows that it received earlier"
        )
    raise NotComputable(_STORED_OTHERWISE)


def _aligned(operator: Operator, compiled: StateLayout, columns: TableColumns) -> tuple[Operator, StateLayout] | None:
    """Match an operator with its layout in the compiled plan; None if they differ."""
    match operator:
        case OverOperator() if not isinstance(operator.segment.origin, Source) or operator.segment.functions:
            raise CannotLower("an OVER is supported only if it reads a table directly, without user functions")
        case OtherOperator() | JoinOperator(form=JoinForm.TEMPORAL | JoinForm.LOOKUP):
            raise CannotLower(f"the state of {operator.kind} is not computed from history yet")
        case OverOperator():
            return in_stored_order(operator, compiled, columns)
        case AggregateOperator() if _aggregates_recomputable_rows(operator):
            return in_stored_order(operator, compiled, columns)
        case RankOperator() if _ranks_recomputable_rows(operator):
            return in_stored_order(operator, compiled, columns)
        case JoinOperator(form=JoinForm.REGULAR) if all(map(is_recomputable, operator.segments)):
            return in_stored_order(operator, compiled, columns)
    found = operator_layout(operator, Symbols(), any(state.time_to_live for state in compiled.states))
    if isinstance(found, Unknown):
        raise CannotLower(found.reason)
    alike = found.stored == compiled.stored and _words(found) == _words(compiled)
    return (operator, found) if alike else None


def _ranks_recomputable_rows(operator: RankOperator) -> bool:
    """True if the operator ranks table rows, or is a Top-N over recomputable rows without time order."""
    if isinstance(operator.segment.origin, Source):
        return not operator.segment.functions
    return operator.kind is RankKind.TOP_N and operator.order_clock is None and is_recomputable(operator.segment)


def _aggregates_recomputable_rows(operator: AggregateOperator) -> bool:
    """True if the operator aggregates recomputable rows. Windows must be over a table or a union."""
    origin = operator.segment.origin
    if operator.kind is AggregateKind.GROUP or isinstance(origin, Source):
        return is_recomputable(operator.segment)
    sliced = operator.window is not None and operator.window.window.kind is not WindowKind.SESSION
    of_union = isinstance(origin, OtherOperator) and is_recomputable(operator.segment) and appends(operator.segment)
    return operator.kind is AggregateKind.WINDOW and sliced and of_union


def _words(layout: StateLayout) -> list[str]:
    """Names of stored fields. In a compiled plan, only the column that computes a condition has a name."""
    return [field.words for state in layout.states for field in state.row]


def preview(new: Side, specs: Iterable[StateSpec], locations: Locations, extent: str) -> Iterator[str]:
    """Describe the rows that a run reads, and the parts of its result that are inexact."""
    queries = [(spec, state_query(new, spec, locations)) for spec in specs]
    for read in {read.table: read for _, query in queries for read in query.reads}.values():
        yield f"{read.table} is read from {read.source.place}, {_extent_read(read.source, extent)}"
    for spec, query in queries:
        doubts = "; ".join(_inexact(query))
        yield f"{spec.name}: {doubts or 'all computed state is exact'}"


def _extent_read(source: BackfillSource, extent: str) -> str:
    topic = topic_of(source)
    if isinstance(topic, KafkaSource) and topic.end.offsets:
        # A negative offset is the start position of a partition from which no record was read.
        begins = dict(topic.start.offsets)
        ends = {partition: max(offset, 0) for partition, offset in topic.end.offsets}
        below = ",".join(f"{partition}:{offset}" for partition, offset in sorted(ends.items()))
        records = sum(max(offset - begins.get(partition, 0), 0) for partition, offset in ends.items())
        return f"at most {records:,} records, below the offsets {below}"
    if isinstance(source, FileSource) and source.read is not None and source.read.seen:
        files, unfinished = len(source.read.seen), len({split.path for split in source.read.in_progress})
        in_part = f", {unfinished} of them partly read" if unfinished else ""
        return f"{files:,} {'file' if files == 1 else 'files'} that the job has found{in_part}"
    return extent


def _inexact(query: StateQuery) -> Iterator[str]:
    if query.time_to_live:
        yield (
            "the arrival time of a row is taken as the last write time of its value, but the job may have read "
            "the row later"
        )
    fields = [field for state in query.states for field in state.state.value.fields]
    sums = [field for field in fields if isinstance(field.meaning, CallPart) and field.meaning.part == "sum"]
    if any(field.type.partition(" ")[0] in APPROXIMATE for field in sums):
        yield "sums of FLOAT and DOUBLE are added in a different order, and may differ by a billionth"
    for doubt in query.doubts:
        yield f"the run fails if {doubt.reason}"
    if query.incomparable:
        yield f"the savepoint's state is not compared with history, because {query.incomparable}"
    if not query.states:
        yield "the operator stores nothing between two watermarks, so its state is empty"
