"""Accumulators of aggregate calls, as stored in savepoints of Flink 2.3.0 and 1.20.3."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_flinkcompat.exec_graph.exec_node import call_function
from airflow_flinkcompat.exec_graph.layout import (
    Begins,
    CallPart,
    Merges,
    NamedState,
    StateField,
    Stored,
    Unknown,
    call_parts,
    nullable,
    stored_type,
)
from airflow_flinkcompat.exec_graph.streams import types_at
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, plain, resolved
from airflow_flinkcompat.savepoint.binary import KeyedStateKind

_TEXT = "VARCHAR(2147483647)"
_PACKAGE = "org.apache.flink.table.runtime.functions.aggregate."
CARRIED_ONLY = frozenset({"LAG"})
"""Functions whose accumulators can only be carried unchanged, because no rewriting was measured."""
MAP_VIEW = "RAW('org.apache.flink.table.api.dataview.MapView')"
_LIST_VIEW = "RAW('org.apache.flink.table.api.dataview.ListView')"
_DECIMAL = re.compile(r"DECIMAL\(\d+, (?P<scale>\d+)\)")


@dataclass(frozen=True)
class StateView:
    """A map or list that an accumulator stores in a separate state.

    Attributes:
        name: The end of the state's name.
        value: The type of the values.
        key: The type of the keys; None for a list.
    """

    name: str
    value: str
    key: str | None = None

    @property
    def kind(self) -> KeyedStateKind:
        """The kind of the state: a list if there is no key, else a map."""
        return KeyedStateKind.LIST if self.key is None else KeyedStateKind.MAP


@dataclass(frozen=True)
class Accumulator:
    """The accumulator of one aggregate call.

    Attributes:
        fields: The meaning and type of each field.
        views: The maps and lists that are stored in separate states.
    """

    fields: tuple[tuple[str, str], ...]
    views: tuple[StateView, ...] = ()


def accumulator(function: str, result: str, argument: str, retracting: bool) -> Accumulator | Unknown:
    """The accumulator of an aggregate call, by its function and types."""
    made = (_RETRACTING if retracting else _APPENDING).get(function) or _EITHER.get(function)
    if made is None:
        of = " over retracted rows" if retracting else ""
        return Unknown(f"the state of {function}{of} was not measured")
    return made(result, argument)


def is_retractable_extreme(type: str) -> bool:
    """True if MIN or MAX also stores all other values, because rows may be retracted."""
    return type.startswith(_PACKAGE) and "WithRetractAccumulator<`m" in type


def begins(function: str, part: str, type: str) -> Begins | None:
    """The initial value of an accumulator's field; None if it was not measured."""
    if part == "count" or function in ("SUM0", "AVG"):
        return Begins.ZERO
    if part == "spread":
        return Begins.NO_SPREAD
    return Begins.NULL if function in ("SUM", "MIN", "MAX") and not type.startswith(_PACKAGE) else None


def merges(function: str, part: str, type: str, distinct: bool) -> Merges | None:
    """The merge function of an accumulator's field; None if two values cannot be merged."""
    if distinct:
        return None
    if part in ("sum", "count"):
        return Merges.ADDED
    plain = part == "value" and not type.startswith(_PACKAGE)
    return {"MIN": Merges.LEAST, "MAX": Merges.GREATEST}.get(function) if plain else None


def _average(result: str, argument: str) -> Accumulator | Unknown:
    total = _total(argument)
    if total is None:
        return Unknown(f"the state of AVG of {argument} was not measured")
    return Accumulator((("sum", total), ("count", "BIGINT")))


def _total(argument: str) -> str | None:
    if argument in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return "BIGINT"
    if argument in ("FLOAT", "DOUBLE"):
        return "DOUBLE"
    match = _DECIMAL.fullmatch(argument)
    return f"DECIMAL(38, {match['scale']})" if match else None


def _extreme(result: str, argument: str) -> Accumulator:
    return Accumulator((("value", _TEXT if result.startswith(("CHAR(", "VARCHAR(")) else result),))


def _retracted_extreme(name: str) -> Callable[[str, str], Accumulator]:
    def of_call(result: str, argument: str) -> Accumulator:
        least = name[:3].lower()
        fields = f"`{least}` {result}, `mapSize` BIGINT, `map` {MAP_VIEW}"
        type = f"{_PACKAGE}{name}WithRetractAggFunction${name}WithRetractAccumulator<{fields}>"
        return Accumulator((("value", type),), (StateView("map", "BIGINT", f"{result} NOT NULL"),))

    return of_call


def _chosen(name: str) -> Callable[[str, str], Accumulator]:
    return lambda result, argument: Accumulator((("value", f"ROW<`{name}Value` {result}, `{name}Order` BIGINT>"),))


def _retracted_chosen(name: str) -> Callable[[str, str], Accumulator]:
    def of_call(result: str, argument: str) -> Accumulator:
        function = f"{name.capitalize()}ValueWithRetract"
        views = f"`valueToOrderMap` {MAP_VIEW}, `orderToValueMap` {MAP_VIEW}"
        fields = f"`{name}Value` {result}, `{name}Order` BIGINT, {views}"
        return Accumulator(
            (("value", f"{_PACKAGE}{function}AggFunction${function}Accumulator<{fields}>"),),
            (
                StateView("valueToOrderMap", "ARRAY<BIGINT>", f"{result} NOT NULL"),
                StateView("orderToValueMap", f"ARRAY<{result} NOT NULL>", "BIGINT"),
            ),
        )

    return of_call


def _retracted_list(result: str, argument: str) -> Accumulator:
    fields = f"`list` {_LIST_VIEW}, `retractList` {_LIST_VIEW}"
    type = f"{_PACKAGE}ListAggWithRetractAggFunction$ListAggWithRetractAccumulator<{fields}>"
    views = StateView("list", f"{_TEXT} NOT NULL"), StateView("retractList", f"{_TEXT} NOT NULL")
    return Accumulator((("value", type),), views)


def _lagged(result: str, argument: str) -> Accumulator:
    fields = f"`offset` INT, `defaultValue` {argument}, `buffer` RAW('java.util.LinkedList')"
    return Accumulator((("value", f"{_PACKAGE}LagAggFunction$LagAcc<{fields}>"),))


_WELFORD = (
    f"{_PACKAGE}WelfordM2AggFunction$WelfordM2Accumulator"
    "<`n` BIGINT NOT NULL, `mean` DOUBLE NOT NULL, `m2` DOUBLE NOT NULL>"
)
_Made = Callable[[str, str], Accumulator | Unknown]
_EITHER: Mapping[str, _Made] = {
    "COUNT": lambda result, argument: Accumulator((("count", "BIGINT"),)),
    "SUM0": lambda result, argument: Accumulator((("sum", result),)),
    "AVG": _average,
    "WELFORD_M2": lambda result, argument: Accumulator((("spread", _WELFORD),)),
}
_APPENDING: Mapping[str, _Made] = {
    "SUM": lambda result, argument: Accumulator((("sum", result),)),
    "MIN": _extreme,
    "MAX": _extreme,
    "FIRST_VALUE": _chosen("first"),
    "LAST_VALUE": _chosen("last"),
    "LISTAGG": lambda result, argument: Accumulator((("delimiter", _TEXT), ("list", _TEXT))),
    "LAG": _lagged,
}
_RETRACTING: Mapping[str, _Made] = {
    "SUM": lambda result, argument: Accumulator((("sum", result), ("count", "BIGINT"))),
    "MIN": _retracted_extreme("Min"),
    "MAX": _retracted_extreme("Max"),
    "FIRST_VALUE": _retracted_chosen("first"),
    "LAST_VALUE": _retracted_chosen("last"),
    "LISTAGG": _retracted_list,
}


def call_meaning(call: Mapping[str, Any], read: ColumnMeanings, symbols: Symbols) -> Hashable:
    parts = {key: part for key, part in call.items() if key != "type"}
    if call.get("filterArg", -1) >= 0 and symbols.is_true(read.at(call["filterArg"])):
        parts["filterArg"] = -1
    return resolved(parts, read, symbols)


def accumulator_facet(call: Mapping[str, Any], read: ColumnMeanings) -> Hashable:
    """The accumulator facet of a call; text lengths and NOT NULL do not affect it (measured)."""
    function = call_function(call)
    arguments = tuple(_stored(kind) for kind in types_at(read, call["argList"]))
    kept: tuple[str, ...]
    if function == "COUNT":
        kept = ("BIGINT",)
    elif function in ("SUM", "SUM0", "MAX", "MIN"):
        kept = (_stored(call.get("type")),)
    else:
        kept = (function, _stored(call.get("type")), *arguments)
    distinct = (arguments, call.get("filterArg", -1) >= 0) if call.get("distinct") else None
    return kept, distinct


def _stored(kind: Any) -> str:
    text = plain(kind)
    return text.partition("(")[0] if text.startswith(("VARCHAR", "CHAR")) else text


_COUNT_ALL: Mapping[str, Any] = {"internalName": "$COUNT$1", "argList": [], "filterArg": -1, "distinct": False}
_HIDDEN_COUNTER = {**_COUNT_ALL, "name": "hidden"}
"""The hidden COUNT(*) that Flink adds to an aggregation."""


def counted(calls: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The calls of an aggregation with retractions, including a COUNT(*) of its rows."""
    there = any(all(call.get(key) == value for key, value in _COUNT_ALL.items()) for call in calls)
    return calls if there else [*calls, _HIDDEN_COUNTER]


@dataclass(frozen=True)
class PlannedCall:
    """An aggregate call of a compiled plan or a script.

    Attributes:
        function: The function's name in compiled plans.
        over: The arguments, DISTINCT and filter; equal for calls over the same values.
        words: The call as SQL, for messages.
        result: The result type.
        argument: The type of the first argument; "" without arguments.
        retracts: True if the call receives retractions.
        distinct: The columns whose distinct values are aggregated; None without DISTINCT.
        value_words: The name of the first argument column, for messages.
        sources: The columns from which the call is computed, if known.
        hidden: True if Flink adds the call to the calls of the script.
        square_of: For a call over the squares of an expression, the call's input without the squaring; else None.
    """

    function: str
    over: Hashable
    words: str
    result: str
    argument: str
    retracts: bool
    distinct: tuple[Hashable, ...] | None = None
    value_words: str = ""
    sources: frozenset[Hashable] = frozenset()
    hidden: bool = False
    square_of: Hashable = None


def accumulated(
    calls: Sequence[PlannedCall],
) -> tuple[tuple[StateField, ...], tuple[NamedState, ...]] | Unknown:
    """The fields of the accumulator row, and the states that are separate from this row."""
    fields: list[StateField] = []
    beside: list[NamedState] = []
    for number, call in enumerate(calls):
        made = accumulator(call.function, nullable(call.result), nullable(call.argument), call.retracts)
        if isinstance(made, Unknown):
            return made
        fields += _call_fields(made, call)
        beside += [_view_state(f"agg{number}${view.name}", view, call) for view in made.views]
    for number, values in enumerate(dict.fromkeys(call.distinct for call in calls if call.distinct is not None)):
        if len(values) != 1:
            return Unknown("the state of DISTINCT over several columns was not measured")
        over_values = [call for call in calls if call.distinct == values]
        if len(over_values) > 1 and any(call.retracts for call in over_values):
            return Unknown("the shared state of several DISTINCT calls over retracted rows was not measured")
        # The order matters: each value has one bit for each call, which is set if that call counted the value.
        users = tuple((call.function, call.over) for call in over_values)
        meaning, words = ("distinct", users), f"distinct values of {over_values[0].value_words}"
        fields.append(StateField(MAP_VIEW, (meaning, "view"), words, begins=Begins.EMPTY_VIEW))
        beside += _distinct_states(number, over_values[0].argument, (meaning, "values"), words)
    return tuple(fields), tuple(beside)


def _call_fields(made: Accumulator, call: PlannedCall) -> Iterator[StateField]:
    for part, type in made.fields:
        first = begins(call.function, part, type)
        if first is Begins.NULL and nullable(call.result) != call.result:
            first = None  # a NOT NULL result cannot begin as NULL
        merged = merges(call.function, part, type, call.distinct is not None)
        meaning = CallPart(call.function, call.over, part, call.square_of)
        yield StateField(type, meaning, call.words, first, merged, call.sources, call.hidden)


def _view_state(name: str, view: StateView, call: PlannedCall) -> NamedState:
    """A map or list that is separate from the accumulator row, without a namespace."""
    meaning = CallPart(call.function, call.over, view.name)
    key = None if view.key is None else Stored("value", (StateField(view.key, meaning, call.words),))
    form = "List<value>" if view.key is None else "value"
    return NamedState(name, view.kind, Stored(form, (StateField(view.value, meaning, call.words),)), key)


def _distinct_states(number: int, type: str, meaning: tuple[Any, str], words: str) -> Iterator[NamedState]:
    """The states that count each distinct value and NULL, without a namespace."""
    count = Stored("value", (StateField("BIGINT NOT NULL", meaning, words),))
    key = Stored("value", (StateField(nullable(type), meaning, words),))
    yield NamedState(f"distinctAcc_{number}", KeyedStateKind.MAP, count, key)
    yield NamedState(f"distinctAcc_{number}_null_state", KeyedStateKind.VALUE, count)


def compiled_calls(
    calls: Sequence[Mapping[str, Any]], retracting: Sequence[bool], read: ColumnMeanings, symbols: Symbols
) -> list[PlannedCall]:
    """Read the aggregate calls of a compiled plan."""
    made = []
    for call, retracts in zip(calls, retracting, strict=True):
        places = [place for place in call["argList"] if place < len(read.types)]
        function, over = call_function(call), call_over(call, read, symbols)
        of = [place for place in (*call["argList"], call.get("filterArg", -1)) if place >= 0]
        made.append(
            PlannedCall(
                function,
                over,
                call_words(function, call, read),
                stored_type(call.get("type", "BIGINT")),
                stored_type(read.types[places[0]]) if places else "",
                retracts,
                tuple(call["argList"]) if call.get("distinct") else None,
                read.names[places[0]] if places else "",
                frozenset().union(*(symbols.columns_of(read.at(place)) for place in of)),
                call is _HIDDEN_COUNTER,
                _without_square(over, symbols),
            )
        )
    return made


def _without_square(over: Hashable, symbols: Symbols) -> Hashable:
    """The input of a call without the squaring of its only argument; None if the argument is no square."""
    arguments, _, _ = call_parts(over)
    root = symbols.root(arguments[0]) if len(arguments) == 1 and isinstance(arguments[0], int) else None
    if root is None:
        return None
    assert isinstance(over, tuple)
    return tuple((name, (root,)) if name == "argList" else (name, part) for name, part in over)


def call_over(call: Mapping[str, Any], read: ColumnMeanings, symbols: Symbols) -> Any:
    """The resolved input of a call: its arguments, DISTINCT and filter."""
    parts = {key: part for key, part in call.items() if key not in ("type", "internalName")}
    over: Any = resolved(parts, read, symbols)
    types = {plain(read.types[place]) for place in call["argList"] if place < len(read.types)}
    # AVG sums both FLOAT and DOUBLE values as DOUBLE, but the values differ.
    rounded = "FLOAT" in types and call_function(call) != "COUNT"
    return (*over, ("argument type", "FLOAT")) if rounded else over


def call_words(function: str, call: Mapping[str, Any], read: ColumnMeanings) -> str:
    """A call as SQL, such as ``COUNT(DISTINCT c)``."""
    names = ", ".join(read.names[place] for place in call["argList"] if place < len(read.names)) or "*"
    filtered = call.get("filterArg", -1)
    condition = f" FILTER (WHERE {read.names[filtered]})" if 0 <= filtered < len(read.names) else ""
    return f"{function.removesuffix('0')}({'DISTINCT ' if call.get('distinct') else ''}{names}){condition}"
