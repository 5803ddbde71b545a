"""Compiled plans of both sides, compared: what Flink's own planner makes of a change."""

from airflow_flinkcompat.compat.compiled.compare import (
    CHAIN,
    QUERY_SINK,
    PlanDifference,
    compare_plans,
    job_states,
    sinks_of,
    sources_of,
)

__all__ = ["CHAIN", "QUERY_SINK", "PlanDifference", "compare_plans", "job_states", "sinks_of", "sources_of"]
