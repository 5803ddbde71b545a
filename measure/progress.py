"""When a job has read all there is: conditions on sources, sinks and a checkpoint, never a pause."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow_flinkcompat.deploy import JobManager, JobStatus
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll

DATA = Path(__file__).parent / "data"
SECONDS = 60.0
EVERY = 0.1
_SOURCE_ROWS = re.compile(r"Source__(?P<table>\w+?)\[\d+\]\.numRecordsIn")
_SOURCE = re.compile(r"Source: (\w+)\[\d+\]")
_SINK_WATERMARK = re.compile(r"(Sink__.*|.*Writer)\.currentInputWatermark")
_PATH = re.compile(
    r"CREATE TABLE (?P<table>\w+) (?:(?!CREATE TABLE).)*?'path' = 'file://DATA/(?P<rows>\w+)'", re.DOTALL
)
_DELAY = re.compile(r"WATERMARK FOR (\w+) AS \1 - INTERVAL '(?P<seconds>\d+)' SECOND")
HELD_BACK = "-- the watermark is held back"
"""Stands in a script with an operator, such as an interval join, that hands on older watermarks than it gets."""
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
    """Empty where the script declares no watermark, or says that it is held back."""

    def beyond(self, read: Mapping[str, int]) -> Arrival:
        """The same after rows that were read before, or come on top."""
        return Arrival({table: rows + read.get(table, 0) for table, rows in self.rows.items()}, self.ends)

    def is_unread(self, seen: Progress) -> bool:
        """Whether a source of the job has not read all of its table."""
        return not seen.rows or any(rows < self.rows.get(table, 0) for table, rows in seen.rows.items())

    def is_late(self, seen: Progress) -> bool:
        """Whether the sinks have not been told that nothing older comes."""
        return any(seen.watermark < end for table, end in self.ends.items() if table in seen.rows)


@dataclass(frozen=True)
class Progress:
    """Rows read of each table that the job reads, least watermark (epoch ms) of its sinks, completed checkpoints."""

    rows: Mapping[str, int]
    watermark: int
    checkpoints: int


def tables_read(script: str) -> dict[str, str]:
    """Table name → name of its rows, of the tables declared over ``file://DATA/…``."""
    return {match["table"]: match["rows"] for match in _PATH.finditer(script)}


def arrival(script: str, phase: str) -> Arrival:
    """What reading ``before`` or ``after`` amounts to; the last column of every row is its event time, UTC."""
    texts = {
        table: (DATA / rows / f"{phase}.csv").read_text("utf-8").splitlines()
        for table, rows in tables_read(script).items()
    }
    delays = {match["table"]: int(delay["seconds"])
              for match in _PATH.finditer(script) if (delay := _DELAY.search(match[0]))}  # fmt: skip
    latest = {table: max(line.rpartition(",")[2] for line in lines) for table, lines in texts.items()}
    # A watermark of the time itself stands one millisecond before the latest row.
    ends = {table: int((datetime.fromisoformat(each).replace(tzinfo=UTC).timestamp() - delays.get(table, 0)) * 1000) - 1
            for table, each in latest.items()}  # fmt: skip
    waited_for = "WATERMARK FOR" in script and HELD_BACK not in script
    return Arrival({table: len(lines) for table, lines in texts.items()}, ends if waited_for else {})


def wait_running(jobs: JobManager, job_id: str) -> None:
    """Until every task runs. Raises Ended and MeasureError."""

    def look() -> JobStatus:
        status = _status(jobs, job_id)
        if status.terminal:
            raise Ended(status, ran=False)
        return status

    _until(look, lambda status: not status.tasks_running, f"job {job_id} does not come up")


def wait_read(
    jobs: JobManager, job_id: str, due: Arrival, fill: Callable[[], Mapping[str, int]] = dict
) -> Mapping[str, int]:
    """Until all that is due was read and has passed the sinks; the rows read of each table.

    ``fill`` is called, as often as it takes, when all was read and the watermark still waits for a subtask that was
    given nothing to read; it brings more rows and tells how many. The rows are counted once more after a checkpoint
    has flushed what was under way: a job that lost its place reads on, and what it prints then counts too.
    Raises Ended and MeasureError.
    """
    wanted = due
    read: Mapping[str, int] = {}

    def look() -> Progress:
        nonlocal wanted
        status = _status(jobs, job_id)
        if status.terminal:
            raise Ended(status, ran=True)
        seen = _progress(jobs, job_id)
        if wanted.is_late(seen) and not wanted.is_unread(seen):
            wanted = wanted.beyond(fill())
        return seen

    while True:
        seen = _until(
            look, lambda now: wanted.is_unread(now) or wanted.is_late(now), f"job {job_id} has not read {due}"
        )
        if seen.rows == read:
            return read
        read, before = seen.rows, seen.checkpoints
        jobs.request_checkpoint(job_id)
        _until(look, lambda now, n=before: now.checkpoints <= n, f"job {job_id} completes no checkpoint")


def _progress(jobs: JobManager, job_id: str) -> Progress:
    """Of several operators that read one table, the one that has read least counts."""
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
    return Progress(
        {table: min(counts) for table, counts in rows.items()},
        min(watermarks, default=_NO_WATERMARK),
        _status(jobs, job_id).completed_checkpoints or 0,
    )


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
