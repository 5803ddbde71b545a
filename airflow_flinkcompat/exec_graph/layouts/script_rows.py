"""The layout of operators that store rows, told by a script's own plan: Top-N, deduplication and joins.

Each is written as a node of a compiled plan, from which :func:`.compiled_node.layout` derives its layout, so that what
Flink stores is said in one place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_flinkcompat.exec_graph.compiled.nodes import Node
from airflow_flinkcompat.exec_graph.compiled.symbols import ColumnMeanings, Symbols
from airflow_flinkcompat.exec_graph.layout import LayoutUnknown, StateLayout
from airflow_flinkcompat.exec_graph.layouts.columns import nullable
from airflow_flinkcompat.exec_graph.layouts.compiled_node import layout
from airflow_flinkcompat.exec_graph.layouts.plan_types import LayoutNotDerived, stored_as
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall
from airflow_flinkcompat.plan.operators import JoinForm, JoinOperator, RankKind, RankOperator, StatelessSegment
from airflow_flinkcompat.plan.origins import OperatorColumn, SourceColumn, describe, window_field
from airflow_flinkcompat.plan.types import DataType, TimeAttribute

RANKS = {
    RankKind.TOP_N: "rank",
    RankKind.DEDUPLICATION: "deduplicate",
    RankKind.WINDOW_TOP_N: "window-rank",
    RankKind.WINDOW_DEDUPLICATION: "window-deduplicate",
}
JOINS = {JoinForm.REGULAR: "join", JoinForm.INTERVAL: "interval-join", JoinForm.WINDOW: "window-join"}
"""Operators that store rows, in the words of compiled plans."""
_TIMES = {"TIMESTAMP": "TIMESTAMP_WITHOUT_TIME_ZONE", "TIMESTAMP_LTZ": "TIMESTAMP_WITH_LOCAL_TIME_ZONE"}
LEAVES_COLUMNS = frozenset({"<", "<=", ">", ">=", "<>", "IS NOT NULL"})
"""Conditions after which no column of a row is known to be one constant, which would stand elsewhere (measured)."""
_LIVES = {True: {"ttl": "1 ms"}, False: {"ttl": "0 ms"}}


def derive_rank(operator: RankOperator, symbols: Symbols, time_to_live: bool) -> StateLayout | LayoutUnknown:
    """The state of a Top-N or deduplication over rows that are only added.

    Args:
        operator: The ranking.
        symbols: The table of meanings.
        time_to_live: Whether the job's state has one; that of windows lives as long as they do.

    Returns:
        Its layout, or why what Flink plans of it keeps was not measured.

    Raises:
        LayoutNotDerived: What Flink plans of it is not known.
    """
    if operator.constant_key or operator.selected:
        raise LayoutNotDerived("which columns a ranking stores depends on how it is written")
    _sure_of_columns(operator.segments)
    asked = (*operator.partition, *(key for key, _, _ in operator.order))
    if any(key not in operator.row and not window_field(key) for key in asked):
        raise LayoutNotDerived("the position of a computed key in a stored row is not known")
    clock = operator.order_clock
    by_time = clock is TimeAttribute.ROWTIME
    times = {} if clock is None else {operator.order[0][0]: clock}
    read = _columns(operator.row, operator.row_types, symbols, times)
    partition = sorted(operator.row.index(key) for key in operator.partition if not window_field(key))
    order = {"fields": [{"index": operator.row.index(key), "isAscending": up} for key, up, _ in operator.order]}
    windowed = operator.kind in (RankKind.WINDOW_TOP_N, RankKind.WINDOW_DEDUPLICATION)
    match operator.kind:
        case RankKind.DEDUPLICATION:
            kind, config = "deduplicate", {
                "uniqueKeys": partition, "isRowtime": by_time, "keepLastRow": not operator.order[0][1],
                "outputInsertOnly": operator.order[0][1],
            }  # fmt: skip
        case RankKind.TOP_N:
            kind, config = "rank", {
                "partition": {"fields": partition}, "orderBy": order, "rankStrategy": {"type": "AppendFast"},
                "rankRange": {"type": "Constant", "end": operator.last}, "outputRowNumber": operator.number_read,
            }  # fmt: skip
        case RankKind.WINDOW_DEDUPLICATION:
            kind, config = "window-deduplicate", {"partitionKeys": partition}
        case RankKind.WINDOW_TOP_N:
            kind, config = "window-rank", {"partitionSpec": {"fields": partition}, "sortSpec": order}
    return _laid_out(kind, config if windowed else {**config, "state": [_LIVES[time_to_live]]}, (read,), symbols)


def derive_join(operator: JoinOperator, symbols: Symbols, time_to_live: bool) -> StateLayout | LayoutUnknown:
    """The state of a join of two tables to which rows are only added.

    Args:
        operator: The join.
        symbols: The table of meanings.
        time_to_live: Whether the job's state has one; that of windows and intervals lives as long as they do.

    Returns:
        Its layout, or why what Flink plans of it keeps was not measured.

    Raises:
        LayoutNotDerived: What Flink plans of it is not known.
    """
    _sure_of_columns(operator.segments)
    by_time = operator.clock is TimeAttribute.ROWTIME
    if operator.form is JoinForm.INTERVAL and not by_time:
        raise LayoutNotDerived("what an interval join by processing time keeps is known from compiled plans alone")
    times = {(time.operator, time.output) for time in operator.times if by_time and isinstance(time, OperatorColumn)}
    left, right = (
        _columns(row, types, symbols, {each: TimeAttribute.ROWTIME for input, each in times if input == side}, side)
        for side, (row, types) in enumerate(zip(operator.rows, operator.row_types, strict=True))
    )
    keys = [tuple(map(_place, operator.rows, pair)) for pair in operator.keys]
    if not keys:
        raise LayoutNotDerived("a join that has no key may be planned with further operators")
    if any(nullable(left.types[one]) != nullable(right.types[other]) for one, other in keys):
        raise LayoutNotDerived("keys of two types are made one by a computed column")
    spec = {"joinType": operator.join, "leftKeys": [one for one, _ in keys], "rightKeys": [other for _, other in keys]}
    match operator.form:
        case JoinForm.REGULAR:
            kind, config = "join", {"joinSpec": spec, "state": [_LIVES[time_to_live]] * 2}
        case JoinForm.INTERVAL:
            lower, upper = operator.bounds or (0, 0)
            bounds = {"isEventTime": by_time, "leftLowerBound": lower, "leftUpperBound": upper}
            kind, config = "interval-join", {"intervalJoinSpec": {"joinSpec": spec, "windowBounds": bounds}}
        case JoinForm.WINDOW:
            kind, config = "window-join", {"joinSpec": spec}
        case _:
            raise LayoutNotDerived(f"what a {operator.form} keeps is known from compiled plans alone")
    return _laid_out(kind, config, (left, right), symbols)


def _sure_of_columns(segments: Iterable[StatelessSegment]) -> None:
    for condition in (condition for segment in segments for condition in segment.filters):
        if not isinstance(condition, FunctionCall) or condition.function not in LEAVES_COLUMNS:
            raise LayoutNotDerived("a condition below may make a column of the stored rows a constant")


def _place(row: Sequence[Expression], key: Expression) -> int:
    """Where a key of a join stands in the row of its input."""
    if not isinstance(key, OperatorColumn) or key.output not in row:
        raise LayoutNotDerived("a computed key of a join may stand anywhere in the stored rows")
    return row.index(key.output)


def _columns(
    row: Sequence[Expression],
    types: Sequence[DataType],
    symbols: Symbols,
    times: Mapping[Any, TimeAttribute],
    side: int = 0,
) -> ColumnMeanings:
    """The columns of a stored row; a computed one may stand anywhere among them."""
    bounds = {place for place, column in enumerate(row) if window_field(column)}
    if any(not isinstance(column, SourceColumn) and place not in bounds for place, column in enumerate(row)):
        raise LayoutNotDerived("the position of a computed column in a stored row is not known")
    return ColumnMeanings(
        tuple(symbols.of("column", side, column) for column in row),
        tuple(map(describe, row)),
        tuple(
            _time_attribute(type, times[column])
            if column in times and type.name in _TIMES
            else stored_as(type.with_nullability(type.nullable and place not in bounds))
            for place, (column, type) in enumerate(zip(row, types, strict=True))
        ),
        symbols.of("rows", side),
    )


def _time_attribute(type: DataType, clock: TimeAttribute) -> str:
    """A time attribute as compiled plans write it."""
    by_event = clock is TimeAttribute.ROWTIME
    return json.dumps({"type": _TIMES[type.name], "nullable": by_event, "precision": 3, "kind": clock.name})


def _laid_out(
    kind: str, config: Mapping[str, Any], inputs: Sequence[ColumnMeanings], symbols: Symbols
) -> StateLayout | LayoutUnknown:
    made = layout(Node(0, kind, kind, config, (), (), ()), inputs, symbols)
    if made is None:
        raise LayoutNotDerived("it keeps nothing by key")
    return made
