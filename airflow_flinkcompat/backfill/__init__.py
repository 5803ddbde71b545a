"""Batch recomputation of a script over bounded history with Spark.

Importing this package needs no PySpark; :func:`run_backfill` does. What has no exact translation is refused before
Spark starts, by :func:`plan_backfill` too.
"""

from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable
from airflow_flinkcompat.backfill.explain import explain
from airflow_flinkcompat.backfill.planning import BackfillPlan, plan, why_refused
from airflow_flinkcompat.backfill.request import BackfillRequest, parse_duration, parse_orders, parse_time
from airflow_flinkcompat.backfill.result import BackfillResult, SinkRows, SourceRows
from airflow_flinkcompat.backfill.run import plan_backfill, run_backfill

__all__ = [
    "BackfillError",
    "BackfillRequest",
    "BackfillResult",
    "BackfillPlan",
    "SinkRows",
    "SourceRows",
    "Untranslatable",
    "explain",
    "parse_duration",
    "parse_orders",
    "parse_time",
    "plan",
    "plan_backfill",
    "run_backfill",
    "why_refused",
]
