"""State computed from history: the accumulators that a job would hold, had it read all rows up to its savepoint.

A :class:`KnownHistory` says without Spark what can be computed, and computes it beside a migration; a
:class:`WarmStart` does so for a job that has never run.
"""

from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.history.warm_start import WarmStart

__all__ = ["KnownHistory", "WarmStart"]
