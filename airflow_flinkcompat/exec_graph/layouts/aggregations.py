"""What GROUP BY and window aggregations keep: accumulators in a row, maps and lists beside it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_flinkcompat.exec_graph.compiled.nodes import Node, call_function
from airflow_flinkcompat.exec_graph.compiled.symbols import ColumnMeanings, Symbols, plain, resolved
from airflow_flinkcompat.exec_graph.layout import (
    Begins,
    CallPart,
    LayoutUnknown,
    NamedState,
    StateField,
    StateLayout,
    StateNamespace,
    Stored,
)
from airflow_flinkcompat.exec_graph.layouts.accumulators import (
    MAP_VIEW,
    Accumulator,
    StateView,
    accumulator,
    begins,
    merges,
)
from airflow_flinkcompat.exec_graph.layouts.columns import columns, nullable, stored_type
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind

_COUNT_ALL: Mapping[str, Any] = {"internalName": "$COUNT$1", "argList": [], "filterArg": -1, "distinct": False}
_HIDDEN_COUNTER = {**_COUNT_ALL, "name": "hidden"}
"""The COUNT(*) that Flink keeps beside what a script asks for."""
_WINDOWS = {
    "window-aggregate": StateNamespace.WINDOW_END,
    "global-window-aggregate": StateNamespace.WINDOW_END,
    "group-window-aggregate": StateNamespace.WINDOW,
}
MERGED_SESSIONS = NamedState(
    "session-window-mapping", KeyedStateKind.MAP, Stored("TimeWindow"), Stored("TimeWindow"), StateNamespace.NONE
)


def aggregation_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of an aggregation.

    Args:
        node: A GROUP BY or window aggregation of a compiled plan, the global one of two.
        below: What it reads, or its local half hands on.
        symbols: The table of meanings.

    Returns:
        Its layout, or why it is not known.
    """
    read = below.before or below
    calls = _with_row_counter(node)
    rows = accumulated(compiled_calls(calls, _retractions(node, len(calls)), read, symbols))
    if isinstance(rows, LayoutUnknown):
        return rows
    fields, beside = rows
    session = _window(node) in ("SessionWindow", "SESSION")
    namespace = StateNamespace.WINDOW if session else _WINDOWS.get(node.kind, StateNamespace.NONE)
    accumulators = NamedState(
        "accState" if namespace is StateNamespace.NONE else "window-aggs",
        KeyedStateKind.VALUE,
        Stored("row", fields),
        namespace=namespace,
    )
    states = tuple(replace(state, namespace=namespace) for state in (accumulators, *beside))
    timers = "user-timers" if namespace is StateNamespace.NONE else "window-timers"
    return StateLayout(
        columns(below, node.config["grouping"]),
        (*states, MERGED_SESSIONS) if session else states,
        # With mini-batches a global aggregation sets none.
        ""
        if node.kind == "global-group-aggregate" or (node.kind == "group-aggregate" and in_batches(node))
        else timers,
        retracting=bool(node.config.get("needRetraction")),
    )


def incremental_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of an incremental aggregation, which sits between a local one and a global one of fewer keys.

    It keeps distinct values; accumulators live as long as a mini-batch.
    """
    calls: list[Mapping[str, Any]] = node.config["partialOriginalAggCalls"]
    retracting: list[bool] = node.config["partialAggCallNeedRetractions"]
    made = accumulated(compiled_calls(calls, retracting, below.before or below, symbols))
    if isinstance(made, LayoutUnknown):
        return made
    _, beside = made
    if any(not state.name.startswith("distinct") for state in beside):
        return LayoutUnknown("what maps and lists an incremental aggregation keeps was not measured")
    return StateLayout(columns(below, node.config["partialAggGrouping"]), beside, carried_only=True)


def _window(node: Node) -> str:
    """The kind of its window, as table functions or as group windows are named; "" without one."""
    function = node.config.get("windowing", {}).get("window", {}).get("type")
    return str(function or node.config.get("window", {}).get("kind") or "")


def in_batches(node: Node) -> bool:
    """Return whether a node that can collect rows into mini-batches does; it sets no timers then."""
    return bool(node.config.get("configuration", {}).get("table.exec.mini-batch.enabled") == "true")


def _with_row_counter(node: Node) -> list[Mapping[str, Any]]:
    """The calls, and a hidden COUNT(*) behind them where rows are taken back or windows hop, unless one is there."""
    calls: list[Mapping[str, Any]] = list(node.config["aggCalls"])
    if not node.config.get("needRetraction") and _window(node) != "HoppingWindow":
        return calls
    if node.config.get("indexOfCountStar", -1) >= 0:  # above an incremental aggregation one call adds up its counts
        return calls
    return counted(calls)


def counted(calls: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The calls of an aggregation that counts its rows, as one does from which rows are taken back.

    Args:
        calls: In the order of the plan.

    Returns:
        The same, with a COUNT(*) that nobody asked for, unless somebody does.
    """
    there = any(all(call.get(key) == value for key, value in _COUNT_ALL.items()) for call in calls)
    return calls if there else [*calls, _HIDDEN_COUNTER]


def _retractions(node: Node, calls: int) -> Sequence[bool]:
    needed = bool(node.config.get("needRetraction"))
    told: list[bool] = list(node.config.get("aggCallNeedRetractions") or ())
    return [*told, *[needed] * (calls - len(told))]


@dataclass(frozen=True)
class PlannedCall:
    """One aggregate call, of a compiled plan or of a script.

    Attributes:
        function: Its name in compiled plans.
        over: Its arguments, DISTINCT and filter; equal for calls over the same.
        words: The call for a reader.
        result: The type of its result.
        argument: The type of its first argument; "" without one.
        retracts: Whether rows are taken back from it.
        distinct: The columns whose distinct values it is over; None without DISTINCT.
        value_words: The first of them for a reader.
        sources: The columns that it is computed of, where they are known.
        hidden: Whether Flink keeps it beside the calls of the script.
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


def accumulated(
    calls: Sequence[PlannedCall],
) -> tuple[tuple[StateField, ...], tuple[NamedState, ...]] | LayoutUnknown:
    """The row of accumulators, and the states beside it.

    Args:
        calls: In the order of the plan.

    Returns:
        The fields of the row, then states without a namespace; or what is not known.
    """
    fields: list[StateField] = []
    beside: list[NamedState] = []
    for number, call in enumerate(calls):
        made = accumulator(call.function, nullable(call.result), nullable(call.argument), call.retracts)
        if isinstance(made, LayoutUnknown):
            return made
        fields += _call_fields(made, call)
        beside += [_view_state(f"agg{number}${view.name}", view, call) for view in made.views]
    for number, values in enumerate(dict.fromkeys(call.distinct for call in calls if call.distinct is not None)):
        if len(values) != 1:
            return LayoutUnknown("what DISTINCT over several columns keeps was not measured")
        over_values = [call for call in calls if call.distinct == values]
        if len(over_values) > 1 and any(call.retracts for call in over_values):
            return LayoutUnknown("what several DISTINCT calls share where rows are taken back was not measured")
        # In order: of each value a bit says of the first, second … call whether it has counted it.
        users = tuple((call.function, call.over) for call in over_values)
        meaning, words = ("distinct", users), f"distinct values of {over_values[0].value_words}"
        fields.append(StateField(MAP_VIEW, (meaning, "view"), words, begins=Begins.EMPTY_VIEW))
        beside += _distinct_states(number, over_values[0].argument, (meaning, "values"), words)
    return tuple(fields), tuple(beside)


def _call_fields(made: Accumulator, call: PlannedCall) -> Iterator[StateField]:
    """The fields of one call in the row of accumulators."""
    for part, type in made.fields:
        first = begins(call.function, part, type)
        if first is Begins.NULL and nullable(call.result) != call.result:
            first = None  # a result that is NOT NULL cannot begin without a value
        merged = merges(call.function, part, type, call.distinct is not None)
        meaning = CallPart(call.function, call.over, part)
        yield StateField(type, meaning, call.words, first, merged, call.sources, call.hidden)


def _view_state(name: str, view: StateView, call: PlannedCall) -> NamedState:
    """A map or list beside the accumulators, without a namespace."""
    meaning = CallPart(call.function, call.over, view.name)
    key = None if view.key is None else Stored("value", (StateField(view.key, meaning, call.words),))
    form = "List<value>" if view.key is None else "value"
    return NamedState(name, view.kind, Stored(form, (StateField(view.value, meaning, call.words),)), key)


def _distinct_states(number: int, type: str, meaning: tuple[Any, str], words: str) -> Iterator[NamedState]:
    """Number of occurrences of each value and of NULL, without a namespace."""
    count = Stored("value", (StateField("BIGINT NOT NULL", meaning, words),))
    key = Stored("value", (StateField(nullable(type), meaning, words),))
    yield NamedState(f"distinctAcc_{number}", KeyedStateKind.MAP, count, key)
    yield NamedState(f"distinctAcc_{number}_null_state", KeyedStateKind.VALUE, count)


def compiled_calls(
    calls: Sequence[Mapping[str, Any]], retracting: Sequence[bool], read: ColumnMeanings, symbols: Symbols
) -> list[PlannedCall]:
    """The calls of a compiled plan.

    Args:
        calls: In the order of the plan.
        retracting: Whether rows are taken back from each.
        read: What the calls are over.
        symbols: The table of meanings.

    Returns:
        The calls, in that order.
    """
    made = []
    for call, retracts in zip(calls, retracting, strict=True):
        places = [place for place in call["argList"] if place < len(read.types)]
        function = call_function(call)
        of = [place for place in (*call["argList"], call.get("filterArg", -1)) if place >= 0]
        made.append(
            PlannedCall(
                function,
                call_over(call, read, symbols),
                call_words(function, call, read),
                stored_type(call.get("type", "BIGINT")),
                stored_type(read.types[places[0]]) if places else "",
                retracts,
                tuple(call["argList"]) if call.get("distinct") else None,
                read.names[places[0]] if places else "",
                frozenset().union(*(symbols.columns_of(read.at(place)) for place in of)),
                call is _HIDDEN_COUNTER,
            )
        )
    return made


def call_over(call: Mapping[str, Any], read: ColumnMeanings, symbols: Symbols) -> Any:
    """What a call is over: arguments, DISTINCT and filter, resolved.

    Args:
        call: Of a compiled plan.
        read: What it is over.
        symbols: The table of meanings.

    Returns:
        Equal values of calls over the same.
    """
    told = {key: part for key, part in call.items() if key not in ("type", "internalName")}
    over: Any = resolved(told, read, symbols)
    types = {plain(read.types[place]) for place in call["argList"] if place < len(read.types)}
    # AVG adds up both FLOAT and DOUBLE as DOUBLE, of values that are not the same.
    rounded = "FLOAT" in types and call_function(call) != "COUNT"
    return (*over, ("argument type", "FLOAT")) if rounded else over


def call_words(function: str, call: Mapping[str, Any], read: ColumnMeanings) -> str:
    """A call for a reader, such as ``COUNT(DISTINCT c)``.

    Args:
        function: Its name.
        call: Of a compiled plan.
        read: What it is over.

    Returns:
        The call in SQL's words.
    """
    names = ", ".join(read.names[place] for place in call["argList"] if place < len(read.names)) or "*"
    filtered = call.get("filterArg", -1)
    condition = f" FILTER (WHERE {read.names[filtered]})" if 0 <= filtered < len(read.names) else ""
    return f"{function.removesuffix('0')}({'DISTINCT ' if call.get('distinct') else ''}{names}){condition}"
