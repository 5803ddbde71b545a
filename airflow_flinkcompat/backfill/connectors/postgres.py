"""PostgreSQL at run time: Spark's reader, and a connection of the driver's own. Secrets are filled in here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.jdbc import DRIVER, Database, identifier, is_read_as, qualified
from airflow_flinkcompat.backfill.connectors.lakes import MICROSECONDS, finer
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted, spark_type
from airflow_flinkcompat.backfill.spark_sql.windows import from_micros, micros_of, timestamp
from airflow_flinkcompat.backfill.values import fill_in
from airflow_flinkcompat.plan.translations import ERROR

if TYPE_CHECKING:
    from airflow_flinkcompat.backfill.connectors.jdbc import Jdbc
    from airflow_flinkcompat.backfill.connectors.lakes import Span
    from airflow_flinkcompat.plan.types import Column, DataType

CLOCKS = ("DATE", "TIMESTAMP")
_DRIVER_OPTIONS = {"tcpKeepAlive": "true", "reWriteBatchedInserts": "true", "ApplicationName": "flinkcompat backfill"}


class Connection:
    """One connection of the driver, by the JDBC driver Spark itself uses."""

    def __init__(self, session: SparkSession, database: Database) -> None:
        self.database = database
        jvm: Any = session._jvm
        options = spark_options(database, qualified(database.table))
        url, table = options["url"], options["dbtable"]
        given = jvm.PythonUtils.toScalaMap(options)
        jdbc = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(url, table, given)
        self._java = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(url).createConnectionFactory(jdbc).apply(-1)

    def run(self, sql: str) -> list[tuple[str | None, ...]]:
        """The rows of a statement as texts; none where it gives none."""
        statement = self._java.createStatement()
        try:
            if not statement.execute(sql):
                return []
            result = statement.getResultSet()
            width = range(1, result.getMetaData().getColumnCount() + 1)
            rows = []
            while result.next():
                rows.append(tuple(result.getString(i) for i in width))
            return rows
        finally:
            statement.close()

    def columns(self, name: str) -> dict[str, str]:
        """PostgreSQL's type of every column by its quoted name. Raises :class:`BackfillError` without such a table."""
        table = qualified(self.database.table)
        rows = self.run(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            f"WHERE attrelid = to_regclass({literal(table)}) AND attnum > 0 AND NOT attisdropped"
        )
        if not rows:
            raise BackfillError(f"table {name}: PostgreSQL has no table {table}, or this user may not see it")
        return {'"{}"'.format((column or "").replace('"', '""')): kind or "" for column, kind in rows}

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements of the block, or none of them."""
        self._java.setAutoCommit(False)
        try:
            yield
            self._java.commit()
        except BaseException:
            self._java.rollback()
            raise
        finally:
            self._java.setAutoCommit(True)

    def close(self) -> None:
        self._java.close()


@contextmanager
def connected(session: SparkSession, database: Database) -> Iterator[Connection]:
    """A connection for as long as the block lasts. Raises :class:`BackfillError` where PostgreSQL does not answer."""
    connection = connect(session, database)
    try:
        yield connection
    finally:
        connection.close()


def connect(session: SparkSession, database: Database) -> Connection:
    """A connection the caller closes. Raises :class:`BackfillError` where PostgreSQL does not answer."""
    try:
        return Connection(session, database)
    except Py4JJavaError as error:
        raise BackfillError(f"{database.place} cannot be reached: {error.java_exception.getMessage()}") from None


def spark_options(database: Database, table: str) -> dict[str, str]:
    """Options of Spark's jdbc format, secrets filled in; Spark does not show their values."""
    options = {"url": database.url, "user": database.username, "password": database.password}
    values = {key: fill_in(value, os.environ) for key, value in options.items() if value is not None}
    return {**values, "dbtable": table, "driver": DRIVER, **_DRIVER_OPTIONS}


def read(session: SparkSession, source: Jdbc) -> DataFrame:
    """The rows with one column ``f{i}`` per column of the table. A column of a type Flink would not read so raises an
    error when it is asked for, and no sooner."""
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


def within(name: str, span: Span) -> list[str]:
    """PostgreSQL's conditions for rows that may lie in a span."""
    bounds = ((">=", span.first), ("<", span.last))
    return [
        f"({name} IS NULL OR {name} {operator} {timestamp(from_micros(micros), 'TIMESTAMP')})"
        for operator, micros in bounds
        if micros is not None
    ]


def _sent(kind: DataType, name: str) -> str:
    """Dates and times travel as texts (ISO 8601, as the driver asks for): Java's own would be bent by its time zone."""
    return f"{name}::text" if kind.name in CLOCKS else name


def _received(kind: DataType) -> str | None:
    if kind.name in CLOCKS:
        return "STRING"
    return "SMALLINT" if kind.name == "TINYINT" else spark_type(kind)


def _value(table: str, column: Column, field: str) -> str:
    """The value of a field. ``infinity``, years before Christ and fractions finer than declared are errors."""
    kind = column.type
    if kind.name not in CLOCKS:
        return field
    value, exact = f"try_cast({field} AS {spark_type(kind)})", ""
    if kind.name == "TIMESTAMP" and kind.parameters[0] < MICROSECONDS:
        odd = f"pmod({micros_of(value)}, {10 ** (MICROSECONDS - kind.parameters[0])}) <> 0"
        exact = f"WHEN {odd} THEN raise_error({quoted(finer(table, column))}) "
    what = quoted(f"{ERROR}table {table}: column {column.name} holds ")
    unknown = f"raise_error(concat({what}, {field}, {quoted(f', which is no {kind}')}))"
    return f"(CASE WHEN {field} IS NULL THEN NULL WHEN {value} IS NULL THEN {unknown} {exact}ELSE {value} END)"


def _problem(table: str, column: Column, stored: Mapping[str, str]) -> str:
    """Why a column cannot be read, "" where it can."""
    declared = stored.get(identifier(column.name))
    if declared is None:
        return f"table {table}: PostgreSQL has no column {identifier(column.name)}"
    if not is_read_as(column.type, declared):
        kind = column.type
        return f"table {table}: column {column.name} is {declared} in PostgreSQL; Flink does not read it as {kind}"
    return ""


def literal(text: str) -> str:
    """A text in PostgreSQL's quotes."""
    return "'{}'".format(text.replace("'", "''"))
