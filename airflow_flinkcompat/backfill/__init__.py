"""Batch recomputation of a script's rows over bounded history with Spark.

Importing this package does not require PySpark; calling :func:`run_backfill` does. Both :func:`run_backfill` and
:func:`plan` refuse constructs without an exact translation before Spark starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.backfill.explanation import explain
    from airflow_flinkcompat.backfill.planning import BackfillPlan, plan
    from airflow_flinkcompat.backfill.request import BackfillRequest
    from airflow_flinkcompat.backfill.result import BackfillError, BackfillResult, Untranslatable
    from airflow_flinkcompat.backfill.run import run_backfill

__all__ = [
    "BackfillError",
    "BackfillRequest",
    "BackfillResult",
    "BackfillPlan",
    "Untranslatable",
    "explain",
    "plan",
    "run_backfill",
]


if not TYPE_CHECKING:  # type checkers assume that a module with __getattr__ has every name
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".explanation": ("explain",),
            ".planning": ("BackfillPlan", "plan"),
            ".request": ("BackfillRequest",),
            ".result": ("BackfillError", "BackfillResult", "Untranslatable"),
            ".run": ("run_backfill",),
        },
    )
