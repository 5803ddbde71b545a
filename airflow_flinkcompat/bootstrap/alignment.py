"""What stands where in the state of an operator: the parts of a script's own plan in the order of a compiled one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from airflow_flinkcompat.bootstrap.parts import Part, TableColumns, align
from airflow_flinkcompat.bootstrap.table_rows import NotComputable
from airflow_flinkcompat.plan.column_lineage import composition
from airflow_flinkcompat.plan.composition import Composition, together
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinOperator,
    RankKind,
    RankOperator,
    StatelessSegment,
    appends,
)
from airflow_flinkcompat.plan.origins import OperatorColumn, describe, window_field
from airflow_flinkcompat.plan.types import DataType
from airflow_flinkcompat.state.layout import CallPart, NamedState, StateField, StateLayout
from airflow_flinkcompat.state.layouts.accumulators import keeps_others
from airflow_flinkcompat.state.layouts.columns import nullable
from airflow_flinkcompat.state.layouts.plan_types import stored_as
from airflow_flinkcompat.state.layouts.script_aggregation import derive_aggregation

_T = TypeVar("_T")


def aligned_aggregation(
    operator: AggregateOperator, compiled: StateLayout, columns: TableColumns
) -> tuple[AggregateOperator, StateLayout] | None:
    """An aggregation of a script as a compiled plan stores one.

    Args:
        operator: Of the script's own plan.
        compiled: What an operator of the compiled plan stores.
        columns: Of the script's tables.

    Returns:
        It with its keys in the order in which they are stored, and its layout; None where it is another one.

    Raises:
        LayoutNotDerived: What it stores cannot be told.
        NotComputable: What stands where is not told.
    """
    own = [*zip(operator.keys, operator.key_types, strict=True)]
    order = _in_order(compiled.key, own, operator.segment, columns, "keys")
    if order is None:
        return None
    ordered = replace(
        operator,
        keys=_picked(operator.keys, order),
        key_types=_picked(operator.key_types, order),
    )
    lives = any(state.time_to_live for state in compiled.states)
    growing = {
        place
        for place, (part, field) in enumerate(_calls(compiled))
        if part.function in ("MIN", "MAX") and not keeps_others(field.type)
    }
    layout = derive_aggregation(ordered, lives, True, not appends(operator.segment), growing)
    if layout.stored != compiled.stored or layout.retracting != compiled.retracting:
        return None
    calls = _calls(layout)
    given = [_in_script(each, operator.segment, columns) for each in calls]
    places = align([_in_compiled(each, columns) for each in _calls(compiled)], given, "metrics", _words(calls))
    return (ordered, layout) if places == [*range(len(calls))] else None


def aligned_join(operator: JoinOperator, compiled: StateLayout, columns: TableColumns) -> JoinOperator | None:
    """A regular join of a script as a compiled plan stores one.

    Args:
        operator: Of the script's own plan.
        compiled: What an operator of the compiled plan stores.
        columns: Of the script's tables.

    Returns:
        It with its keys and rows in the order in which they are stored; None where it is another one.

    Raises:
        LayoutNotDerived: How values of a type are stored was not measured.
        NotComputable: What stands where is not told.
    """
    if [state.name for state in compiled.states] != ["left-records", "right-records"]:
        return None
    if any(state.retracting and appends(side) for state, side in zip(compiled.states, operator.segments, strict=True)):
        raise NotComputable("rows of a table are taken back from it, and what was sent to it before is not in that")
    types = dict(zip(operator.rows[0], operator.row_types[0], strict=True))
    outputs = [one.output for one, _ in operator.keys if isinstance(one, OperatorColumn) and one.output in types]
    own = [(output, types[output]) for output in outputs]
    keys = _in_order(compiled.key, own, operator.segments[0], columns, "keys")
    orders = [
        _in_order(state.row, [*zip(row, of_row, strict=True)], segment, columns, "columns")
        for state, segment, row, of_row in zip(
            compiled.states, operator.segments, operator.rows, operator.row_types, strict=True
        )
    ]
    left, right = orders
    if keys is None or left is None or right is None or len(keys) != len(operator.keys):
        return None
    return replace(
        operator,
        keys=_picked(operator.keys, keys),
        rows=(_picked(operator.rows[0], left), _picked(operator.rows[1], right)),
        row_types=(_picked(operator.row_types[0], left), _picked(operator.row_types[1], right)),
    )


_STATES = {
    RankKind.DEDUPLICATION: (
        ["deduplicate-state"],
        ["waiting-to-emit-on-timer", "already-emitted-state-boolean"],
    ),
    RankKind.TOP_N: (["Top1-Rank-State"], ["data-state-with-append"]),
    RankKind.WINDOW_DEDUPLICATION: (["window_deduplicate"],),
    RankKind.WINDOW_TOP_N: (["window_rank"],),
}
"""The states of a ranking of rows that are only added."""
_TAKEN_BACK = (["Top1-Rank-State"], ["data-state-with-update"], ["data-state", "sorted-map"])
"""Those of a Top-N of rows that are taken back."""


def aligned_rank(operator: RankOperator, compiled: StateLayout, columns: TableColumns) -> RankOperator | None:
    """A ranking of a script as a compiled plan stores one.

    Args:
        operator: Of the script's own plan.
        compiled: What an operator of the compiled plan stores.
        columns: Of the script's tables.

    Returns:
        It with its keys and its row in the order in which they are stored; None where it is another one.

    Raises:
        LayoutNotDerived: How values of a type are stored was not measured.
        NotComputable: What stands where is not told.
    """
    known = _STATES[operator.kind] if appends(operator.segment) else _TAKEN_BACK
    if [each.name for each in compiled.states] not in known:
        return None
    state = compiled.states[0]
    partition = [
        (key, type)
        for key, type in zip(operator.partition, operator.partition_types, strict=True)
        if not window_field(key)
    ]
    keys = _in_order(compiled.key, partition, operator.segment, columns, "keys")
    of_row = [*zip(operator.row, operator.row_types, strict=True)]
    order = [*range(len(of_row))]
    if state.value.form != "Boolean":
        found = _in_order(state.row, of_row, operator.segment, columns, "columns")
        if found is None:
            return None
        order = found
    if keys is None or not _is_sorted_by(operator, state, columns):
        return None
    ordered = [partition[place] for place in keys]
    bounds = [
        (key, type) for key, type in zip(operator.partition, operator.partition_types, strict=True) if window_field(key)
    ]
    return replace(
        operator,
        partition=tuple(key for key, _ in (*ordered, *bounds)),
        partition_types=tuple(type for _, type in (*ordered, *bounds)),
        row=_picked(operator.row, order),
        row_types=_picked(operator.row_types, order),
    )


def _is_sorted_by(operator: RankOperator, state: NamedState, columns: TableColumns) -> bool:
    """Whether the rows of a state are kept by what a ranking orders them by."""
    if state.map_key is None or state.name == "data-state-with-update":
        return True
    order = [(key, type) for (key, _, _), type in zip(operator.order, operator.order_types, strict=True)]
    found = _in_order(state.map_key.fields, order, operator.segment, columns, "sort keys")
    return found == [*range(len(order))]


def _in_order(
    stored: Sequence[StateField],
    own: Sequence[tuple[Expression, DataType]],
    segment: StatelessSegment,
    columns: TableColumns,
    what: str,
) -> list[int] | None:
    """For each stored field which of a script's columns it is; None where they are others."""
    return align(
        [Part(nullable(each.type), columns.compiled(each.composition)) for each in stored],
        [Part(nullable(stored_as(type)), columns.script(composition(each, segment))) for each, type in own],
        what,
        [describe(each) for each, _ in own],
    )


def _picked(parts: tuple[_T, ...], places: Sequence[int]) -> tuple[_T, ...]:
    return tuple(parts[place] for place in places)


def _calls(layout: StateLayout) -> list[tuple[CallPart, StateField]]:
    """The calls of an aggregation in the order of its accumulators, each with its first field."""
    parts = ((each.meaning, each) for state in layout.states for each in state.value.fields)
    found: dict[Hashable, tuple[CallPart, StateField]] = {}
    for part, field in parts:
        if isinstance(part, CallPart):
            found.setdefault(part.call, (part, field))
    return [*found.values()]


def _words(calls: Sequence[tuple[CallPart, StateField]]) -> list[str]:
    return [field.words for _, field in calls]


def _in_script(call: tuple[CallPart, StateField], segment: StatelessSegment, columns: TableColumns) -> Part:
    part, field = call
    over: Any = part.over
    values, distinct, condition = over
    of = together(composition(each, segment) for each in (*values, *([] if condition is None else [condition])))
    return _call(part, field, len(values), bool(distinct), condition is not None, columns.script(of))


def _in_compiled(call: tuple[CallPart, StateField], columns: TableColumns) -> Part:
    part, field = call
    over: Any = part.over
    told = dict(over)
    arguments, distinct = len(told.get("argList") or ()), bool(told.get("distinct"))
    return _call(
        part, field, arguments, distinct, told.get("filterArg") is not None, columns.compiled(field.composition)
    )


def _call(
    part: CallPart, field: StateField, arguments: int, distinct: bool, conditional: bool, of: Composition | None
) -> Part:
    return Part((part.function.removesuffix("0"), field.type, arguments, distinct, conditional), of)
