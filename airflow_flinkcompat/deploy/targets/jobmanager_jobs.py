"""Common part of targets that observe and stop jobs by a JobManager's REST API."""

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
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME
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
    """Part of targets whose savepoint references are paths, as in Flink."""

    def location(self, snapshot: Snapshot) -> str:
        return snapshot

    def savepoint_at(self, location: str) -> Snapshot:
        return Snapshot(location)


class JobManagerJobs(SavepointPaths, Closing):
    """Verbs of a target whose JobManager accepts job ids and trigger ids from its caller.

    A subclass adds ``engine``, ``validate`` and ``start``. The subclass's ``start`` must use the request id as the job
    id. Closing the target closes the client.
    """

    def __init__(self, jobmanager: JobManager | Endpoint | str) -> None:
        self._jobmanager = jobmanager if isinstance(jobmanager, JobManager) else JobManager(jobmanager)

    def __str__(self) -> str:
        return f"the JobManager at {self._jobmanager.endpoint.place}"

    def close(self) -> None:
        self._jobmanager.close()

    def job_of_request(self, request_id: str) -> JobRef:
        """The job id of a request, which is the request id. A cluster accepts each id only once."""
        return JobRef(request_id)

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Request the stop, with the request id as the trigger id."""
        self._jobmanager.trigger_stop_with_savepoint(job, directory, request_id)
        return Operation(Verb.STOP, request_id, job, directory=directory)

    def poll(self, operation: Operation) -> Operation:
        """The outcome, read from the JobManager, the job's checkpoint statistics, or the folder of a stop."""
        if operation.verb is Verb.STOP:
            return replace(operation, snapshot=self._savepoint_of_stop(operation))
        if operation.verb is Verb.SAVEPOINT:
            return replace(operation, snapshot=self._savepoint_of_request(operation))
        job = self.job_of_request(operation.request_id)
        return replace(operation, job=job if self.status(job) is not None else None)

    def savepoint(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        self._jobmanager.trigger_savepoint(job, directory, request_id)
        return Operation(Verb.SAVEPOINT, request_id, job, directory=directory)

    def native_savepoint(self, job: JobRef, request_id: str, directory: str) -> Operation:
        self._jobmanager.trigger_savepoint(job, directory, request_id, "NATIVE")
        return Operation(Verb.SAVEPOINT, request_id, job, directory=directory)

    def _savepoint_of_request(self, asked: Operation) -> Snapshot | None:
        """The savepoint of a running job, or None until it is complete. Raises SavepointFailed."""
        assert asked.job is not None
        try:
            found = self._jobmanager.savepoint_result(asked.job, asked.request_id)
        except JobManagerError as error:
            if error.status in (_OK, _NOT_FOUND):
                raise SavepointFailed(str(error)) from None
            raise
        return Snapshot(found) if found is not None else None

    def _savepoint_of_stop(self, stop: Operation) -> Snapshot | None:
        """The savepoint of a stop, or None until the job has ended. Raises StopFailed."""
        job = stop.job
        assert job is not None
        try:
            # Query the stop's result first, because this single call is enough while the stop runs.
            savepoint = self._jobmanager.stop_result(job, stop.request_id)
            return Snapshot(savepoint) if savepoint is not None and not self._runs(job) else None
        except DeployError as error:
            if error.unanswered:
                raise  # without an answer, the stop may still run or may have left its savepoint
            if self._runs(job):
                raise StopFailed(str(error)) from None
            # The job has ended. The cluster has forgotten the stop, or the stop made the job fail, perhaps after the
            # savepoint.
            final = self.final_savepoint(job)
            # A savepoint in a different folder belongs to an earlier stop.
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
        """The status of a job, even if the JobManager must still recover the job."""
        return self._jobmanager.status(job)

    def running(self, name: str) -> tuple[JobRef, ...]:
        return tuple(job.job_id for job in self._jobmanager.jobs().values() if job.name == name and not job.terminal)

    def jobs(self) -> tuple[JobStatus, ...]:
        return tuple(self._jobmanager.jobs().values())

    def describe(self, job: JobRef) -> JobDescription | None:
        """The job's structure from REST, which may be seconds old."""
        if not _JOB_ID.fullmatch(job):
            raise DeployRefused(f"{job!r} is not a job id. Write 32 hexadecimal digits in lower case")
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
        """Read the skipped operators from the JobManager's log, if REST serves the log."""
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
        """The last checkpoint of an ended job, from statistics that are newer than this call."""
        self._await_statistics()
        return self.snapshot_stats(job, "completed")

    def source_offsets(self, job: JobRef) -> Mapping[str, int]:
        return job_reports.source_offsets(self._jobmanager, job)

    def highest_metric(self, job: JobRef, name: str) -> float | None:
        return job_reports.highest_metric(self._jobmanager, job, name)

    def source_rows(self, job: JobRef) -> int | None:
        return job_reports.source_rows(self._jobmanager, job)

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
        """Wait until the cluster's checkpoint statistics are newer than this call."""
        called = time.monotonic()
        age = job_reports.statistics_age(self._jobmanager)
        poll(lambda: time.monotonic() - called, lambda seconds: seconds < age, timeout=age + 1)


def savepoint_directory(options: Mapping[str, str]) -> str | None:
    """The savepoint folder in Flink's options, under the option's present or former name."""
    return next((options[key] for key in _SAVEPOINT_DIRECTORY if options.get(key)), None)


def trial_options(name: str) -> dict[str, str]:
    """Flink's options for a test job: a restart must not hide a failure, and no checkpoint may remain."""
    return {
        JOB_NAME: name,
        "restart-strategy.type": "disable",
        "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
    }


def endpoint_of(access: Access, which: str) -> Endpoint:
    """The endpoint of the part ``gateway`` or ``jobmanager`` of a target.

    Raises ApiError if a setting is wrong. The error message names the setting.
    """
    url, jobmanager = access.address(which), which == "jobmanager"
    if access.settings is None:
        found = endpoint_from_environment(url, jobmanager=jobmanager)
    else:
        found = endpoint(url, access.settings, access.place, jobmanager=jobmanager)
    for secret in found.secrets:
        access.on_secret(secret)
    return found


def no_connections(placeholder: AnyPlaceholder) -> str:
    """Lookup for processes without connections, which always raises TargetError."""
    if isinstance(placeholder, EnvPlaceholder):
        raise TargetError(env_in_deployment(placeholder))
    raise TargetError(f"{placeholder} cannot be resolved, because this process has no connections")


def find_savepoint(directory: str | None) -> tuple[str | None, str]:
    """The complete savepoint in a stop's folder or None, and a text about doubts about the savepoint."""
    if directory is None:
        return None, ""
    try:
        files = UPath(directory).glob("savepoint-*/_metadata")
        found = sorted((path.stat().st_mtime, str(path.parent)) for path in files)
        looked = bool(found) or UPath(directory).parent.parent.exists()
    except Exception as error:  # a store's client can raise any error if this machine has no access
        return None, (
            f". This machine cannot read {directory}, so check that folder for a savepoint ({type(error).__name__})"
        )
    if not looked:
        return None, f". This machine cannot read {directory}, so check that folder for a savepoint"
    # A job that was recovered after its savepoint is stopped again, so use the latest savepoint.
    latest = [path for time, path in found if time == found[-1][0]]
    if len(latest) > 1:
        return None, f". It is unknown which of these savepoints is the latest: {', '.join(latest)}"
    return (latest[0] if latest else None), ""
