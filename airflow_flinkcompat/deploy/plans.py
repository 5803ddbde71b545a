"""Planner options, stored state and downtime of a deployed job, and plans. Nothing is started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

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
    Snapshot,
    Target,
)
from airflow_flinkcompat.exec_graph.from_savepoint import StoredJob, read_job
from airflow_flinkcompat.model.engine import line_of
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable

if TYPE_CHECKING:
    from airflow_flinkcompat.migration.downtime import Downtime

_PLANNED = ("table.", "pipeline.max-parallelism", "pipeline.operator-chaining", "parallelism.default")
"""Prefixes of the cluster options that affect Flink's planner."""


def planning_options(target: Target, job: JobRef | None) -> Mapping[str, str]:
    """The cluster options that affect how Flink plans the job."""
    options = target.cluster_options(job) if isinstance(target, ClusterOptions) else {}
    return {key: value for key, value in options.items() if key.startswith(_PLANNED)}


def stored_job(target: Target, job: JobRef, entries: Iterable[LedgerEntry]) -> tuple[StoredJob | None, str]:
    """Read the headers of a job's last savepoint or checkpoint. On failure, return None and the reason."""
    if not isinstance(target, SavepointStore):
        return None, ""
    left = [each.stop.savepoint for each in entries if isinstance(each, StoppedEntry) and each.stop.job_id == job]
    tried, why = set[Snapshot](), ""
    try:
        for snapshot in _snapshots(target, job, left[::-1]):
            if snapshot in tried:
                continue
            tried.add(snapshot)
            try:
                return read_job(target.location(snapshot)), ""
            except SavepointUnreadable as error:
                why = why or str(error)
    except DeployError as error:
        why = why or str(error)
    return None, f"the stored state cannot be read, so the deployed script is used instead: {why}" if why else ""


def _snapshots(target: Target, job: JobRef, left: Iterable[Snapshot | None]) -> Iterator[Snapshot]:
    """The latest snapshots, listed twice because Flink deletes checkpoints, and then those in ``left``."""
    for _ in range(2):
        if not isinstance(target, CheckpointStatistics):
            break
        latest = [target.snapshot_stats(job, kind) for kind in ("savepoint", "completed")]
        yield from (each.path for each in latest if each is not None and each.path)
    yield from filter(None, left)


def downtime_by_checkpoint(target: Target, job: JobRef, *, rehearsed: float | None) -> Downtime | None:
    """Expected downtime by the last checkpoint; None if its size is unknown. Raises DeployError."""
    # Import numba late.
    from airflow_flinkcompat.migration.downtime import Downtime, Rewriting, StateSize

    last = target.snapshot_stats(job, "completed") if isinstance(target, CheckpointStatistics) else None
    if last is None or not last.bytes:
        return None
    sizes = (StateSize(each.bytes, each.parallelism, Rewriting.MOVED) for each in last.vertices.values())
    return Downtime.of(sizes, rehearsed=rehearsed)


def explain_plans(old: Side, new: Side, planner: PlanCompiler | Target, *, folder: str | None = None) -> Plans:
    """Compile the plans of both sides, one plan for each job.

    Args:
        old: The deployed script.
        new: The proposed script. The planner must have the script's Flink version.
        planner: The target that compiles the plans, or a ``SqlGatewayPlanner``, which needs no cluster.
        folder: Path or URI of a folder that the planner and this machine share. If None, a temporary folder is
            created, for a planner on this machine.

    Returns:
        The plans of the old side and the plans of the new side, for ``check(…, plans=…)``.

    Raises:
        PlansUnavailable: The target cannot compile plans, versions differ, no folder is shared, or a connector is
            missing.
        TargetError: A statement was refused.
        ApiError: The planner does not answer.
    """
    if not isinstance(planner, PlanCompiler):
        raise PlansUnavailable(
            f"{planner} cannot compile plans. Use a SQL Gateway of the same version, which needs no cluster (check "
            "--explain-plan --gateway URL)"
        )
    version = planner.engine().version
    if line_of(version) != new.version:
        raise PlansUnavailable(
            f"{new.source} will run on Flink {new.version}, but the planner is Flink {version}. Use a SQL Gateway of "
            f"Flink {new.version}, or check for Flink {line_of(version)}"
        )
    plans = planner.compile_plans(old, folder)
    return plans, plans if old is new else planner.compile_plans(new, folder)
