"""Values of a sink's columns: INSERT's column list, implicit casts and NOT NULL, as in Flink."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import converted, quoted, spark_type
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.plan.expressions import Expression, InputRef, Literal
from airflow_flinkcompat.plan.nodes import Sink, Table
from airflow_flinkcompat.plan.types import CHARACTERS, INTEGERS, Column, DataType

_ENFORCER = "table.exec.sink.not-null-enforcer"
_NUMBERS = (*INTEGERS, "DECIMAL", "FLOAT", "DOUBLE")


@dataclass(frozen=True)
class SinkValues:
    """The value of every sink column in order: the plan's expressions, and Spark SQL in the sink's types."""

    sources: tuple[Expression, ...]
    sql: tuple[str, ...]


def sink_columns(sink: Sink, settings: Mapping[str, str]) -> tuple[tuple[Column, ...], SinkValues, str]:
    """The sink's stored columns, the value of each, and a condition that drops rows ("" for none).

    Raises :class:`BackfillError` if Flink refuses the INSERT too.
    """
    table = sink.table
    assert table is not None
    columns = table.stored
    named, static = named_columns(sink), _static(sink, columns)
    query = sink.input.schema
    if len(named) != len(query) or not set(named) <= {column.name for column in columns}:
        raise BackfillError(
            f"the query has {len(query)} columns for sink {table.name} ({', '.join(named)}); select one for each",
            sink.span,
        )
    sources: list[Expression] = []
    sql: list[str] = []
    dropped: list[str] = []
    for column in columns:
        if column.name in named:
            index = named.index(column.name)
            source: Expression = InputRef(index, query[index].type, sink.span)
        else:
            source = static.get(column.name) or Literal(None, column.type, sink.span)
        value = _value(source, column, table)
        required = not column.type.nullable or column.name in table.primary_key
        if required and source.type.nullable:
            if settings.get(_ENFORCER, "ERROR").upper() == "DROP":
                dropped.append(f"({value}) IS NOT NULL")
            else:
                value = _not_null(value, column, table)
        sources.append(source)
        sql.append(value)
    return columns, SinkValues(tuple(sources), tuple(sql)), " AND ".join(dropped)


def named_columns(sink: Sink) -> list[str]:
    """The sink's columns that the query gives, in the query's order."""
    static = {name.strip("`") for name, _ in sink.partition}
    stored = sink.table.physical if sink.table is not None else ()
    return [name.strip("`") for name in sink.columns] or [name for name in stored if name not in static]


def _static(sink: Sink, columns: tuple[Column, ...]) -> dict[str, Literal]:
    """Constants of a PARTITION clause; raises :class:`BackfillError` for one that is no text or number."""
    found: dict[str, Literal] = {}
    kinds = {column.name: column.type for column in columns}
    table = sink.table
    assert table is not None
    for name, text in ((name.strip("`"), text) for name, text in sink.partition):
        kind, inner = kinds.get(name), text[1:-1].replace("''", "'")
        if kind is None or name not in table.partitioned_by:
            raise BackfillError(f"sink {table.name}: PARTITION names {name}, which is no partition column", sink.span)
        if kind.name in CHARACTERS and text[:1] == "'":
            found[name] = Literal(inner, kind, sink.span)
        elif kind.name in INTEGERS and re.fullmatch(r"-?[0-9]+", text):
            found[name] = Literal(int(text), kind, sink.span)
        else:
            raise Untranslatable(
                f"sink {table.name}: PARTITION ({name} = {text}) cannot be written for a column of "
                f"type {kind}; SELECT the value instead",
                sink.span,
            )
    return found


def _value(source: Expression, column: Column, table: Table) -> str:
    if spark_type(column.type) is None:
        raise Untranslatable(
            f"sink {table.name}: a backfill cannot write column {column.name} of type {column.type}", table.span
        )
    if not source.type.is_known or not _implicit(source.type, column.type):
        raise Untranslatable(
            f"sink {table.name}: Flink does not cast {source.type} implicitly to column {column.name} "
            f"of type {column.type}; write a CAST",
            source.span,
        )
    return converted(source, column.type)


def _implicit(source: DataType, target: DataType) -> bool:
    """True if an INSERT converts implicitly: one type family, a wider number, DATE to TIMESTAMP, or NULL."""
    if source.name == "NULL" or {source.name, target.name} <= set(CHARACTERS):
        return True
    if source.name in _NUMBERS and target.name in _NUMBERS:
        return _NUMBERS.index(source.name) <= _NUMBERS.index(target.name)
    return source.name == target.name or (source.name, target.name) == ("DATE", "TIMESTAMP")


def _not_null(value: str, column: Column, table: Table) -> str:
    message = (
        f"{ERROR}column {column.name} of sink {table.name} is NOT NULL but the query returns NULL; "
        f"change the query, or SET '{_ENFORCER}' = 'DROP' as for the job"
    )
    return f"coalesce({value}, CAST(raise_error({quoted(message)}) AS {spark_type(column.type)}))"
