"""What a rehearsal asks of the JobManager beside what every deployment does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_flinkcompat.deploy.errors import condense
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.flink.polling import Overdue
from airflow_flinkcompat.deploy.restore_test.cleaning import savepoint_operation
from airflow_flinkcompat.deploy.restore_test.journal import Journal

_ELASTIC = ("kubernetes.", "yarn.")


def ask_for_savepoint(jobmanager: JobManager, job_id: str, directory: str | None, trigger: str) -> None:
    """Ask for a savepoint of a job that goes on.

    ``trigger`` (32 hex digits) is the caller's: asking again under it is the same savepoint. Raises JobManagerError.
    """
    body: dict[str, Any] = {"cancel-job": False, "formatType": "CANONICAL", "triggerId": trigger}
    if directory:
        body["target-directory"] = directory
    jobmanager.call("POST", f"jobs/{job_id}/savepoints", body, idempotent=True)


def savepoint_path(jobmanager: JobManager, journal: Journal, job_id: str, trigger: str, *, timeout: float) -> str:
    """Where the savepoint of a trigger is, once it is complete. Raises JobManagerError (also: time-out), Waiting."""
    try:
        done = journal.until(
            f"savepoint {trigger} of job {job_id}",
            lambda: savepoint_operation(jobmanager, job_id, trigger),
            lambda seen: seen is None,
            timeout,
            job_id,
            trigger=trigger,
        )
    except Overdue:
        raise JobManagerError(f"the savepoint of job {job_id} did not complete within {timeout:.0f} s") from None
    assert done is not None
    if cause := done.get("failure-cause"):
        why = condense(str(cause.get("stack-trace") or cause), jobmanager.redactor)
        raise JobManagerError(f"the savepoint of job {job_id} failed: {why}")
    return str(done["location"])


def missing_slots(jobmanager: JobManager, needed: int) -> str:
    """Why ``needed`` slots are not free, in words; empty when they are, or when the cluster can grow."""
    seen = jobmanager.get("overview")
    free, total = int(seen["slots-available"]), int(seen["slots-total"])
    if free >= needed:
        return ""
    options = jobmanager.get("jobmanager/config")
    if any(str(row["key"]).startswith(_ELASTIC) for row in options):
        return ""
    return f"it needs {needed} free slot{'s' * (needed != 1)}, the cluster has {free} of {total}: add a TaskManager"


def slots_of(job: Mapping[str, Any]) -> int:
    """How many slots a job takes, all its tasks in one sharing group: its highest parallelism."""
    return max((int(vertex["parallelism"]) for vertex in job.get("vertices", ())), default=1)


def failed_at_restore(jobmanager: JobManager, job_id: str) -> bool:
    """Whether the latest failure of the job came while a task restored its state or opened its operators."""
    history = jobmanager.get(f"jobs/{job_id}/exceptions").get("exceptionHistory") or {}
    entries = history.get("entries") or [{}]
    trace = str(entries[0].get("stacktrace", ""))
    return "StateMigrationException" in trace or "StreamTask.restoreInternal" in trace
