"""What stands where in the state of an operator: the parts of a script's own plan in the order of a compiled one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from airflow_flinkcompat.bootstrap.errors import NotComputable
from airflow_flinkcompat.bootstrap.joins import counts_matches
from airflow_flinkcompat.bootstrap.over import BESIDE_ACCUMULATORS, as_group_by
from airflow_flinkcompat.bootstrap.parts import Part, TableColumns, align
from airflow_flinkcompat.exec_graph.columns import nullable, stored_as
from airflow_flinkcompat.exec_graph.layout import CallPart, NamedState, StateField, StateLayout
from airflow_flinkcompat.exec_graph.nodes.accumulators import is_retractable_extreme
from airflow_flinkcompat.exec_graph.nodes.script_aggregate import derive_aggregation
from airflow_flinkcompat.migration.slices import OVER_ROWS
from airflow_flinkcompat.plan.column_lineage import composition
from airflow_flinkcompat.plan.composition import Composition, together
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinOperator,
    OverOperator,
    RankKind,
    RankOperator,
    StatelessSegment,
    appends,
)
from airflow_flinkcompat.plan.origins import OperatorColumn, PassedOutput, SourceColumn, describe, leaves, window_field
from airflow_flinkcompat.plan.types import DataType, TimeAttribute

_T = TypeVar("_T")


def aligned_aggregation(
    operator: AggregateOperator, compiled: StateLayout, columns: TableColumns, framed: bool = False
) -> tuple[AggregateOperator, StateLayout] | None:
    """An aggregation of a script as a compiled plan stores one."""
    own = [*zip(operator.keys, operator.key_types, strict=True)]
    order = _in_order(compiled.key, own, operator.segment, columns, "keys")
    if order is None:
        return None
    ordered = replace(
        operator,
        keys=_picked(operator.keys, order),
        key_types=_picked(operator.key_types, order),
        argument_types=tuple(
            tuple(
                type.with_nullability(True) if _without_match(arg, operator.segment) else type
                for arg, type in zip(call.args, types, strict=True)
            )
            for call, types in zip(operator.aggregates, operator.argument_types, strict=True)
        ),
    )
    lives = any(state.time_to_live for state in compiled.states)
    unretracted = {
        place
        for place, (part, field) in enumerate(_calls(compiled))
        if part.function in ("MIN", "MAX") and not is_retractable_extreme(field.type)
    }
    retracting = framed or not appends(operator.segment)
    if retracting and unretracted and not _only_grows(operator):
        raise NotComputable("a MIN or MAX of it is planned as one that no row is taken back from, whatever comes")
    layout = derive_aggregation(ordered, lives, True, retracting, unretracted)
    if layout.stored != compiled.stored:
        ordered = _with_sums_and_counts(ordered)
        layout = derive_aggregation(ordered, lives, True, retracting, unretracted)
    if layout.stored != compiled.stored or layout.retracting != compiled.retracting:
        return None
    calls = _calls(layout.with_compositions(lambda meaning: _composition_of(meaning, operator.segment)))
    wanted, given = ([_part(each, columns) for each in of_plan] for of_plan in (_calls(compiled), calls))
    places = align(wanted, given, "metrics", [field.words for _, field in calls])
    return (ordered, layout) if places == [*range(len(calls))] else None


def _with_sums_and_counts(operator: AggregateOperator) -> AggregateOperator:
    """Replace each SUM and AVG by a sum and a count, as the planner does where fewer calls result (read off plans)."""
    found: dict[AggregateCall, tuple[DataType, ...]] = {}
    for call, types in zip(operator.aggregates, operator.argument_types, strict=True):
        functions = ("SUM0", "COUNT") if call.function in ("SUM", "AVG") else (call.function,)
        found |= {replace(call, function=function): types for function in functions}
    return replace(operator, aggregates=tuple(found), argument_types=tuple(found.values()))


def aligned_over(
    operator: OverOperator, compiled: StateLayout, columns: TableColumns
) -> tuple[OverOperator, StateLayout] | None:
    """An OVER of a script as a compiled plan stores one."""
    framed = operator.frame.preceding is not None
    accumulators = tuple(state for state in compiled.states if state.name not in BESIDE_ACCUMULATORS)
    found = aligned_aggregation(as_group_by(operator), replace(compiled, states=accumulators), columns, framed)
    if found is None:
        return None
    grouped, layout = found
    ordered = replace(operator, partition_by=grouped.keys, partition_types=grouped.key_types)
    rows = next((state for state in compiled.states if state.name == OVER_ROWS), None)
    if (rows is None) is (operator.clock is TimeAttribute.ROWTIME):
        return None
    if rows is not None:  # which of all columns these are depends on the planner
        stored = [Part("", columns.named(each.composition)) for each in rows.value.fields]
        given = {each: Part("", columns.named(composition(each, operator.segment))) for each in operator.all_columns}
        kept = [each for each, part in given.items() if part in stored]
        order = align(stored, [given[each] for each in kept], "columns", [*map(describe, kept)])
        if order is None:
            return None
        ordered = replace(ordered, row=_picked(tuple(kept), order))
    written = {state.name: state for state in layout.states}
    states = tuple(written.get(state.name, state) for state in compiled.states)
    return ordered, replace(layout, states=states)


def _without_match(part: Expression, segment: StatelessSegment) -> bool:
    """Whether it is of a column of an outer join, which is NULL where a row has no match."""
    join = segment.origin
    if not isinstance(join, JoinOperator):
        return False
    passed = [each.output for each in leaves(part) if isinstance(each, OperatorColumn)]
    return any(
        join.join in ("FULL", "LEFT" if output.input else "RIGHT")
        or _without_match(output.column, join.segments[output.input])
        for output in passed
        if isinstance(output, PassedOutput)
    )


def _only_grows(operator: AggregateOperator) -> bool:
    """Whether no row that is taken back could have been the least or the greatest: another one takes its place.

    Flink's planner takes more for that than is so (FlinkRelMdModifiedMonotonicity).
    """
    segment, below = operator.segment, operator.segment.origin
    extremes = [call for call in operator.aggregates if call.function in ("MIN", "MAX")]
    outputs = [arg.output if isinstance(arg, OperatorColumn) else None for call in extremes for arg in call.args]
    if segment.filters or None in outputs or any(call.filter is not None for call in extremes):
        return False
    if isinstance(below, AggregateOperator):
        return appends(below.segment)
    bare = all(isinstance(each, PassedOutput) and isinstance(each.column, SourceColumn) for each in outputs)
    matched = not any(_without_match(key, segment) for key in operator.keys)
    return isinstance(below, JoinOperator) and all(map(appends, below.segments)) and bare and matched


def aligned_join(operator: JoinOperator, compiled: StateLayout, columns: TableColumns) -> JoinOperator | None:
    """A regular join of a script as a compiled plan stores one."""
    if [state.name for state in compiled.states] != ["left-records", "right-records"]:
        return None
    kept = [counts_matches(state) for state in compiled.states]
    if kept != [operator.join in ("LEFT", "FULL"), operator.join in ("RIGHT", "FULL")]:
        return None  # the planner made a simpler join of it, by a condition above
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


_APPEND_FAST = {
    RankKind.DEDUPLICATION: (
        ["deduplicate-state"],
        ["waiting-to-emit-on-timer", "already-emitted-state-boolean"],
    ),
    RankKind.TOP_N: (["Top1-Rank-State"], ["data-state-with-append"], ["counterState"]),
    RankKind.WINDOW_DEDUPLICATION: (["window_deduplicate"],),
    RankKind.WINDOW_TOP_N: (["window_rank"],),
}
"""The states of a ranking of rows that are only added."""
_UPDATE_FAST_OR_RETRACT = (["Top1-Rank-State"], ["data-state-with-update"], ["data-state", "sorted-map"])
"""Those of a Top-N of rows that are taken back."""


def aligned_rank(operator: RankOperator, compiled: StateLayout, columns: TableColumns) -> RankOperator | None:
    """A ranking of a script as a compiled plan stores one."""
    known = _APPEND_FAST[operator.kind] if appends(operator.segment) else _UPDATE_FAST_OR_RETRACT
    if [each.name for each in compiled.states] not in known:
        return None
    state = compiled.states[0]
    pairs = [*zip(operator.partition, operator.partition_types, strict=True)]
    partition = [pair for pair in pairs if not window_field(pair[0])]
    keys = _in_order(compiled.key, partition, operator.segment, columns, "keys")
    of_row = [*zip(operator.row, operator.row_types, strict=True)]
    order = [*range(len(of_row))]
    if state.row:
        found = _in_order(state.row, of_row, operator.segment, columns, "columns")
        if found is None:
            return None
        order = found
    if keys is None or not _is_sorted_by(operator, state, columns):
        return None
    ordered = [*(partition[place] for place in keys), *(pair for pair in pairs if window_field(pair[0]))]
    return replace(
        operator,
        partition=tuple(key for key, _ in ordered),
        partition_types=tuple(type for _, type in ordered),
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
        [Part(nullable(each.type), columns.named(each.composition)) for each in stored],
        [Part(nullable(stored_as(type)), columns.named(composition(each, segment))) for each, type in own],
        what,
        [describe(each) for each, _ in own],
    )


def _picked(parts: tuple[_T, ...], places: Sequence[int]) -> tuple[_T, ...]:
    return tuple(parts[place] for place in places)


def _composition_of(meaning: Hashable, segment: StatelessSegment) -> Composition | None:
    match meaning:
        case CallPart(over=(tuple(values), _, condition)):
            parts = (*values, *([] if condition is None else [condition]))
            return together(composition(each, segment) for each in parts)
    return None


def _calls(layout: StateLayout) -> list[tuple[CallPart, StateField]]:
    """The calls of an aggregation in the order of its accumulators, each with its first field."""
    parts = ((each.meaning, each) for state in layout.states for each in state.value.fields)
    found: dict[Hashable, tuple[CallPart, StateField]] = {}
    for part, field in parts:
        if isinstance(part, CallPart):
            found.setdefault(part.call, (part, field))
    return [*found.values()]


def _part(call: tuple[CallPart, StateField], columns: TableColumns) -> Part:
    part, field = call
    return Part((part.function.removesuffix("0"), field.type, *_shape(part.over)), columns.named(field.composition))


def _shape(over: Any) -> tuple[int, bool, bool]:
    """How many arguments a call has, whether they are distinct, and whether it has a condition.

    A script's own plan says that in order, a compiled one by name.
    """
    match over:
        case (tuple(values), bool(distinct), condition):
            return len(values), distinct, condition is not None
    told = dict(over)
    return len(told.get("argList") or ()), bool(told.get("distinct")), told.get("filterArg") is not None
