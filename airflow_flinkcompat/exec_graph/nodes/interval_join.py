"""Interval joins: layout of the rows of both inputs by time."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_flinkcompat.exec_graph.columns import LONG, MAP, VALUE, columns
from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout
from airflow_flinkcompat.exec_graph.lowering import NodeFamily
from airflow_flinkcompat.exec_graph.nodes.join import lower_join, side_rows
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets, row_states
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols


def interval_join_layout(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | None:
    """The state of an interval join: rows of both sides by time, each flagged if it had a match.

    Flink keeps no state if the interval ends before it begins.
    """
    spec = node.config["intervalJoinSpec"]
    bounds = spec["windowBounds"]
    if bounds.get("leftUpperBound", 0) < bounds.get("leftLowerBound", 0):
        return None
    states = tuple(
        state
        for name, side in zip(("Left", "Right"), inputs, strict=True)
        for state in (
            NamedState(f"IntervalJoin{name}Cache", MAP, side_rows(side, name, "List<Tuple<row, Boolean>>"), LONG),
            NamedState(f"IntervalJoin{name}TimerState", VALUE, LONG),
        )
    )
    key = columns(inputs[0], spec["joinSpec"]["leftKeys"])
    return StateLayout(key, states, "user-timers", carried_only=not bounds.get("isEventTime"))


FAMILIES = (NodeFamily((ExecKind.INTERVAL_JOIN,), kept_row_facets, interval_join_layout, row_states, lower_join),)
