"""A connection of the driver's own to PostgreSQL. Secrets are filled in here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from airflow_flinkcompat.backfill.connectors.jdbc.spec import DRIVER, Database, qualified
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.placeholder_values import fill_in

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
        """Rows of a statement as texts; none if it returns none."""
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
        """PostgreSQL's type of each column by quoted name; raises :class:`BackfillError` without the table."""
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
    """A connection during the block; raises :class:`BackfillError` if PostgreSQL does not answer."""
    connection = connect(session, database)
    try:
        yield connection
    finally:
        connection.close()


def connect(session: SparkSession, database: Database) -> Connection:
    """A connection the caller closes. Raises :class:`BackfillError` if PostgreSQL does not answer."""
    try:
        return Connection(session, database)
    except Py4JJavaError as error:
        raise BackfillError(f"{database.place} cannot be reached: {error.java_exception.getMessage()}") from None


def spark_options(database: Database, table: str) -> dict[str, str]:
    """Options of Spark's jdbc format, secrets filled in; Spark does not show their values."""
    options = {"url": database.url, "user": database.username, "password": database.password}
    values = {key: fill_in(value, os.environ) for key, value in options.items() if value is not None}
    return {**values, "dbtable": table, "driver": DRIVER, **_DRIVER_OPTIONS}


def literal(text: str) -> str:
    """A text in PostgreSQL's quotes."""
    return "'{}'".format(text.replace("'", "''"))
