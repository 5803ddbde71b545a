"""State computed from history: the accumulators that a job would hold, had it read all rows up to its savepoint.

A :class:`KnownHistory` says without Spark what can be computed, and computes it beside a migration.
"""

from airflow_flinkcompat.bootstrap.history import KnownHistory

__all__ = ["KnownHistory"]
