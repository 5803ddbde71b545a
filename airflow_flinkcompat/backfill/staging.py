"""The rows of a plan, staged beside their sinks: all at once, or chunk by chunk, each kept until all are done."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.execution.acceleration import Accelerator
from airflow_flinkcompat.backfill.execution.counts import Counts
from airflow_flinkcompat.backfill.execution.frames import Execution
from airflow_flinkcompat.backfill.journal import ChunkJournal, FinishedChunk
from airflow_flinkcompat.backfill.planning import BackfillPlan
from airflow_flinkcompat.backfill.protocols import Publication, Range
from airflow_flinkcompat.backfill.steps import Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]


def stage_at_once(
    session: SparkSession,
    work: Work,
    publications: list[Publication],
    progress: Progress,
    accelerator: Accelerator[Any] | None,
) -> Counts:
    """Computes and stages every sink's rows."""
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
    """Computes the chunks that no earlier run has finished, then stages every sink's rows of all of them."""
    chunks: list[FinishedChunk] = []
    begun, computed = time.monotonic(), 0
    for number, (bounds, work) in enumerate(plan.chunks, start=1):
        name = f"chunk {number} of {len(plan.chunks)} {_shown(plan, number, bounds)}"
        chunk = journal.finished(number)
        if chunk is not None:
            progress(f"{name}: done by an earlier run ({_written(Counts.from_dict(chunk.counts))})")
        else:
            chunk = _compute(session, work, journal, number, progress, accelerator)
            computed += 1
            left = (time.monotonic() - begun) / computed * (len(plan.chunks) - number)
            done = f"{100 * number // len(plan.chunks)}% of the range done, about {_duration(left)} left"
            progress(f"{name}: {_written(Counts.from_dict(chunk.counts))}; {done}")
        chunks.append(chunk)
    for position, (write, publication) in enumerate(zip(plan.work.writes, publications, strict=True)):
        progress(f"staging {write.rows.name}")
        publication.stage(journal.rows(chunks, position, len(write.rows.columns)))
    return Counts.together(Counts.from_dict(chunk.counts) for chunk in chunks)


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


def _shown(plan: BackfillPlan, number: int, bounds: Range) -> str:
    first = plan.bounds.from_ if number == 1 else bounds.after
    return f"({first} to {bounds.to})"


def _written(counts: Counts) -> str:
    windows = counts.windows_written()
    return f"{sum(counts.rows)} rows" + ("" if windows is None else f" in {windows} windows")


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
