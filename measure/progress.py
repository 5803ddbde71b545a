"""When a job has read all there is: conditions on sources, sinks and a checkpoint, never a pause."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.jobmanager import JobManager, JobStatus
from airflow_flinkcompat.deploy.polling import Overdue, poll

DATA = Path(__file__).parent / "data"
SECONDS = 60.0
EVERY = 0.1
_SOURCE_ROWS = re.compile(r"Source__(?P<table>\w+?)\[\d+\]\.numRecordsIn")
_SOURCE = re.compile(r"Source: (\w+)\[\d+\]")
_SINK_WATERMARK = re.compile(r"(Sink__.*|.*Writer)\.currentInputWatermark")
_PATH = re.compile(r"CREATE TABLE (?P<table>\w+) .*?'path' = 'file://DATA/(?P<rows>\w+)'", re.DOTALL)
_NO_WATERMARK = -(2**63)


class MeasureError(DeployError):
    """A pair could not be run: it did not end in any of the ways that are measured."""


class Ended(Exception):
    """The job ended by itself. ``ran``: every task had begun to run, so its state had been restored."""

    def __init__(self, status: JobStatus, ran: bool) -> None:
        super().__init__(status.failure or status.state)
        self.ran = ran


@dataclass(frozen=True)
class Arrival:
    """What there is to read of each declared table: how many rows, and the watermark (epoch ms) they end in."""

    rows: Mapping[str, int]
    ends: Mapping[str, int]
    """Empty where the script declares no watermark."""

    def is_due(self, seen: Mapping[str, Any]) -> bool:
        """Whether a job with these sources has not read all, or its sinks have not been told so."""
        tables = [table for table in self.rows if table in seen["rows"]]
        late = any(seen["watermark"] < self.ends[table] for table in self.ends if table in tables)
        return not tables or late or any(seen["rows"][table] < self.rows[table] for table in tables)


def tables_read(script: str) -> dict[str, str]:
    """Table name → name of its rows, of the tables declared over ``file://DATA/…``."""
    declared = (statement for statement in script.split(";"))
    return {match["table"]: match["rows"] for text in declared if (match := _PATH.search(text))}


def arrival(script: str, *phases: str) -> Arrival:
    """What reading ``before`` or ``after`` or both amounts to; the last column of every row is its event time, UTC."""
    texts = {
        table: [line for phase in phases for line in (DATA / rows / f"{phase}.csv").read_text("utf-8").splitlines()]
        for table, rows in tables_read(script).items()
    }
    latest = {table: max(line.rpartition(",")[2] for line in lines) for table, lines in texts.items()}
    # A watermark of the time itself stands one millisecond before the latest row.
    ends = {table: int(datetime.fromisoformat(each).replace(tzinfo=UTC).timestamp() * 1000) - 1
            for table, each in latest.items()}  # fmt: skip
    return Arrival({table: len(lines) for table, lines in texts.items()}, ends if "WATERMARK FOR" in script else {})


def wait_running(jobs: JobManager, job_id: str) -> None:
    """Until every task runs. Raises Ended and MeasureError."""

    def look() -> JobStatus:
        status = _status(jobs, job_id)
        if status.terminal:
            raise Ended(status, ran=False)
        return status

    _until(look, lambda status: not status.tasks_running, f"job {job_id} does not come up")


def wait_read(jobs: JobManager, job_id: str, due: Arrival) -> None:
    """Until all that is due was read and has passed the sinks. Raises Ended and MeasureError.

    The rows are counted once more after a checkpoint has flushed what was under way: a job that lost its place reads
    on, and what it prints then counts too.
    """
    read: dict[str, int] = {}

    def look() -> dict[str, Any]:
        status = _status(jobs, job_id)
        if status.terminal:
            raise Ended(status, ran=True)
        return _progress(jobs, job_id)

    while True:
        seen = _until(look, due.is_due, f"job {job_id} has not read {due}")
        if seen["rows"] == read:
            return
        read = seen["rows"]
        before = seen["checkpoints"]
        jobs.request_checkpoint(job_id)
        _until(look, lambda now, n=before: now["checkpoints"] <= n, f"job {job_id} completes no checkpoint")


def _progress(jobs: JobManager, job_id: str) -> dict[str, Any]:
    """Rows read by table (the operator that has read least where several read one), least watermark of the sinks."""
    rows: dict[str, list[int]] = {}
    watermarks: list[int] = []
    for vertex in jobs.get(f"jobs/{job_id}")["vertices"]:
        path = f"jobs/{job_id}/vertices/{vertex['id']}/subtasks/metrics"
        names = [metric["id"] for metric in jobs.get(path)]
        sources = [(source["table"], name) for name in names if (source := _SOURCE_ROWS.fullmatch(name))]
        for table in _SOURCE.findall(vertex["name"]):
            # A source that does not count yet has read nothing.
            counts = [_metric(jobs, path, name, "sum") for counted, name in sources if counted == table]
            rows.setdefault(table, []).extend(counts or [0])
        watermarks.extend(_metric(jobs, path, name, "min") for name in names if _SINK_WATERMARK.fullmatch(name))
    return {
        "rows": {table: min(counts) for table, counts in rows.items()},
        "watermark": min(watermarks, default=_NO_WATERMARK),
        "checkpoints": _status(jobs, job_id).completed_checkpoints,
    }


def _metric(jobs: JobManager, path: str, name: str, how: str) -> int:
    answer = jobs.get(f"{path}?get={quote(name)}&agg={how}")
    return int(answer[0][how]) if answer else (_NO_WATERMARK if how == "min" else 0)


def _status(jobs: JobManager, job_id: str) -> JobStatus:
    status = jobs.status(job_id)
    if status is None:
        raise MeasureError(f"the cluster has forgotten job {job_id}")
    return status


def _until(look: Any, pending: Any, what: str) -> Any:
    try:
        return poll(look, pending, timeout=SECONDS, every=EVERY)
    except Overdue as overdue:
        raise MeasureError(f"{what} within {SECONDS:.0f} s: {overdue.last}") from None
