"""REST client of Flink's JobManager: jobs, checkpoints, savepoints and stops."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any

from airflow_flinkcompat.deploy.errors import SnapshotGone, StateFault, condense, fault_of
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.rest import ApiError, RestClient
from airflow_flinkcompat.deploy.target import TERMINAL, JobRef, JobStatus

_OK, _NOT_FOUND = 200, 404
_UNKNOWN_JOB = "FlinkJobNotFoundException"
_UNKNOWN = re.compile(rf"{_UNKNOWN_JOB}|Job \w+ not found")
# Error with which most REST paths of a job answer (status 500) while the job is INITIALIZING.
_INITIALIZING = "UnavailableDispatcherOperationException"
# Seconds after which a job that the JobManager does not know is regarded as ended. A JobManager with high availability
# answers before it has recovered all jobs.
_RECOVERY_SECONDS = 10.0
_HIGH_AVAILABILITY = ("high-availability.type", "high-availability")


class JobManagerError(ApiError):
    """The JobManager refused a call or did not answer, or an operation on a job failed."""


class JobManager(RestClient):
    """Client of a JobManager."""

    name = "the JobManager"
    _recovers: bool | None = None

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Call the REST API as in ``RestClient.call``, but raise JobManagerError."""
        try:
            return super().call(method, path, body, **more)
        except ApiError as error:
            # Some REST paths answer 500 for an unknown job.
            status = _NOT_FOUND if _UNKNOWN_JOB in error.reason else error.status
            raise JobManagerError(str(error), status, error.reason) from None

    def version(self) -> str:
        """Flink's version, such as ``2.3.0``. Raises JobManagerError."""
        try:
            return str(self.get("config")["flink-version"])
        except (KeyError, TypeError):
            raise JobManagerError(f"{self.endpoint.place} answers, but is not a JobManager") from None

    def upload_jar(self, name: str, content: bytes) -> str:
        """Upload a jar and return its id in the cluster. Raises JobManagerError."""
        files = {"jarfile": (name, content, "application/x-java-archive")}
        return str(self.call("POST", "jars/upload", files=files)["filename"]).rpartition("/")[2]

    def jobs(self) -> dict[str, JobStatus]:
        """Name, state and age of every job that the cluster remembers, by job id. Raises JobManagerError."""
        try:
            rows = self.get("jobs/overview")["jobs"]
        except (KeyError, TypeError):
            raise JobManagerError(f"{self.endpoint.place} answers, but is not a JobManager") from None
        return {
            row["jid"]: JobStatus(
                row["jid"], row["name"], row["state"], seconds=row["duration"] / 1000 if "duration" in row else None
            )
            for row in rows
        }

    def status(self, job_id: str) -> JobStatus | None:
        """The status of a job, or None if unknown. Waits while the cluster may still recover the job."""
        if (found := self._status(job_id)) is not None or not self.recovers():
            return found
        try:
            return poll(lambda: self._status(job_id), lambda seen: seen is None, timeout=_RECOVERY_SECONDS)
        except Overdue:
            return None

    def recovers(self) -> bool:
        """True if jobs survive a JobManager restart (high availability), or if the options are hidden."""
        if self._recovers is None:
            try:
                options = {row["key"]: row["value"] for row in self.get("jobmanager/config")}
            except JobManagerError as error:
                if error.unanswered:
                    raise
                return True
            mode = next((options[key] for key in _HIGH_AVAILABILITY if key in options), "NONE")
            self._recovers = mode.upper() != "NONE"
        return self._recovers

    def _status(self, job_id: str) -> JobStatus | None:
        try:
            # The response of /jobs/:jobid may be seconds old (web.refresh-interval). The response of /status is
            # current.
            state = self.get(f"jobs/{job_id}/status")["status"]
            job = self.get(f"jobs/{job_id}")
            exceptions = self.get(f"jobs/{job_id}/exceptions")
            checkpoints = self.checkpoints(job_id)
        except JobManagerError as error:
            if _UNKNOWN.search(error.reason):  # a 404 without this text may come from a proxy
                return None
            if _INITIALIZING in error.reason:  # only the job's name and state are known yet
                return self.jobs().get(job_id)
            raise
        except (KeyError, TypeError):
            raise JobManagerError(f"{self.endpoint.place} answers, but is not a JobManager") from None
        states = [vertex["status"] for vertex in job.get("vertices", ())]
        history = (exceptions.get("exceptionHistory") or {}).get("entries") or []
        failure = condense(str(history[0].get("stacktrace", "")), self.redactor) or None if history else None
        return JobStatus(
            JobRef(job_id),
            job["name"],
            state,
            # A finished task, such as a bounded source, has already restored its state.
            tasks_running=bool(states) and all(state in ("RUNNING", "FINISHED") for state in states),
            completed_checkpoints=int((checkpoints.get("counts") or {}).get("completed", 0)),
            failure=failure,
            fault=fault_of(failure),
        )

    def restored_from(self, job_id: str) -> str | None:
        """The path of the state that the job last restored, or None if the job began empty."""
        restored = (self.checkpoints(job_id).get("latest") or {}).get("restored") or {}
        return restored.get("external_path")

    def checkpoints(self, job_id: str) -> dict[str, Any]:
        """The answer of ``/jobs/:jobid/checkpoints``, empty for a batch job or an unknown job."""
        try:
            return dict(self.get(f"jobs/{job_id}/checkpoints"))
        except JobManagerError as error:
            if error.status == _NOT_FOUND:  # a batch job
                return {}
            raise

    def trigger_stop_with_savepoint(
        self, job_id: str, directory: str | None, trigger_id: str, format_type: str = "CANONICAL"
    ) -> None:
        """Request a stop with savepoint, without draining. A repeated trigger id refers to the same stop."""
        body = {"drain": False, "formatType": format_type, "triggerId": trigger_id}
        if directory:
            body["targetDirectory"] = directory
        self.call("POST", f"jobs/{job_id}/stop", body, idempotent=True)

    def stop_result(self, job_id: str, trigger_id: str) -> str | None:
        """The savepoint of a stop, or None while the stop runs.

        Raises JobManagerError if the stop failed. The status is 404 if this JobManager does not know the stop.
        """
        return self._savepoint_of_trigger(job_id, trigger_id, "the stop with savepoint")

    def trigger_savepoint(
        self, job_id: str, directory: str | None, trigger_id: str, format_type: str = "CANONICAL"
    ) -> None:
        """Request a savepoint of a running job. A repeated trigger id refers to the same savepoint."""
        body = {"cancel-job": False, "formatType": format_type, "triggerId": trigger_id}
        if directory:
            body["target-directory"] = directory
        self.call("POST", f"jobs/{job_id}/savepoints", body, idempotent=True)

    def savepoint_result(self, job_id: str, trigger_id: str) -> str | None:
        """The savepoint of a request or a stop, or None until it is complete.

        Raises JobManagerError with status 200 if the savepoint failed, and with status 404 if this JobManager does not
        know the request.
        """
        return self._savepoint_of_trigger(job_id, trigger_id, f"the savepoint of job {job_id}")

    def _savepoint_of_trigger(self, job_id: str, trigger_id: str, what: str) -> str | None:
        answer = self.get(f"jobs/{job_id}/savepoints/{trigger_id}")
        if answer["status"]["id"] != "COMPLETED":
            return None
        return str(self._require_success(answer["operation"], what)["location"])

    def stop_with_savepoint(self, job_id: str, directory: str | None = None, *, timeout: float = 600.0) -> str:
        """Stop the job and return its savepoint.

        The savepoint and the end of the job may take ``timeout`` seconds each.
        """
        trigger_id = uuid.uuid4().hex
        self.trigger_stop_with_savepoint(job_id, directory, trigger_id)
        try:
            savepoint = poll(lambda: self.stop_result(job_id, trigger_id), lambda seen: seen is None, timeout=timeout)
        except Overdue:
            raise JobManagerError(f"the stop with savepoint did not complete within {timeout:.0f} s") from None
        self.wait_terminal(job_id, timeout=timeout)
        return str(savepoint)

    def final_savepoint(self, job_id: str) -> str | None:
        """The savepoint of a job's stop, from its checkpoint statistics, or None if none is known."""
        found = (self.checkpoints(job_id).get("latest") or {}).get("savepoint") or {}
        return found.get("external_path") if found.get("checkpoint_type") == "SYNC_SAVEPOINT" else None

    def request_checkpoint(self, job_id: str) -> None:
        """Request a checkpoint independent of the job's interval, and do not wait. Raises JobManagerError."""
        body = {"checkpointType": "CONFIGURED", "triggerId": uuid.uuid4().hex}
        self.call("POST", f"jobs/{job_id}/checkpoints", body, idempotent=True)

    def cancel(self, job_id: str, *, timeout: float = 120.0) -> None:
        """Cancel the job and wait up to ``timeout`` seconds for its end. Raises JobManagerError."""
        self.call("PATCH", f"jobs/{job_id}?mode=cancel", idempotent=True)
        self.wait_terminal(job_id, timeout=timeout)

    def dispose_savepoint(self, path: str, *, timeout: float = 120.0) -> None:
        """Delete a savepoint within ``timeout`` seconds. Raises SnapshotGone, JobManagerError."""
        body = {"savepoint-path": path, "triggerId": uuid.uuid4().hex}
        try:
            request = self.call("POST", "savepoint-disposal", body, idempotent=True)["request-id"]
            self._operation(f"savepoint-disposal/{request}", "the disposal of the savepoint", timeout)
        except JobManagerError as error:
            if fault_of(str(error)) is StateFault.GONE:
                raise SnapshotGone(str(error)) from None
            raise

    def wait_terminal(self, job_id: str, *, timeout: float) -> str:
        """Wait until the job ends, and return its final state (``FINISHED`` if Flink has forgotten the job).

        Raises JobManagerError.
        """

        def look() -> str:
            job = self.jobs().get(job_id) or self.status(job_id)
            return job.state if job else "FINISHED"

        try:
            return poll(look, lambda state: state not in TERMINAL, timeout=timeout)
        except Overdue as overdue:
            raise JobManagerError(f"job {job_id} is still {overdue.last} after {timeout:.0f} s") from None

    def _operation(self, path: str, what: str, timeout: float) -> dict[str, Any]:
        try:
            answer = poll(lambda: self.get(path), lambda a: a["status"]["id"] != "COMPLETED", timeout=timeout)
        except Overdue:
            raise JobManagerError(f"{what} did not complete within {timeout:.0f} s") from None
        return self._require_success(answer["operation"], what)

    def _require_success(self, operation: Mapping[str, Any], what: str) -> dict[str, Any]:
        if cause := operation.get("failure-cause"):
            why = condense(str(cause.get("stack-trace") or cause), self.redactor)
            raise JobManagerError(f"{what} failed: {why}", _OK)  # status 200: the failure is final, do not retry
        return dict(operation)
