"""Connector for PostgreSQL tables, which are read and published with Flink's options.

Flink's connector does not quote names, so ``orderId`` refers to the column ``orderid``. A backfill reads and writes the
same columns as Flink. All other databases are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import ClassVar

from airflow_flinkcompat.backfill.connectors.registry import Connector
from airflow_flinkcompat.backfill.connectors.replaced_rows import replaced_rows
from airflow_flinkcompat.backfill.protocols import Needs, PublishedRows, Range, TimeSpan
from airflow_flinkcompat.backfill.result import FLINK_BATCH, BackfillError, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import spark_type
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import CHARACTERS, INTEGERS, Column, DataType

NEEDS = Needs(packages=("org.postgresql:postgresql:42.7.11",))
DRIVER = "org.postgresql.Driver"
_URL = "jdbc:postgresql:"
_OPTIONS = {"connector", "url", "table-name", "username", "password", "driver"}
_SCAN = {f"scan.partition.{name}" for name in ("column", "num", "lower-bound", "upper-bound")}
_OPTIONS |= _SCAN | {"scan.fetch-size", "scan.auto-commit"}
# Options for lookups, retries and buffers of a job, which have no effect on a backfill.
_NEUTRAL = ("lookup.", "sink.", "connection.max-retry-timeout")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_FETCH_SIZE = 10_000  # With Flink's default 0, the driver would keep the whole table in memory.
CLOCKS = ("DATE", "TIMESTAMP")
"""Types that are transferred as text, because Java's types would shift values by the JVM's time zone."""
_TEXTS = ("text", "character", "character varying")
_EXACT = {
    "BOOLEAN": ("boolean",),
    "TINYINT": ("smallint",),
    "SMALLINT": ("smallint",),
    "INT": ("integer",),
    "BIGINT": ("bigint",),
    "FLOAT": ("real",),
    "DOUBLE": ("double precision",),
    "DECIMAL": ("numeric",),
    "DATE": ("date",),
    "TIMESTAMP": ("timestamp without time zone",),
    **dict.fromkeys(CHARACTERS, _TEXTS),
}
# PostgreSQL converts these types when it inserts a row.
_WRITTEN = {**_EXACT, **dict.fromkeys(INTEGERS, ("smallint", "integer", "bigint", "numeric"))}
_WRITTEN |= dict.fromkeys(("FLOAT", "DOUBLE"), ("real", "double precision"))


@dataclass(frozen=True)
class Database:
    """Address of a table. Secrets are placeholders."""

    url: str
    table: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """Address and table, without parameters of the URL."""
        return f"{self.url.partition('?')[0].rstrip('/')}/{self.table}"


@dataclass(frozen=True)
class ScanPartitions:
    """Flink's options ``scan.partition.*``. Rows outside the bounds are not read."""

    column: str
    number: int
    lower: int
    upper: int


@dataclass(frozen=True)
class JdbcSource:
    """A table that is read from PostgreSQL."""

    table: str
    database: Database
    columns: tuple[Column, ...]
    partitions: ScanPartitions | None = None
    fetch_size: int = _FETCH_SIZE
    span: TimeSpan | None = None
    needs: ClassVar[Needs] = NEEDS
    ordered: ClassVar[bool] = False

    @classmethod
    def of(cls, table: Table) -> JdbcSource:
        """Source of a table; raises :class:`BackfillError` if it cannot be read exactly."""
        database = _database(table, "--table")
        columns = table.stored
        fetch_size = _number(table, "scan.fetch-size", 0)
        return cls(table.name, database, columns, _partitions(table, columns), fetch_size or _FETCH_SIZE)

    @property
    def place(self) -> str:
        return self.database.place

    def decode(self, column: Column, field: str, table: Table) -> str:
        kind = column.type
        if kind.name not in _EXACT or spark_type(kind) is None:
            raise Untranslatable(
                f"table {table.name}: column {column.name} of type {kind} cannot be read exactly from PostgreSQL. "
                f"Remove the column from the query, or {FLINK_BATCH}",
                table.span,
            )
        value = f"CAST({field} AS TINYINT)" if kind.name == "TINYINT" else field
        if kind.nullable:
            return value
        return f"coalesce({value}, raise_error('NULL in column {column.name}, which is declared NOT NULL'))"

    def within(self, span: TimeSpan) -> JdbcSource:
        """Restrict the table to a time span. The database filters rows outside the span."""
        return replace(self, span=span)


@dataclass(frozen=True)
class JdbcSink:
    """A sink table in PostgreSQL; see :mod:`~airflow_flinkcompat.backfill.connectors.jdbc_spark`."""

    database: Database
    needs: ClassVar[Needs] = NEEDS
    exclusive: ClassVar[bool] = False
    replaces: ClassVar[bool] = True
    write_mode: ClassVar[str] = (
        "one transaction deletes the rows of the published windows and inserts the rows of this run"
    )

    @classmethod
    def of(cls, table: Table) -> JdbcSink:
        """Sink for a table; raises :class:`BackfillError` if rows cannot be written exactly."""
        return cls(_database(table, "--sink"))

    @property
    def place(self) -> str:
        return self.database.place

    def check(self, rows: PublishedRows, bounds: Range) -> None:
        for column in rows.columns:
            identifier(column.name)
            if column.type.name not in _WRITTEN:
                raise Untranslatable(
                    f"sink {rows.name}: a backfill cannot write column {column.name} of type {column.type} to "
                    f"PostgreSQL; {FLINK_BATCH}",
                    rows.table.span,
                )
        replaced_rows(rows, bounds)


def identifier(name: str) -> str:
    """Quote a name like PostgreSQL interprets it: in lower case, unless it is already quoted."""
    if len(name) > 2 and name[0] == name[-1] == '"' and '"' not in name[1:-1]:
        return name
    if not _PLAIN.fullmatch(name):
        raise BackfillError(
            f"{name} is not a name that PostgreSQL accepts without quotes, and Flink adds no quotes. Write the "
            f'name as `"{name}"`'
        )
    return f'"{name.lower()}"'


def qualified(table: str) -> str:
    """Quote a table name of one or two parts (schema, table)."""
    return ".".join(identifier(part) for part in table.split("."))


def is_read_as(kind: DataType, declared: str) -> bool:
    """True if Flink reads values of a PostgreSQL type (see ``format_type``) as equal values of ``kind``."""
    return base_type(declared) in _EXACT.get(kind.name, ())


def is_written_as(kind: DataType, declared: str) -> bool:
    """True if a PostgreSQL type stores values of ``kind`` in the same way as Flink's connector."""
    return base_type(declared) in _WRITTEN.get(kind.name, ())


def base_type(declared: str) -> str:
    """Remove the precision of a type: ``timestamp(3) without …`` → ``timestamp without …``."""
    return re.sub(r"\([0-9,]+\)", "", declared)


def _database(table: Table, what: str) -> Database:
    for option, value in table.options:
        if option not in _OPTIONS and not option.startswith(_NEUTRAL):
            raise Untranslatable(
                f"table {table.name}: a backfill does not support the option {option}. Remove the option, or "
                f"specify files with {what} {table.path[2]}=URI",
                table.span,
            )
        if option == "driver" and value != DRIVER:
            raise _other(table, f"driver {value}", what)
    url, name = table.option("url"), table.option("table-name")
    if not url or not name:
        raise BackfillError(f"table {table.name} has no option {'table-name' if url else 'url'}: add it", table.span)
    if not url.startswith(_URL):
        raise _other(table, f"url {url.partition('//')[0]}", what)
    qualified(name)
    return Database(url, name, table.option("username"), table.option("password"))


def _other(table: Table, found: str, what: str) -> Untranslatable:
    return Untranslatable(
        f"table {table.name}: {found} is not PostgreSQL, which is the only database that a backfill reads and "
        f"writes exactly ({_URL}//…). Specify files with {what} {table.path[2]}=URI",
        table.span,
    )


def _partitions(table: Table, columns: tuple[Column, ...]) -> ScanPartitions | None:
    options = {option for option, _ in table.options} & _SCAN
    if not options:
        return None
    if missing := sorted(_SCAN - options):
        raise BackfillError(
            f"table {table.name}: the option {missing[0]} is required together with {sorted(options)[0]}", table.span
        )
    column = table.option("scan.partition.column") or ""
    kinds = {known.name: known.type for known in columns}
    if column not in kinds or kinds[column].name not in INTEGERS:
        raise Untranslatable(
            f"table {table.name}: scan.partition.column {column} is not an integer column of the table. Remove "
            "the scan.partition options",
            table.span,
        )
    number = _number(table, "scan.partition.num", 1)
    lower, upper = (_number(table, f"scan.partition.{name}-bound", 0) for name in ("lower", "upper"))
    if number < 1 or lower > upper:
        raise BackfillError(
            f"table {table.name}: scan.partition.num is {number} and the bounds are {lower} and {upper}, which "
            "defines no partitions",
            table.span,
        )
    return ScanPartitions(column, number, lower, upper)


def _number(table: Table, option: str, default: int) -> int:
    value = table.option(option, str(default)) or ""
    if not re.fullmatch(r"-?[0-9]+", value.strip()):
        raise BackfillError(
            f"table {table.name}: the option {option} is '{value}', which is not a whole number", table.span
        )
    return int(value)


CONNECTOR = Connector(sources={"jdbc": JdbcSource.of}, sinks={"jdbc": JdbcSink.of}, listed=5)
