"""Tables in PostgreSQL that Spark reads, and replaces in one transaction."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.jdbc import (
    CLOCKS,
    DRIVER,
    Database,
    JdbcSink,
    JdbcSource,
    identifier,
    is_read_as,
    is_written_as,
    qualified,
)
from airflow_flinkcompat.backfill.connectors.replaced_rows import order_column, replaced_rows
from airflow_flinkcompat.backfill.formats.columnar import MICROSECONDS, finer_time_message
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range, TimeSpan
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark import counted, fill_in
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted, spark_type
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.backfill.spark_sql.windows import from_micros, micros_of, timestamp

if TYPE_CHECKING:
    from airflow_flinkcompat.plan.types import Column, DataType


class JdbcReader:
    """Reader of a table with Spark's jdbc format."""

    def __init__(self, session: SparkSession, source: JdbcSource) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        with connected(self._session, self._source.database) as connection:
            connection.columns(self._source.table)

    def rows(self) -> DataFrame:
        return _rows(self._session, self._source)


def _rows(session: SparkSession, source: JdbcSource) -> DataFrame:
    """Rows with columns ``f{i}``. A column that Flink cannot read raises an error only if it is used."""
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
                partitionColumn=f"f{field}", lowerBound=parts.lower, upperBound=parts.upper, numPartitions=parts.number
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
    """PostgreSQL conditions that keep rows which may be in a time span."""
    bounds = ((">=", span.first), ("<", span.last))
    return [
        f"({name} IS NULL OR {name} {operator} {timestamp(from_micros(micros), 'TIMESTAMP')})"
        for operator, micros in bounds
        if micros is not None
    ]


def _sent(kind: DataType, name: str) -> str:
    """SQL that reads dates and times as ISO 8601 texts.

    If dates and times were read as Java values, they would shift by a time zone.
    """
    return f"{name}::text" if kind.name in CLOCKS else name


def _received(kind: DataType) -> str | None:
    if kind.name in CLOCKS:
        return "STRING"
    return "SMALLINT" if kind.name == "TINYINT" else spark_type(kind)


def _value(table: str, column: Column, field: str) -> str:
    """Spark SQL for a field's value; fails on ``infinity``, years before Christ and too precise fractions."""
    kind = column.type
    if kind.name not in CLOCKS:
        return field
    value, exact = f"try_cast({field} AS {spark_type(kind)})", ""
    if kind.name == "TIMESTAMP" and kind.parameters[0] < MICROSECONDS:
        odd = f"pmod({micros_of(value)}, {10 ** (MICROSECONDS - kind.parameters[0])}) <> 0"
        exact = f"WHEN {odd} THEN raise_error({quoted(finer_time_message(table, column))}) "
    what = quoted(f"{ERROR}table {table}: column {column.name} contains ")
    unknown = f"raise_error(concat({what}, {field}, {quoted(f', which is not a valid {kind}')}))"
    return f"(CASE WHEN {field} IS NULL THEN NULL WHEN {value} IS NULL THEN {unknown} {exact}ELSE {value} END)"


def _problem(table: str, column: Column, stored: Mapping[str, str]) -> str:
    """Reason why a column cannot be read; "" if it can."""
    declared = stored.get(identifier(column.name))
    if declared is None:
        return f"table {table}: PostgreSQL has no column {identifier(column.name)}. Correct the declaration"
    if not is_read_as(column.type, declared):
        kind = column.type
        return (
            f"table {table}: column {column.name} is {declared} in PostgreSQL, which Flink does not read as "
            f"{kind}. Correct the declaration"
        )
    return ""


_PATIENCE_SECONDS = 30
_LOCK_NOT_AVAILABLE = "55P03"


class JdbcPublication:
    """Publication of one sink's rows in a PostgreSQL table; see :class:`Publication`."""

    def __init__(self, session: SparkSession, sink: JdbcSink, rows: PublishedRows, bounds: Range) -> None:
        self.session, self.database, self.rows = session, sink.database, rows
        self.replaced = replaced_rows(rows, bounds)
        self.columns = {column.name: identifier(column.name) for column in rows.columns}
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """The single connection of this run, which has the lock."""
        if self._connection is None:
            self._connection = connect(self.session, self.database)
        return self._connection

    @cached_property
    def table(self) -> str:
        """Sink table with its schema, in PostgreSQL's notation."""
        name = literal(qualified(self.database.table))
        return "{}.{}".format(
            *self.connection.run(
                "SELECT quote_ident(nspname), quote_ident(relname) FROM pg_class c JOIN pg_namespace n "
                f"ON n.oid = relnamespace WHERE c.oid = to_regclass({name})"
            )[0]
        )

    @cached_property
    def _prefix(self) -> str:
        """Prefix for names of the staging tables of this sink."""
        return f"flinkcompat_staged_{hashlib.sha256(self.table.encode()).hexdigest()[:12]}_"

    @cached_property
    def _staged(self) -> str:
        return f'{self.table.rpartition(".")[0]}."{self._prefix}{uuid.uuid4().hex[:12]}"'

    def check(self) -> None:
        stored = self.connection.columns(self.rows.name)
        for column in self.rows.columns:
            declared = stored.get(self.columns[column.name])
            if declared is None:
                raise BackfillError(
                    f"sink {self.rows.name}: {self.table} has no column {self.columns[column.name]}. Correct the "
                    "declaration"
                )
            if not is_written_as(column.type, declared):
                raise BackfillError(
                    f"sink {self.rows.name}: column {column.name} is {declared} in PostgreSQL, and Flink does not "
                    f"write {column.type} to it. Correct the declaration"
                )
        self._lock()
        for left in self._leftovers():
            self.connection.run(f"DROP TABLE {left}")

    def _lock(self) -> None:
        """Lock out other backfills of this sink until the connection closes, and stop work of killed runs."""
        name = "client_connection_check_interval"  # From PostgreSQL 14 on, a statement ends with its client.
        self.connection.run(f"SELECT set_config(name, '1s', false) FROM pg_settings WHERE name = '{name}'")
        self.connection.run(f"SET lock_timeout = '{_PATIENCE_SECONDS}s'")
        try:
            self.connection.run(f"SELECT pg_advisory_lock(hashtextextended({literal(self._prefix)}, 0))")
        except Py4JJavaError as error:
            if error.java_exception.getSQLState() != _LOCK_NOT_AVAILABLE:
                raise
            raise BackfillError(
                f"sink {self.rows.name}: another backfill is publishing to {self.database.place}. Run this "
                "backfill after the other backfill has ended"
            ) from None
        self.connection.run("RESET lock_timeout")

    def _leftovers(self) -> list[str]:
        """Staging tables of killed runs. Only this run has the lock, so no running backfill uses these tables."""
        found = self.connection.run(
            "SELECT format('%I.%I', nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
            f"WHERE relkind = 'r' AND starts_with(relname::text, {literal(self._prefix)})"
        )
        return [name for (name,) in found if name]

    def stage(self, rows: DataFrame) -> None:
        names = ", ".join(self.columns.values())
        self.connection.run(f"CREATE UNLOGGED TABLE {self._staged} AS SELECT {names} FROM {self.table} WITH NO DATA")
        seen = Observation()
        counting = rows.observe(seen, F.count(F.lit(1)).alias("rows"))
        staged = counting.select(
            *(
                F.expr(f"CAST(c{i} AS STRING)" if column.type.name in CLOCKS else f"c{i}").alias(name[1:-1])
                for i, (column, name) in enumerate(zip(self.rows.columns, self.columns.values(), strict=True))
            )
        )
        # PostgreSQL receives dates and times as text and converts them to the type of the column.
        options = {**spark_options(self.database, self._staged), "stringtype": "unspecified"}
        staged.write.format("jdbc").options(**options).mode("append").save()
        # If Spark repeats a task after its commit, the task writes its rows twice.
        ((stored,),) = self.connection.run(f"SELECT count(*) FROM {self._staged}")
        computed = counted(seen, "rows")
        if int(stored or 0) != computed:
            raise BackfillError(
                f"sink {self.rows.name}: {stored} rows were staged, but {computed} were computed, because Spark "
                "repeated a task. Run the backfill again"
            )

    def publish(self) -> tuple[str, ...]:
        names = ", ".join(self.columns.values())
        keys = [identifier(name) for name in self.rows.table.primary_key]
        if keys:
            self._check_keys(keys)
        with self.connection.transaction():
            # Readers can continue. Writers wait until the new rows are published.
            self.connection.run(f"LOCK TABLE {self.table} IN SHARE ROW EXCLUSIVE MODE")
            self.connection.run(f"DELETE FROM {self.table}{self._published()}")
            selected = f"SELECT {names} FROM {self._staged} s"
            if keys:
                self._replace(keys)
                same = " AND ".join(f"t.{key} = s.{key}" for key in keys)
                order = ", ".join([*keys, *(f"{column} DESC" for column in self._order)])
                selected = (
                    f"SELECT DISTINCT ON ({', '.join(keys)}) {names} FROM {self._staged} s "
                    f"WHERE NOT EXISTS (SELECT FROM {self.table} t WHERE {same}) ORDER BY {order}"
                )
            self.connection.run(f"INSERT INTO {self.table} ({names}) {selected}")
            self.connection.run(f"DROP TABLE {self._staged}")
        return ()

    def _published(self) -> str:
        """WHERE clause for the rows of the published windows; empty without bounds."""
        tests = [comparison.sql(self.columns[comparison.column], "TIMESTAMP") for comparison in self.replaced]
        return f" WHERE {' AND '.join(tests)}" if tests else ""

    @property
    def _order(self) -> list[str]:
        """Columns that order windows; empty if the sink has no such column."""
        column = order_column(self.rows)
        return [self.columns[column]] if column else []

    def _replace(self, keys: list[str]) -> None:
        """Delete remaining old rows that have the key of a new row, unless the window of the old row is later."""
        same = " AND ".join(f"t.{key} = s.{key}" for key in keys)
        earlier = "".join(f" AND t.{column} <= s.{column}" for column in self._order)
        self.connection.run(f"DELETE FROM {self.table} t USING {self._staged} s WHERE {same}{earlier}")

    def _check_keys(self, keys: list[str]) -> None:
        """Check that rows with equal keys have an order. Flink keeps the row of the latest window."""
        by = ", ".join([*keys, *(column for column in self._order if column not in keys)])
        found = self.connection.run(f"SELECT {by} FROM {self._staged} GROUP BY {by} HAVING count(*) > 1 LIMIT 1")
        if found:
            key = ", ".join(map(str, found[0][: len(keys)]))
            raise BackfillError(
                f"sink {self.rows.name}: several rows of this backfill have the primary key ({', '.join(keys)}) = "
                f"({key}), and it is unknown which of them Flink writes last. Add columns that distinguish the "
                "rows to the primary key"
            )

    def discard(self) -> None:
        if self._connection is None:
            return
        # A broken connection cannot clean up. The next run cleans up instead.
        with suppress(Py4JJavaError):
            if "_staged" in vars(self):
                self._connection.run(f"DROP TABLE IF EXISTS {self._staged}")
            self._connection.close()


_DRIVER_OPTIONS = {"tcpKeepAlive": "true", "reWriteBatchedInserts": "true", "ApplicationName": "flinkcompat backfill"}


class Connection:
    """A JDBC connection, opened by Spark's own JDBC driver."""

    def __init__(self, session: SparkSession, database: Database) -> None:
        self.database = database
        jvm: Any = session._jvm
        options = spark_options(database, qualified(database.table))
        url, table = options["url"], options["dbtable"]
        scala_options = jvm.PythonUtils.toScalaMap(options)
        jdbc = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(url, table, scala_options)
        self._java = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(url).createConnectionFactory(jdbc).apply(-1)

    def run(self, sql: str) -> list[tuple[str | None, ...]]:
        """Run a statement and return its rows as texts; empty if it returns no rows."""
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
        """PostgreSQL types by quoted column name; raises :class:`BackfillError` if there is no such table."""
        table = qualified(self.database.table)
        rows = self.run(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            f"WHERE attrelid = to_regclass({literal(table)}) AND attnum > 0 AND NOT attisdropped"
        )
        if not rows:
            raise BackfillError(f"table {name}: PostgreSQL has no table {table}, or the user may not access it")
        return {'"{}"'.format((column or "").replace('"', '""')): kind or "" for column, kind in rows}

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all statements of the block, or none of them."""
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
    """Connection for the block; raises :class:`BackfillError` if PostgreSQL does not answer."""
    connection = connect(session, database)
    try:
        yield connection
    finally:
        connection.close()


def connect(session: SparkSession, database: Database) -> Connection:
    """Open a connection, which the caller must close.

    Raises :class:`BackfillError` if PostgreSQL does not answer.
    """
    try:
        return Connection(session, database)
    except Py4JJavaError as error:
        raise BackfillError(f"{database.place} cannot be reached: {error.java_exception.getMessage()}") from None


def spark_options(database: Database, table: str) -> dict[str, str]:
    """Options of Spark's jdbc format, with secrets filled in. Spark masks their values."""
    options = {"url": database.url, "user": database.username, "password": database.password}
    values = {key: fill_in(value, os.environ) for key, value in options.items() if value is not None}
    return {**values, "dbtable": table, "driver": DRIVER, **_DRIVER_OPTIONS}


def literal(text: str) -> str:
    """A text literal in PostgreSQL."""
    return "'{}'".format(text.replace("'", "''"))


reader, publication = JdbcReader, JdbcPublication
