"""MATCH_RECOGNIZE: the layout of open matches and their rows."""

from __future__ import annotations

from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import LONG, MAP, VALUE, NamedState, StateLayout, Stored
from airflow_flinkcompat.exec_graph.lowering import NodeFamily, of_one_input
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, columns, row

_EVENT_ID = "EventId"
_NODE_ID = f"NodeId<{_EVENT_ID}>"
_EDGES = f"LockableType<SharedBufferNodeSerializerSnapshotV2<SharedBufferEdge<{_NODE_ID}, DeweyNumber>>>"


def match_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The layout of MATCH_RECOGNIZE: open matches, their rows, and rows that wait for a watermark."""
    states = (
        NamedState("nfaStateName", VALUE, Stored(f"NFAState<DeweyNumber, {_NODE_ID}, {_EVENT_ID}>")),
        NamedState("eventQueuesStateName", MAP, row(below, "List<row>"), LONG),
        NamedState("sharedBuffer-events", MAP, row(below, "LockableType<row>"), Stored(_EVENT_ID)),
        NamedState("sharedBuffer-events-count", MAP, Stored("Int"), LONG),
        NamedState("sharedBuffer-entries-with-lockable-edges", MAP, Stored(_EDGES), Stored(_NODE_ID)),
    )
    key = columns(below, node.config["matchSpec"]["partition"]["fields"])
    return StateLayout(key, states, "watermark-callbacks", carried_only=True)


FAMILIES = (NodeFamily((ExecKind.MATCH,), kept_row_facets, of_one_input(match_layout)),)
