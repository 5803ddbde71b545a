"""OVER aggregations: layout and rewriting of accumulators and of the rows in the frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.exec_graph.exec_node import PROCTIME, ROWTIME, ExecNode, call_function, time_attribute
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import (
    LONG,
    MAP,
    USER_TIMERS,
    VALUE,
    NamedState,
    StateField,
    StateLayout,
    Stored,
    Unknown,
)
from airflow_flinkcompat.exec_graph.lowering import NodeFamily, of_one_input
from airflow_flinkcompat.exec_graph.nodes.accumulators import CARRIED_ONLY, accumulated, compiled_calls, counted
from airflow_flinkcompat.exec_graph.nodes.kept_rows import is_bounded, kept_row_facets, row_states
from airflow_flinkcompat.exec_graph.nodes.rank import sort_key_of
from airflow_flinkcompat.exec_graph.rewriting import StateRewrite, by_fields, stored_fields
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, columns, frozen, plain, row

OVER_ROWS, OVER_LAST_SENT = "inputState", "lastTriggeringTsState"
"""States of an event-time OVER: its rows, and the time of its last emission."""
BESIDE_ACCUMULATORS = frozenset({OVER_ROWS, OVER_LAST_SENT, "cleanupTsState", "processedCountState"})
"""All states of an event-time OVER except accumulators."""
_STATES_OF_FRAMES = {
    (ROWTIME, True, True): ("processedCountState", "lastTriggeringTsState"),
    (ROWTIME, True, False): ("lastTriggeringTsState", "cleanupTsState"),
    (PROCTIME, True, True): ("processedCountState", "smallestTSState"),
    (PROCTIME, True, False): ("cleanupTsState",),
}
"""Time and counter states of OVER, by time attribute, bounded frame (True) and ROWS frame (True)."""
_CLEANUP_TIMES = {
    (ROWTIME, True, True): "RowTimeBoundedRowsOverCleanupTime",
    (ROWTIME, False, True): "RowTimeUnboundedOverCleanupTime",
    (ROWTIME, False, False): "RowTimeUnboundedOverCleanupTime",
    (PROCTIME, True, True): "ProcTimeBoundedRowsOverCleanupTime",
    ("", False, True): "NonTimeUnboundedPrecedingOverCleanupTime",
    ("", False, False): "NonTimeUnboundedPrecedingOverCleanupTime",
}
"""The state that a time to live adds to OVER, by time attribute, bounded frame and ROWS frame."""


def over_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The layout of OVER: accumulators, and rows unless the frame is unbounded in processing time."""
    spec = node.config["overSpec"]
    (group,) = spec["groups"][:1]
    if len(spec["groups"]) != 1:
        return Unknown("the state of OVER with several frames was not measured")
    bounded = is_bounded(group)
    time = time_attribute(below.types[group["orderBy"]["fields"][0]["index"]])
    if bounded and not time:
        return Unknown("the state of OVER with a frame over a column that is no time attribute was not measured")
    calls: list[Mapping[str, Any]] = group["aggCalls"]
    if bounded:  # rows that leave the frame are retracted
        calls = counted(calls)
    read = _with_constants(spec.get("constants") or (), below, symbols)
    made = accumulated(compiled_calls(calls, [bounded] * len(calls), read, symbols))
    if isinstance(made, Unknown):
        return made
    fields, beside = made
    kind = time, bounded, group["isRows"]
    expires = bool(node.config.get("state"))
    if not time and beside:
        return Unknown("the maps and lists of OVER over a column that is no time attribute were not measured")
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
    """The states of an OVER that is not ordered by time: all rows by number, and the sorted numbers.

    Accumulators are stored for each value of the column, or for each row of a ROWS frame.
    """
    sort_key = sort_key_of(below, group["orderBy"])
    place = Stored("row", (StateField("BIGINT"),)) if group["isRows"] else sort_key
    return (
        NamedState("idState", VALUE, LONG),
        NamedState("sortedListState", VALUE, Stored("List<Tuple<row, List<Long>>>", sort_key.fields)),
        NamedState("valueMapState", MAP, row(below), LONG, retracting=not below.appends),
        NamedState("accMapState", MAP, Stored("row", accumulators), place),
    )


def _with_constants(constants: Sequence[Mapping[str, Any]], below: ColumnMeanings, symbols: Symbols) -> ColumnMeanings:
    """The columns that the calls of OVER read: input columns, then constants, which no row contains."""
    return replace(
        below,
        symbols=(*below.symbols, *(symbols.of("constant", frozen(each)) for each in constants)),
        names=(*below.names, *(str(each.get("value")) for each in constants)),
        types=(*below.types, *(plain(each["type"]) for each in constants)),
    )


def _of_sources(rows: Stored, symbols: Symbols) -> Stored:
    origins = (symbols.columns_of(field.meaning) for field in rows.fields)  # type: ignore[arg-type]
    return replace(rows, fields=tuple(replace(f, sources=of) for f, of in zip(rows.fields, origins, strict=True)))


_ACCUMULATORS = "accState"


def over_states(before: StateLayout, after: StateLayout) -> tuple[StateRewrite, ...] | str:
    """Rewrite the states of an OVER aggregation."""
    accumulators = next(by_fields(state, before) for state in after.states if state.name == _ACCUMULATORS)
    refused = (_refused(call, before) for call in accumulators.new_fields)
    if reason := next(filter(None, refused), ""):
        return reason
    if _views(before) != _views(after):
        return "the maps and lists in its separate states differ"
    rows = row_states(*map(_without_accumulators, (before, after)))
    return rows if isinstance(rows, str) else (accumulators, *rows)


def _without_accumulators(layout: StateLayout) -> StateLayout:
    return replace(layout, states=tuple(state for state in layout.states if state.name != _ACCUMULATORS))


def _views(layout: StateLayout) -> list[object]:
    """The separate states of DISTINCT, MIN and MAX."""
    return [state for state in layout.states if state.name.startswith(("agg", "distinct"))]


def _refused(call: StateField, before: StateLayout) -> str:
    """The reason why a new call would give wrong results; "" if it would not."""
    if call.begins is None:
        return f"the initial value of {call.words} was not measured"
    read = frozenset().union(*(field.sources for field in stored_fields(before)))
    if before.retracting and (not call.sources or call.sources & read):
        return f"{call.words} never counted the rows that will leave the frame, but would subtract them"
    return ""


FAMILIES = (NodeFamily((ExecKind.OVER_AGGREGATE,), kept_row_facets, of_one_input(over_layout), over_states),)
