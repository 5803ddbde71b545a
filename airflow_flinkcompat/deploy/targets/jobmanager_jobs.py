"""The part of a target that watches, stops and measures jobs by a JobManager's REST API."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace

from upath import UPath

from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused, SavepointFailed, StopFailed, TargetError
from airflow_flinkcompat.deploy.flink import job_reports
from airflow_flinkcompat.deploy.flink.access import endpoint, endpoint_from_environment
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.flink.rest import Closing, Endpoint
from airflow_flinkcompat.deploy.target import (
    JobDescription,
    JobHistory,
    JobRef,
    JobStatus,
    JobVertex,
    Operation,
    Proof,
    Slots,
    Snapshot,
    SnapshotStats,
    Verb,
)
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.secrets.placeholders import AnyPlaceholder, EnvPlaceholder, env_in_deployment

_OK, _NOT_FOUND = 200, 404
_JOB_ID = re.compile(r"[0-9a-f]{32}")
_SAVEPOINT_DIRECTORY = ("execution.checkpointing.savepoint-dir", "state.savepoints.dir")


class SavepointPaths:
    """Savepoints named by their paths, as in Flink."""

    def location(self, snapshot: Snapshot) -> str:
        return snapshot

    def savepoint_at(self, location: str) -> Snapshot:
        return Snapshot(location)


class JobManagerJobs(SavepointPaths, Closing):
    """Verbs of a target through a JobManager that accepts job ids and trigger ids from its caller.

    A subclass adds ``engine``, ``validate`` and ``start``, and starts the job of a request under the request's id.
    Closing it closes the client.
    """

    def __init__(self, jobmanager: JobManager | Endpoint | str) -> None:
        self._jobmanager = jobmanager if isinstance(jobmanager, JobManager) else JobManager(jobmanager)

    def __str__(self) -> str:
        return f"the JobManager at {self._jobmanager.endpoint.place}"

    def close(self) -> None:
        self._jobmanager.close()

    def job_of_request(self, request_id: str) -> JobRef:
        """The job id of a request, which is the request's id; a cluster accepts an id once."""
        return JobRef(request_id)

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Request the stop, with the request's id as the trigger's."""
        self._jobmanager.trigger_stop_with_savepoint(job, directory, request_id)
        return Operation(Verb.STOP, request_id, job, directory=directory)

    def poll(self, operation: Operation) -> Operation:
        """The outcome from the JobManager, the job's own history, and the folder of a stop."""
        if operation.verb is Verb.STOP:
            return replace(operation, snapshot=self._stopped(operation))
        if operation.verb is Verb.SAVEPOINT:
            return replace(operation, snapshot=self._taken(operation))
        job = self.job_of_request(operation.request_id)
        return replace(operation, job=job if self.status(job) is not None else None)

    def savepoint(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        self._jobmanager.trigger_savepoint(job, directory, request_id)
        return Operation(Verb.SAVEPOINT, request_id, job, directory=directory)

    def _taken(self, asked: Operation) -> Snapshot | None:
        """The savepoint of a running job; None while it is being written. Raises SavepointFailed."""
        assert asked.job is not None
        try:
            found = self._jobmanager.savepoint_result(asked.job, asked.request_id)
        except JobManagerError as error:
            if error.status in (_OK, _NOT_FOUND):
                raise SavepointFailed(str(error)) from None
            raise
        return Snapshot(found) if found is not None else None

    def _stopped(self, stop: Operation) -> Snapshot | None:
        """The savepoint once it has ended the job; None while the stop runs. Raises StopFailed."""
        job = stop.job
        assert job is not None
        try:
            # First, because this single look is enough while the stop runs.
            savepoint = self._jobmanager.stop_result(job, stop.request_id)
            return Snapshot(savepoint) if savepoint is not None and not self._runs(job) else None
        except DeployError as error:
            if error.unanswered:
                raise  # no answer from the cluster: the stop may still run, or may have left its savepoint
            if self._runs(job):
                raise StopFailed(str(error)) from None
            # The job ended, and the cluster has forgotten the stop, or the stop made it fail, perhaps after the
            # savepoint.
            final = self.final_savepoint(job)
            # A savepoint in another folder belongs to an earlier stop.
            if final and (stop.directory is None or stop.request_id in final):
                return final
            found, doubt = find_savepoint(stop.directory)
            if found:
                return Snapshot(found)
            raise StopFailed(f"{error}{doubt}") from None

    def _runs(self, job: JobRef) -> bool:
        status = self.status(job)
        return status is not None and not status.terminal

    def status(self, job: JobRef) -> JobStatus | None:
        """The present state of a job, also of one that the JobManager is about to recover."""
        return self._jobmanager.status(job)

    def running(self, name: str) -> tuple[JobRef, ...]:
        return tuple(job.job_id for job in self._jobmanager.jobs().values() if job.name == name and not job.terminal)

    def jobs(self) -> tuple[JobStatus, ...]:
        return tuple(self._jobmanager.jobs().values())

    def describe(self, job: JobRef) -> JobDescription | None:
        """The job's page, which may be seconds old."""
        if not _JOB_ID.fullmatch(job):
            raise DeployRefused(f"{job!r} is not a job id: write 32 hexadecimal digits in lower case")
        try:
            page = self._jobmanager.get(f"jobs/{job}")
        except JobManagerError as error:
            if error.status != _NOT_FOUND:
                raise
            return None
        vertices = (
            JobVertex(str(row.get("id", "")), str(row.get("name", "")), int(row.get("parallelism", 1)))
            for row in page.get("vertices", ())
        )
        return JobDescription(tuple(vertices), streaming=page.get("job-type") != "BATCH")

    def cancel(self, job: JobRef) -> None:
        self._jobmanager.cancel(job)

    def restored_from(self, job: JobRef) -> Proof:
        restored = self._jobmanager.restored_from(job)
        return Proof(Snapshot(restored) if restored else None)

    def job_history(self, job: JobRef) -> JobHistory:
        return job_reports.job_history(self._jobmanager, job)

    def query(self, job: JobRef) -> Mapping[str, int]:
        return job_reports.query_of(self._jobmanager.get(f"jobs/{job}/plan"))

    def left_aside(self, job: JobRef) -> frozenset[str] | None:
        """Read the JobManager's log, if REST serves it."""
        try:
            return job_reports.skipped_by_log(self._jobmanager.lines("jobmanager/log"), job)
        except DeployError:
            return None

    def failed_at_restore(self, job: JobRef) -> bool:
        return job_reports.failed_at_restore(self._jobmanager.get(f"jobs/{job}/exceptions"))

    def slots(self) -> Slots:
        seen = self._jobmanager.get("overview")
        return Slots(int(seen["slots-available"]), int(seen["slots-total"]))

    def ever_ran(self, job: JobRef) -> bool | None:
        return job_reports.ever_ran(self._jobmanager, job)

    def request_checkpoint(self, job: JobRef) -> None:
        self._jobmanager.request_checkpoint(job)

    def snapshot_stats(self, job: JobRef, kind: str) -> SnapshotStats | None:
        return job_reports.snapshot_stats(self._jobmanager, job, kind)

    def keeps_checkpoints(self, job: JobRef, state: str = "CANCELED") -> bool:
        return job_reports.keeps_checkpoints(self._jobmanager, job, state)

    def last_checkpoint(self, job: JobRef) -> SnapshotStats | None:
        """The last checkpoint of an ended job, read anew because a later one may have replaced the known one."""
        self._await_statistics()
        return self.snapshot_stats(job, "completed")

    def source_offsets(self, job: JobRef) -> Mapping[str, int]:
        return job_reports.source_offsets(self._jobmanager, job)

    def cluster_options(self, job: JobRef | None = None) -> Mapping[str, str]:
        return job_reports.cluster_options(self._jobmanager)

    def savepoint_root(self) -> str | None:
        return savepoint_directory(self.cluster_options())

    def final_savepoint(self, job: JobRef) -> Snapshot | None:
        self._await_statistics()
        found = self._jobmanager.final_savepoint(job)
        return Snapshot(found) if found else None

    def dispose(self, snapshot: Snapshot) -> None:
        self._jobmanager.dispose_savepoint(snapshot)

    def _await_statistics(self) -> None:
        """Wait until the cluster's checkpoint statistics are not older than this call."""
        called = time.monotonic()
        age = job_reports.statistics_age(self._jobmanager)
        poll(lambda: time.monotonic() - called, lambda seconds: seconds < age, timeout=age + 1)


def savepoint_directory(options: Mapping[str, str]) -> str | None:
    """The savepoint folder of Flink's options, by the option's present or former name."""
    return next((options[key] for key in _SAVEPOINT_DIRECTORY if options.get(key)), None)


def endpoint_of(access: Access, which: str) -> Endpoint:
    """Endpoint of an access's ``gateway`` or ``jobmanager``; raises ApiError, naming the wrong setting."""
    url, jobmanager = access.address(which), which == "jobmanager"
    if access.settings is None:
        found = endpoint_from_environment(url, jobmanager=jobmanager)
    else:
        found = endpoint(url, access.settings, access.place, jobmanager=jobmanager)
    for secret in found.secrets:
        access.on_secret(secret)
    return found


def no_connections(placeholder: AnyPlaceholder) -> str:
    """Lookup of a target without one."""
    if isinstance(placeholder, EnvPlaceholder):
        raise TargetError(env_in_deployment(placeholder))
    raise TargetError(f"{placeholder} cannot be resolved: this process has no connections")


def find_savepoint(directory: str | None) -> tuple[str | None, str]:
    """The complete savepoint in the folder of one stop."""
    if directory is None:
        return None, ""
    try:
        files = UPath(directory).glob("savepoint-*/_metadata")
        found = sorted((path.stat().st_mtime, str(path.parent)) for path in files)
        looked = bool(found) or UPath(directory).parent.parent.exists()
    except Exception as error:  # a store's client can raise anything if this machine has no access
        return None, (f". {directory} cannot be read from here, so look there for a savepoint ({type(error).__name__})")
    if not looked:
        return None, f". {directory} cannot be read from here, so look there for a savepoint"
    # A job recovered after its savepoint is stopped a second time, and the later savepoint counts.
    latest = [path for time, path in found if time == found[-1][0]]
    if len(latest) > 1:
        return None, f". The later of these savepoints is unknown: {', '.join(latest)}"
    return (latest[0] if latest else None), ""
