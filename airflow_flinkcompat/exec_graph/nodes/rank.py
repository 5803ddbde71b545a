"""Lowering and layouts of Top-N, deduplication, LIMIT and sorts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.exec_graph.exec_node import PROCTIME, ROWTIME, ExecNode, time_attribute
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import (
    LONG,
    MAP,
    USER_TIMERS,
    VALUE,
    WINDOW_TIMERS,
    CannotLower,
    NamedState,
    StateLayout,
    StateNamespace,
    Stored,
    Unknown,
)
from airflow_flinkcompat.exec_graph.lowering import (
    LIVES,
    Lowered,
    NodeFamily,
    of_one_input,
    require_certain_columns,
    stored_columns,
)
from airflow_flinkcompat.exec_graph.nodes.aggregate import in_batches
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets, row_states
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, columns, row
from airflow_flinkcompat.plan.operators import RankKind, RankOperator
from airflow_flinkcompat.plan.origins import window_field
from airflow_flinkcompat.plan.types import TimeAttribute

RANKS = {
    RankKind.TOP_N: ExecKind.RANK,
    RankKind.DEDUPLICATION: ExecKind.DEDUPLICATE,
    RankKind.WINDOW_TOP_N: ExecKind.WINDOW_RANK,
    RankKind.WINDOW_DEDUPLICATION: ExecKind.WINDOW_DEDUPLICATE,
}


def lower_rank(operator: RankOperator, symbols: Symbols, time_to_live: bool) -> Lowered:
    """Lower a Top-N or a deduplication of append-only rows to its exec node."""
    if operator.constant_key or operator.selected:
        raise CannotLower("the stored columns of this ranking depend on how the query is written")
    require_certain_columns(operator.segments)
    asked = (*operator.partition, *(key for key, _, _ in operator.order))
    if any(key not in operator.row and not window_field(key) for key in asked):
        raise CannotLower("the position of a computed key in a stored row is unknown")
    clock = operator.order_clock
    by_time = clock is TimeAttribute.ROWTIME
    times = {} if clock is None else {operator.order[0][0]: clock}
    read = stored_columns(operator.row, operator.row_types, symbols, times)
    partition = sorted(operator.row.index(key) for key in operator.partition if not window_field(key))
    order = {"fields": [{"index": operator.row.index(key), "isAscending": up} for key, up, _ in operator.order]}
    windowed = operator.kind in (RankKind.WINDOW_TOP_N, RankKind.WINDOW_DEDUPLICATION)
    match operator.kind:
        case RankKind.DEDUPLICATION:
            kind, config = ExecKind.DEDUPLICATE, {
                "uniqueKeys": partition, "isRowtime": by_time, "keepLastRow": not operator.order[0][1],
                "outputInsertOnly": operator.order[0][1],
            }  # fmt: skip
        case RankKind.TOP_N:
            kind, config = ExecKind.RANK, {
                "partition": {"fields": partition}, "orderBy": order, "rankStrategy": {"type": "AppendFast"},
                "rankRange": {"type": "Constant", "end": operator.last}, "outputRowNumber": operator.number_read,
            }  # fmt: skip
        case RankKind.WINDOW_DEDUPLICATION:
            kind, config = ExecKind.WINDOW_DEDUPLICATE, {"partitionKeys": partition}
        case RankKind.WINDOW_TOP_N:
            kind, config = ExecKind.WINDOW_RANK, {"partitionSpec": {"fields": partition}, "sortSpec": order}
    config = config if windowed else {**config, "state": [LIVES[time_to_live]]}
    return Lowered(ExecNode(0, kind, kind, config, (), (), ()), (read,))


WAITING = "waiting-to-emit-on-timer"
"""State with the first row by event time until its emission. A time to live does not affect it."""
COUNTER = NamedState("counterState", VALUE, Stored("Int"))
"""State with the number of rows of a key, which is the only state if rows are ranked by arrival."""


def deduplicate_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The layout of a deduplication: one row for each key, or a flag."""
    key, batches = columns(below, node.config["uniqueKeys"]), in_batches(node)
    first, by_event_time = not node.config.get("keepLastRow"), bool(node.config.get("isRowtime"))
    if not (first and by_event_time and node.config.get("outputInsertOnly")):
        held = Stored("Boolean") if first and not by_event_time else row(below)
        state = NamedState("deduplicate-state", VALUE, held)
        unmeasured = batches or (first and by_event_time)
        return StateLayout(key, (state,), "" if batches else USER_TIMERS, carried_only=unmeasured)
    if batches:
        return Unknown("the state of mini-batches for the first row by event time was not measured")
    states = (
        NamedState(WAITING, VALUE, row(below)),
        NamedState("already-emitted-state-boolean", VALUE, Stored("Boolean")),
    )
    return StateLayout(key, states, USER_TIMERS)


def rank_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The layout of a Top-N, by its strategy."""
    config = node.config
    key = columns(below, config["partition"]["fields"])
    sort_key = sort_key_of(below, config["orderBy"])
    strategy = config["rankStrategy"]["type"]
    if config["rankRange"].get("type") != "Constant":
        return Unknown("the state of a Top-N whose N is a column was not measured")
    states: tuple[NamedState, ...]
    match strategy:
        case "AppendFast" if first_by_arrival(below, config["orderBy"]):
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
            return Unknown(f"the state of a Top-N with strategy {strategy} was not measured")
    states = tuple(replace(state, retracting=strategy != "AppendFast") for state in states)
    return StateLayout(key, states, USER_TIMERS, carried_only=COUNTER in states)


def first_by_arrival(below: ColumnMeanings, order: Mapping[str, Any]) -> bool:
    """True if rows are ranked by their arrival."""
    first, *others = order["fields"]
    return not others and first["isAscending"] and time_attribute(below.types[first["index"]]) == PROCTIME


def sort_key_of(below: ColumnMeanings, spec: Mapping[str, Any]) -> Stored:
    return Stored("row", columns(below, [field["index"] for field in spec["fields"]]))


def window_deduplicate_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The layout of a windowed deduplication."""
    state = NamedState("window_deduplicate", VALUE, row(below), namespace=StateNamespace.WINDOW_END)
    return StateLayout(columns(below, node.config["partitionKeys"]), (state,), WINDOW_TIMERS)


def window_rank_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The layout of a windowed Top-N."""
    sort_key = sort_key_of(below, node.config["sortSpec"])
    state = NamedState("window_rank", MAP, row(below, "List<row>"), sort_key, StateNamespace.WINDOW_END)
    return StateLayout(columns(below, node.config["partitionSpec"]["fields"]), (state,), WINDOW_TIMERS)


_LAYOUTS = {
    ExecKind.RANK: rank_layout,
    ExecKind.DEDUPLICATE: deduplicate_layout,
    ExecKind.WINDOW_RANK: window_rank_layout,
    ExecKind.WINDOW_DEDUPLICATE: window_deduplicate_layout,
}


def limit_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The layout of a LIMIT: the rows that it emitted."""
    return StateLayout(
        (), (NamedState("data-state-with-append", MAP, row(below, "List<row>"), Stored("row")),), USER_TIMERS
    )


def sort_limit_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The layout of a sorted LIMIT: the rows that may be emitted, by sort key."""
    if node.config["rankStrategy"]["type"] != "AppendFast":
        return Unknown("the state of a sorted LIMIT over updated rows was not measured")
    order = node.config["orderBy"]
    state = NamedState("data-state-with-append", MAP, row(below, "List<row>"), sort_key_of(below, order))
    return StateLayout((), (COUNTER if first_by_arrival(below, order) else state,), USER_TIMERS)


def sort_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The layout of an event-time sort: the rows that are later than the watermark."""
    first = below.types[node.config["orderBy"]["fields"][0]["index"]]
    if time_attribute(first) != ROWTIME:
        return Unknown("the state of a sort by processing time was not measured")
    states = (
        NamedState("lastTriggeringTsState", VALUE, LONG),
        NamedState("dataState", MAP, row(below, "List<row>"), LONG),
    )
    return StateLayout((), states, USER_TIMERS)


FAMILIES = (
    *(
        NodeFamily((kind,), kept_row_facets, of_one_input(layout), row_states, lower_rank)
        for kind, layout in _LAYOUTS.items()
    ),
    NodeFamily((ExecKind.LIMIT,), kept_row_facets, of_one_input(limit_layout)),
    NodeFamily((ExecKind.SORT_LIMIT,), kept_row_facets, of_one_input(sort_limit_layout)),
    NodeFamily((ExecKind.TEMPORAL_SORT,), kept_row_facets, of_one_input(sort_layout)),
)
