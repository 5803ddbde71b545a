"""Staging of a plan's rows next to their sinks, as a whole or in chunks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.execution.frames import Accelerator, Execution
from airflow_flinkcompat.backfill.journal import ChunkJournal, FinishedChunk
from airflow_flinkcompat.backfill.planning import BackfillPlan
from airflow_flinkcompat.backfill.protocols import Publication, Range
from airflow_flinkcompat.backfill.result import SourceRows
from airflow_flinkcompat.backfill.spark import counted
from airflow_flinkcompat.backfill.steps import Work

if TYPE_CHECKING:
    from pyspark.sql import Observation, SparkSession

    from airflow_flinkcompat.backfill.execution.frames import Execution


Progress = Callable[[str], None]


@dataclass(frozen=True)
class Counts:
    """Counts of a run: rows by table and location, and rows and windows of each sink in order.

    The number of windows is None if a sink has no window columns.
    """

    read: tuple[SourceRows, ...] = ()
    rows: tuple[int, ...] = ()
    windows: tuple[int | None, ...] = ()
    dropped: int = 0
    late: int = 0
    ties: int = 0

    @classmethod
    def of(cls, execution: Execution, sinks: Sequence[Observation]) -> Counts:
        """Counts of an execution after its actions have run."""
        return cls(
            tuple(SourceRows(table, place, rows) for (table, place), rows in execution.rows_read().items()),
            tuple(counted(seen, "rows") for seen in sinks),
            tuple(_windows(seen) for seen in sinks),
            execution.rows_dropped(),
            execution.late(),
            execution.ties(),
        )

    @classmethod
    def total(cls, parts: Iterable[Counts]) -> Counts:
        """Sum of the counts of several chunks.

        A row counts each time it is read. Every chunk reads the same rows without a time, so the total is the largest
        count of a chunk. A late row counts once for each window that it missed, and each window is in one chunk.
        """
        found = list(parts)
        if len(found) == 1:
            return found[0]
        read: dict[tuple[str, str], int] = {}
        for source in (source for part in found for source in part.read):
            read[source.table, source.place] = read.get((source.table, source.place), 0) + source.rows
        return cls(
            tuple(SourceRows(table, place, rows) for (table, place), rows in read.items()),
            tuple(map(sum, zip(*(part.rows for part in found), strict=True))),
            tuple(_sum(each) for each in zip(*(part.windows for part in found), strict=True)),
            max(part.dropped for part in found),
            sum(part.late for part in found),
            sum(part.ties for part in found),
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert the counts to JSON values; :meth:`from_dict` reads them back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Counts:
        read = tuple(SourceRows(**source) for source in data["read"])
        return cls(**{**data, "read": read, "rows": tuple(data["rows"]), "windows": tuple(data["windows"])})

    def windows_written(self) -> int | None:
        """Number of windows in all sinks; None if the number of one sink is unknown."""
        return _sum(self.windows)


def _windows(seen: Observation) -> int | None:
    if counted(seen, "rows") == 0:
        return 0
    windows = counted(seen, "windows")
    return None if windows < 0 else windows


def _sum(numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    return None if None in found else sum(number or 0 for number in found)


def stage_at_once(
    session: SparkSession,
    work: Work,
    publications: list[Publication],
    progress: Progress,
    accelerator: Accelerator[Any] | None,
) -> Counts:
    """Compute and stage the rows of all sinks."""
    seen = []
    with Execution(session, work, progress, accelerator=accelerator) as execution:
        for write, publication in zip(work.writes, publications, strict=True):
            progress(f"computing {write.rows.name}")
            rows, counts = execution.rows(write)
            publication.stage(rows)
            seen.append(counts)
        return Counts.of(execution, seen)


def stage_in_chunks(
    session: SparkSession,
    plan: BackfillPlan,
    publications: list[Publication],
    journal: ChunkJournal,
    progress: Progress,
    accelerator: Accelerator[Any] | None,
) -> Counts:
    """Compute the chunks that no earlier run has finished, then stage the rows of all chunks."""
    chunks: list[FinishedChunk] = []
    started, computed = time.monotonic(), 0
    for number, (bounds, work) in enumerate(plan.chunks, start=1):
        name = f"chunk {number} of {len(plan.chunks)} {_range_text(plan, number, bounds)}"
        chunk = journal.finished(number)
        if chunk is not None:
            progress(f"{name}: an earlier run has computed it ({_written(Counts.from_dict(chunk.counts))})")
        else:
            chunk = _compute(session, work, journal, number, progress, accelerator)
            computed += 1
            left = (time.monotonic() - started) / computed * (len(plan.chunks) - number)
            done = (
                f"{100 * number // len(plan.chunks)}% of the range is done, about {timedelta(seconds=round(left))} left"
            )
            progress(f"{name}: {_written(Counts.from_dict(chunk.counts))}; {done}")
        chunks.append(chunk)
    for position, (write, publication) in enumerate(zip(plan.work.writes, publications, strict=True)):
        progress(f"staging {write.rows.name}")
        publication.stage(journal.rows(chunks, position, len(write.rows.columns)))
    return Counts.total(Counts.from_dict(chunk.counts) for chunk in chunks)


def _compute(
    session: SparkSession,
    work: Work,
    journal: ChunkJournal,
    number: int,
    progress: Progress,
    accelerator: Accelerator[Any] | None,
) -> FinishedChunk:
    folder, seen = journal.folder(number), []
    with Execution(session, work, progress, accelerator=accelerator) as execution:
        for position, write in enumerate(work.writes):
            rows, counts = execution.rows(write)
            rows.write.parquet(f"{folder}/sink-{position}")
            seen.append(counts)
        chunk = FinishedChunk(folder, Counts.of(execution, seen).to_dict())
    journal.finish(number, chunk)
    return chunk


def _range_text(plan: BackfillPlan, number: int, bounds: Range) -> str:
    first = plan.bounds.from_ if number == 1 else bounds.after
    return f"({first} to {bounds.to})"


def _written(counts: Counts) -> str:
    windows = counts.windows_written()
    return f"{sum(counts.rows)} rows" + ("" if windows is None else f" in {windows} windows")
