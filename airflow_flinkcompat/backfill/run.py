"""Running a backfill from request to result."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.compiler import compile_program
from airflow_flinkcompat.backfill.connectors.base import Publication, Range
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.places import Places
from airflow_flinkcompat.backfill.request import BackfillRequest, BackfillResult, SinkRows, SourceRows
from airflow_flinkcompat.backfill.session import spark_session
from airflow_flinkcompat.backfill.steps import Work, Write, reads_of
from airflow_flinkcompat.plan import build_program
from airflow_flinkcompat.plan.translations import ERROR
from airflow_flinkcompat.sql import ScriptError, mask_secrets, parse_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]
_RAISED = re.compile(re.escape(ERROR) + r"(.*?)(?: SQLSTATE|\n|$)")


def plan_backfill(request: BackfillRequest) -> Work:
    """What a backfill would do, without Spark. Raises :class:`BackfillError` for whatever it cannot do exactly."""
    try:
        script = parse_script(request.script_text, request.source)
        catalog = parse_script(request.catalog, "<catalog>") if request.catalog.strip() else None
    except ScriptError as error:
        raise BackfillError(str(error)) from None
    program = build_program(script, request.settings, request.functions, catalog)
    return compile_program(program, Places(request.tables, request.sinks), Range(request.from_, request.to))


def run_backfill(request: BackfillRequest, progress: Progress = lambda line: None) -> BackfillResult:
    """Recomputes the script's pipelines over history with Spark and publishes the windows wholly inside the range.

    A place given for a sink then holds exactly this run's rows; a declared place gets files named by the range, which a
    later run over the same range replaces. When anything fails every place is as it was. ``progress`` gets one line per
    stage. Raises :class:`BackfillError`, with secrets masked.
    """
    try:
        work = plan_backfill(request)
        with spark_session(request.master, work.needs) as session:
            return _run(session, work, request, progress)
    except BackfillError as error:
        raise type(error)(mask_secrets(error.message), error.span) from None


def _run(session: SparkSession, work: Work, request: BackfillRequest, progress: Progress) -> BackfillResult:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from airflow_flinkcompat.backfill.execution import Execution, counted

    execution = Execution(session)
    bounds = Range(request.from_, request.to)
    publications: list[tuple[Write, Publication]] = []
    try:
        for source in {read.source for write in work.writes for step in write.inputs for read in reads_of(step)}:
            source.check(session)
        publications += [(write, write.target.publication(session, write.rows, bounds)) for write in work.writes]
        for _, publication in publications:
            publication.check()
        counts = []
        for write, publication in publications:
            progress(f"computing {write.rows.name}")
            rows, seen = execution.rows(write)
            publication.stage(rows)
            counts.append(counted(seen, "rows"))
        sinks = []
        for (write, publication), count in zip(publications, counts, strict=True):
            sinks.append(SinkRows(write.rows.name, write.target.place, count, publication.publish()))
            progress(f"published {count} rows to {write.target.place}")
        sources = tuple(SourceRows(table, place, rows) for (table, place), rows in execution.rows_read().items())
        ties = execution.ties()
        if ties:
            progress(f"{ties} windows of a Top-N whose last rank was decided by a tie")
        return BackfillResult(sources, tuple(sinks), execution.rows_dropped(), request.from_, request.to, ties)
    except (PySparkException, Py4JError) as error:
        raise BackfillError(_readable(str(error))) from None
    finally:
        for _, publication in publications:
            publication.discard()


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
