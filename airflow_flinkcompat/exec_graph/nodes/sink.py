"""Sinks: the operators before the writer, and the state of the materializer."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known, SinkState
from airflow_flinkcompat.exec_graph.exec_node import ROWTIME, ExecNode, time_attribute
from airflow_flinkcompat.exec_graph.kinds import ExecKind, SinkOperator
from airflow_flinkcompat.exec_graph.layout import (
    VALUE,
    CannotLower,
    NamedState,
    StateField,
    StateLayout,
    Stored,
    Unknown,
    stored_type,
)
from airflow_flinkcompat.exec_graph.lowering import (
    NodeFamily,
    PlannedJob,
    PossibleChains,
    connector_words,
    mentions,
    of_one_input,
    shown_output,
)
from airflow_flinkcompat.exec_graph.model import LAYOUT, MEANING, UNSURE, Facets
from airflow_flinkcompat.exec_graph.streams import facets_aside, own
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, frozen, resolved
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.nodes import Table, WindowField
from airflow_flinkcompat.plan.operators import AggregateOperator, JoinForm, JoinOperator, Output, Source
from airflow_flinkcompat.plan.origins import OperatorColumn, PassedOutput, SourceColumn, window_field
from airflow_flinkcompat.plan.types import MAX_LENGTH


def sink_identifier(node: ExecNode) -> str:
    """The identifier of a sink's table in the plan."""
    return str(node.config["dynamicTableSink"]["table"]["identifier"])


def keeps_rows(sink: ExecNode) -> bool:
    """True if a materializer precedes the sink."""
    return bool(sink.config.get("state")) or bool(sink.config.get("requireUpsertMaterialize"))


def waits_for_watermarks(sink: ExecNode) -> bool:
    """True if the materializer keeps rows until the watermark (ON CONFLICT DO ERROR, DO NOTHING)."""
    return sink.config.get("conflictStrategy", {}).get("behavior") in ("ERROR", "NOTHING")


def enforcers(sink: ExecNode, input_types: Sequence[str]) -> tuple[Hashable, ...]:
    """The declarations that determine the operators between the query and the sink's writer."""
    schema = sink_schema(sink)
    return _has_not_null(schema), frozen(schema.get("primaryKey")), has_rowtime(input_types)


def enforces(sink: ExecNode) -> bool:
    """True if a constraint enforcer checks NOT NULL columns or declared lengths."""
    schema = sink_schema(sink)
    lengths = sink.config.get("configuration", {}).get("table.exec.sink.type-length-enforcer", "IGNORE") != "IGNORE"
    return _has_not_null(schema) or (lengths and any(_LIMITED.search(str(kind)) for kind in _physical(schema)))


def has_rowtime(types: Sequence[str]) -> bool:
    """True if a row contains an event-time attribute, which an inserter copies to the record."""
    return any(time_attribute(kind) == ROWTIME for kind in types)


_LIMITED = re.compile(r"\b(?:VAR)?(?:CHAR|BINARY)\((?!2147483647\))")


def sink_schema(sink: ExecNode) -> Mapping[str, Any]:
    found: Mapping[str, Any] = sink.config["dynamicTableSink"]["table"].get("resolvedTable", {}).get("schema", {})
    return found


def sink_columns(sink: ExecNode) -> tuple[str, ...]:
    """The names of a sink's columns in its table; the node's names if the numbers of columns differ."""
    declared = [each for each in sink_schema(sink).get("columns", ()) if each.get("kind") != "COMPUTED"]
    names = tuple(each["name"] for each in declared if not each.get("isVirtual"))
    return names if len(names) == len(sink.names) else sink.names


def _physical(schema: Mapping[str, Any]) -> list[Any]:
    return [
        column.get("dataType") for column in schema.get("columns", ()) if column.get("kind", "PHYSICAL") == "PHYSICAL"
    ]


def _has_not_null(schema: Mapping[str, Any]) -> bool:
    return any(not _nullable(kind) for kind in _physical(schema))


def _nullable(kind: Any) -> bool:
    return bool(kind.get("nullable", True)) if isinstance(kind, Mapping) else not str(kind).endswith(" NOT NULL")


def sink_facets(node: ExecNode, rows: ColumnMeanings, symbols: Symbols, keeps: bool) -> Facets:
    """The facets of a sink. A sink without state only depends on the operators upstream of its writer."""
    facets: Facets = {(UNSURE, "enforcers"): enforcers(node, rows.types), **facets_aside(node)}
    if keeps:
        facets[UNSURE, "declaration"] = frozen(sink_schema(node))
        facets |= {
            (UNSURE, key): resolved({key: part}, rows, symbols) for key, part in own(node, "dynamicTableSink").items()
        }
    if keeps_rows(node):
        facets |= {(LAYOUT, "stored types"): rows.types, (MEANING, "stored columns"): rows.symbols}
        facets[MEANING, "rows below"] = rows.rows
    return facets


def materializer_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The layout of a materializer: rows as declared by the sink, by primary key."""
    declared = [
        column for column in sink_schema(node).get("columns", ()) if column.get("kind", "PHYSICAL") == "PHYSICAL"
    ]
    primary: Any = sink_schema(node).get("primaryKey") or {}
    names = [column["name"] for column in declared]
    if len(declared) != len(below.types) or not primary.get("columns"):
        return Unknown("the stored columns of the sink are unknown")
    fields = tuple(
        StateField(stored_type(column["dataType"]), below.at(place), column["name"])
        for place, column in enumerate(declared)
    )
    key = tuple(fields[names.index(name)] for name in primary["columns"])
    # Without an upsert key of the input, a row is found by all its columns.
    by_columns = not node.config.get("inputUpsertKey")
    return StateLayout(key, (NamedState("values", VALUE, Stored("List<row>", fields), retracting=by_columns),))


_SIZED_TYPES = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")


def cast_by_calc(job: PlannedJob) -> Known:
    """YES if a Calc casts values to the sink's types, or adds missing columns."""
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
    """True if the sink's key contains the source's key, so that no materializer is planned.

    Flink checks that the sink's primary key includes a key of the rows. The Calc between source and sink must pass on
    the source's key unchanged.
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
    """The possible chains of the sink's operators, and the state of the sink."""
    inserter = (SinkOperator.INSERTER,) if _has_rowtime(job) else ()
    if not job.output.sink:  # measured for a query without INSERT
        return ((*inserter, SinkOperator.WRITER),), SinkState.NONE
    sink = job.table(job.output.sink)
    facts = registry.sink(sink.option("connector"))
    if facts.state is SinkState.NOT_KNOWN:
        raise CannotLower(f"the state of a sink with {connector_words(sink)} is unknown", place=sink.name)
    if facts.operators not in (1, 2):
        raise CannotLower(f"the planned operators of a sink with {connector_words(sink)} are unknown", place=sink.name)
    if sink.option("sink.parallelism") is not None or mentions(job.output.hints, "parallelism"):
        raise CannotLower("a sink with a separate parallelism may not be chained", place=sink.name)
    if _rolls_otherwise(sink) or sink.partitioned_by:
        raise CannotLower(
            "the planned operators of a sink that compacts, partitions or commits are unknown", place=sink.name
        )
    writer = (SinkOperator.WRITER, SinkOperator.COMMITTER)[: facts.operators]
    front = (SinkOperator.ENFORCER,) if _enforces(job, sink) else ()
    behind = (*front, *inserter, *writer)
    if not _materialized(job, sink):
        return (behind,), facts.state
    raise CannotLower("a materializer before the sink may store results by its primary key", place=sink.name)


def _rolls_otherwise(sink: Table) -> bool:
    return any(key.startswith(("auto-compaction", "sink.partition-commit")) for key, _ in sink.options)


def _enforces(job: PlannedJob, sink: Table) -> bool:
    lengths = job.settings.get("table.exec.sink.type-length-enforcer", "IGNORE").upper() != "IGNORE"
    for column in sink.stored:
        if not column.type.nullable or column.name in sink.primary_key:
            return True
        if lengths and column.type.name in _SIZED_TYPES and column.type.parameters != (MAX_LENGTH,):
            return True
    return False


def _has_rowtime(job: PlannedJob) -> bool:
    """True if an event-time column reaches the sink unchanged, possibly through a lookup."""
    source = job.output.segment.origin
    if isinstance(source, JoinOperator) and source.form is JoinForm.LOOKUP:
        source = source.segments[0].origin
    times = {
        table.watermark.column
        for table in job.program.tables
        if table.watermark is not None and isinstance(source, Source) and table.name == source.table
    }
    bare = {_source_column_of(column) for column in job.output.columns}
    return bool(times & bare) or any(window_field(column) is WindowField.TIME for column in job.output.columns)


def _source_column_of(column: Expression) -> str:
    """The source column that reaches the sink unchanged; "" for other columns."""
    if isinstance(column, OperatorColumn) and isinstance(column.output, PassedOutput) and column.output.input == 0:
        column = column.output.column
    return column.column if isinstance(column, SourceColumn) else ""


def _materialized(job: PlannedJob, sink: Table) -> bool:
    """True if updates may reach a sink by a key that differs from the sink's key."""
    mode = job.settings.get("table.exec.sink.upsert-materialize", "AUTO").upper()
    if not sink.primary_key or mode == "NONE":
        return False
    top = job.output.segment.origin
    if mode != "AUTO" or not isinstance(top, AggregateOperator):
        return mode != "AUTO"
    if top.windowed:  # with DO DEDUPLICATE, the latest row overwrites the previous one
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


FAMILIES = (NodeFamily((ExecKind.SINK,), sink_facets, of_one_input(materializer_layout)),)
