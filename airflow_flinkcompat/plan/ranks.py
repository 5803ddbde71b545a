"""Top-N and deduplication as one operator: ROW_NUMBER with a filter for a constant range of ranks.

Flink 2.3's planner plans these forms as a ranking, and stores the row of the operator (both by EXPLAIN). Integer
constants bound the range of ranks, and no other condition reads the rank. Any other form stays an OVER aggregation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from airflow_flinkcompat.plan.expressions import FLIPPED, Expression, FunctionCall, Literal, transform
from airflow_flinkcompat.plan.nodes import Filter, Over, Project, Scan, WindowField, walk_nodes
from airflow_flinkcompat.plan.operators import BOUNDS, AggregateOperator, AssignedWindow, RankOperator, StatelessSegment
from airflow_flinkcompat.plan.origins import (
    KeyOutput,
    OperatorColumn,
    PassedOutput,
    RankNumber,
    SourceColumn,
    WindowColumn,
    leaves,
    normalize,
    window_field,
)
from airflow_flinkcompat.plan.types import DataType, TimeAttribute

_NO_END = 0
"""Placeholder for the last rank of a ROW_NUMBER whose range of ranks is not known yet."""


def numbers_rows(node: Over) -> bool:
    """True if an OVER contains only an ordered ROW_NUMBER, which may occur several times."""
    call = node.calls[0]
    return call.call.function == "ROW_NUMBER" and bool(call.order_by) and all(other == call for other in node.calls)


def numbering(
    node: Over, columns: tuple[Expression, ...], segment: StatelessSegment, resolve: Callable[[Expression], Expression]
) -> RankOperator:
    """A ROW_NUMBER over ``segment`` as a ranking, whose row contains all typed and resolved ``columns``."""
    call = node.calls[0]
    partition: dict[Expression, DataType] = {}
    for key in map(resolve, call.partition_by):
        if not isinstance(key, Literal):
            partition[normalize(key)] = key.type
    order: dict[Expression, tuple[bool, bool | None, DataType, TimeAttribute | None]] = {}
    for written, ascending, nulls_first in call.order_by:
        key = resolve(written)
        if not isinstance(key, Literal):
            order.setdefault(
                normalize(key), (ascending, nulls_first, key.type, _clock(node, normalize(key), columns, segment))
            )
    keys = (*call.partition_by, *(key for key, _, _ in call.order_by))
    window = _window(partition, segment)
    types = {normalize(column): column.type for column in columns if not isinstance(column, Literal)}
    row = _in_planned_order(types, node, segment)
    return RankOperator(
        segment=segment,
        partition=tuple(partition),
        order=tuple((key, ascending, nulls) for key, (ascending, nulls, _, _) in order.items()),
        first=1,
        last=_NO_END,
        row=row,
        number_read=True,
        # Rows of a window arrive unchanged, whatever the keys are (EXPLAIN).
        constant_key=window is None and any(isinstance(resolve(key), Literal) for key in keys),
        window=window,
        order_clock=next(iter(order.values()))[3] if len(order) == 1 else None,
        partition_types=tuple(partition.values()),
        order_types=tuple(kind for _, _, kind, _ in order.values()),
        row_types=tuple(types[column] for column in row),
        span=node.span,
    )


def is_select_list(node: Project, over: Over) -> bool:
    """True if a projection is the SELECT list of the OVER, with or without QUALIFY."""
    return node.input is over or (isinstance(node.input, Filter) and node.input.input is over)


def with_select_list(
    columns: tuple[Expression, ...], segment: StatelessSegment
) -> tuple[tuple[Expression, ...], StatelessSegment]:
    """Move a SELECT list into the row of its ROW_NUMBER, as the planner does (EXPLAIN)."""
    rank = segment.origin
    assert isinstance(rank, RankOperator)
    taken: dict[Expression, DataType] = {}

    def pass_up(column: Expression) -> Expression:
        if _reads_number(column) or isinstance(column, Literal):
            return column
        below = normalize(transform(column, _input_column))
        taken[below] = column.type
        return OperatorColumn(0, PassedOutput(0, below), type=column.type, span=column.span)

    found = tuple(pass_up(column) for column in columns)
    new = {column: kind for column, kind in taken.items() if column not in rank.row}
    row = (*rank.row, *new)
    wider = replace(
        rank, row=row, row_types=(*rank.row_types, *new.values()), selected=tuple(c for c in row if c in taken)
    )
    return found, replace(segment, origin=wider)


def _input_column(leaf: Expression) -> Expression:
    if isinstance(leaf, OperatorColumn) and isinstance(leaf.output, PassedOutput):
        return leaf.output.column
    return leaf


def ranked(segment: StatelessSegment) -> StatelessSegment | None:
    """The segment downstream of a ROW_NUMBER, with its range of ranks; None if the range is not constant."""
    rank = segment.origin
    assert isinstance(rank, RankOperator)
    conditions = [part for part in segment.filters | segment.window_filters if _reads_number(part)]
    kept = _range(conditions)
    if kept is None:
        return None
    return replace(
        segment,
        origin=replace(rank, first=kept[0], last=kept[1], conditions=tuple(conditions)),
        filters=segment.filters - set(conditions),
        window_filters=segment.window_filters - set(conditions),
    )


def kept_ranks(comparisons: Iterable[tuple[str, int]]) -> tuple[int, int | None]:
    """The first and last rank that comparisons with constants allow; None for an open end."""
    first, last = 1, None
    for sign, bound in comparisons:
        if sign in (">", ">=", "="):
            first = max(first, bound + (sign == ">"))
        if sign in ("<", "<=", "="):
            end = bound - (sign == "<")
            last = end if last is None else min(last, end)
    return first, last


def _range(conditions: Iterable[Expression]) -> tuple[int, int] | None:
    comparisons = []
    for part in conditions:
        found = _comparison(part)
        if found is None:
            return None
        comparisons.append(found)
    first, last = kept_ranks(comparisons)
    return (first, last) if last is not None and first <= last else None


def _comparison(part: Expression) -> tuple[str, int] | None:
    """Operator and constant of a comparison, with the row number moved to the left."""
    if not isinstance(part, FunctionCall) or part.function not in {*FLIPPED, "="} or len(part.args) != 2:
        return None
    left, right = part.args
    sign = part.function
    if _is_number(right):
        left, right, sign = right, left, FLIPPED.get(sign, sign)
    bound = _integer(right)
    return (sign, bound) if _is_number(left) and bound is not None else None


def _is_number(value: Expression) -> bool:
    return isinstance(value, OperatorColumn) and isinstance(value.output, RankNumber)


def _reads_number(part: Expression) -> bool:
    return any(_is_number(leaf) for leaf in leaves(part))


def _integer(value: Expression) -> int | None:
    """The value of an integer constant; sums, differences and products are folded like in the planner."""
    if isinstance(value, Literal):
        return value.value if isinstance(value.value, int) and value.type.name in ("INT", "BIGINT") else None
    if isinstance(value, FunctionCall) and value.function in ("+", "-", "*") and len(value.args) == 2:
        left, right = map(_integer, value.args)
        if left is not None and right is not None:
            return {"+": left + right, "-": left - right, "*": left * right}[value.function]
    return None


def _in_planned_order(
    types: Mapping[Expression, DataType], node: Over, segment: StatelessSegment
) -> tuple[Expression, ...]:
    """The distinct columns: first unchanged input columns in input order, then computed columns.

    The planner moves projections downstream of a ranking, so the order of a SELECT list has no effect.
    """
    scan = next((below for below in walk_nodes(node) if isinstance(below, Scan)), None)
    declared = [] if scan is None else [column.name for column in scan.table.columns]
    outputs_below = _outputs_below(segment)

    def place(column: Expression) -> tuple[int, ...]:
        match column:
            case SourceColumn() if column.column in declared:
                return (0, declared.index(column.column))
            case WindowColumn():
                return (1, column.level, list(WindowField).index(column.field))
            case OperatorColumn():
                output = window_field(column) if is_key(column) else None
                found = output or column.output
                return (0, outputs_below.index(found)) if found in outputs_below else (2,)
        return (2,)

    return tuple(sorted(types, key=place))


def _outputs_below(segment: StatelessSegment) -> list[object]:
    """The outputs of the upstream operator in its order, if known; bare window fields by name."""
    below = segment.origin
    if isinstance(below, AggregateOperator):
        keys = [KeyOutput(below.keys[key]) if isinstance(key, int) else key for key in below.key_order]
        return [*keys, *below.aggregates]
    if isinstance(below, RankOperator):
        return [*(PassedOutput(0, column) for column in below.row), RankNumber()]
    return []


def is_key(column: Expression) -> bool:
    """True if a column is a key of the upstream aggregation."""
    return isinstance(column, OperatorColumn) and isinstance(column.output, KeyOutput)


def _window(partition: Iterable[Expression], segment: StatelessSegment) -> AssignedWindow | None:
    """The window of a windowing function if both its bounds are keys; None otherwise."""
    found: dict[AssignedWindow, set[WindowField]] = {}
    for key in partition:
        field, window = window_field(key), _window_of(key, segment)
        if field is not None and window is not None:
            found.setdefault(window, set()).add(field)
    return next((window for window, fields in found.items() if fields >= BOUNDS), None)


def _window_of(key: Expression, segment: StatelessSegment) -> AssignedWindow | None:
    """The window of a window field; None for a legacy group window, which computes its fields at the end."""
    if isinstance(key, WindowColumn):
        return segment.windows[key.level]
    below = segment.origin
    if isinstance(below, AggregateOperator) and is_key(key) and below.windowed:
        return below.window
    if isinstance(below, RankOperator) and isinstance(key, OperatorColumn) and isinstance(key.output, PassedOutput):
        return _window_of(key.output.column, below.segment)
    return None


def _clock(
    node: Over, key: Expression, columns: tuple[Expression, ...], segment: StatelessSegment
) -> TimeAttribute | None:
    """The clock of a time attribute; for rankings, also of a window's time column (EXPLAIN)."""
    for column, value in zip(node.input.schema, columns, strict=True):
        if normalize(value) == key and column.time_attribute is not None:
            return column.time_attribute
    return next((window.time_attribute for window in segment.windows if window.time == key), None)
