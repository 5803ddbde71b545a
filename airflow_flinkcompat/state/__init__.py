"""The state in a canonical savepoint as tables, in Arrow and in SQL."""

from airflow_flinkcompat.state.query import query
from airflow_flinkcompat.state.tables import Savepoint, StateTable, open_savepoint

__all__ = ["Savepoint", "StateTable", "open_savepoint", "query"]
