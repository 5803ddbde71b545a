"""The state in a canonical savepoint as tables, in Arrow and in SQL."""

from airflow_flinkcompat.state.comparison import TableDifference, compare
from airflow_flinkcompat.state.operators import OPERATORS, SOURCES, MetadataTable, operator_state
from airflow_flinkcompat.state.query import QueryFailed, QueryResult, query
from airflow_flinkcompat.state.summary import StateSummary, summarize
from airflow_flinkcompat.state.tables import OpenSavepoint, StateTable, open_savepoint

__all__ = [
    "OPERATORS",
    "SOURCES",
    "MetadataTable",
    "QueryFailed",
    "QueryResult",
    "OpenSavepoint",
    "StateSummary",
    "StateTable",
    "TableDifference",
    "compare",
    "open_savepoint",
    "operator_state",
    "query",
    "summarize",
]
