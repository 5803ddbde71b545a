"""Flink's planner in its own process: refusals of scripts, and results of a changed script's restore.

No job runs and no cluster is needed. ``planner/`` at the root of the repository holds the Java sources. Names load on
first use: a bare install judges without a planner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.planner.daemon import PlannerFailure, close_all
    from airflow_flinkcompat.planner.installation import (
        Installation,
        PlannerMissing,
        find,
        install,
        make_archive,
        status,
    )
    from airflow_flinkcompat.planner.judgement import (
        DeployedJob,
        PlannerUnavailable,
        compile_plans,
        judge,
        plan_alone,
        without_notice,
    )
    from airflow_flinkcompat.planner.questions import PlannedChange, predict

_HOMES = {
    ".daemon": ("PlannerFailure", "close_all"),
    ".installation": ("Installation", "PlannerMissing", "find", "install", "make_archive", "status"),
    ".judgement": ("DeployedJob", "PlannerUnavailable", "compile_plans", "judge", "plan_alone", "without_notice"),
    ".questions": ("PlannedChange", "predict"),
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = [
    "DeployedJob", "Installation", "PlannedChange", "PlannerFailure", "PlannerMissing", "PlannerUnavailable",
    "close_all", "compile_plans", "find", "install", "judge", "make_archive", "plan_alone", "predict", "status",
    "without_notice",
]  # fmt: skip
