"""What operators keep that store the rows they read: deduplication, Top-N, limits, sorts, OVER, sink materializers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.exec_graph.compiled.nodes import PROCTIME, ROWTIME, Node, call_function, time_attribute
from airflow_flinkcompat.exec_graph.compiled.states import is_bounded, sink_schema
from airflow_flinkcompat.exec_graph.compiled.symbols import ColumnMeanings, Symbols, frozen, plain
from airflow_flinkcompat.exec_graph.layout import (
    LayoutUnknown,
    NamedState,
    StateField,
    StateLayout,
    StateNamespace,
    Stored,
)
from airflow_flinkcompat.exec_graph.layouts.accumulators import CARRIED_ONLY
from airflow_flinkcompat.exec_graph.layouts.aggregations import (
    MERGED_SESSIONS,
    accumulated,
    compiled_calls,
    counted,
    in_batches,
)
from airflow_flinkcompat.exec_graph.layouts.columns import columns, row, stored_type
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind

VALUE, MAP = KeyedStateKind.VALUE, KeyedStateKind.MAP
USER_TIMERS, WINDOW_TIMERS = "user-timers", "window-timers"
LONG = Stored("Long")
WAITING = "waiting-to-emit-on-timer"
"""The state of the first row by event time until it is emitted, which has no time to live."""
COUNTER = NamedState("counterState", VALUE, Stored("Int"))
"""Number of rows of a key: the only state if the first rows are the highest."""


def deduplicate_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of a deduplication: one row of a key, or that there was one."""
    key, batches = columns(below, node.config["uniqueKeys"]), in_batches(node)
    first, by_event_time = not node.config.get("keepLastRow"), bool(node.config.get("isRowtime"))
    if not (first and by_event_time and node.config.get("outputInsertOnly")):
        held = Stored("Boolean") if first and not by_event_time else row(below)
        state = NamedState("deduplicate-state", VALUE, held)
        unmeasured = batches or (first and by_event_time)
        return StateLayout(key, (state,), "" if batches else USER_TIMERS, carried_only=unmeasured)
    if batches:
        return LayoutUnknown("what mini-batches keep of the first row by event time was not measured")
    states = (
        NamedState(WAITING, VALUE, row(below)),
        NamedState("already-emitted-state-boolean", VALUE, Stored("Boolean")),
    )
    return StateLayout(key, states, USER_TIMERS)


def normalize_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The state of a changelog that Flink completes: the last row of each key."""
    state = NamedState("deduplicate-state", VALUE, row(below))
    timers = "" if in_batches(node) else USER_TIMERS
    return StateLayout(columns(below, node.config["uniqueKeys"]), (state,), timers, carried_only=True)


def session_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The state of a table function for sessions: the rows of each open session."""
    states = (
        NamedState("session-window-tvf-counter", VALUE, LONG),
        NamedState("session-window-tvf-acc", MAP, row(below), LONG, StateNamespace.WINDOW),
        MERGED_SESSIONS,
    )
    key = columns(below, node.config["windowing"]["window"]["partition_key_indices"])
    return StateLayout(key, states, "session-window-tvf-timers", carried_only=True)


def rank_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of a Top-N by its strategy."""
    config = node.config
    key = columns(below, config["partition"]["fields"])
    sort_key = _sort_key(below, config["orderBy"])
    strategy = config["rankStrategy"]["type"]
    if config["rankRange"].get("type") != "Constant":
        return LayoutUnknown("what a Top-N keeps whose N is a column was not measured")
    states: tuple[NamedState, ...]
    match strategy:
        case "AppendFast" if _first_by_arrival(below, config["orderBy"]):
            states = (COUNTER,)
        case "AppendFast" | "UpdateFast" if config["rankRange"]["end"] == 1 and not config.get("outputRowNumber"):
            states = (NamedState("Top1-Rank-State", VALUE, row(below)),)
        case "AppendFast":
            states = (NamedState("data-state-with-append", MAP, row(below, "List<row>"), sort_key),)
        case "UpdateFast":
            unique = Stored("row", columns(below, config["rankStrategy"]["primaryKeys"]))
            states = (NamedState("data-state-with-update", MAP, row(below, "Tuple<row, Int>"), unique),)
        case "Retract":
            states = (
                NamedState("data-state", MAP, row(below, "List<row>"), sort_key),
                NamedState("sorted-map", VALUE, Stored("SortedMap<row, Long>", sort_key.fields)),
            )
        case _:
            return LayoutUnknown(f"what a Top-N of strategy {strategy} keeps was not measured")
    states = tuple(replace(state, retracting=strategy != "AppendFast") for state in states)
    return StateLayout(key, states, USER_TIMERS, carried_only=COUNTER in states)


def _first_by_arrival(below: ColumnMeanings, order: Mapping[str, Any]) -> bool:
    """Return whether the highest rows of a key are those that came first."""
    first, *others = order["fields"]
    return not others and first["isAscending"] and time_attribute(below.types[first["index"]]) == PROCTIME


def _sort_key(below: ColumnMeanings, spec: Mapping[str, Any]) -> Stored:
    return Stored("row", columns(below, [field["index"] for field in spec["fields"]]))


def limit_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The state of a LIMIT: the rows that were handed on."""
    return StateLayout(
        (), (NamedState("data-state-with-append", MAP, row(below, "List<row>"), Stored("row")),), USER_TIMERS
    )


def sort_limit_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of a LIMIT over sorted rows: those that may be among them, by what they are sorted by."""
    if node.config["rankStrategy"]["type"] != "AppendFast":
        return LayoutUnknown("what a sorted LIMIT over rows that are updated keeps was not measured")
    order = node.config["orderBy"]
    state = NamedState("data-state-with-append", MAP, row(below, "List<row>"), _sort_key(below, order))
    return StateLayout((), (COUNTER if _first_by_arrival(below, order) else state,), USER_TIMERS)


def sort_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of a sort by event time: rows of times that no watermark has passed."""
    first = below.types[node.config["orderBy"]["fields"][0]["index"]]
    if time_attribute(first) != ROWTIME:
        return LayoutUnknown("what a sort by processing time keeps was not measured")
    states = (
        NamedState("lastTriggeringTsState", VALUE, LONG),
        NamedState("dataState", MAP, row(below, "List<row>"), LONG),
    )
    return StateLayout((), states, USER_TIMERS)


_STATES_OF_FRAMES = {
    (ROWTIME, True, True): ("processedCountState", "lastTriggeringTsState"),
    (ROWTIME, True, False): ("lastTriggeringTsState", "cleanupTsState"),
    (PROCTIME, True, True): ("processedCountState", "smallestTSState"),
    (PROCTIME, True, False): ("cleanupTsState",),
}
"""The times and counts that OVER keeps, by its clock, whether its frame is bounded, and whether that counts rows."""
_CLEANUP_TIMES = {
    (ROWTIME, True, True): "RowTimeBoundedRowsOverCleanupTime",
    (ROWTIME, False, True): "RowTimeUnboundedOverCleanupTime",
    (ROWTIME, False, False): "RowTimeUnboundedOverCleanupTime",
    (PROCTIME, True, True): "ProcTimeBoundedRowsOverCleanupTime",
    ("", False, True): "NonTimeUnboundedPrecedingOverCleanupTime",
    ("", False, False): "NonTimeUnboundedPrecedingOverCleanupTime",
}
"""The state that OVER adds with a time to live, by the same."""


def over_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of OVER: accumulators, and but for processing time from the beginning the rows of the frame."""
    spec = node.config["overSpec"]
    (group,) = spec["groups"][:1]
    if len(spec["groups"]) != 1:
        return LayoutUnknown("what OVER with several frames keeps was not measured")
    bounded = is_bounded(group)
    time = time_attribute(below.types[group["orderBy"]["fields"][0]["index"]])
    if bounded and not time:
        return LayoutUnknown("what OVER with a frame by a column that is no time keeps was not measured")
    calls: list[Mapping[str, Any]] = group["aggCalls"]
    if bounded:  # what leaves the frame is taken back
        calls = counted(calls)
    read = _with_constants(spec.get("constants") or (), below, symbols)
    made = accumulated(compiled_calls(calls, [bounded] * len(calls), read, symbols))
    if isinstance(made, LayoutUnknown):
        return made
    fields, beside = made
    kind = time, bounded, group["isRows"]
    expires = bool(node.config.get("state"))
    if not time and beside:
        return LayoutUnknown("what maps and lists OVER by a column that is no time keeps was not measured")
    if not time:
        states = _sorted_rows(group, fields, below)
    else:
        frame = _of_sources(row(below, "List<row>"), symbols)
        accumulators = NamedState("accState", VALUE, Stored("row", fields))
        by_arrival = kind[:2] == (PROCTIME, False)
        states = (
            *(NamedState(name, VALUE, LONG) for name in _STATES_OF_FRAMES.get(kind, ())),
            replace(accumulators, time_to_live=by_arrival and expires),
            *([] if by_arrival else [NamedState("inputState", MAP, frame, LONG)]),
            *beside,
        )
    measured = time == ROWTIME or kind[:2] == (PROCTIME, False)
    measured = measured and not any(call_function(call) in CARRIED_ONLY for call in calls)
    if expires and (name := _CLEANUP_TIMES.get(kind)):
        states = (*states, NamedState(name, VALUE, LONG))
    carried_only = not measured or (expires and kind != (ROWTIME, True, False))
    return StateLayout(columns(below, spec["partition"]["fields"]), states, USER_TIMERS, bounded, carried_only)


def _sorted_rows(
    group: Mapping[str, Any], accumulators: tuple[StateField, ...], below: ColumnMeanings
) -> tuple[NamedState, ...]:
    """The states of OVER by a column that is no time: all rows by a number, and their numbers in order.

    Accumulators are kept for each value of that column, or for each row where the frame counts rows.
    """
    sort_key = _sort_key(below, group["orderBy"])
    place = Stored("row", (StateField("BIGINT"),)) if group["isRows"] else sort_key
    return (
        NamedState("idState", VALUE, LONG),
        NamedState("sortedListState", VALUE, Stored("List<Tuple<row, List<Long>>>", sort_key.fields)),
        NamedState("valueMapState", MAP, row(below), LONG, retracting=not below.appends),
        NamedState("accMapState", MAP, Stored("row", accumulators), place),
    )


def _with_constants(constants: Sequence[Mapping[str, Any]], below: ColumnMeanings, symbols: Symbols) -> ColumnMeanings:
    """The columns that calls of OVER are over: behind those of its input stand constants, which are in no row."""
    return replace(
        below,
        symbols=(*below.symbols, *(symbols.of("constant", frozen(each)) for each in constants)),
        names=(*below.names, *(str(each.get("value")) for each in constants)),
        types=(*below.types, *(plain(each["type"]) for each in constants)),
    )


def _of_sources(rows: Stored, symbols: Symbols) -> Stored:
    told = (symbols.columns_of(field.meaning) for field in rows.fields)  # type: ignore[arg-type]
    return replace(rows, fields=tuple(replace(f, sources=of) for f, of in zip(rows.fields, told, strict=True)))


_EVENT_ID = "EventId"
_NODE_ID = f"NodeId<{_EVENT_ID}>"
_EDGES = f"LockableType<SharedBufferNodeSerializerSnapshotV2<SharedBufferEdge<{_NODE_ID}, DeweyNumber>>>"


def match_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The state of MATCH_RECOGNIZE: open matches, the rows in them, and rows that wait for their turn."""
    states = (
        NamedState("nfaStateName", VALUE, Stored(f"NFAState<DeweyNumber, {_NODE_ID}, {_EVENT_ID}>")),
        NamedState("eventQueuesStateName", MAP, row(below, "List<row>"), LONG),
        NamedState("sharedBuffer-events", MAP, row(below, "LockableType<row>"), Stored(_EVENT_ID)),
        NamedState("sharedBuffer-events-count", MAP, Stored("Int"), LONG),
        NamedState("sharedBuffer-entries-with-lockable-edges", MAP, Stored(_EDGES), Stored(_NODE_ID)),
    )
    key = columns(below, node.config["matchSpec"]["partition"]["fields"])
    return StateLayout(key, states, "watermark-callbacks", carried_only=True)


def window_deduplicate_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The state of a deduplication in windows."""
    state = NamedState("window_deduplicate", VALUE, row(below), namespace=StateNamespace.WINDOW_END)
    return StateLayout(columns(below, node.config["partitionKeys"]), (state,), WINDOW_TIMERS)


def window_rank_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The state of a Top-N in windows."""
    sort_key = _sort_key(below, node.config["sortSpec"])
    state = NamedState("window_rank", MAP, row(below, "List<row>"), sort_key, StateNamespace.WINDOW_END)
    return StateLayout(columns(below, node.config["partitionSpec"]["fields"]), (state,), WINDOW_TIMERS)


def materializer_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state in front of a sink that materializes rows by its key: rows as the sink declares them."""
    declared = [
        column for column in sink_schema(node).get("columns", ()) if column.get("kind", "PHYSICAL") == "PHYSICAL"
    ]
    primary: Any = sink_schema(node).get("primaryKey") or {}
    names = [column["name"] for column in declared]
    if len(declared) != len(below.types) or not primary.get("columns"):
        return LayoutUnknown("which columns the sink stores is not known")
    fields = tuple(
        StateField(stored_type(column["dataType"]), below.at(place), column["name"])
        for place, column in enumerate(declared)
    )
    key = tuple(fields[names.index(name)] for name in primary["columns"])
    # Without a key of what comes in, a row is found again by all its columns.
    by_columns = not node.config.get("inputUpsertKey")
    return StateLayout(key, (NamedState("values", VALUE, Stored("List<row>", fields), retracting=by_columns),))
