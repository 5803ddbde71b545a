"""What another line of Flink has to read of a job's tables: connectors, and how results reach a sink's primary key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.engines.flink.ranking import APPENDING_CONNECTORS, APPENDING_FORMATS
from airflow_flinkcompat.compat.engines.flink.sinks import table
from airflow_flinkcompat.compat.engines.flink.validation.conflicts import (
    ON_CONFLICT,
    Materializer,
    faults,
    materializer,
)
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    OtherKind,
    OtherOperator,
    Output,
    Source,
    StatelessSegment,
)
from airflow_flinkcompat.plan.program import Pipeline, Program

MATERIALIZED = "an upsert materializer in front of a sink"
"""Updates under another key: the sink's rows are kept once more in front of it."""
REFUSED = "an INSERT that the new line refuses for its ON CONFLICT, or for the lack of one"
OTHER_MATERIALIZER = "another materializer in front of a sink"
JUDGED_APART = frozenset({REFUSED, OTHER_MATERIALIZER})
"""What is said of an upgrade besides the traits of its parts."""
MAYBE_MATERIALIZED = "a sink with a PRIMARY KEY, in front of which rows may be kept,"


def appending(segment: StatelessSegment, program: Program) -> bool:
    """Whether rows that leave a segment are surely never taken back.

    Args:
        segment: A stateless stretch.
        program: The script, which declares the tables.

    Returns:
        False too where a table's connector is not known to append only.
    """
    match segment.origin:
        case Source(table=name):
            found = table(program, name)
            return found is not None and _appends(found)
        case AggregateOperator(windowed=True):
            return True
        case JoinOperator(form=JoinForm.LOOKUP | JoinForm.TEMPORAL) as join:
            return appending(join.segments[0], program)
        case OtherOperator(kind=OtherKind.UNION_ALL | OtherKind.TEMPORAL_SORT | OtherKind.MATCH_RECOGNIZE) as other:
            return all(appending(each, program) for each in other.segments)
        case Operator() as operator:
            return operator.appends and all(appending(each, program) for each in operator.segments)
    return True


def _appends(found: Table) -> bool:
    formats = {found.option(key) for key in ("format", "value.format")} - {None}
    return found.option("connector") in APPENDING_CONNECTORS and formats <= APPENDING_FORMATS


def source_traits(segment: StatelessSegment, program: Program, last: bool) -> Iterator[str]:
    """What is stored of a table that is read, and what its rows make Flink plan.

    Args:
        segment: A stretch that begins at a table.
        program: The script.
        last: Whether nothing that keeps state stands between the table and a sink.

    Yields:
        Traits.
    """
    assert isinstance(segment.origin, Source)
    for name, _ in segment.origin.hints:
        yield f"the table hint {name}"
    found = table(program, segment.origin.table)
    if found is None or not found.declared:
        yield f"the table {segment.origin.table}, which is not declared,"
        return
    connector = found.option("connector") or "managed"
    words = [f"{connector} as a source"]
    if connector == "filesystem":
        words += [str(found.option("format"))]
        words += [] if found.option("source.monitor-interval") else ["read once"]
    elif connector == "upsert-kafka":
        # From 2.1 on changes are normalised only where what stands above asks for it.
        words += ["below a condition"] if segment.filters else []
        words += ["straight into a sink"] if last else []
    elif connector in APPENDING_CONNECTORS and not _appends(found):
        words += [f"changes as {found.option('format') or found.option('value.format')}"]
        words += ["with a PRIMARY KEY"] if found.primary_key else []
    yield ", ".join(words)


def sink_traits(
    output: Output, pipeline: Pipeline, given: Mapping[str, str], program: Program, line: str | None
) -> Iterator[str]:
    """What is stored of the table that is written, and what its key makes Flink plan in front of it.

    Args:
        output: A query.
        pipeline: Its INSERT.
        given: The settings in force, by their names of today.
        program: The script.
        line: The line of Flink that plans the query anew; None of the side that is not.

    Yields:
        Traits.
    """
    if not output.sink:
        yield "a query without INSERT"
        return
    found = table(program, output.sink)
    if found is None or not found.declared:
        yield f"the table {output.sink}, which is not declared,"
        return
    yield ", ".join(_sink_words(found))
    if output.overwrite:
        yield "INSERT OVERWRITE"
    if any(not column.type.nullable and column.name not in found.primary_key for column in found.columns):
        yield "a sink with NOT NULL columns"
    if settings.effective(given, "table.exec.sink.type-length-enforcer", "flink") != "IGNORE":
        yield "lengths that a sink enforces"
    for name, _ in output.hints:
        if name != ON_CONFLICT:
            yield f"the hint {name} of a sink"
    if found.primary_key and line is not None:
        yield from _key_traits(output, pipeline, program, found, line)


def _sink_words(found: Table) -> Iterator[str]:
    connector = found.option("connector") or "managed"
    yield f"{connector} as a sink"
    if connector in ("kafka", "upsert-kafka"):
        yield (found.option("sink.delivery-guarantee") or "at-least-once").lower()
    if connector == "upsert-kafka" and found.option("sink.buffer-flush.max-rows", "0") != "0":
        yield "buffered"
    if connector == "filesystem":
        yield str(found.option("format"))
        if found.partitioned_by:
            yield "partitioned"
        if (found.option("auto-compaction") or "false").lower() == "true":
            yield "compacted"
    if found.option("sink.parallelism"):
        yield "with a parallelism of its own"


def _key_traits(output: Output, pipeline: Pipeline, program: Program, found: Table, line: str) -> Iterator[str]:
    """Return whether rows are kept in front of the sink, unless the line refuses the INSERT or may do so."""
    refused = list(faults(output, pipeline, program, found, line))
    if refused:
        yield from (REFUSED for each in refused if each.certain)
        return
    planned = materializer(output, pipeline, program, found, line)
    if planned is Materializer.UPSERT:
        yield MATERIALIZED
    elif planned is Materializer.NOT_KNOWN:
        yield MAYBE_MATERIALIZED
    else:
        yield "a sink's PRIMARY KEY"
