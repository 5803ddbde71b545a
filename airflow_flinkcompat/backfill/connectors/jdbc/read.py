"""PostgreSQL's tables as Spark's reader returns them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.jdbc.connection import connected, spark_options
from airflow_flinkcompat.backfill.connectors.jdbc.spec import CLOCKS, JdbcSource, identifier, is_read_as, qualified
from airflow_flinkcompat.backfill.formats.typed_columns import MICROSECONDS, finer_time_message
from airflow_flinkcompat.backfill.protocols import TimeSpan
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted, spark_type
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.backfill.spark_sql.windows import from_micros, micros_of, timestamp

if TYPE_CHECKING:
    from airflow_flinkcompat.plan.types import Column, DataType


class JdbcReader:
    """Reader of a table by Spark's jdbc format."""

    def __init__(self, session: SparkSession, source: JdbcSource) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        with connected(self._session, self._source.database) as connection:
            connection.columns(self._source.table)

    def rows(self) -> DataFrame:
        return _rows(self._session, self._source)


reader = JdbcReader


def _rows(session: SparkSession, source: JdbcSource) -> DataFrame:
    """The rows with one column ``f{i}`` per column of the table.

    A column of a type Flink would not read so raises an error when it is asked for, and no sooner.
    """
    with connected(session, source.database) as connection:
        stored = connection.columns(source.table)
    names = {i: identifier(column.name) for i, column in enumerate(source.columns)}
    problems = {i: _problem(source.table, column, stored) for i, column in enumerate(source.columns)}
    readable = {i: source.columns[i].type for i, problem in problems.items() if not problem}
    fields = ", ".join(f"{_sent(kind, names[i])} AS f{i}" for i, kind in readable.items())
    reader = session.read.format("jdbc").option("fetchsize", source.fetch_size)
    tests, parts, span = [], source.partitions, source.span
    if span is not None and not problems[span.field]:
        tests += within(names[span.field], span)
    if parts is not None:
        tests.append(f"{identifier(parts.column)} BETWEEN {parts.lower} AND {parts.upper}")
        field = next(i for i, column in enumerate(source.columns) if column.name == parts.column)
        if field in readable and parts.number > 1 and parts.lower < parts.upper:
            reader = reader.options(
                partitionColumn=f"f{field}",
                lowerBound=parts.lower,
                upperBound=parts.upper,
                numPartitions=parts.number,
            )
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    query = f"(SELECT {fields or '1 AS none'} FROM {qualified(source.database.table)}{where}) AS flinkcompat"
    types = ", ".join(f"f{i} {_received(kind)}" for i, kind in readable.items())
    rows = reader.options(**spark_options(source.database, query)).option("customSchema", types).load()
    values = {
        i: f"raise_error({quoted(ERROR + problem)})" if problem else _value(source.table, source.columns[i], f"f{i}")
        for i, problem in problems.items()
    }
    return rows.select(*(F.expr(value).alias(f"f{i}") for i, value in values.items()))


def within(name: str, span: TimeSpan) -> list[str]:
    """PostgreSQL's conditions for rows that may be in a span."""
    bounds = ((">=", span.first), ("<", span.last))
    return [
        f"({name} IS NULL OR {name} {operator} {timestamp(from_micros(micros), 'TIMESTAMP')})"
        for operator, micros in bounds
        if micros is not None
    ]


def _sent(kind: DataType, name: str) -> str:
    """Read dates and times as ISO 8601 texts: Java's own would be shifted by its time zone."""
    return f"{name}::text" if kind.name in CLOCKS else name


def _received(kind: DataType) -> str | None:
    if kind.name in CLOCKS:
        return "STRING"
    return "SMALLINT" if kind.name == "TINYINT" else spark_type(kind)


def _value(table: str, column: Column, field: str) -> str:
    """Value of a field; ``infinity``, years before Christ and fractions finer than declared are errors."""
    kind = column.type
    if kind.name not in CLOCKS:
        return field
    value, exact = f"try_cast({field} AS {spark_type(kind)})", ""
    if kind.name == "TIMESTAMP" and kind.parameters[0] < MICROSECONDS:
        odd = f"pmod({micros_of(value)}, {10 ** (MICROSECONDS - kind.parameters[0])}) <> 0"
        exact = f"WHEN {odd} THEN raise_error({quoted(finer_time_message(table, column))}) "
    what = quoted(f"{ERROR}table {table}: column {column.name} holds ")
    unknown = f"raise_error(concat({what}, {field}, {quoted(f', which is not a valid {kind}')}))"
    return f"(CASE WHEN {field} IS NULL THEN NULL WHEN {value} IS NULL THEN {unknown} {exact}ELSE {value} END)"


def _problem(table: str, column: Column, stored: Mapping[str, str]) -> str:
    """Reason why a column cannot be read, "" if it can."""
    declared = stored.get(identifier(column.name))
    if declared is None:
        return f"table {table}: PostgreSQL has no column {identifier(column.name)}"
    if not is_read_as(column.type, declared):
        kind = column.type
        return f"table {table}: column {column.name} is {declared} in PostgreSQL, which Flink does not read as {kind}"
    return ""
