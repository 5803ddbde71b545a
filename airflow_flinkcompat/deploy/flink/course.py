"""How a job went since it was accepted, as far as the JobManager still shows it: failures, restores, checkpoints.

What it shows is short: the ten newest checkpoints (``web.checkpoints.history``), the sixteen newest failures
(``web.exception-history-size``), of restores the latest one and their number; and a JobManager that was started anew
(high availability) begins them all again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_flinkcompat.deploy.flink.jobmanager import JobManager

_FAILURES_KEPT = 16
_COMPLETED = "COMPLETED"


@dataclass(frozen=True)
class Course:
    """Times are seconds since the epoch by the cluster's clock; numbers of checkpoints are Flink's own.

    ``failures``: oldest first; ``all_failures``: no older one was dropped. ``checkpoint``: when the earliest one of the
    completed checkpoints that are shown was complete. ``restored``: the state it was restored from last, when, and its
    number; ``restores``: how often it was. ``newest``: the highest number; ``completed`` and ``triggered`` count.
    """

    failures: tuple[float, ...] = ()
    all_failures: bool = True
    checkpoint: float | None = None
    restored: str | None = None
    restored_at: float | None = None
    restored_number: int | None = None
    restores: int = 0
    newest: int = 0
    completed: int = 0
    triggered: int = 0


def course(jobmanager: JobManager, job_id: str) -> Course:
    """Ask for it. Raises JobManagerError."""
    history = jobmanager.get(f"jobs/{job_id}/exceptions").get("exceptionHistory") or {}
    failures = sorted(entry["timestamp"] / 1000 for entry in history.get("entries") or ())
    shown = jobmanager.checkpoints(job_id)
    counts: Mapping[str, Any] = shown.get("counts") or {}
    restored: Mapping[str, Any] = (shown.get("latest") or {}).get("restored") or {}
    rows = [*(shown.get("history") or ()), *filter(None, ((shown.get("latest") or {}).get("completed"),))]
    ended = [row["latest_ack_timestamp"] / 1000 for row in rows if row["status"] == _COMPLETED]
    at = restored.get("restore_timestamp")
    return Course(
        failures=tuple(failures),
        all_failures=not history.get("truncated") and len(failures) < _FAILURES_KEPT,
        checkpoint=min(ended, default=None),
        restored=restored.get("external_path"),
        restored_at=None if at is None else at / 1000,
        restored_number=restored.get("id"),
        restores=int(counts.get("restored", 0)),
        newest=max((int(row["id"]) for row in rows), default=0),
        completed=int(counts.get("completed", 0)),
        triggered=int(counts.get("total", 0)),
    )
