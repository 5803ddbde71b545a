"""The layout of any operator of a compiled plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.exec_graph.compiled.nodes import Node
from airflow_flinkcompat.exec_graph.compiled.states import AGGREGATIONS, SETTINGS_TELL_TTL, keeps_rows
from airflow_flinkcompat.exec_graph.compiled.symbols import ColumnMeanings, Symbols
from airflow_flinkcompat.exec_graph.layout import LayoutUnknown, NamedState, StateLayout
from airflow_flinkcompat.exec_graph.layouts import joins, rows
from airflow_flinkcompat.exec_graph.layouts.aggregations import aggregation_layout, incremental_layout
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind

_Told = StateLayout | LayoutUnknown | None
_OF_ONE_INPUT: Mapping[str, Callable[[Node, ColumnMeanings, Symbols], _Told]] = {
    **dict.fromkeys(AGGREGATIONS, aggregation_layout),
    "changelog-normalize": rows.normalize_layout,
    "deduplicate": rows.deduplicate_layout,
    "rank": rows.rank_layout,
    "limit": rows.limit_layout,
    "sort-limit": rows.sort_limit_layout,
    "temporal-sort": rows.sort_layout,
    "incremental-group-aggregate": incremental_layout,
    "match": rows.match_layout,
    "over-aggregate": rows.over_layout,
    "window-deduplicate": rows.window_deduplicate_layout,
    "window-rank": rows.window_rank_layout,
    "window-table-function": rows.session_layout,
}
_OF_INPUTS: Mapping[str, Callable[[Node, Sequence[ColumnMeanings], Symbols], _Told]] = {
    "delta-join": joins.delta_join_layout,
    "join": joins.join_layout,
    "interval-join": joins.interval_join_layout,
    "temporal-join": joins.temporal_join_layout,
    "multi-join": joins.multi_join_layout,
    "window-join": joins.window_join_layout,
}
_ASYNCHRONOUS = frozenset(
    ("async-calc", "async-correlate", "lookup-join", "ml-predict-table-function", "vector-search-table-function")
)
"""Operators that keep rows whose answer they wait for, in lists and not by key."""
_NO_TIME = "0 ms"


def layout(node: Node, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | LayoutUnknown | None:
    """How an operator stores what it keeps by key.

    Args:
        node: An operator that keeps something, a source or a sink.
        inputs: What it reads.
        symbols: The table of meanings.

    Returns:
        Its layout, or why it is not known; None where it keeps nothing by key.
    """
    if not inputs or _keeps_nothing_by_key(node):
        return None
    if node.kind == "sink":
        made: _Told = rows.materializer_layout(node, inputs[0], symbols)
    elif node.kind in _OF_ONE_INPUT:
        made = _OF_ONE_INPUT[node.kind](node, inputs[0], symbols)
    elif node.kind in _OF_INPUTS:
        made = _OF_INPUTS[node.kind](node, inputs, symbols)
    else:
        return LayoutUnknown(f"what an operator of kind {node.kind} keeps was not measured")
    return _with_time_to_live(node, made) if isinstance(made, StateLayout) else made


def _keeps_nothing_by_key(node: Node) -> bool:
    match node.kind:
        case "sink":
            return not keeps_rows(node)
        case "process-table-function":  # Flink asks for the uid of one that has state or timers
            return node.config.get("uid") is None
    return node.kind in _ASYNCHRONOUS and not node.config.get("state")


def _with_time_to_live(node: Node, made: StateLayout) -> StateLayout:
    """A time to live is told by place: that of a join's sides in their order, of any other operator one for all."""
    told = [state["ttl"] != _NO_TIME for state in node.config.get("state") or ()]
    if node.kind in SETTINGS_TELL_TTL or not any(told):  # their layouts say what a time to live adds
        return made
    of = told if len(told) == len(made.states) else [told[0]] * len(made.states)
    states = (_expiring(state) if lives else state for state, lives in zip(made.states, of, strict=True))
    return replace(made, states=tuple(states))


def _expiring(state: NamedState) -> NamedState:
    """A state with a time to live. Each element of a list has its own time."""
    if state.name == rows.WAITING:
        return state
    if state.kind is not KeyedStateKind.LIST:
        return replace(state, time_to_live=True)
    element = state.value.form.removeprefix("List<").removesuffix(">")
    return replace(state, value=replace(state.value, form=f"List<Ttl<Long, {element}>>"))
