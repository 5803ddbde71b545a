"""What operators keep that store the rows they read: deduplication, Top-N, limits, sorts, OVER, sink materializers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.savepoint.kinds import KeyedStateKind
from airflow_flinkcompat.state.compiled.nodes import Node
from airflow_flinkcompat.state.compiled.states import is_bounded, sink_schema
from airflow_flinkcompat.state.compiled.symbols import ColumnMeanings, Symbols, frozen, plain
from airflow_flinkcompat.state.layout import LayoutUnknown, NamedState, StateField, StateLayout, StateNamespace, Stored
from airflow_flinkcompat.state.layouts.aggregations import accumulated, counted
from airflow_flinkcompat.state.layouts.columns import columns, row, stored_type

VALUE, MAP = KeyedStateKind.VALUE, KeyedStateKind.MAP
USER_TIMERS, WINDOW_TIMERS = "user-timers", "window-timers"
LONG = Stored("Long")


def deduplicate_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of a deduplication: one row of a key, or that there was one."""
    key = columns(below, node.config["uniqueKeys"])
    first = not node.config.get("keepLastRow")
    if not node.config.get("isRowtime"):
        held = Stored("Boolean") if first else row(below)
        return StateLayout(key, (NamedState("deduplicate-state", VALUE, held),), USER_TIMERS)
    if not first:
        return StateLayout(key, (NamedState("deduplicate-state", VALUE, row(below)),), USER_TIMERS)
    if not node.config.get("outputInsertOnly"):
        return LayoutUnknown("what the first row by event time is kept in was measured since 2.0 only")
    states = (
        NamedState("waiting-to-emit-on-timer", VALUE, row(below)),
        NamedState("already-emitted-state-boolean", VALUE, Stored("Boolean")),
    )
    return StateLayout(key, states, USER_TIMERS)


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
    return StateLayout(key, states, USER_TIMERS)


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
    sort_key = _sort_key(below, node.config["orderBy"])
    state = NamedState("data-state-with-append", MAP, row(below, "List<row>"), sort_key)
    return StateLayout((), (state,), USER_TIMERS)


def sort_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of a sort by event time: rows of times that no watermark has passed."""
    first = below.types[node.config["orderBy"]["fields"][0]["index"]]
    if "ROWTIME" not in first:
        return LayoutUnknown("what a sort by processing time keeps was not measured")
    states = (
        NamedState("lastTriggeringTsState", VALUE, LONG),
        NamedState("dataState", MAP, row(below, "List<row>"), LONG),
    )
    return StateLayout((), states, USER_TIMERS)


def over_layout(node: Node, below: ColumnMeanings, symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of OVER: accumulators, and by event time the rows of the frame."""
    spec = node.config["overSpec"]
    (group,) = spec["groups"][:1]
    if len(spec["groups"]) != 1:
        return LayoutUnknown("what OVER with several frames keeps was not measured")
    bounded = is_bounded(group)
    by_event_time = "ROWTIME" in below.types[group["orderBy"]["fields"][0]["index"]]
    if bounded and not by_event_time:
        return LayoutUnknown("what OVER with a frame by processing time keeps was not measured")
    calls: list[Mapping[str, Any]] = group["aggCalls"]
    if bounded:  # what leaves the frame is taken back
        calls = counted(calls)
    read = _with_constants(spec.get("constants") or (), below, symbols)
    made = accumulated(calls, [bounded] * len(calls), read, symbols)
    if isinstance(made, LayoutUnknown):
        return made
    fields, beside = made
    frame = _of_sources(row(below, "List<row>"), symbols)
    times = {
        (True, True): ("processedCountState", "lastTriggeringTsState"),
        (True, False): ("lastTriggeringTsState", "cleanupTsState"),
    }
    states = (
        *(NamedState(name, VALUE, LONG) for name in times.get((bounded, group["isRows"]), ())),
        NamedState("accState", VALUE, Stored("row", fields)),
        *([NamedState("inputState", MAP, frame, LONG)] if by_event_time else []),
        *beside,
    )
    return StateLayout(columns(below, spec["partition"]["fields"]), states, USER_TIMERS, retracting=bounded)


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
