"""Temporal joins by event time: layout of waiting rows and versions."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_flinkcompat.exec_graph.columns import LONG, MAP, VALUE, columns
from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout, Unknown
from airflow_flinkcompat.exec_graph.lowering import NodeFamily
from airflow_flinkcompat.exec_graph.nodes.join import side_rows
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets, row_states
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols


def temporal_join_layout(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | Unknown:
    """The state of a temporal join by event time: rows that wait for a watermark, and versions."""
    left, right = inputs
    if node.config.get("leftTimeAttributeIndex", -1) < 0 or node.config.get("rightTimeAttributeIndex", -1) < 0:
        return Unknown("the state of a temporal join by processing time was not measured")
    expires = bool(node.config.get("state"))
    states = (
        NamedState("left", MAP, side_rows(left, "left"), LONG, retracting=not left.appends),
        # A version takes the place of another by its time, and is never compared with one.
        NamedState("right", MAP, side_rows(right, "right"), LONG),
        NamedState("next-index", VALUE, LONG),
        NamedState("timer", VALUE, LONG),
        *([NamedState("cleanup-timestamp", VALUE, LONG)] if expires else []),
    )
    return StateLayout(columns(left, node.config["joinSpec"]["leftKeys"]), states, "timers", carried_only=expires)


FAMILIES = (NodeFamily((ExecKind.TEMPORAL_JOIN,), kept_row_facets, temporal_join_layout, row_states),)
