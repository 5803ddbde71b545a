"""State computed from history: the accumulators that a job would hold, had it read all rows up to its savepoint.

:func:`from_history` says without Spark what can be computed, :func:`history_computer` computes it beside a migration.
"""

from airflow_flinkcompat.bootstrap.computable import from_history
from airflow_flinkcompat.bootstrap.computing import HistoryComputer, history_computer

__all__ = ["HistoryComputer", "from_history", "history_computer"]
