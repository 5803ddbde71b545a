"""Failures, restores and checkpoints that the JobManager shows of a job since it was accepted.

Its memory is short: the ten newest checkpoints (``web.checkpoints.history``), the sixteen newest failures
(``web.exception-history-size``), the latest restore and the number of restores. A JobManager that restarts (high
availability) begins all of them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.target import JobHistory

_FAILURES_KEPT = 16
_COMPLETED = "COMPLETED"


def job_history(jobmanager: JobManager, job_id: str) -> JobHistory:
    """Ask for it. Raises JobManagerError."""
    history = jobmanager.get(f"jobs/{job_id}/exceptions").get("exceptionHistory") or {}
    failures = sorted(entry["timestamp"] / 1000 for entry in history.get("entries") or ())
    shown = jobmanager.checkpoints(job_id)
    counts: Mapping[str, Any] = shown.get("counts") or {}
    restored: Mapping[str, Any] = (shown.get("latest") or {}).get("restored") or {}
    rows = [*(shown.get("history") or ()), *filter(None, ((shown.get("latest") or {}).get("completed"),))]
    ended = [row["latest_ack_timestamp"] / 1000 for row in rows if row["status"] == _COMPLETED]
    at = restored.get("restore_timestamp")
    return JobHistory(
        failures=tuple(failures),
        all_failures=not history.get("truncated") and len(failures) < _FAILURES_KEPT,
        checkpoint=min(ended, default=None),
        restored=restored.get("external_path"),
        restored_at=None if at is None else at / 1000,
        restored_number=restored.get("id"),
        restored_own=f"/{job_id}/chk-" in (restored.get("external_path") or ""),
        restores=int(counts.get("restored", 0)),
        newest=max((int(row["id"]) for row in rows), default=0),
        completed=int(counts.get("completed", 0)),
        triggered=int(counts.get("total", 0)),
    )
