"""Run of a backfill, from request to result."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.connectors.registry import publication, reader
from airflow_flinkcompat.backfill.duckdb.eligibility import DuckDbAccelerator
from airflow_flinkcompat.backfill.planning import BackfillPlan, plan
from airflow_flinkcompat.backfill.protocols import Publication
from airflow_flinkcompat.backfill.request import BackfillRequest
from airflow_flinkcompat.backfill.result import BackfillError, BackfillResult, SinkRows, SourceRows
from airflow_flinkcompat.backfill.spark import Effort, effort, is_local, pinned_snapshots, spark_session
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.secrets.placeholders import environment_lookup, redactor_of
from airflow_flinkcompat.secrets.redact import Redactor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]
_RAISED = re.compile(re.escape(ERROR) + r"(.*?)(?: SQLSTATE|\n|$)")


def run_backfill(asked: BackfillRequest | BackfillPlan, progress: Progress = lambda line: None) -> BackfillResult:
    """Recompute a script's pipelines over history with Spark, and publish the windows inside the range.

    A sink at a requested location contains exactly this run's rows afterwards. A sink at its declared location gets
    files named by the range, which a later run with the same range replaces. If the run fails before the first sink is
    published, no sink is changed. Sinks are published one after another. If publishing one sink fails, this sink and
    all later sinks are unchanged, but all earlier sinks contain this run's rows. A repeated run completes all sinks.

    Args:
        asked: The request, or its plan if it is already planned.
        progress: Receives one line per stage of the run.

    Returns:
        Numbers of rows read, dropped and written.

    Raises:
        BackfillError: Not all rows were published. Secrets in the message are masked.
    """
    request = asked if isinstance(asked, BackfillRequest) else asked.request
    redactor = redactor_of(request.placeholders, environment_lookup(os.environ))

    def say(line: str) -> None:
        progress(redactor(line))

    for warning in redactor.warnings:
        say(f"warning: {warning}")
    try:
        planned = plan(asked) if isinstance(asked, BackfillRequest) else asked
        accelerator = _accelerator(request, say)
        # Chunks may read other files than the whole range. The estimate of remaining work only affects speed.
        work = effort(source.place for source in planned.work.sources)
        if work is Effort.MUCH and accelerator is not None and accelerator.covers(planned.work):
            work = Effort.LITTLE
        with spark_session(request.master, planned.work.needs, work, say) as session:
            if not is_local(session.sparkContext.master or ""):
                accelerator = None
            with pinned_snapshots(session):
                return _run(session, planned, say, accelerator, redactor)
    except BackfillError as error:
        raise type(error)(redactor(error.message), error.span) from None


def _accelerator(request: BackfillRequest, progress: Progress) -> DuckDbAccelerator | None:
    """DuckDB accelerator, if the request allows it and Spark runs on this machine; otherwise None."""
    return DuckDbAccelerator(progress) if request.native == "auto" and is_local(request.master or "local") else None


def _run(
    session: SparkSession,
    planned: BackfillPlan,
    progress: Progress,
    accelerator: DuckDbAccelerator | None,
    redactor: Redactor,
) -> BackfillResult:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from airflow_flinkcompat.backfill.execution.frames import Execution
    from airflow_flinkcompat.backfill.journal import ChunkJournal, filled_in, history_of, journal_place
    from airflow_flinkcompat.backfill.staging import stage_at_once, stage_in_chunks

    work, journal = planned.work, None
    publications: list[Publication] = []
    try:
        for source in work.sources:
            reader(session, source).check()
        for guard in planned.guards:
            progress(f"checking if {guard.table} has passed the boundary")
            guard.check(Execution(session).frame(guard.rows))
        publications += [publication(session, write.target, write.rows, planned.bounds) for write in work.writes]
        for each in publications:
            each.check()
        if planned.chunks:
            journal = ChunkJournal(session, journal_place(planned.request, work))
            changed = journal.begin(history_of(session, work) | filled_in(planned.request, os.environ))
            if changed:
                progress(
                    f"the history has changed since an earlier run ({', '.join(changed)}), so all chunks are "
                    "recomputed. Chunks are recomputed whenever a source is written to between two runs"
                )
            counts = stage_in_chunks(session, planned, publications, journal, progress, accelerator)
        else:
            counts = stage_at_once(session, work, publications, progress, accelerator)
        _require_rows(planned, counts.read)
        sinks = []
        found = zip(work.writes, publications, counts.rows, counts.windows, strict=True)
        for write, published, rows, windows in found:
            place, files = write.target.place, published.publish()
            sinks.append(SinkRows(write.rows.name, place, rows, files, windows))
            progress(f"published {rows} rows to {place}")
        if journal is not None:
            journal.discard()
        bounds = planned.bounds
        done = BackfillResult(counts.read, tuple(sinks), counts.dropped, bounds.from_, bounds.to, counts.ties)
        return replace(done, chunks=len(planned.chunks) or 1, rows_late=counts.late)
    except KeyboardInterrupt:
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # Spark's JVM also ends, and no longer answers.
        raise
    except (PySparkException, Py4JError) as error:
        # The whole text is masked, because its first line may contain the beginning of a secret with line breaks.
        raise BackfillError(_readable(redactor(str(error)))) from None
    finally:
        for write, published in zip(work.writes, publications, strict=False):
            try:
                published.discard()
            except Exception:  # The error does not affect the rows, and its text may contain secrets.
                progress(
                    f"the staged rows for {write.target.place} could not be removed. A later run will remove these rows"
                )


def _require_rows(planned: BackfillPlan, read: Sequence[SourceRows]) -> None:
    """Raise BackfillError if no row was read and the request does not allow this."""
    if planned.request.allow_empty or any(source.rows for source in read):
        return
    sources = ", ".join(f"{source.table} ({source.place})" for source in read)
    begin, end = ("open" if bound is None else bound.isoformat() for bound in (planned.bounds.from_, planned.bounds.to))
    raise BackfillError(
        f"the backfill read no rows from {sources}, so the history is still missing. The range is from {begin} to "
        f"{end}. No sink was changed. Correct tables, from_ and to of the backfill and run it again, or set "
        "allow_empty = true if there is no history"
    )


def _readable(text: str) -> str:
    """Extract the useful part of Spark's long error message."""
    raised = _RAISED.search(text)
    if raised:
        return raised.group(1).strip()
    malformed = re.search(
        r"Malformed records are detected in record parsing: (.*?)\.?\s*(?:Parse Mode|\n|$)", text, re.S
    )
    if malformed:
        file = re.search(r"(?:reading file|file) (\S+?)\.?(?:\s|$)", text)
        where = f" in {file.group(1)}" if file else ""
        return f"a line{where} does not fit the table's format and columns: {malformed.group(1).strip()}"
    # These lines are Java's stack trace and py4j's report of the method that it called.
    calls = ("\tat ", "An error occurred while calling")
    lines = [line.strip(" :") for line in text.splitlines() if line.strip() and not line.startswith(calls)]
    return f"Spark failed: {lines[0] if lines else 'no message'}"
