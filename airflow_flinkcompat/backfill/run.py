"""Running a backfill from request to result."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.compiling.steps import Work
from airflow_flinkcompat.backfill.connectors.base import Publication
from airflow_flinkcompat.backfill.connectors.pins import pinned
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.executing.session import is_local, spark_session
from airflow_flinkcompat.backfill.executing.startup import Effort, effort
from airflow_flinkcompat.backfill.native import Natives
from airflow_flinkcompat.backfill.planning import Plan, plan
from airflow_flinkcompat.backfill.request import BackfillRequest
from airflow_flinkcompat.backfill.result import BackfillResult, SinkRows
from airflow_flinkcompat.backfill.values import driver_redactor
from airflow_flinkcompat.plan.translations import ERROR
from airflow_flinkcompat.secrets import Redactor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]
_RAISED = re.compile(re.escape(ERROR) + r"(.*?)(?: SQLSTATE|\n|$)")


def plan_backfill(request: BackfillRequest) -> Work:
    """What a backfill would do, without Spark. Raises :class:`BackfillError` for whatever it cannot do exactly."""
    return plan(request).work


def run_backfill(request: BackfillRequest, progress: Progress = lambda line: None) -> BackfillResult:
    """Recomputes the script's pipelines over history with Spark and publishes the windows wholly inside the range.

    A place given for a sink then holds exactly this run's rows; a declared place gets files named by the range, which a
    later run over the same range replaces. When anything fails before the first sink is published every place is as it
    was. Sinks are published one after another: where one fails it is as it was, as are those after it, while those
    before it hold this run's rows; a repeated run settles all. ``progress`` gets one line per stage. Raises
    :class:`BackfillError`, with secrets masked.
    """
    redactor = driver_redactor(request.placeholders, os.environ)

    def say(line: str) -> None:
        progress(redactor(line))

    for warning in redactor.warnings:
        say(f"warning: {warning}")
    try:
        planned = plan(request)
        native = Natives(request.native == "auto" and is_local(request.master or "local"), say)
        # Chunks may lie with other files than the whole; whether little is left to do is a matter of speed only.
        work = effort(source.place for source in planned.work.sources)
        if work is Effort.MUCH and native.covers(planned.work):
            work = Effort.LITTLE
        with spark_session(request.master, planned.work.needs, work) as session:
            if not is_local(session.sparkContext.master or ""):
                native = Natives(False)
            with pinned(session):
                return _run(session, planned, say, native, redactor)
    except BackfillError as error:
        raise type(error)(redactor(error.message), error.span) from None


def _run(
    session: SparkSession, planned: Plan, progress: Progress, native: Natives, redactor: Redactor
) -> BackfillResult:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from airflow_flinkcompat.backfill.computing import stage_at_once, stage_in_chunks
    from airflow_flinkcompat.backfill.executing.execution import Execution
    from airflow_flinkcompat.backfill.journal import Journal, filled_in, history_of, journal_place

    work, journal = planned.work, None
    publications: list[Publication] = []
    try:
        for source in work.sources:
            source.check(session)
        for guard in planned.guards:
            progress(f"looking whether {guard.table} has passed the boundary")
            guard.check(Execution(session))
        publications += [write.target.publication(session, write.rows, planned.bounds) for write in work.writes]
        for publication in publications:
            publication.check()
        if planned.chunks:
            journal = Journal(session, journal_place(planned.request, work))
            changed = journal.begin(history_of(session, work) | filled_in(planned.request, os.environ))
            if changed:
                progress(
                    f"the history has changed since an earlier run ({', '.join(changed)}): all chunks it had finished "
                    "are computed anew, as they are whenever a source is written to between two runs"
                )
            counts = stage_in_chunks(session, planned, publications, journal, progress, native)
        else:
            counts = stage_at_once(session, work, publications, progress, native)
        sinks = []
        found = zip(work.writes, publications, counts.rows, counts.windows, strict=True)
        for write, publication, rows, windows in found:
            place, files = write.target.place, publication.publish()
            sinks.append(SinkRows(write.rows.name, place, rows, files, windows))
            progress(f"published {rows} rows to {place}")
        if journal is not None:
            journal.discard()
        bounds = planned.bounds
        done = BackfillResult(counts.read, tuple(sinks), counts.dropped, bounds.from_, bounds.to, counts.ties)
        return replace(done, chunks=len(planned.chunks) or 1, rows_late=counts.late)
    except (PySparkException, Py4JError) as error:
        # Masked while it is whole: of a value with a line break the first line might be left.
        raise BackfillError(_readable(redactor(str(error)))) from None
    finally:
        for write, publication in zip(work.writes, publications, strict=False):
            try:
                publication.discard()
            except Exception:  # says nothing of the rows, and its text may hold what must not be shown
                progress(f"what was staged for {write.target.place} could not be removed; a later run does")


def _readable(text: str) -> str:
    """What a user can act on in Spark's long message."""
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
    calls = ("\tat ", "An error occurred while calling")  # Java's stack, and py4j's word for the method it called
    lines = [line.strip(" :") for line in text.splitlines() if line.strip() and not line.startswith(calls)]
    return f"Spark failed: {lines[0] if lines else 'no message'}"
