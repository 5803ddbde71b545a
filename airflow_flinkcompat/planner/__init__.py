"""Flink's own planner, asked in a process of its own: what it refuses, and how a restore of a changed script ends.

No job runs and no cluster is needed. ``planner/`` at the root of the repository holds the Java sources.
"""

from airflow_flinkcompat.planner.daemon import PlannerFailure, close_all
from airflow_flinkcompat.planner.installation import Installation, PlannerMissing, find, install, status
from airflow_flinkcompat.planner.questions import PlannedChange, predict

__all__ = [
    "Installation",
    "PlannedChange",
    "PlannerFailure",
    "PlannerMissing",
    "close_all",
    "find",
    "install",
    "predict",
    "status",
]
