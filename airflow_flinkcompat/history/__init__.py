"""State computed from history: the accumulators of a job that has read all rows up to its savepoint.

A :class:`KnownHistory` decides without Spark which state it can supply, and computes it next to a migration; a
:class:`WarmStart` does so for a job that has never run.
"""

from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.history.warm_start import WarmStart

__all__ = ["KnownHistory", "WarmStart"]
