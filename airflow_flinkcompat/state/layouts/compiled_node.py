"""The layout of any operator of a compiled plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.state.compiled.nodes import Node
from airflow_flinkcompat.state.compiled.states import AGGREGATIONS, keeps_rows
from airflow_flinkcompat.state.compiled.symbols import ColumnMeanings, Symbols
from airflow_flinkcompat.state.layout import LayoutUnknown, StateLayout
from airflow_flinkcompat.state.layouts import joins, rows
from airflow_flinkcompat.state.layouts.aggregations import aggregation_layout

_Told = StateLayout | LayoutUnknown
_OF_ONE_INPUT: Mapping[str, Callable[[Node, ColumnMeanings, Symbols], _Told]] = {
    **dict.fromkeys(AGGREGATIONS, aggregation_layout),
    "deduplicate": rows.deduplicate_layout,
    "rank": rows.rank_layout,
    "limit": rows.limit_layout,
    "sort-limit": rows.sort_limit_layout,
    "temporal-sort": rows.sort_layout,
    "over-aggregate": rows.over_layout,
    "window-deduplicate": rows.window_deduplicate_layout,
    "window-rank": rows.window_rank_layout,
}
_OF_TWO_INPUTS: Mapping[str, Callable[[Node, Sequence[ColumnMeanings], Symbols], _Told]] = {
    "join": joins.join_layout,
    "interval-join": joins.interval_join_layout,
    "temporal-join": joins.temporal_join_layout,
    "window-join": joins.window_join_layout,
}
_NO_TIME = "0 ms"


def layout(node: Node, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | LayoutUnknown | None:
    """How an operator stores what it keeps by key.

    Args:
        node: An operator that keeps something, a source or a sink.
        inputs: What it reads.
        symbols: The table of meanings.

    Returns:
        Its layout, or why it is not known; None of a source or sink that keeps nothing by key.
    """
    if not inputs or (node.kind == "sink" and not keeps_rows(node)):
        return None
    if node.kind == "sink":
        made: _Told = rows.materializer_layout(node, inputs[0], symbols)
    elif node.kind in _OF_ONE_INPUT:
        made = _OF_ONE_INPUT[node.kind](node, inputs[0], symbols)
    elif node.kind in _OF_TWO_INPUTS:
        made = _OF_TWO_INPUTS[node.kind](node, inputs, symbols)
    else:
        return LayoutUnknown(f"what an operator of kind {node.kind} keeps was not measured")
    return made if isinstance(made, LayoutUnknown) else _with_time_to_live(node, made)


def _with_time_to_live(node: Node, made: StateLayout) -> StateLayout:
    """A time to live is told by place: that of a join's sides in their order, of any other operator one for all."""
    told = [state["ttl"] != _NO_TIME for state in node.config.get("state") or ()]
    if not any(told):
        return made
    of = told if len(told) == len(made.states) else [told[0]] * len(made.states)
    states = (replace(state, time_to_live=lives) for state, lives in zip(made.states, of, strict=True))
    return replace(made, states=tuple(states))
