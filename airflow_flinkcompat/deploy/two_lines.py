"""A target of two clusters, which moves jobs from an older Flink line to a newer line.

A redeploy stops the job on the cluster that runs it, and starts its successor on the cluster of the successor's line.
So a job moves with its savepoint, and a rollback restarts the former script on the former cluster. Both clusters must
be able to read the savepoint.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self, TypeVar, cast

from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.target import (
    CallerNamesJobs,
    JobRef,
    JobStatus,
    Operation,
    RestoreTests,
    RetainedCheckpoints,
    Slots,
    Snapshot,
    SourceTables,
    Verb,
)
from airflow_flinkcompat.deploy.targets import OpenTarget, TargetLocation
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.model.engine import line_of

C = TypeVar("C", bound=type)


def two_lines(former: OpenTarget, new: OpenTarget) -> OpenTarget:
    """Join two targets into one, which opens and closes both.

    Args:
        former: The target of the older line, which runs the jobs that have not moved yet.
        new: The target of the newer line.

    Returns:
        The joined target, with the capabilities that both have.

    Raises:
        DeployRefused: A target has no session cluster with its own JobManager.
    """
    targets: tuple[Any, Any] = (former, new)
    for each in targets:
        if not (isinstance(each, CallerNamesJobs) and isinstance(each, RetainedCheckpoints)):
            raise DeployRefused(
                f"jobs move only between session clusters (targets sql-gateway and jobmanager), but {each} is of a "
                "different kind. Remove former_conn_id from the connection"
            )
    both = all(isinstance(each, SourceTables) and isinstance(each, RestoreTests) for each in targets)
    return cast(OpenTarget, (GatewaysOfTwoLines if both else TwoLines)(*targets))


def open_target(location: TargetLocation) -> OpenTarget:
    """Open a target, joined with the target from which jobs move, if any. Raises DeployError."""
    found = location.open()
    return found if location.former is None else two_lines(TargetLocation(**location.former).open(), found)


def _by_job(*names: str) -> Callable[[C], C]:
    """Add methods whose first argument is a job id, and which the cluster that runs the job answers."""
    return _routed(names, lambda target, job: target.cluster_of(job))


def _by_version(*names: str) -> Callable[[C], C]:
    """Add methods whose first argument is a job, and which the cluster of its engine version answers."""
    return _routed(names, lambda target, job: target.cluster_for(job))


def _by_new(*names: str) -> Callable[[C], C]:
    """Add methods that the cluster of the newer line answers."""
    return _routed(names, lambda target, _: target.new)


def _routed(names: tuple[str, ...], chosen: Callable[[Any, Any], Any]) -> Callable[[C], C]:
    def method(name: str) -> Callable[..., Any]:
        def call(self: Any, *arguments: Any, **more: Any) -> Any:
            return getattr(chosen(self, arguments[0] if arguments else None), name)(*arguments, **more)

        call.__name__ = name
        return call

    def added(cls: C) -> C:
        for name in names:
            setattr(cls, name, method(name))
        return cls

    return added


@_by_version("validate", "start", "shadow_run", "catch_up_run")
@_by_job(
    "stop", "savepoint", "native_savepoint", "cancel", "restored_from", "describe", "job_history", "query",
    "left_aside", "failed_at_restore", "ever_ran", "request_checkpoint", "snapshot_stats", "keeps_checkpoints",
    "last_checkpoint", "source_offsets", "cluster_options", "final_savepoint", "highest_metric",
)  # fmt: skip
@_by_new("engine", "job_of_request", "savepoint_root", "location", "savepoint_at", "dispose")
class TwoLines:
    """Verbs and capabilities of two clusters; ``two_lines`` creates it."""

    def __init__(self, former: Any, new: Any) -> None:
        self.former, self.new = former, new
        self._clusters: dict[JobRef, Any] = {}
        self._closing = ExitStack()

    def __str__(self) -> str:
        return f"{self.new} (formerly {self.former})"

    def __enter__(self) -> Self:
        for each in (self.former, self.new):
            self._closing.enter_context(each)
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def cluster_of(self, job: JobRef | None) -> Any:
        """The cluster that knows a job. The newer cluster answers for a job that both clusters do not know."""
        if job is not None and self.status(job) is None:
            return self.new
        return self.new if job is None else self._clusters[job]

    def cluster_for(self, job: JobSpec) -> Any:
        """The cluster of a job's engine version. Raises DeployRefused for any other version."""
        line = line_of(job.engine_version)
        lines = {line_of(each.engine().version): each for each in (self.former, self.new)}
        if len(lines) == 1:
            raise DeployRefused(
                f"{self.former} and {self.new} both run Flink {next(iter(lines))}: a move between two clusters needs "
                "two lines. Remove former_conn_id from the connection"
            )
        if line not in lines:
            raise DeployRefused(
                f"{job.source} is for Flink {job.engine_version or 'of an unknown version'}, but the clusters run "
                f"{' and '.join(lines)}. Set engine_version to one of them"
            )
        return lines[line]

    def status(self, job: JobRef) -> JobStatus | None:
        if job in self._clusters:
            found: JobStatus | None = self._clusters[job].status(job)
            return found
        for cluster in (self.new, self.former):
            if (seen := cluster.status(job)) is not None:
                self._clusters[job] = cluster
                return seen  # type: ignore[no-any-return]
        return None

    def poll(self, operation: Operation) -> Operation:
        if operation.verb is not Verb.START:
            found: Operation = self.cluster_of(operation.job).poll(operation)
            return found
        job = self.new.job_of_request(operation.request_id)
        return replace(operation, job=job if self.status(job) is not None else None)

    def running(self, name: str) -> tuple[JobRef, ...]:
        return (*self.former.running(name), *self.new.running(name))

    def jobs(self) -> tuple[JobStatus, ...]:
        return (*self.former.jobs(), *self.new.jobs())

    def slots(self) -> Slots:
        """The slots of the cluster with fewer free slots."""
        found: Slots = min((each.slots() for each in (self.former, self.new)), key=lambda each: each.free)
        return found

    def register_secrets(self, job: JobSpec) -> None:
        for each in (self.former, self.new):
            each.register_secrets(job)


@_by_version("sources", "compile_plans", "restore_test")
class GatewaysOfTwoLines(TwoLines):
    """Two clusters with a SQL Gateway each."""

    def manual_start(self, snapshot: Snapshot, statements: str) -> str:
        return str(self.former.manual_start(snapshot, statements))
