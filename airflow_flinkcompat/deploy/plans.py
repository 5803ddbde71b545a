"""Compiled plans of both sides of a change, made by Flink's own planner where a target has it; nothing is started."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.plan_comparison import Plans
from airflow_flinkcompat.deploy.errors import PlansUnavailable
from airflow_flinkcompat.deploy.target import ClusterOptions, JobRef, PlanCompiler, Target

_PLANNED = ("table.", "pipeline.max-parallelism", "pipeline.operator-chaining", "parallelism.default")
"""The beginnings of a cluster's options that decide how its jobs are planned."""


def planning_options(target: Target, job: JobRef | None) -> Mapping[str, str]:
    """Read the options of a cluster that decide how Flink plans its jobs."""
    options = target.cluster_options(job) if isinstance(target, ClusterOptions) else {}
    return {key: value for key, value in options.items() if key.startswith(_PLANNED)}


def explain_plans(old: Side, new: Side, planner: PlanCompiler | Target, *, folder: str | None = None) -> Plans:
    """The plans of both sides, job by job.

    Args:
        old: What is deployed.
        new: What is proposed; the planner's version must be its own.
        planner: The target to ask, or ``SqlGatewayPlanner``: a SQL Gateway alone, without a cluster.
        folder: Path or URI of a folder that the planner and this machine both see; for one on this machine a temporary
            one by default.

    Returns:
        The plans of the old side and those of the new one, for ``check(…, plans=…)``.

    Raises:
        PlansUnavailable: The target compiles no plans, versions differ, no folder is shared, or a connector is missing.
        TargetError: A statement was refused.
        ApiError: The planner does not answer.
    """
    if not isinstance(planner, PlanCompiler):
        raise PlansUnavailable(
            f"{planner} compiles no plans: ask a SQL Gateway of the same version, which needs no cluster behind it "
            "(check --explain-plan --gateway URL)"
        )
    version = planner.engine().version
    if version.split(".")[:2] != new.version.split("."):
        raise PlansUnavailable(
            f"{new.source} is to run on Flink {new.version}, the planner is of Flink {version}: ask a SQL Gateway of "
            f"that version, or check for Flink {'.'.join(version.split('.')[:2])}"
        )
    plans = planner.compile_plans(old, folder)
    return plans, plans if old is new else planner.compile_plans(new, folder)
