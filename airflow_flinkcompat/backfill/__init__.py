"""Batch recomputation of a script over bounded history with Spark.

Importing this package needs no PySpark; :func:`run_backfill` does. What has no exact translation is refused before
Spark starts, by :func:`plan_backfill` too.
"""

from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable
from airflow_flinkcompat.backfill.request import BackfillRequest, BackfillResult, SinkRows, SourceRows, parse_time
from airflow_flinkcompat.backfill.run import plan_backfill, run_backfill

__all__ = [
    "BackfillError",
    "BackfillRequest",
    "BackfillResult",
    "SinkRows",
    "SourceRows",
    "Untranslatable",
    "parse_time",
    "plan_backfill",
    "run_backfill",
]
