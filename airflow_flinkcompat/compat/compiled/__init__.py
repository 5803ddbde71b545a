"""Compiled plans of both sides, compared: what Flink's own planner makes of a change."""

from airflow_flinkcompat.compat.compiled.compare import QUERY_SINK, PlanDifference, compare_plans, sinks_of
from airflow_flinkcompat.compat.compiled.nodes import CompiledPlan, PlanError, read_plan
from airflow_flinkcompat.compat.compiled.states import Aspect

__all__ = [
    "QUERY_SINK",
    "Aspect",
    "CompiledPlan",
    "PlanDifference",
    "PlanError",
    "compare_plans",
    "read_plan",
    "sinks_of",
]
