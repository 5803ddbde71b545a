"""LIMIT and sorts: layout of the rows they store."""

from __future__ import annotations

from airflow_flinkcompat.exec_graph.columns import LONG, MAP, USER_TIMERS, VALUE, row
from airflow_flinkcompat.exec_graph.exec_node import ROWTIME, ExecNode, time_attribute
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout, Stored, Unknown
from airflow_flinkcompat.exec_graph.lowering import NodeFamily, of_one_input
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets
from airflow_flinkcompat.exec_graph.nodes.rank import COUNTER, first_by_arrival, sort_key_of
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols


def limit_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The state of a LIMIT: the rows that it emitted."""
    return StateLayout(
        (), (NamedState("data-state-with-append", MAP, row(below, "List<row>"), Stored("row")),), USER_TIMERS
    )


def sort_limit_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The state of a sorted LIMIT: the rows that may be emitted, by sort key."""
    if node.config["rankStrategy"]["type"] != "AppendFast":
        return Unknown("the state of a sorted LIMIT over updated rows was not measured")
    order = node.config["orderBy"]
    state = NamedState("data-state-with-append", MAP, row(below, "List<row>"), sort_key_of(below, order))
    return StateLayout((), (COUNTER if first_by_arrival(below, order) else state,), USER_TIMERS)


def sort_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The state of a sort by event time: rows later than the watermark."""
    first = below.types[node.config["orderBy"]["fields"][0]["index"]]
    if time_attribute(first) != ROWTIME:
        return Unknown("the state of a sort by processing time was not measured")
    states = (
        NamedState("lastTriggeringTsState", VALUE, LONG),
        NamedState("dataState", MAP, row(below, "List<row>"), LONG),
    )
    return StateLayout((), states, USER_TIMERS)


FAMILIES = (
    NodeFamily((ExecKind.LIMIT,), kept_row_facets, of_one_input(limit_layout)),
    NodeFamily((ExecKind.SORT_LIMIT,), kept_row_facets, of_one_input(sort_limit_layout)),
    NodeFamily((ExecKind.TEMPORAL_SORT,), kept_row_facets, of_one_input(sort_layout)),
)
