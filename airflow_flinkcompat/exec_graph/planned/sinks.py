"""The operators in front of a sink and of the sink itself."""

from __future__ import annotations

from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known, SinkState
from airflow_flinkcompat.exec_graph.planned.job import (
    COMMITTER,
    ENFORCER,
    INSERTER,
    WRITER,
    OperatorsUnknown,
    PlannedJob,
    PossibleChains,
    connector_words,
    mentions,
    shown_output,
)
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.nodes import Table, WindowField
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Output,
    Source,
)
from airflow_flinkcompat.plan.origins import OperatorColumn, PassedOutput, SourceColumn, window_field
from airflow_flinkcompat.plan.types import MAX_LENGTH

_LIMITED = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")


def cast_by_calc(job: PlannedJob) -> Known:
    """Whether a Calc casts values to the sink's types, or fills its columns up."""
    if not job.output.sink:
        return Known.NO
    sink = job.table(job.output.sink)
    columns = sink.written
    if job.output.partition or job.output.insert_columns:
        return Known.YES
    if len(columns) != len(job.output.types):
        return Known.NOT_KNOWN
    pairs = [(column.type, given) for column, given in zip(columns, job.output.types, strict=True)]
    if any(one.is_known and other.is_known and one.name != other.name for one, other in pairs):
        return Known.YES
    alike = all(one.with_nullability(True) == other.with_nullability(True) for one, other in pairs)
    return Known.NO if alike else Known.NOT_KNOWN


def written_by_its_key(output: Output, read: Table, written: Table) -> bool:
    """Whether rows replace each other in a sink as they do where they are read, so that none is kept in front of it.

    Flink asks whether the sink's primary key holds a key of the rows, which a Calc hands on only as it is.

    Args:
        output: A query over one table.
        read: That table.
        written: Its sink.

    Returns:
        False where the table has no primary key.
    """
    if not isinstance(output.segment.origin, Source) or output.insert_columns or output.partition:
        return False
    types = {column.name: column.type.with_nullability(True) for column in read.columns}
    held = {
        put_out.column
        for column, put_out in zip(written.written, output.columns, strict=False)
        if column.name in written.primary_key
        and isinstance(put_out, SourceColumn)
        and types.get(put_out.column) == column.type.with_nullability(True)
    }
    return bool(read.primary_key) and held >= {*read.primary_key}


def derive_sink(job: PlannedJob) -> tuple[PossibleChains, SinkState]:
    """The operators of the sink in each way that they may be planned, and what it keeps."""
    inserter = (INSERTER,) if _has_rowtime(job) else ()
    if not job.output.sink:  # as a bare query was measured
        return ((*inserter, WRITER),), SinkState.NONE
    sink = job.table(job.output.sink)
    facts = registry.sink(sink.option("connector"))
    if facts.state is SinkState.NOT_KNOWN:
        raise OperatorsUnknown(f"what a sink of {connector_words(sink)} keeps is not known")
    if facts.operators not in (1, 2):
        raise OperatorsUnknown(f"which operators are planned for a sink of {connector_words(sink)} is not known")
    if sink.option("sink.parallelism") is not None or mentions(job.output.hints, "parallelism"):
        raise OperatorsUnknown("a sink with a parallelism of its own may be chained to nothing")
    if _rolls_otherwise(sink) or sink.partitioned_by:
        raise OperatorsUnknown("what is planned for a sink that compacts, partitions or commits is not known")
    writer = (WRITER, COMMITTER)[: facts.operators]
    front = (ENFORCER,) if _enforces(job, sink) else ()
    behind = (*front, *inserter, *writer)
    if not _materialized(job, sink):
        return (behind,), facts.state
    raise OperatorsUnknown("results may be kept once more in front of the sink, by its primary key")


def _rolls_otherwise(sink: Table) -> bool:
    return any(key.startswith(("auto-compaction", "sink.partition-commit")) for key, _ in sink.options)


def _enforces(job: PlannedJob, sink: Table) -> bool:
    lengths = job.settings.get("table.exec.sink.type-length-enforcer", "IGNORE").upper() != "IGNORE"
    for column in sink.stored:
        if not column.type.nullable or column.name in sink.primary_key:
            return True
        if lengths and column.type.name in _LIMITED and column.type.parameters != (MAX_LENGTH,):
            return True
    return False


def _has_rowtime(job: PlannedJob) -> bool:
    """Whether a column of event time comes to the sink as such; a lookup hands it on."""
    source = job.output.segment.origin
    if isinstance(source, JoinOperator) and source.form is JoinForm.LOOKUP:
        source = source.segments[0].origin
    times = {
        table.watermark.column
        for table in job.program.tables
        if table.watermark is not None and isinstance(source, Source) and table.name == source.table
    }
    bare = {_as_it_came(column) for column in job.output.columns}
    return bool(times & bare) or any(window_field(column) is WindowField.TIME for column in job.output.columns)


def _as_it_came(column: Expression) -> str:
    """The column of the table that is read which is put out as it is; "" of any other."""
    if isinstance(column, OperatorColumn) and isinstance(column.output, PassedOutput) and column.output.input == 0:
        column = column.output.column
    return column.column if isinstance(column, SourceColumn) else ""


def _materialized(job: PlannedJob, sink: Table) -> bool:
    """Whether updates may reach a sink by another key than its own."""
    mode = job.settings.get("table.exec.sink.upsert-materialize", "AUTO").upper()
    if not sink.primary_key or mode == "NONE":
        return False
    top = job.output.segment.origin
    if mode != "AUTO" or not isinstance(top, AggregateOperator):
        return mode != "AUTO"
    if top.windowed:  # DO DEDUPLICATE lets the latest row overwrite the one before
        asked = job.settings.get("table.exec.sink.require-on-conflict", "true").lower() == "true"
        clauses = [text.upper() for name, text in job.output.hints if name == "ON CONFLICT"]
        return clauses != ["DEDUPLICATE"] and (bool(clauses) or not asked)
    names = [column.name for column in sink.stored]
    held = {
        shown
        for name, column in zip(names, map(shown_output, job.output.columns), strict=False)
        if name in sink.primary_key
        for shown in [column]
    }
    return bool(job.output.insert_columns) or held != set(top.keys)
