"""Detection that a job has read all rows: conditions on sources, sinks and a checkpoint, no pauses."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow_flinkcompat.deploy import JobStatus
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from dev.measure.pairs import CACHE

DATA = Path(__file__).parent / "data"
GENERATED = CACHE / "rows"
"""Folder of generated rows for the topics of public scripts, as JSON, structured like :data:`DATA`."""
SECONDS = 120.0
EVERY = 0.3
# Kafka's connector names its scans itself.
_SOURCE_ROWS = re.compile(
    r"Source__(?:KafkaSource-default_catalog_default_database_)?(?P<table>\w+?)(?:\[\d+\])?\.numRecordsIn"
)
_SOURCE = re.compile(r"Source: (?:KafkaSource-default_catalog\.default_database\.)?(\w+)")
_SINK_WATERMARK = re.compile(r"(Sink__.*|.*Writer)\.currentInputWatermark")
_PLACE = re.compile(
    r"CREATE TABLE (?P<table>\w+) (?:(?!CREATE TABLE).)*?"
    r"(?:'path' = 'file://DATA/(?P<files>\w+)'|'file://LAKE/(?P<lake>\w+)'"
    r"|'topic' = '(?P<topics>[^']*)'|'topic-pattern' = '(?P<pattern>[^']*)')",
    re.DOTALL,
)
_ENDS_BY_ITSELF = re.compile(r"'connector' = 'datagen'|'scan\.bounded\.mode'")
_DELAY = re.compile(r"WATERMARK FOR (\w+) AS \1 - INTERVAL '(?P<seconds>\d+)' SECOND")
HELD_BACK = "-- the watermark is held back"
"""Marker of a script with an operator that emits older watermarks than it receives."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d ")
_NO_WATERMARK = -(2**63)


class MeasureError(DeployError):
    """A pair did not end in any of the measured ways."""


class Ended(Exception):
    """The job ended by itself. ``ran`` is True if every task had started, so that state was restored."""

    def __init__(self, status: JobStatus, ran: bool) -> None:
        super().__init__(status.failure or status.state)
        self.ran = ran


@dataclass(frozen=True)
class Feed:
    """Rows of ``dev/measure/data``; ``topic`` is True if they arrive in a topic instead of files."""

    rows: str
    topic: bool = False

    def lines(self, phase: str) -> list[str]:
        """Rows of a phase, in the order of the file."""
        folder = DATA if (DATA / self.rows).exists() else GENERATED
        return (folder / self.rows / f"{phase}.csv").read_text("utf-8").splitlines()

    def in_turn(self, phase: str, partitions: int) -> list[list[str]]:
        """The rows of a phase by partition of a topic; one list if they arrive as files."""
        lines, parts = self.lines(phase), partitions if self.topic else 1
        return [part for number in range(parts) if (part := lines[number::parts])]

    @property
    def filled(self) -> bool:
        """True if several subtasks read them, each of which needs rows."""
        return (DATA / self.rows / "before.filler.csv").exists()


@dataclass(frozen=True)
class Arrival:
    """Available rows of each declared table: their number and their last watermark (epoch ms)."""

    rows: Mapping[str, int]
    ends: Mapping[str, int]
    """Empty if the script declares no watermark, or has the marker HELD_BACK."""

    def beyond(self, read: Mapping[str, int]) -> Arrival:
        """The same rows, after rows that were read earlier or are added."""
        return Arrival({table: rows + read.get(table, 0) for table, rows in self.rows.items()}, self.ends)

    def is_unread(self, seen: Progress) -> bool:
        """True if a source of the job has not read all of its table."""
        return not seen.rows or any(rows < self.rows.get(table, 0) for table, rows in seen.rows.items())

    def is_late(self, seen: Progress) -> bool:
        """True if the watermark of the sinks is not at the end yet."""
        return any(seen.watermark < end for table, end in self.ends.items() if table in seen.rows)


@dataclass(frozen=True)
class ReadRows:
    """Numbers of read and of available rows for each table, including fillers."""

    rows: Mapping[str, int] = field(default_factory=dict)
    due: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """Rows read of each table that the job reads, and the least watermark (epoch ms) of its sinks."""

    rows: Mapping[str, int]
    watermark: int


def tables_read(script: str) -> dict[str, tuple[Feed, ...]]:
    """Rows by table name, for tables declared over ``file://DATA/…`` or over topics of such names."""
    found = {match["table"]: tuple(_feeds(match)) for match in _PLACE.finditer(script)}
    return {table: feeds for table, feeds in found.items() if feeds}


def writes_topics(script: str) -> bool:
    """True if it names a topic that receives no rows."""
    return any(set(_names(match)) - known_rows() for match in _PLACE.finditer(script) if match["topics"])


def _feeds(match: re.Match[str]) -> Iterator[Feed]:
    if match["files"]:
        yield Feed(match["files"])
    known = known_rows()
    named = [match["lake"]] if match["lake"] else _names(match)
    pattern = match["pattern"]
    yield from (Feed(name, topic=True) for name in known if name in named or (pattern and re.fullmatch(pattern, name)))


def _names(match: re.Match[str]) -> list[str]:
    return (match["topics"] or "").split(";")


def known_rows() -> set[str]:
    """The names of all rows that can arrive."""
    return {path.name for folder in (DATA, GENERATED) if folder.exists() for path in folder.iterdir()}


def ends_by_itself(script: str) -> bool:
    """True if a script makes or reads a fixed number of rows."""
    return bool(_ENDS_BY_ITSELF.search(script))


def arrival(script: str, phase: str, fresh: Collection[Feed] = (), partitions: int = 1) -> Arrival:
    """Available rows of the phase ``before`` or ``after``. A row's last column may be its event time, UTC.

    Of ``fresh`` rows all are still to be read. A topic that is not filled has so many ``partitions``, given rows in
    turn, of which the one that lies furthest behind holds the watermark back.
    """
    rows: dict[str, int] = {}
    ends: dict[str, int] = {}
    waited_for = "WATERMARK FOR" in script and HELD_BACK not in script
    delays = {match["table"]: int(delay["seconds"])
              for match in _PLACE.finditer(script) if (delay := _DELAY.search(match[0]))}  # fmt: skip
    for table, feeds in tables_read(script).items():
        rows[table] = sum(len(feed.lines(each)) for feed in feeds for each in (phase, *_before(phase, feed, fresh)))
        latest = min(
            max(line.rpartition(",")[2] for line in rows_of_one)
            for feed in feeds
            for rows_of_one in feed.in_turn(phase, 1 if feed.filled else partitions)
        )
        # A watermark without delay is one millisecond before the latest row.
        if waited_for and _TIME.match(latest):
            ends[table] = epoch_millis(latest) - delays.get(table, 0) * 1000 - 1
    if partitions > 1 and ends:  # the rows of a table end in another time each, and the slowest one holds the sink back
        ends = dict.fromkeys(ends, min(ends.values()))
    return Arrival(rows, ends)


def _before(phase: str, feed: Feed, fresh: Collection[Feed]) -> tuple[str, ...]:
    return ("before",) if phase == "after" and feed in fresh else ()


def epoch_millis(time: str) -> int:
    """Milliseconds of a time in the format of rows, UTC."""
    return int(datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp() * 1000)


def wait_running(jobs: JobManager, job_id: str) -> None:
    """Wait until every task runs. Raises Ended and MeasureError."""

    def look() -> JobStatus:
        status = _status(jobs, job_id)
        if status.terminal:
            raise Ended(status, ran=False)
        return status

    _until(look, lambda status: not status.tasks_running, f"job {job_id} does not come up")


def wait_read(jobs: JobManager, job_id: str, due: Arrival, fill: Callable[[], Mapping[str, int]] = dict) -> ReadRows:
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
        seen = progress(jobs, job_id)
        if wanted.is_late(seen) and not wanted.is_unread(seen):
            wanted = wanted.beyond(fill())
        return seen

    while True:
        seen = _until(
            look, lambda now: wanted.is_unread(now) or wanted.is_late(now), f"job {job_id} has not read {due}"
        )
        if seen.rows == read:
            return ReadRows(read, wanted.rows)
        read = seen.rows
        checkpoint(jobs, job_id)


def checkpoint(jobs: JobManager, job_id: str) -> None:
    """Request a checkpoint until one is complete. Raises Ended and MeasureError."""

    def look() -> int:
        status = _status(jobs, job_id)
        if status.terminal:
            raise Ended(status, ran=True)
        return status.completed_checkpoints or 0

    before = look()
    jobs.request_checkpoint(job_id)
    _until(look, lambda complete: complete <= before, f"job {job_id} completes no checkpoint")


def wait_ended(jobs: JobManager, job_id: str) -> None:
    """Wait for the end of a bounded job. Raises Ended if it failed, and MeasureError."""
    status = _until(lambda: _status(jobs, job_id), lambda status: not status.terminal, f"job {job_id} does not end")
    if status.state != "FINISHED":
        raise Ended(status, ran=True)


def progress(jobs: JobManager, job_id: str) -> Progress:
    """If several operators read one table, the one that has read least counts."""
    rows: dict[str, list[int]] = {}
    watermarks: list[int] = []
    for vertex in jobs.get(f"jobs/{job_id}")["vertices"]:
        path = f"jobs/{job_id}/vertices/{vertex['id']}/subtasks/metrics"
        names = [metric["id"] for metric in jobs.get(path)]
        sources = [(source["table"], name) for name in names if (source := _SOURCE_ROWS.fullmatch(name))]
        for table in _SOURCE.findall(vertex["name"]):
            # A source without a counter has read no rows yet.
            counts = [_metric(jobs, path, name, "sum") for counted, name in sources if counted == table]
            rows.setdefault(table, []).extend(counts or [0])
        watermarks.extend(_metric(jobs, path, name, "min") for name in names if _SINK_WATERMARK.fullmatch(name))
    return Progress({table: min(counts) for table, counts in rows.items()}, min(watermarks, default=_NO_WATERMARK))


def _metric(jobs: JobManager, path: str, name: str, how: str) -> int:
    answer = jobs.get(f"{path}?get={quote(name)}&agg={how}")
    return int(answer[0][how]) if answer else (_NO_WATERMARK if how == "min" else 0)


def _status(jobs: JobManager, job_id: str) -> JobStatus:
    status = jobs.status(job_id)
    if status is None:
        raise MeasureError(f"the cluster no longer knows job {job_id}")
    return status


def _until(look: Any, pending: Any, what: str) -> Any:
    try:
        return poll(look, pending, timeout=SECONDS, every=EVERY)
    except Overdue as overdue:
        raise MeasureError(f"{what} within {SECONDS:.0f} s: {overdue.last}") from None
