"""What another line of Flink has to read of a job's tables: connectors, and how results reach a sink's primary key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.engines.flink.ranking import APPENDING_CONNECTORS, APPENDING_FORMATS
from airflow_flinkcompat.compat.engines.flink.sinks import TAKES_UPSERTS, held_in_key, table
from airflow_flinkcompat.plan.expressions import AggregateCall
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
from airflow_flinkcompat.plan.origins import OperatorColumn
from airflow_flinkcompat.plan.program import Program

ON_CONFLICT = "table.exec.sink.require-on-conflict"
OTHER_KEY = "a sink's PRIMARY KEY that is not the key by which results change"
"""Updates under another key: the sink's rows are kept once more in front of it."""
MAYBE_OTHER_KEY = "a sink's PRIMARY KEY that may not be the key by which results change"
APPENDED = "rows that are only appended, into an upsert sink with a PRIMARY KEY"
"""No key of the query is known for them."""


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


def sink_traits(output: Output, given: Mapping[str, str], program: Program, planned: bool) -> Iterator[str]:
    """What is stored of the table that is written, and what its key makes Flink plan in front of it.

    Args:
        output: A query.
        given: The settings in force, by their names of today.
        program: The script.
        planned: Whether it is the new line that plans the query: older ones ask for no ON CONFLICT.

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
    conflict = [text for name, text in output.hints if "conflict" in name.lower()]
    for name, _ in output.hints:
        if "conflict" not in name.lower():
            yield f"the hint {name} of a sink"
    if found.primary_key and planned:
        yield _key_trait(output, found, given, conflict, program)


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


def _key_trait(output: Output, found: Table, given: Mapping[str, str], conflict: list[str], program: Program) -> str:
    mode = settings.effective(given, "table.exec.sink.upsert-materialize", "flink")
    required = settings.effective(given, ON_CONFLICT, "flink") == "true"
    said = f", ON CONFLICT {conflict[0]}" if conflict else "" if required else f", {ON_CONFLICT} = false"
    top, connector = output.segment.origin, found.option("connector")
    if mode != "AUTO":
        return f"a sink's PRIMARY KEY with upsert-materialize = {mode}{said}"
    if appending(output.segment, program):
        words = (
            APPENDED
            if connector in TAKES_UPSERTS
            else f"rows that are only appended, into a {connector} sink with a PRIMARY KEY"
        )
        return f"{words}{said}"
    if not isinstance(top, AggregateOperator) or top.windowed or output.insert_columns or top.grouping_sets is not None:
        return f"{MAYBE_OTHER_KEY}{said}"
    held, keys = held_in_key(output, found), set(top.keys)
    if keys and held == keys:
        return "a sink's PRIMARY KEY that is the key by which results change"
    # Of a computed key, or of a part of the key, it is not known what Flink's planner makes.
    aggregated = all(isinstance(e, OperatorColumn) and isinstance(e.output, AggregateCall) for e in held)
    return f"{OTHER_KEY if aggregated else MAYBE_OTHER_KEY}{said}"
