"""Facts about a deployed job for Flink's planner, and plans that a target compiles; starts nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.plan_comparison import Plans
from airflow_flinkcompat.deploy.errors import DeployError, PlansUnavailable
from airflow_flinkcompat.deploy.ledger.entries import LedgerEntry, StoppedEntry
from airflow_flinkcompat.deploy.target import (
    CheckpointStatistics,
    ClusterOptions,
    JobRef,
    PlanCompiler,
    SavepointStore,
    Target,
)
from airflow_flinkcompat.exec_graph.from_savepoint import StoredJob, read_job
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable

_PLANNED = ("table.", "pipeline.max-parallelism", "pipeline.operator-chaining", "parallelism.default")
"""Prefixes of cluster options that affect how jobs are planned."""


def planning_options(target: Target, job: JobRef | None) -> Mapping[str, str]:
    """Read the options of a cluster that decide how Flink plans its jobs."""
    options = target.cluster_options(job) if isinstance(target, ClusterOptions) else {}
    return {key: value for key, value in options.items() if key.startswith(_PLANNED)}


def stored_job(target: Target, job: JobRef, entries: Iterable[LedgerEntry]) -> tuple[StoredJob | None, str]:
    """Read the headers of a job's last savepoint, else checkpoint; None and the reason if that fails."""
    if not isinstance(target, SavepointStore):
        return None, ""
    left = [each.stop.savepoint for each in entries if isinstance(each, StoppedEntry) and each.stop.job_id == job]
    known, why = left[::-1], ""
    try:
        if isinstance(target, CheckpointStatistics):
            latest = [target.snapshot_stats(job, kind) for kind in ("savepoint", "completed")]
            known = [*(each.path for each in latest if each is not None), *known]
        for snapshot in dict.fromkeys(each for each in known if each):
            try:
                return read_job(target.location(snapshot)), ""
            except SavepointUnreadable as error:
                why = why or str(error)
    except DeployError as error:
        why = why or str(error)
    return None, f"the stored state was not read, so the deployed script is used in its place: {why}" if why else ""


def explain_plans(old: Side, new: Side, planner: PlanCompiler | Target, *, folder: str | None = None) -> Plans:
    """The plans of both sides, job by job.

    Args:
        old: The deployed script.
        new: The proposed script; the planner's version must be its own.
        planner: The target to ask, or ``SqlGatewayPlanner``: a SQL Gateway alone, without a cluster.
        folder: Path or URI of a folder that the planner and this machine both see; default: a temporary one, for a
            planner on this machine.

    Returns:
        The plans of the old side and those of the new one, for ``check(…, plans=…)``.

    Raises:
        PlansUnavailable: The target compiles no plans, versions differ, no folder is shared, or a connector is missing.
        TargetError: A statement was refused.
        ApiError: The planner does not answer.
    """
    if not isinstance(planner, PlanCompiler):
        raise PlansUnavailable(
            f"{planner} compiles no plans: use a SQL Gateway of the same version, which needs no cluster "
            "(check --explain-plan --gateway URL)"
        )
    version = planner.engine().version
    if version.split(".")[:2] != new.version.split("."):
        raise PlansUnavailable(
            f"{new.source} is to run on Flink {new.version}, and the planner is Flink {version}: use a SQL "
            f"Gateway of that version, or check for Flink {'.'.join(version.split('.')[:2])}"
        )
    plans = planner.compile_plans(old, folder)
    return plans, plans if old is new else planner.compile_plans(new, folder)
