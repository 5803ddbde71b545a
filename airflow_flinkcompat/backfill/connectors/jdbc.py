"""The jdbc connector on PostgreSQL: tables read and published with Flink's own options.

Flink's connector sends names to PostgreSQL without quotes, so ``orderId`` is the column ``orderid``; the same names are
meant here. Other databases are refused.
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
# Options for a job's lookups, retries and buffers, which do not matter here.
_NEUTRAL = ("lookup.", "sink.", "connection.max-retry-timeout")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_FETCH_SIZE = 10_000  # Flink's default 0 makes the driver keep the whole table in memory
CLOCKS = ("DATE", "TIMESTAMP")
"""Types whose values are transferred as text, because Java's types would shift them by its time zone."""
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
# PostgreSQL converts these types when a row is inserted.
_WRITTEN = {**_EXACT, **dict.fromkeys(INTEGERS, ("smallint", "integer", "bigint", "numeric"))}
_WRITTEN |= dict.fromkeys(("FLOAT", "DOUBLE"), ("real", "double precision"))


@dataclass(frozen=True)
class Database:
    """Address of a table, with placeholders for secrets."""

    url: str
    table: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """Address and table, without the URL's parameters."""
        return f"{self.url.partition('?')[0].rstrip('/')}/{self.table}"


@dataclass(frozen=True)
class ScanPartitions:
    """Flink's ``scan.partition.*``: rows outside of the bounds are not read."""

    column: str
    number: int
    lower: int
    upper: int


@dataclass(frozen=True)
class JdbcSource:
    """A table read from PostgreSQL."""

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
        """Source of a table; raises :class:`BackfillError` if it is not read exactly."""
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
                f"table {table.name}: column {column.name} of type {kind} cannot be read exactly from "
                f"PostgreSQL; leave the column out of the query, or {FLINK_BATCH}",
                table.span,
            )
        value = f"CAST({field} AS TINYINT)" if kind.name == "TINYINT" else field
        if kind.nullable:
            return value
        return f"coalesce({value}, raise_error('NULL in column {column.name}, which is declared NOT NULL'))"

    def within(self, span: TimeSpan) -> JdbcSource:
        """The same table; the database filters rows outside the span."""
        return replace(self, span=span)


@dataclass(frozen=True)
class JdbcSink:
    """A sink in PostgreSQL, see :mod:`~airflow_flinkcompat.backfill.connectors.jdbc_spark`."""

    database: Database
    needs: ClassVar[Needs] = NEEDS
    exclusive: ClassVar[bool] = False
    replaces: ClassVar[bool] = True
    write_mode: ClassVar[str] = (
        "one transaction deletes the rows of the published windows and inserts those of this run"
    )

    @classmethod
    def of(cls, table: Table) -> JdbcSink:
        """Sink of a table; raises :class:`BackfillError` if it is not written exactly."""
        return cls(_database(table, "--sink"))

    @property
    def place(self) -> str:
        return self.database.place

    def check(self, rows: PublishedRows, bounds: Range) -> None:
        for column in rows.columns:
            identifier(column.name)
            if column.type.name not in _WRITTEN:
                raise Untranslatable(
                    f"sink {rows.name}: a backfill cannot write column {column.name} of type "
                    f"{column.type} to PostgreSQL; {FLINK_BATCH}",
                    rows.table.span,
                )
        replaced_rows(rows, bounds)


def identifier(name: str) -> str:
    """A quoted name as PostgreSQL receives it from Flink: in lower case, unless it is quoted already."""
    if len(name) > 2 and name[0] == name[-1] == '"' and '"' not in name[1:-1]:
        return name
    if not _PLAIN.fullmatch(name):
        raise BackfillError(
            f"{name} is not a name that PostgreSQL accepts without quotes, and Flink writes none; "
            f'write it as `"{name}"`'
        )
    return f'"{name.lower()}"'


def qualified(table: str) -> str:
    """A table's name of one or two parts (schema, table), each in quotes."""
    return ".".join(identifier(part) for part in table.split("."))


def is_read_as(kind: DataType, declared: str) -> bool:
    """True if values of PostgreSQL's type (see ``format_type``) equal those that Flink reads as ``kind``."""
    return base_type(declared) in _EXACT.get(kind.name, ())


def is_written_as(kind: DataType, declared: str) -> bool:
    """True if a column of PostgreSQL's type stores values of ``kind`` as Flink's connector stores them."""
    return base_type(declared) in _WRITTEN.get(kind.name, ())


def base_type(declared: str) -> str:
    """``timestamp(3) without time zone`` → ``timestamp without time zone``."""
    return re.sub(r"\([0-9,]+\)", "", declared)


def _database(table: Table, what: str) -> Database:
    for option, value in table.options:
        if option not in _OPTIONS and not option.startswith(_NEUTRAL):
            raise Untranslatable(
                f"table {table.name}: a backfill does not support option {option}; leave it out, or "
                f"point to files with {what} {table.path[2]}=URI",
                table.span,
            )
        if option == "driver" and value != DRIVER:
            raise _other(table, f"driver {value}", what)
    url, name = table.option("url"), table.option("table-name")
    if not url or not name:
        raise BackfillError(f"table {table.name} has no option {'table-name' if url else 'url'}", table.span)
    if not url.startswith(_URL):
        raise _other(table, f"url {url.partition('//')[0]}", what)
    qualified(name)
    return Database(url, name, table.option("username"), table.option("password"))


def _other(table: Table, found: str, what: str) -> Untranslatable:
    return Untranslatable(
        f"table {table.name}: {found} is not PostgreSQL, the only database that a backfill reads and "
        f"writes exactly ({_URL}//…); point to files with {what} {table.path[2]}=URI",
        table.span,
    )


def _partitions(table: Table, columns: tuple[Column, ...]) -> ScanPartitions | None:
    options = {option for option, _ in table.options} & _SCAN
    if not options:
        return None
    if missing := sorted(_SCAN - options):
        raise BackfillError(
            f"table {table.name}: option {missing[0]} is required with {sorted(options)[0]}", table.span
        )
    column = table.option("scan.partition.column") or ""
    kinds = {known.name: known.type for known in columns}
    if column not in kinds or kinds[column].name not in INTEGERS:
        raise Untranslatable(
            f"table {table.name}: scan.partition.column {column} is not an integer column of the "
            "table; leave the scan.partition options out",
            table.span,
        )
    number = _number(table, "scan.partition.num", 1)
    lower, upper = (_number(table, f"scan.partition.{name}-bound", 0) for name in ("lower", "upper"))
    if number < 1 or lower > upper:
        raise BackfillError(
            f"table {table.name}: scan.partition.num is {number}, the bounds are {lower} and {upper}; "
            "this defines no partitions",
            table.span,
        )
    return ScanPartitions(column, number, lower, upper)


def _number(table: Table, option: str, default: int) -> int:
    value = table.option(option, str(default)) or ""
    if not re.fullmatch(r"-?[0-9]+", value.strip()):
        raise BackfillError(f"table {table.name}: option {option} is '{value}'; write a whole number", table.span)
    return int(value)


CONNECTOR = Connector(sources={"jdbc": JdbcSource.of}, sinks={"jdbc": JdbcSink.of}, listed=5)
