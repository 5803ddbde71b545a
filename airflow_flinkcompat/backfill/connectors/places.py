"""Where tables lie: declared or given places, checked as far as that goes without touching them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from airflow_flinkcompat.backfill.connectors.base import Source, Target
from airflow_flinkcompat.backfill.connectors.delta import Delta, DeltaTarget, declared_path
from airflow_flinkcompat.backfill.connectors.files import FORMATS, Files, Folder
from airflow_flinkcompat.backfill.connectors.iceberg import Iceberg, IcebergTable, IcebergTarget
from airflow_flinkcompat.backfill.connectors.jdbc import Jdbc, JdbcTarget
from airflow_flinkcompat.backfill.connectors.kafka import Kafka, KafkaTarget, appended, changelog
from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import INTEGERS, TIMESTAMPS
from airflow_flinkcompat.secrets import mask_secrets, placeholders

_DEFAULTS = "default_catalog.default_database."
_GLOB = re.compile(r"[*?\[\]{}]")
_OTHER_FORMATS = ("avro", "protobuf", "raw", "xml", "text", "paimon", "hudi", "debezium-json", "canal-json")
# What tells the order of arrival.
_ORDERED = (*INTEGERS, "DECIMAL", "DATE", *TIMESTAMPS)
# Layout of files while a streaming job writes them, and how a streaming source looks for new ones: nothing here.
_NEUTRAL = ("sink.", "source.monitor-interval", "auto-compaction", "compaction.", "partition.")


@dataclass(frozen=True)
class Places:
    """The places of a request: what replaces the declared ones, by table name as the user wrote it."""

    tables: Mapping[str, str] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)
    orders: Mapping[str, str] = field(default_factory=dict)
    """The columns, ``a,b``, by which rows arrived, by table name as the user wrote it; "" is every other table."""

    def check(self, sources: Iterable[Table], sinks: Iterable[Table]) -> None:
        """Raises :class:`BackfillError` for a name that stands for no table read or written, or for several."""
        read = tuple(sources)
        given_by = (
            ("--table", self.tables, read),
            ("--sink", self.sinks, tuple(sinks)),
            ("--order-by", self.orders, read),
        )
        for what, given, tables in given_by:
            paths = {table.path: table.name for table in tables}
            for name in filter(None, given):
                matching = [path for path in paths if _names(path, name)]
                known = ", ".join(sorted(paths.values())) or "none"
                if not matching:
                    verb = "writes" if what == "--sink" else "reads"
                    raise BackfillError(f"{what} {name}: the script {verb} no table of that name; it {verb} {known}")
                if len(matching) > 1:
                    raise BackfillError(f"{what} {name} stands for several tables; write the full name ({known})")

    def source(self, table: Table) -> Source:
        """Where a table is read from. Raises :class:`BackfillError` where that is not known or not read exactly."""
        if any(name and _names(table.path, name) for name in self.orders):
            self.order(table)
        for name, uri in self.tables.items():
            if _names(table.path, name):
                return _given_source(table, uri, f"--table {name}")
        _check_declared(table)
        connector = table.option("connector")
        make = _SOURCES.get(connector or "")
        if make is None:
            raise _unreachable(table, "--table", _SOURCES)
        return make(table)

    def order(self, table: Table) -> tuple[int, ...]:
        """The positions of the columns that say in which order a table's rows arrived; none where nobody said so.

        Raises :class:`BackfillError` for what is no column of it, or has no order that Flink and Spark share.
        """
        named = [name for name in self.orders if name and _names(table.path, name)]
        text = self.orders.get(named[0] if named else "", "")
        names = [column.name for column in table.columns]
        positions = []
        for name in filter(None, (part.strip().strip("`") for part in text.split(","))):
            if name not in names:
                raise BackfillError(
                    f"--order-by {text}: table {table.name} has no column {name}; it has {', '.join(names)}"
                )
            kind = table.columns[names.index(name)].type
            if kind.name not in _ORDERED:
                raise BackfillError(
                    f"--order-by {text}: column {name} of table {table.name} is {kind}; rows arrive in the order of "
                    "whole or decimal numbers, dates and timestamps"
                )
            positions.append(names.index(name))
        return tuple(positions)

    def sink(self, table: Table) -> Target:
        """Where a sink is published to. Raises :class:`BackfillError` where that is unknown or not written exactly."""
        for name, uri in self.sinks.items():
            if _names(table.path, name):
                return _given_sink(table, uri, f"--sink {name}")
        _check_declared(table)
        make = _TARGETS.get(table.option("connector") or "")
        if make is None:
            raise _unreachable(table, "--sink", _TARGETS)
        return make(table)


@dataclass(frozen=True)
class AssumedPlaces(Places):
    """Places before a request names any: a table that cannot be reached as declared is taken to be named a place."""

    def source(self, table: Table) -> Source:
        """Where a table is read from. Raises :class:`BackfillError` where no place would do."""
        try:
            return super().source(table)
        except BackfillError:
            _check_declared(table)
            return Files.of(table, f"file:///read/{table.path[2]}", "parquet")

    def sink(self, table: Table) -> Target:
        """Where a sink is published to. Raises :class:`BackfillError` where no place would do."""
        try:
            return super().sink(table)
        except BackfillError:
            _check_declared(table)
            return DeltaTarget(exclusive=True, place=f"file:///written/{table.path[2]}")


def _given_source(table: Table, uri: str, what: str) -> Source:
    match uri.partition(":")[0]:
        case "delta":
            return Delta.of(table, normalised(uri.removeprefix("delta:"), what))
        case "iceberg":
            return Iceberg.of(table, IcebergTable.given(uri, what))
    format, uri = _given_format(uri, what)
    return Files.of(table, normalised(uri, what), format)


def _given_sink(table: Table, uri: str, what: str) -> Target:
    match uri.partition(":")[0]:
        case "delta":
            return DeltaTarget(exclusive=True, place=normalised(uri.removeprefix("delta:"), what))
        case "iceberg":
            return IcebergTarget(exclusive=True, location=IcebergTable.given(uri, what))
    format, uri = _given_format(uri, what)
    return Folder.of(table, normalised(uri, what), exclusive=True, format_name=format)


def _given_format(uri: str, what: str) -> tuple[str | None, str]:
    """``parquet:/archive`` → the format and the place; no format where the place brings none."""
    prefix, _, place = uri.partition(":")
    if prefix in FORMATS:
        return prefix, place
    if prefix in _OTHER_FORMATS:
        raise BackfillError(
            f"{what}: {prefix} is no format a backfill reads or writes; {', '.join(FORMATS)} are, and delta and iceberg"
        )
    return None, uri


def _delta_place(table: Table) -> str:
    return normalised(declared_path(table), f"table {table.name}, option table-path")


def _check_declared(table: Table) -> None:
    if not table.declared:
        raise Untranslatable(
            f"table {table.name} is not declared; declare it in the script or in the catalog DDL", table.span
        )


def _unreachable(table: Table, what: str, known: Iterable[str]) -> Untranslatable:
    connector = table.option("connector")
    return Untranslatable(
        f"table {table.name} has connector {connector or '(none)'}, a backfill reaches {', '.join(known)} tables only; "
        f"say where its history lies with {what} {table.path[2]}=URI",
        table.span,
    )


def _declared_place(table: Table, what: str) -> str:
    """The folder a filesystem table declares."""
    for option, value in table.options:
        if not _understood(option, table):
            raise Untranslatable(
                f"table {table.name}: option {option} = '{mask_secrets(value)}' is not understood by a backfill; "
                f"leave it out, or point to plain files with {what} {table.path[2]}=URI",
                table.span,
            )
    path = table.option("path")
    if not path:
        raise BackfillError(f"table {table.name} has no option path", table.span)
    return normalised(path, f"table {table.name}, option path")


# By connector; a module that reads or writes another one adds its line here.
_SOURCES: Mapping[str, Callable[[Table], Source]] = {
    "filesystem": lambda table: Files.of(table, _declared_place(table, "--table")),
    "delta": lambda table: Delta.of(table, _delta_place(table)),
    "iceberg": lambda table: Iceberg.of(table, IcebergTable.declared(table)),
    "kafka": Kafka.of,
    "upsert-kafka": changelog,
    "jdbc": Jdbc.of,
}
_TARGETS: Mapping[str, Callable[[Table], Target]] = {
    "filesystem": lambda table: Folder.of(table, _declared_place(table, "--sink"), exclusive=False),
    "delta": lambda table: DeltaTarget(exclusive=False, place=_delta_place(table)),
    "iceberg": lambda table: IcebergTarget(exclusive=False, location=IcebergTable.declared(table)),
    "kafka": appended,
    "upsert-kafka": KafkaTarget.of,
    "jdbc": JdbcTarget.of,
}


def _understood(option: str, table: Table) -> bool:
    name = table.option("format") or ""
    return option in ("connector", "path", "format") or option.startswith((f"{name}.", *_NEUTRAL))


def _names(path: tuple[str, str, str], name: str) -> bool:
    parts = [part.strip("`") for part in name.removeprefix(_DEFAULTS).split(".")]
    own = [part for part in path if part]
    return len(parts) <= len(own) and own[-len(parts) :] == parts


def normalised(uri: str, what: str) -> str:
    """The place as Spark takes it: absolute, with a scheme. Raises :class:`BackfillError` for a pattern or nothing."""
    if not uri.strip():
        raise BackfillError(f"{what}: the place is empty; write a path or a URI")
    if found := placeholders(uri):
        raise BackfillError(f"{what}: nobody filled in {found[0]}; give the place with --table or --sink NAME=URI")
    if _GLOB.search(uri):
        raise BackfillError(
            f"{what}: {mask_secrets(uri)} holds a character of a pattern (* ? [ ] {{ }}); write one place"
        )
    parts = urlsplit(uri)
    if len(parts.scheme) > 1:  # one letter is a drive
        if parts.scheme != "file":
            return uri.rstrip("/")
        return Path(unquote(parts.path)).as_uri()
    return Path(uri).absolute().as_uri()


def nested(first: str, second: str) -> bool:
    """True when one place is the other or lies inside it."""
    a, b = f"{first.rstrip('/')}/", f"{second.rstrip('/')}/"
    return a.startswith(b) or b.startswith(a)
