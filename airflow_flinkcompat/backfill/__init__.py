"""Batch recomputation of a script over bounded history with Spark.

Importing this package needs no PySpark; :func:`run_backfill` does. Constructs without an exact translation are refused
before Spark starts, by :func:`plan_backfill` too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable
    from airflow_flinkcompat.backfill.explanation import explain
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


if not TYPE_CHECKING:  # a type checker takes a module with __getattr__ to have every name
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".errors": ("BackfillError", "Untranslatable"),
            ".explanation": ("explain",),
            ".planning": ("BackfillPlan", "plan", "why_refused"),
            ".request": ("BackfillRequest", "parse_duration", "parse_orders", "parse_time"),
            ".result": ("BackfillResult", "SinkRows", "SourceRows"),
            ".run": ("plan_backfill", "run_backfill"),
        },
    )
