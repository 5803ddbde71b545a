"""GROUP BY and window aggregations: facets, layout and rewriting of their accumulators."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from airflow_flinkcompat.exec_graph.columns import columns, nullable, stored_type
from airflow_flinkcompat.exec_graph.exec_node import ExecNode, call_function
from airflow_flinkcompat.exec_graph.facets import Aspect, Facets
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import (
    Begins,
    CallPart,
    NamedState,
    StateField,
    StateLayout,
    StateNamespace,
    Stored,
    Unknown,
)
from airflow_flinkcompat.exec_graph.nodes.accumulators import (
    MAP_VIEW,
    Accumulator,
    StateView,
    accumulator,
    begins,
    merges,
)
from airflow_flinkcompat.exec_graph.rewriting import (
    ROWS,
    StateRewrite,
    as_it_is,
    begun,
    source_of,
    stored_fields,
    taken,
    words,
)
from airflow_flinkcompat.exec_graph.streams import facets_aside, made, own, rows_meaning, types_at
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, plain, resolved
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind


def local_columns(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> ColumnMeanings:
    """Keys as they are, partial results; the global aggregation is configured in terms of what this one reads."""
    facets = aggregation_facets(node, below, symbols)
    keys = [symbols.number(below.at(place)) for place in node.config["grouping"]]
    op = rows_meaning("aggregate", facets, symbols)
    partial = [symbols.of("partial", op, i) for i in range(len(node.names) - len(keys))]
    columns = made(node, [*keys, *partial], below.rows)
    return replace(columns, before=below, window=facets[Aspect.MEANING, "window"])


def aggregation_facets(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> Facets:
    """Keys, calls and window resolved, through a local aggregation, to what it read."""
    read = below.before or below
    calls: list[dict[str, Any]] = node.config["aggCalls"]
    window = resolved(node.config.get("windowing") or node.config.get("window") or {}, read, symbols)
    needs = bool(node.config.get("needRetraction")), *map(bool, node.config.get("aggCallNeedRetractions") or ())
    rest = own(node, "grouping", "aggCalls", "windowing", "window", "needRetraction", "aggCallNeedRetractions")
    return {
        (Aspect.LAYOUT, "key types"): types_at(below, node.config["grouping"]),
        (Aspect.LAYOUT, "accumulators"): tuple(accumulator_facet(call, read) for call in calls),
        (Aspect.LAYOUT, "window state"): _window_state(node.config),
        (Aspect.LAYOUT, "retraction"): needs,
        (Aspect.MEANING, "window"): window if below.window is None else below.window,
        (Aspect.MEANING, "keys"): tuple(below.at(place) for place in node.config["grouping"]),
        (Aspect.MEANING, "aggregates"): tuple(call_meaning(call, read, symbols) for call in calls),
        (Aspect.MEANING, "rows below"): below.rows,
        (Aspect.OTHER, "argument types"): tuple(types_at(read, call["argList"]) for call in calls),
        (Aspect.OTHER, "configuration beside"): resolved(rest, read, symbols),
        **facets_aside(node),
    }


def _window_state(config: Mapping[str, Any]) -> str:
    """Hopping windows and sessions keep their slices and merged windows in states of their own (measured)."""
    kind = config.get("windowing", {}).get("window", {}).get("type") or config.get("window", {}).get("kind")
    own_state = {"HoppingWindow": "hopping", "SessionWindow": "session", "SESSION": "session"}
    return own_state.get(kind, "plain")


def call_meaning(call: Mapping[str, Any], read: ColumnMeanings, symbols: Symbols) -> Hashable:
    told = {key: part for key, part in call.items() if key != "type"}
    if call.get("filterArg", -1) >= 0 and symbols.is_true(read.at(call["filterArg"])):
        told["filterArg"] = -1
    return resolved(told, read, symbols)


def accumulator_facet(call: Mapping[str, Any], read: ColumnMeanings) -> Hashable:
    """What one call keeps. Lengths of texts and NOT NULL of what it reads do not show in it (measured)."""
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
"""The COUNT(*) that Flink keeps beside what a script asks for."""


_WINDOWS = {
    ExecKind.WINDOW_AGGREGATE: StateNamespace.WINDOW_END,
    ExecKind.GLOBAL_WINDOW_AGGREGATE: StateNamespace.WINDOW_END,
    ExecKind.GROUP_WINDOW_AGGREGATE: StateNamespace.WINDOW,
}


MERGED_SESSIONS = NamedState(
    "session-window-mapping", KeyedStateKind.MAP, Stored("TimeWindow"), Stored("TimeWindow"), StateNamespace.NONE
)


def aggregation_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The state of an aggregation."""
    read = below.before or below
    calls = _with_row_counter(node)
    rows = accumulated(compiled_calls(calls, _retractions(node, len(calls)), read, symbols))
    if isinstance(rows, Unknown):
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
        if node.kind is ExecKind.GLOBAL_GROUP_AGGREGATE or (node.kind is ExecKind.GROUP_AGGREGATE and in_batches(node))
        else timers,
        retracting=bool(node.config.get("needRetraction")),
    )


def incremental_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The state of an incremental aggregation, which sits between a local one and a global one of fewer keys.

    It keeps distinct values; accumulators live as long as a mini-batch.
    """
    calls: list[Mapping[str, Any]] = node.config["partialOriginalAggCalls"]
    retracting: list[bool] = node.config["partialAggCallNeedRetractions"]
    made = accumulated(compiled_calls(calls, retracting, below.before or below, symbols))
    if isinstance(made, Unknown):
        return made
    _, beside = made
    if any(not state.name.startswith("distinct") for state in beside):
        return Unknown("what maps and lists an incremental aggregation keeps was not measured")
    return StateLayout(columns(below, node.config["partialAggGrouping"]), beside, carried_only=True)


def _window(node: ExecNode) -> str:
    """The kind of its window, as table functions or as group windows are named; "" without one."""
    function = node.config.get("windowing", {}).get("window", {}).get("type")
    return str(function or node.config.get("window", {}).get("kind") or "")


def in_batches(node: ExecNode) -> bool:
    """Return whether a node that can collect rows into mini-batches does; it sets no timers then."""
    return bool(node.config.get("configuration", {}).get("table.exec.mini-batch.enabled") == "true")


def _with_row_counter(node: ExecNode) -> list[Mapping[str, Any]]:
    """The calls, and a hidden COUNT(*) behind them where rows are taken back or windows hop, unless one is there."""
    calls: list[Mapping[str, Any]] = list(node.config["aggCalls"])
    if not node.config.get("needRetraction") and _window(node) != "HoppingWindow":
        return calls
    if node.config.get("indexOfCountStar", -1) >= 0:  # above an incremental aggregation one call adds up its counts
        return calls
    return counted(calls)


def counted(calls: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The calls of an aggregation that counts its rows, as one does from which rows are taken back."""
    there = any(all(call.get(key) == value for key, value in _COUNT_ALL.items()) for call in calls)
    return calls if there else [*calls, _HIDDEN_COUNTER]


def _retractions(node: ExecNode, calls: int) -> Sequence[bool]:
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
) -> tuple[tuple[StateField, ...], tuple[NamedState, ...]] | Unknown:
    """The row of accumulators, and the states beside it."""
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
            return Unknown("what DISTINCT over several columns keeps was not measured")
        over_values = [call for call in calls if call.distinct == values]
        if len(over_values) > 1 and any(call.retracts for call in over_values):
            return Unknown("what several DISTINCT calls share where rows are taken back was not measured")
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
    """The calls of a compiled plan."""
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
    """What a call is over: arguments, DISTINCT and filter, resolved."""
    told = {key: part for key, part in call.items() if key not in ("type", "internalName")}
    over: Any = resolved(told, read, symbols)
    types = {plain(read.types[place]) for place in call["argList"] if place < len(read.types)}
    # AVG adds up both FLOAT and DOUBLE as DOUBLE, of values that are not the same.
    rounded = "FLOAT" in types and call_function(call) != "COUNT"
    return (*over, ("argument type", "FLOAT")) if rounded else over


def call_words(function: str, call: Mapping[str, Any], read: ColumnMeanings) -> str:
    """A call for a reader, such as ``COUNT(DISTINCT c)``."""
    names = ", ".join(read.names[place] for place in call["argList"] if place < len(read.names)) or "*"
    filtered = call.get("filterArg", -1)
    condition = f" FILTER (WHERE {read.names[filtered]})" if 0 <= filtered < len(read.names) else ""
    return f"{function.removesuffix('0')}({'DISTINCT ' if call.get('distinct') else ''}{names}){condition}"


def accumulator_states(before: StateLayout, after: StateLayout) -> tuple[StateRewrite, ...] | str:
    """The states of an aggregation."""
    states = tuple(_state(state, before) for state in after.states)
    return _refused(states, before, after) or states


def unmerged(states: Sequence[StateRewrite], before: StateLayout, what: str) -> str:
    """Why values of several keys or slices cannot be merged."""
    if any(state.name == MERGED_SESSIONS.name for state in before.states):
        return "sessions of several keys would be one with sessions that have ended, of which nothing is stored"
    if any(state.time_to_live for state in before.states):
        return "what was stored of keys that were not used for a while is gone, and their new key may have been"
    fields = (
        field
        for state in states
        for field, place in zip(state.new.value.fields, state.fields, strict=True)
        if place is not None and (field.merges is None or state.new.value.form not in ROWS)
    )
    told = words(fields)
    return f"several {told[0]} of one {what} each do not say that of all their {what}s" if told else ""


def _state(new: NamedState, before: StateLayout) -> StateRewrite:
    """Rows by their fields; a map or list beside a row of accumulators by what it is of."""
    if new.value.form in ROWS:
        old = next(state for state in before.states if state.value.form in ROWS)
        return StateRewrite(new, old, _places(new.value.fields, old.value.fields))
    if not new.value.fields:  # the windows that sessions are merged from
        return as_it_is(new, next((state for state in before.states if state.name == new.name), None))
    same = (state for state in before.states if (state.value, state.map_key) == (new.value, new.map_key))
    return as_it_is(new, next((state for state in same if state.kind is new.kind), None))


def _places(new: Sequence[StateField], old: Sequence[StateField]) -> tuple[int | None, ...]:
    """Where the fields of a row of accumulators come from.

    A call may go on in what other calls have stored, an average in a sum and a count; where one of its parts is missing
    there, all of it begins.
    """
    places = [source_of(field, old) for field in new]
    missing = (field.meaning for field, place in zip(new, places, strict=True) if place is None)
    begins = {meaning.call for meaning in missing if isinstance(meaning, CallPart)}
    return tuple(
        None if place is not None and _lent(field, old[place], begins) else place
        for field, place in zip(new, places, strict=True)
    )


def _lent(field: StateField, stored: StateField, calls: Set[Hashable]) -> bool:
    """Whether one of these calls would take a part of another one's."""
    return isinstance(field.meaning, CallPart) and field.meaning.call in calls and field.meaning != stored.meaning


def _refused(states: Sequence[StateRewrite], before: StateLayout, after: StateLayout) -> str:
    """Why a rewriting would be read wrong, "" where it would not."""
    metrics = words(begun(states))
    if not metrics:
        return ""
    if after.retracting:
        return f"{', '.join(metrics)} would count rows as taken back that it never saw"
    fields = (field for state in states if state.new.value.form in ROWS for field in state.begun)
    untold = {words([field])[0].partition("(")[0]: None for field in fields if field.begins is None}
    if untold:
        return f"what {', '.join(untold)} begins with was not measured"
    # Plans name a computed argument by its place, so what a view is of is asked of the calls that use it.
    going_on = {field.meaning.call for field in taken(states) if isinstance(field.meaning, CallPart)}
    shared = (field for field in begun(states) if _users(field) & going_on)
    kept = words(stored_fields(before))
    distinct = [*words(shared), *(each for each in metrics if each in kept and each.startswith("distinct values"))]
    return f"other metrics share the {distinct[0]}" if distinct else ""


def _users(field: StateField) -> frozenset[object]:
    """The calls that count the values of a DISTINCT; none of any other field."""
    match field.meaning:
        case (("distinct", tuple() as users), _):
            return frozenset(users)
    return frozenset()
