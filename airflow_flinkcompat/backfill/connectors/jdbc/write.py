"""Publication to PostgreSQL: rows staged in a table next to the sink, put in place in a transaction.

That transaction deletes the rows of the published windows and adds the staged ones. With a primary key a staged row
also replaces the row of its key, unless that one is of a later window. The staging table is dropped by the same
transaction. A publishing run holds a lock named after the sink, so a staging table found there belongs to a killed run.
"""

from __future__ import annotations

import hashlib
import uuid
from contextlib import suppress
from functools import cached_property

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.jdbc.connection import Connection, connect, literal, spark_options
from airflow_flinkcompat.backfill.connectors.jdbc.spec import (
    CLOCKS,
    Database,
    JdbcSink,
    identifier,
    is_written_as,
    qualified,
)
from airflow_flinkcompat.backfill.connectors.replaced_rows import Comparison, order_column, replaced_rows
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range
from airflow_flinkcompat.backfill.spark.observations import counted

_PATIENCE_SECONDS = 30
_LOCK_NOT_AVAILABLE = "55P03"


def publication(session: SparkSession, sink: JdbcSink, rows: PublishedRows, bounds: Range) -> JdbcPublication:
    """Open a publication into a table of PostgreSQL."""
    return JdbcPublication(session, sink.database, rows, replaced_rows(rows, bounds))


class JdbcPublication:
    """One sink's rows on their way into a table of PostgreSQL; see :class:`Publication`."""

    def __init__(
        self, session: SparkSession, database: Database, rows: PublishedRows, replaced: tuple[Comparison, ...]
    ) -> None:
        self.session = session
        self.database = database
        self.rows = rows
        self.replaced = replaced
        self.columns = {column.name: identifier(column.name) for column in rows.columns}
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """The one connection of this run, which holds the lock."""
        if self._connection is None:
            self._connection = connect(self.session, self.database)
        return self._connection

    @cached_property
    def table(self) -> str:
        """The sink's table as PostgreSQL writes it, schema included."""
        name = literal(qualified(self.database.table))
        return "{}.{}".format(
            *self.connection.run(
                "SELECT quote_ident(nspname), quote_ident(relname) FROM pg_class c JOIN pg_namespace n "
                f"ON n.oid = relnamespace WHERE c.oid = to_regclass({name})"
            )[0]
        )

    @cached_property
    def _prefix(self) -> str:
        """Prefix of the names of this sink's staging tables."""
        return f"flinkcompat_staged_{hashlib.sha256(self.table.encode()).hexdigest()[:12]}_"

    @cached_property
    def _staged(self) -> str:
        return f'{self.table.rpartition(".")[0]}."{self._prefix}{uuid.uuid4().hex[:12]}"'

    def check(self) -> None:
        stored = self.connection.columns(self.rows.name)
        for column in self.rows.columns:
            declared = stored.get(self.columns[column.name])
            if declared is None:
                raise BackfillError(f"sink {self.rows.name}: {self.table} has no column {self.columns[column.name]}")
            if not is_written_as(column.type, declared):
                raise BackfillError(
                    f"sink {self.rows.name}: column {column.name} is {declared} in PostgreSQL; Flink does not write "
                    f"{column.type} into it"
                )
        self._lock()
        for left in self._leftovers():
            self.connection.run(f"DROP TABLE {left}")

    def _lock(self) -> None:
        """Lock out other backfills of this sink until the connection closes. A killed run's work ends."""
        name = "client_connection_check_interval"  # PostgreSQL 14 on: a statement ends with the client that sent it
        self.connection.run(f"SELECT set_config(name, '1s', false) FROM pg_settings WHERE name = '{name}'")
        self.connection.run(f"SET lock_timeout = '{_PATIENCE_SECONDS}s'")
        try:
            self.connection.run(f"SELECT pg_advisory_lock(hashtextextended({literal(self._prefix)}, 0))")
        except Py4JJavaError as error:
            if error.java_exception.getSQLState() != _LOCK_NOT_AVAILABLE:
                raise
            raise BackfillError(
                f"sink {self.rows.name}: another backfill is publishing to {self.database.place}; run "
                "this one after it has ended"
            ) from None
        self.connection.run("RESET lock_timeout")

    def _leftovers(self) -> list[str]:
        """Staging tables of runs that were killed: nobody else holds the lock."""
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
        # Dates and times travel as texts, which PostgreSQL then reads as what its column is.
        options = {**spark_options(self.database, self._staged), "stringtype": "unspecified"}
        staged.write.format("jdbc").options(**options).mode("append").save()
        # A task that was tried again after its commit has written its rows twice.
        ((stored,),) = self.connection.run(f"SELECT count(*) FROM {self._staged}")
        computed = counted(seen, "rows")
        if int(stored or 0) != computed:
            raise BackfillError(
                f"sink {self.rows.name}: {stored} rows were staged, but {computed} were computed, "
                "because Spark repeated a task; run the backfill again"
            )

    def publish(self) -> tuple[str, ...]:
        names = ", ".join(self.columns.values())
        keys = [identifier(name) for name in self.rows.table.primary_key]
        if keys:
            self._check_keys(keys)
        with self.connection.transaction():
            # Readers go on; whoever writes waits until the new rows are there.
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
        """WHERE for the rows of the published windows; all rows without bounds."""
        tests = [comparison.sql(self.columns[comparison.column], "TIMESTAMP") for comparison in self.replaced]
        return f" WHERE {' AND '.join(tests)}" if tests else ""

    @property
    def _order(self) -> list[str]:
        """Columns that order two windows, if any do."""
        column = order_column(self.rows)
        return [self.columns[column]] if column else []

    def _replace(self, keys: list[str]) -> None:
        """The rows outside the range whose keys are written now go, unless they are of a later window."""
        same = " AND ".join(f"t.{key} = s.{key}" for key in keys)
        earlier = "".join(f" AND t.{column} <= s.{column}" for column in self._order)
        self.connection.run(f"DELETE FROM {self.table} t USING {self._staged} s WHERE {same}{earlier}")

    def _check_keys(self, keys: list[str]) -> None:
        """Check that rows with one key have an order: Flink keeps the last one, of the latest window.

        Raises :class:`BackfillError` if two are of one window, because their order is unknowable.
        """
        by = ", ".join([*keys, *(column for column in self._order if column not in keys)])
        found = self.connection.run(f"SELECT {by} FROM {self._staged} GROUP BY {by} HAVING count(*) > 1 LIMIT 1")
        if found:
            key = ", ".join(map(str, found[0][: len(keys)]))
            raise BackfillError(
                f"sink {self.rows.name}: several rows of this backfill have the primary key ({', '.join(keys)}) "
                f"= ({key}), and it is unknown which of them Flink writes last; add columns that "
                "distinguish them to the primary key"
            )

    def discard(self) -> None:
        if self._connection is None:
            return
        # A connection that broke cannot clean up; the next run does.
        with suppress(Py4JJavaError):
            if "_staged" in vars(self):
                self._connection.run(f"DROP TABLE IF EXISTS {self._staged}")
            self._connection.close()
