"""Ends what a rehearsal has started."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.restore_test.started import Started

SECONDS = 300.0
"""How long a watcher whose owner died goes on trying."""
_EVERY = 0.5
_NOT_FOUND = 404
# A job this long unknown to the cluster after its owner's end was never submitted.
_COMING_SECONDS = 60.0


def clean_up(
    jobmanager: JobManager,
    started: Started,
    *,
    timeout: float = SECONDS,
    coming: float = _COMING_SECONDS,
) -> list[str]:
    """Cancel the jobs and dispose of the savepoints, for as long as it takes; what could not be, in words.

    ``coming``: how long (seconds) a job that the cluster does not know may still come up.
    """
    begin = time.monotonic()

    def step() -> list[str]:
        may_come = time.monotonic() - begin < coming
        jobs = {job: _tried(_end_job, jobmanager, job, may_come) for job in started.jobs}
        savepoints = {key: _tried(_end_savepoint, jobmanager, *key, path) for key, path in started.savepoints.items()}
        # What is done is not tried again.
        started.jobs = [job for job, left in jobs.items() if left]
        started.savepoints = {key: started.savepoints[key] for key, left in savepoints.items() if left}
        return [*filter(None, jobs.values()), *filter(None, savepoints.values())]

    try:
        return poll(step, bool, timeout=timeout, every=_EVERY)
    except Overdue as overdue:
        left: list[str] = overdue.last
        return left


def savepoint_operation(jobmanager: JobManager, job_id: str, trigger: str) -> dict[str, Any] | None:
    """What became of a savepoint that was asked for under ``trigger``: ``location`` or ``failure-cause``.

    None while it is at work. Raises JobManagerError, of status 404 where there was no such request.
    """
    answer = jobmanager.get(f"jobs/{job_id}/savepoints/{trigger}")
    return dict(answer["operation"]) if answer["status"]["id"] == "COMPLETED" else None


def _tried(end: Callable[..., str], *arguments: Any) -> str:
    try:
        return end(*arguments)
    except DeployError as error:  # the JobManager may come back
        return str(error)


def _end_job(jobmanager: JobManager, job_id: str, may_come: bool) -> str:
    """Empty once the job has ended or cannot come any more."""
    job = jobmanager.jobs().get(job_id)
    if job is None:
        return f"job {job_id} may still come up" if may_come else ""
    if not job.terminal:
        jobmanager.cancel(job_id)
    return ""


def _end_savepoint(jobmanager: JobManager, job_id: str, trigger: str, path: str | None) -> str:
    """Empty once there is no such savepoint any more."""
    if path is None:
        try:
            answer = savepoint_operation(jobmanager, job_id, trigger)
        except JobManagerError as error:
            if error.status == _NOT_FOUND:  # it was never asked for
                return ""
            raise
        if answer is None:
            return f"the savepoint {trigger} of job {job_id} is still being written"
        path = answer.get("location")
    if path:  # none: it failed
        jobmanager.dispose_savepoint(path)
    return ""
