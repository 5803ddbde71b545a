"""Normalised changelogs and session windows as table functions: layout of their rows."""

from __future__ import annotations

from airflow_flinkcompat.exec_graph.columns import LONG, MAP, USER_TIMERS, VALUE, columns, row
from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout, StateNamespace
from airflow_flinkcompat.exec_graph.nodes.aggregate import MERGED_SESSIONS, in_batches
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols


def normalize_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The state of a changelog that Flink completes: the last row of each key."""
    state = NamedState("deduplicate-state", VALUE, row(below))
    timers = "" if in_batches(node) else USER_TIMERS
    return StateLayout(columns(below, node.config["uniqueKeys"]), (state,), timers, carried_only=True)


def session_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The state of a table function for sessions: the rows of each open session."""
    states = (
        NamedState("session-window-tvf-counter", VALUE, LONG),
        NamedState("session-window-tvf-acc", MAP, row(below), LONG, StateNamespace.WINDOW),
        MERGED_SESSIONS,
    )
    key = columns(below, node.config["windowing"]["window"]["partition_key_indices"])
    return StateLayout(key, states, "session-window-tvf-timers", carried_only=True)
