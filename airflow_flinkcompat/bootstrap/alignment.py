"""What stands where in the state of an operator: the parts of a script's own plan in the order of a compiled one.

Compiled plans number columns, and call them as their planner does. What of the script one is, is told by the columns of
tables that it is computed of, where several are of the same by functions and constants too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from airflow_flinkcompat.bootstrap.positions import last_name
from airflow_flinkcompat.bootstrap.table_rows import NotComputable
from airflow_flinkcompat.plan.column_lineage import composition
from airflow_flinkcompat.plan.composition import Composition, together
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, InputRef, Literal
from airflow_flinkcompat.plan.nodes import Table
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
_UNTOLD = "which of its {what} stands where in its state is not told: {words} are of the same columns"


@dataclass(frozen=True)
class Part:
    """Something that is stored, by what it is recognised.

    Attributes:
        shape: What has to be equal: the type in which it is stored, of a metric its function and how that is called.
        composition: What it is computed of; None where that is not told.
    """

    shape: Hashable
    composition: Composition | None


@dataclass(frozen=True)
class TableColumns:
    """The columns of the tables of a script, by the names that both plans have for them."""

    tables: tuple[Table, ...]

    def compiled(self, told: Composition | None) -> Composition | None:
        """What a compiled plan says, in the script's words.

        Args:
            told: Its columns are those of compiled plans.

        Returns:
            The same; None where a column is of no table of the script, or of several.
        """
        return told and self._named(told, self._of_compiled)

    def script(self, told: Composition | None) -> Composition | None:
        """What a script's own plan says, down to the columns that are stored.

        Args:
            told: Its columns are names of tables and of columns.

        Returns:
            The same; None where a column is not told.
        """
        return told and self._named(told, self._of_script)

    def _named(self, told: Composition, named: Callable[[Hashable], Composition | None]) -> Composition | None:
        return together([replace(told, columns=frozenset()), *map(named, told.columns)])

    def _of_compiled(self, column: Hashable) -> Composition | None:
        match column:
            case (kind, str() as identifier, *_, str() | int() as place):
                found = [each for each in self.tables if each.path[2] == last_name(identifier)]
                if len(found) != 1:
                    return None
                (table,) = found
                if kind == "metadata":
                    named = [name for name, key, _ in table.metadata if place in (key, name)]
                    return Composition(frozenset({(table.path[2], *named)})) if len(named) == 1 else None
                return self._stored(table, table.physical[place] if isinstance(place, int) else place)
        return None

    def _of_script(self, column: Hashable) -> Composition | None:
        match column:
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


def align(wanted: Sequence[Part], given: Sequence[Part], what: str, words: Sequence[str]) -> list[int] | None:
    """Which part of a script each part of a compiled plan is.

    Args:
        wanted: Of the compiled plan.
        given: Of the script.
        what: What they are, for a reader.
        words: The parts of the script for a reader.

    Returns:
        For each wanted one the place of the given one; None where they are others.

    Raises:
        NotComputable: Several ways fit.
    """
    sides = [_by_columns(wanted), _by_columns(given)]
    if len(wanted) != len(given) or {key: len(each) for key, each in sides[0].items()} != {
        key: len(each) for key, each in sides[1].items()
    }:
        return None
    found: dict[int, int] = {}
    for key, places in sides[0].items():
        others = sides[1][key]
        pairs = _told_apart([wanted[i].composition for i in places], [given[i].composition for i in others])
        if pairs is None:
            raise NotComputable(_UNTOLD.format(what=what, words=" and ".join(words[i] for i in others)))
        found |= {places[one]: others[other] for one, other in pairs.items()}
    return [found[i] for i in range(len(wanted))]


def _by_columns(parts: Sequence[Part]) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for place, part in enumerate(parts):
        found[part.shape, None if part.composition is None else part.composition.columns].append(place)
    return found


def _told_apart(wanted: Sequence[Composition | None], given: Sequence[Composition | None]) -> dict[int, int] | None:
    """The parts that are of the same columns, by whatever of them both plans write alike; None where nothing does."""
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
        told, own = ([by(each) for each in side if each is not None] for side in (wanted, given))
        if len({*told}) == len(told) and {*told} == {*own}:
            return {place: own.index(each) for place, each in enumerate(told)}
    return None


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
