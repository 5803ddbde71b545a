"""The reading part of the target: deployments, job instances, and JobManagers through the proxy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx

from airflow_flinkcompat.deploy.errors import DeployRefused, TargetError, condense, fault_of
from airflow_flinkcompat.deploy.flink import job_reports
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.rest import Closing, Endpoint
from airflow_flinkcompat.deploy.target import (
    Deployed,
    EngineInfo,
    JobHistory,
    JobRef,
    JobStatus,
    Proof,
    Snapshot,
    Strength,
)
from airflow_flinkcompat.deploy.targets.realtime_compute import instances
from airflow_flinkcompat.deploy.targets.realtime_compute.openapi import OpenApi, RealtimeComputeError
from airflow_flinkcompat.deploy.targets.realtime_compute.settings import version_of

_FORBIDDEN = 403
_CANCEL_SECONDS = 120.0


class RealtimeComputeJobs(Closing):
    """Status and cancellation of job instances in a namespace."""

    def __init__(self, api: OpenApi) -> None:
        self._api = api
        self._jobmanagers: dict[str, JobManager] = {}

    def __str__(self) -> str:
        return self._api.place

    def close(self) -> None:
        for jobmanager in self._jobmanagers.values():
            jobmanager.close()

    def engine(self) -> EngineInfo:
        """Engine VVR with the version in the settings or, if unset, the common version of all deployments."""
        pinned = self._api.settings.engine_version
        if pinned is not None:
            return EngineInfo("vvr", version_of(pinned, "engine_version"))
        found = {
            each.engine_version for each in self._api.deployments() if instances.is_sql(each) and each.engine_version
        }
        if len(found) > 1:
            raise TargetError(
                f"deployments of {self} run on {', '.join(sorted(found))}. Set engine_version of "
                f"{self._api.settings.place} to the version for this connection"
            )
        name = next(iter(found), None) or self._api.default_engine_version()
        return EngineInfo("vvr", version_of(name, f"the engine version of {self}"))

    def status(self, job: JobRef) -> JobStatus | None:
        """The status from the platform, with tasks, checkpoints and failures from the JobManager."""
        found = self._api.job(job)
        if found is None:
            return None
        seen = JobStatus(job, str(found.deployment_name or ""), instances.state_of(found), completed_checkpoints=None)
        if seen.state == "FAILED":
            failure = condense(instances.failure_of(found.status), self._api.redactor)
            return replace(seen, failure=failure, fault=fault_of(failure))
        if seen.state != "RUNNING":
            return seen
        try:
            flink = self._flink(job)
            look = flink.status() if flink else None
        except JobManagerError as error:
            if error.unanswered:
                raise
            return _by_the_platform(seen, found) if error.status == _FORBIDDEN else seen
        if look is None or look.terminal:  # the job is starting, or its end is not yet known to the platform
            return seen
        return replace(look, job_id=job, name=seen.name)

    def running(self, name: str) -> tuple[JobRef, ...]:
        """The job instances of the deployment ``name`` that have not ended, oldest first."""
        return tuple(JobRef(job.job_id) for job in self._active(self._deployment(name)))

    def deployed(self, name: str) -> Deployed | None:
        """Script, settings and engine version of the running job instance, not of its deployment."""
        active = self._active(self._deployment(name))
        if len(active) > 1:
            both = " and ".join(job.job_id for job in active)
            raise DeployRefused(
                f"the deployment {name!r} of {self} has several job instances that have not ended: {both}. Stop all "
                "but one in the console"
            )
        if not active:
            return None
        job = self._api.job(active[0].job_id) or active[0]
        ran_on, place = job.engine_version, f"the engine version of job {job.job_id}"
        engine = EngineInfo("vvr", version_of(ran_on, place)) if ran_on else None
        return Deployed(JobRef(job.job_id), instances.script_of(job), instances.start_settings(job), engine)

    def restored_from(self, job: JobRef) -> Proof:
        """The restored state from Flink's checkpoint statistics, or else the state requested at the start.

        If the statistics show a savepoint that the platform does not know by its path, the requested state is also
        used.
        """
        try:
            if flink := self._flink(job):
                latest = flink.jobmanager.checkpoints(flink.job_id).get("latest") or {}
                if not (restored := latest.get("restored")):
                    return Proof(None)
                path = str(restored.get("external_path"))
                known = self._savepoint_at(job, path)
                if known != path or not restored.get("is_savepoint"):
                    return Proof(known)
        except JobManagerError as error:
            if error.unanswered:
                raise
        found = self._api.job(job)
        asked = found.restore_strategy if found is not None else None
        kind = str(asked.kind if asked else "")
        if asked and kind == "FROM_SAVEPOINT" and asked.savepoint_id:
            return Proof(Snapshot(asked.savepoint_id), Strength.DECLARED)
        return Proof(None, Strength.DECLARED if kind == "NONE" else Strength.UNKNOWN)

    def job_history(self, job: JobRef) -> JobHistory:
        try:
            flink = self._flink(job)
            seen = job_reports.job_history(flink.jobmanager, flink.job_id) if flink else JobHistory(all_failures=False)
        except JobManagerError as error:
            if error.unanswered:
                raise
            return JobHistory(all_failures=False)
        return replace(seen, restored=self._savepoint_at(job, seen.restored)) if seen.restored else seen

    def ever_ran(self, job: JobRef) -> bool | None:
        flink = self._readable_flink(job)
        return job_reports.ever_ran(flink.jobmanager, flink.job_id) if flink else None

    def source_offsets(self, job: JobRef) -> Mapping[str, int]:
        flink = self._readable_flink(job)
        return job_reports.source_offsets(flink.jobmanager, flink.job_id) if flink else {}

    def cancel(self, job: JobRef) -> None:
        """Cancel the job instance without a savepoint, and wait for its end."""
        if self._runs(job):
            try:
                self._api.stop(job, "NONE")
            except RealtimeComputeError as error:
                if error.unanswered or self._runs(job):
                    raise
        try:
            poll(lambda: self._runs(job), bool, timeout=_CANCEL_SECONDS)
        except Overdue:
            raise TargetError(f"job {job} of {self} has not ended {_CANCEL_SECONDS:.0f} s after its stop") from None

    def _deployment(self, name: str) -> Any | None:
        """The deployment with this name, or None. Raises TargetError if several have the name."""
        found = [each for each in self._api.deployments(name=name) if each.name == name]
        if len(found) > 1:
            ids = ", ".join(each.deployment_id for each in found)
            raise TargetError(f"{self} has several deployments named {name!r} ({ids}). Rename all but one")
        return found[0] if found else None

    def _active(self, deployment: Any | None) -> list[Any]:
        if deployment is None:
            return []
        jobs = self._api.jobs(deployment.deployment_id)
        return instances.by_age(each for each in jobs if instances.is_active(each))

    def _runs(self, job: JobRef) -> bool:
        found = self._api.job(job)
        return found is not None and instances.is_active(found)

    def _savepoint_at(self, job: JobRef, path: str) -> Snapshot:
        """The platform's id of the savepoint at a path, or the path itself if the platform does not know it."""
        found = self._api.job(job)
        known = self._api.savepoints(deployment_id=found.deployment_id) if found is not None else []
        named = (each.savepoint_id for each in known if instances.same_location(each.savepoint_location, path))
        return Snapshot(next(named, path))

    def _flink(self, job: JobRef) -> _FlinkJob | None:
        """The job in its JobManager, or None if Flink has no job yet. Raises JobManagerError."""
        if job not in self._jobmanagers:
            self._jobmanagers[job] = proxied_jobmanager(self._api, job)
        found = flink_job(self._jobmanagers[job])
        return None if found is None else _FlinkJob(self._jobmanagers[job], found)

    def _readable_flink(self, job: JobRef) -> _FlinkJob | None:
        """The same as ``_flink``, but None if the JobManager has ended or the access key may not query it."""
        try:
            return self._flink(job)
        except JobManagerError as error:
            if error.unanswered:
                raise
            return None


@dataclass(frozen=True)
class _FlinkJob:
    """A job in Flink, with its Flink job id."""

    jobmanager: JobManager
    job_id: str

    def status(self) -> JobStatus | None:
        return self.jobmanager.status(self.job_id)


def _by_the_platform(seen: JobStatus, job: Any) -> JobStatus:
    """Status of a running job from the platform alone, if the access key may not query the JobManager."""
    running = job.status.running
    restarts = int(running.observed_flink_job_restarts or 0) if running else 0
    return replace(
        seen,
        tasks_running=running is not None and running.observed_flink_job_status == "RUNNING",
        failure=f"the platform restarted the job {restarts} times" if restarts else None,
    )


_REFUSED = 500


class _ProxyTransport(httpx.BaseTransport):
    """HTTP transport that sends a JobManager client's requests through ``FlinkApiProxy``."""

    def __init__(self, api: OpenApi, job_id: str) -> None:
        self._api = api
        self._job_id = job_id

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the JobManager's response, or an error response if the service refuses the request."""
        if request.method != "GET":
            raise httpx.UnsupportedProtocol(f"the proxy of {self._api.place} accepts only GET requests")
        try:
            text = self._api.flink(self._job_id, request.url.raw_path.decode())
        except RealtimeComputeError as error:
            if error.unanswered:
                raise httpx.ReadError(str(error)) from None
            return httpx.Response(_FORBIDDEN if error.denied else _REFUSED, text=error.reason)
        return httpx.Response(200, text=text)


def proxied_jobmanager(api: OpenApi, job_id: str) -> JobManager:
    """A client of the JobManager that runs a job instance, not yet connected."""
    place = Endpoint(f"{api.settings.scheme}://{api.settings.host}", timeout=api.settings.timeout)
    return JobManager(place, transport=_ProxyTransport(api, job_id))


def flink_job(jobmanager: JobManager) -> str | None:
    """Flink's id of the only job that a JobManager runs, or None if there is no job or several jobs."""
    found = list(jobmanager.jobs())
    return found[0] if len(found) == 1 else None
