"""The columns of a script's operator in the stored order of its exec node.

Compiled plans refer to columns by number and by the planner's names. A column of the script is matched by the table
columns from which it is computed. If several columns are computed from the same table columns, their functions and
constants distinguish them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from airflow_flinkcompat.exec_graph.exec_node import last_name
from airflow_flinkcompat.exec_graph.layout import (
    CallPart,
    CannotLower,
    NamedState,
    StateField,
    StateLayout,
    call_parts,
    nullable,
    stored_as,
)
from airflow_flinkcompat.exec_graph.nodes import layout
from airflow_flinkcompat.exec_graph.nodes.accumulators import is_retractable_extreme
from airflow_flinkcompat.exec_graph.nodes.aggregate import lower_aggregation
from airflow_flinkcompat.exec_graph.nodes.over import BESIDE_ACCUMULATORS, OVER_ROWS
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.plan.column_lineage import Composition, composition, together
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, InputRef, Literal
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinOperator,
    Operator,
    OverOperator,
    RankKind,
    RankOperator,
    StatelessSegment,
    appends,
)
from airflow_flinkcompat.plan.origins import OperatorColumn, PassedOutput, SourceColumn, describe, leaves, window_field
from airflow_flinkcompat.plan.types import DataType, TimeAttribute

_T = TypeVar("_T")
_AMBIGUOUS = "the position of its {what} in the state is unknown: {words} are computed from the same columns"


@dataclass(frozen=True)
class Part:
    """The identity of a stored value: its shape and the columns from which it is computed.

    Attributes:
        shape: The properties that must be equal: the stored type and, for a metric, its function and the form of
            its call.
        composition: The columns, functions and constants from which it is computed; None if unknown.
    """

    shape: Hashable
    composition: Composition | None


@dataclass(frozen=True)
class TableColumns:
    """The columns of a script's tables, by the names that both plans share."""

    tables: tuple[Table, ...]

    def named(self, value: Composition | None) -> Composition | None:
        """Replace the columns of a composition by their shared names; None if one is unknown."""
        return value and together([replace(value, columns=frozenset()), *map(self._named, value.columns)])

    def _named(self, column: Hashable) -> Composition | None:
        match column:
            case (kind, str() as identifier, *_, str() | int() as place):  # a column of a compiled plan
                found = [each for each in self.tables if each.path[2] == last_name(identifier)]
                if len(found) != 1:
                    return None
                (table,) = found
                if kind == "metadata":
                    named = [name for name, key, _ in table.metadata if place in (key, name)]
                    return Composition(frozenset({(table.path[2], *named)})) if len(named) == 1 else None
                return self._stored(table, table.physical[place] if isinstance(place, int) else place)
            case (str() as name, str() as of_table):
                found = [each for each in self.tables if each.name == name]
                return self._stored(found[0], of_table) if len(found) == 1 else None
        return None

    def _stored(self, table: Table, column: str) -> Composition | None:
        computed = dict(table.computed).get(column)
        if computed is None:
            return Composition(frozenset({(table.path[2], column)}))
        return self._computed(table, computed)

    def _computed(self, table: Table, part: Expression) -> Composition | None:
        match part:
            case FunctionCall():
                of = (self._computed(table, each) for each in part.args)
                return together([Composition(functions=frozenset({part.function})), *of])
            case InputRef():
                return self._stored(table, table.columns[part.index].name)
            case Literal():
                return Composition(literals=frozenset({str(part.value)}))
        return None


def in_stored_order(
    operator: Operator, compiled: StateLayout, columns: TableColumns
) -> tuple[Operator, StateLayout] | None:
    """Reorder a script's operator and its layout to the stored order; None if the plan does not match."""
    match operator:
        case AggregateOperator():
            return _aggregation(operator, compiled, columns)
        case OverOperator():
            return _over(operator, compiled, columns)
        case RankOperator():
            ranking = _rank(operator, compiled, columns)
            return None if ranking is None else (ranking, compiled)
        case JoinOperator():
            joined = _join(operator, compiled, columns)
            return None if joined is None else (joined, compiled)
    raise CannotLower(f"the order of stored columns of {operator.kind} was not measured")


def _aggregation(
    operator: AggregateOperator, compiled: StateLayout, columns: TableColumns, framed: bool = False
) -> tuple[AggregateOperator, StateLayout] | None:
    """Reorder the keys and calls of a script's aggregation to the stored order, and derive its layout."""
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
        raise CannotLower("a MIN or MAX is planned without retractions, although rows may be retracted")
    layout = derive_aggregation(ordered, lives, retracting, unretracted)
    if layout.stored != compiled.stored:
        ordered = _with_sums_and_counts(ordered)
        layout = derive_aggregation(ordered, lives, retracting, unretracted)
    if layout.stored != compiled.stored or layout.retracting != compiled.retracting:
        return None
    calls = _calls(layout.with_compositions(lambda meaning: _composition_of(meaning, operator.segment)))
    wanted, given = ([_part(each, columns) for each in of_plan] for of_plan in (_calls(compiled), calls))
    places = align(wanted, given, "metrics", [field.words for _, field in calls])
    return (ordered, layout) if places == [*range(len(calls))] else None


def _with_sums_and_counts(operator: AggregateOperator) -> AggregateOperator:
    """Replace each SUM and AVG by a sum and a count, as the planner does if that saves calls."""
    found: dict[AggregateCall, tuple[DataType, ...]] = {}
    for call, types in zip(operator.aggregates, operator.argument_types, strict=True):
        functions = ("SUM0", "COUNT") if call.function in ("SUM", "AVG") else (call.function,)
        found |= {replace(call, function=function): types for function in functions}
    return replace(operator, aggregates=tuple(found), argument_types=tuple(found.values()))


def _over(
    operator: OverOperator, compiled: StateLayout, columns: TableColumns
) -> tuple[OverOperator, StateLayout] | None:
    """Reorder the columns of a script's OVER to the stored order, and derive its layout."""
    framed = operator.frame.preceding is not None
    accumulators = tuple(state for state in compiled.states if state.name not in BESIDE_ACCUMULATORS)
    found = _aggregation(operator.as_aggregation, replace(compiled, states=accumulators), columns, framed)
    if found is None:
        return None
    grouped, layout = found
    ordered = replace(operator, partition_by=grouped.keys, partition_types=grouped.key_types)
    rows = next((state for state in compiled.states if state.name == OVER_ROWS), None)
    if (rows is None) is (operator.clock is TimeAttribute.ROWTIME):
        return None
    if rows is not None:  # the planner decides which columns are stored
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
    """True if an expression reads a column of an outer join that is NULL without a match."""
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
    """True if no retracted row could have been the minimum or maximum.

    Flink's planner assumes such rows even in some cases in which the assumption is false
    (FlinkRelMdModifiedMonotonicity).
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


def _join(operator: JoinOperator, compiled: StateLayout, columns: TableColumns) -> JoinOperator | None:
    """Reorder the columns of a script's regular join to the stored order."""
    if [state.name for state in compiled.states] != ["left-records", "right-records"]:
        return None
    kept = [state.counts_matches for state in compiled.states]
    if kept != [operator.join in ("LEFT", "FULL"), operator.join in ("RIGHT", "FULL")]:
        return None  # the planner simplified the join because of a later condition
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
"""The state names of a ranking of append-only rows."""
_UPDATE_FAST_OR_RETRACT = (["Top1-Rank-State"], ["data-state-with-update"], ["data-state", "sorted-map"])
"""The state names of a Top-N of rows that may be retracted."""


def _rank(operator: RankOperator, compiled: StateLayout, columns: TableColumns) -> RankOperator | None:
    """Reorder the columns of a script's ranking to the stored order."""
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
    """For each stored field, the position of its column in the script; None without a match."""
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
        case CallPart():
            values, _, condition = call_parts(meaning.over)
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
    """The number of arguments of a call, True for DISTINCT, and True for a filter."""
    values, distinct, condition = call_parts(over)
    return len(values), distinct, condition is not None


def align(wanted: Sequence[Part], given: Sequence[Part], what: str, words: Sequence[str]) -> list[int] | None:
    """For each part of a compiled plan, the position of its match in the script; None without a match."""
    sides = [_by_columns(wanted), _by_columns(given)]
    if len(wanted) != len(given) or {key: len(each) for key, each in sides[0].items()} != {
        key: len(each) for key, each in sides[1].items()
    }:
        return None
    found: dict[int, int] = {}
    for key, places in sides[0].items():
        others = sides[1][key]
        pairs = _distinguished([wanted[i].composition for i in places], [given[i].composition for i in others])
        if pairs is None:
            raise CannotLower(_AMBIGUOUS.format(what=what, words=" and ".join(words[i] for i in others)))
        found |= {places[one]: others[other] for one, other in pairs.items()}
    return [found[i] for i in range(len(wanted))]


def _by_columns(parts: Sequence[Part]) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for place, part in enumerate(parts):
        found[part.shape, None if part.composition is None else part.composition.columns].append(place)
    return found


def _distinguished(wanted: Sequence[Composition | None], given: Sequence[Composition | None]) -> dict[int, int] | None:
    """Pair parts of equal columns by constants or functions that both plans share; None if impossible."""
    if None in wanted or None in given:
        return None
    if len(wanted) == 1:
        return {0: 0}
    tell: tuple[Callable[[Composition], Hashable], ...] = (
        lambda part: part.literals,
        lambda part: part.functions,
        lambda part: part,
    )
    for by in tell:
        others, own = ([by(each) for each in side if each is not None] for side in (wanted, given))
        if len({*others}) == len(others) and {*others} == {*own}:
            return {place: own.index(each) for place, each in enumerate(others)}
    return None


def derive_aggregation(
    operator: AggregateOperator, time_to_live: bool, retracting: bool = False, unretracted: Collection[int] = ()
) -> StateLayout:
    """The layout of an aggregation with keys in stored order; raise CannotLower if it is unknown."""
    symbols = Symbols()
    lowered = lower_aggregation(operator, symbols, time_to_live, True, retracting, unretracted)
    found = layout(lowered.node, lowered.inputs, symbols)
    if not isinstance(found, StateLayout):
        raise CannotLower(found.reason if found else "it keeps no keyed state")
    return found
