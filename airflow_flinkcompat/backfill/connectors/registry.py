"""Registry of connectors, which are found by their modules, and the locations of tables.

Module ``NAME.py`` defines ``CONNECTOR`` and does not import Spark. Module ``NAME_spark.py`` is imported when Spark
runs. The module defines ``reader(session, source)`` if the connector can read, and ``publication(session, sink, rows,
bounds)`` if the connector can write.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from airflow_flinkcompat.backfill import connectors
from airflow_flinkcompat.backfill.protocols import (
    BackfillSink,
    BackfillSource,
    Publication,
    PublishedRows,
    Range,
    SourceReader,
)
from airflow_flinkcompat.backfill.result import BackfillError, Untranslatable
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import INTEGERS, TIMESTAMPS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MakeSource = Callable[[Table], BackfillSource]
MakeSink = Callable[[Table], BackfillSink]
NamedSource = Callable[[Table, str, str], BackfillSource]
"""Constructor of a source from a table, the requested location, and the option name for messages."""
NamedSink = Callable[[Table, str, str], BackfillSink]
_Made = TypeVar("_Made")
_RUN = "_spark"
"""Suffix of the connector modules that are imported when Spark runs."""
_DEFAULTS = "default_catalog.default_database."
# Types that Flink and Spark order in the same way.
_ORDERED = (*INTEGERS, "DECIMAL", "DATE", *TIMESTAMPS)


@dataclass(frozen=True)
class Connector:
    """Sources and sinks of one connector module.

    Attributes:
        sources: Constructors of a table's source, by the value of the option ``connector``. A constructor raises
            :class:`BackfillError` if the table cannot be read.
        sinks: Constructors of a table's sink, by the value of the option ``connector``. A constructor raises
            :class:`BackfillError` if rows cannot be written.
        named_sources: Constructors of a source at a requested location, by the prefix of the location
            (``delta:/place``); "" for a location without a prefix.
        named_sinks: Constructors of a sink at a requested location, by the prefix of the location; "" for a location
            without a prefix.
        listed: Position of the connector in messages that list all connectors.
    """

    sources: Mapping[str, MakeSource] = field(default_factory=dict)
    sinks: Mapping[str, MakeSink] = field(default_factory=dict)
    named_sources: Mapping[str, NamedSource] = field(default_factory=dict)
    named_sinks: Mapping[str, NamedSink] = field(default_factory=dict)
    listed: int = 99


def known_connectors() -> tuple[Connector, ...]:
    """All connectors, in the order in which messages list them."""
    return _known(tuple(connectors.__path__))


@cache
def _known(folders: tuple[str, ...]) -> tuple[Connector, ...]:
    names = {found.name for found in pkgutil.iter_modules(folders)}
    described = sorted(name for name in names if f"{name}{_RUN}" in names)
    found = (import_module(f"{connectors.__name__}.{name}").CONNECTOR for name in described)
    return tuple(sorted(found, key=lambda each: each.listed))


def merged(part: Callable[[Connector], Mapping[str, _Made]]) -> dict[str, _Made]:
    """One of the mappings of :class:`Connector`, merged over all connectors."""
    return {name: made for connector in known_connectors() for name, made in part(connector).items()}


def reader(session: SparkSession, source: BackfillSource) -> SourceReader:
    found: SourceReader = _spark_module(source).reader(session, source)
    return found


def publication(session: SparkSession, sink: BackfillSink, rows: PublishedRows, bounds: Range) -> Publication:
    found: Publication = _spark_module(sink).publication(session, sink, rows, bounds)
    return found


def _spark_module(described: object) -> Any:
    return import_module(f"{type(described).__module__}{_RUN}")


@dataclass(frozen=True)
class TableLocations:
    """Locations in a request that replace declared locations, by table name as the user wrote it."""

    tables: Mapping[str, str] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)
    orders: Mapping[str, str] = field(default_factory=dict)
    """Columns, ``a,b``, that define the order of arrival, by table name; "" for all other tables."""

    def check(self, sources: Iterable[Table], sinks: Iterable[Table]) -> None:
        """Raise :class:`BackfillError` for a name that does not match exactly one table in use."""
        read = tuple(sources)
        by_option = (
            ("--table", self.tables, read),
            ("--sink", self.sinks, tuple(sinks)),
            ("--order-by", self.orders, read),
        )
        for what, named, tables in by_option:
            paths = {table.path: table.name for table in tables}
            for name in filter(None, named):
                matching = [path for path in paths if _names(path, name)]
                known = ", ".join(sorted(paths.values())) or "none"
                if not matching:
                    verb = "writes" if what == "--sink" else "reads"
                    raise BackfillError(f"{what} {name}: the script {verb} no table with this name. It {verb} {known}")
                if len(matching) > 1:
                    raise BackfillError(f"{what} {name} matches several tables. Write the full name ({known})")

    def source(self, table: Table) -> BackfillSource:
        """Find the source of a table.

        Raises :class:`BackfillError` if the source is unknown or cannot be read exactly.
        """
        if any(name and _names(table.path, name) for name in self.orders):
            self.order(table)
        named, declared = merged(lambda each: each.named_sources), merged(lambda each: each.sources)
        return _source_or_sink(table, "--table", self.tables, named, declared)

    def order(self, table: Table) -> tuple[int, ...]:
        """Indexes of the columns that define in which order a table's rows arrived; empty if undeclared."""
        named = [name for name in self.orders if name and _names(table.path, name)]
        text = self.orders.get(named[0] if named else "", "")
        names = [column.name for column in table.columns]
        positions = []
        for name in filter(None, (part.strip().strip("`") for part in text.split(","))):
            if name not in names:
                raise BackfillError(
                    f"--order-by {text}: table {table.name} has no column {name}. The columns of the table "
                    f"are {', '.join(names)}"
                )
            kind = table.columns[names.index(name)].type
            if kind.name not in _ORDERED:
                raise BackfillError(
                    f"--order-by {text}: column {name} of table {table.name} is {kind}. Use whole or decimal "
                    "numbers, dates or timestamps"
                )
            positions.append(names.index(name))
        return tuple(positions)

    def sink(self, table: Table) -> BackfillSink:
        """Find the sink for a table.

        Raises :class:`BackfillError` if the sink is unknown or cannot be written exactly.
        """
        named, declared = merged(lambda each: each.named_sinks), merged(lambda each: each.sinks)
        return _source_or_sink(table, "--sink", self.sinks, named, declared)


@dataclass(frozen=True)
class AssumedLocations(TableLocations):
    """Locations without a request. If a declared table is unsupported, a supported location is assumed."""

    def source(self, table: Table) -> BackfillSource:
        """Find or assume the source of a table. Raises :class:`BackfillError` if no location is possible."""
        try:
            return super().source(table)
        except BackfillError:
            return _assumed(table, "parquet:/read", "--table", merged(lambda each: each.named_sources))

    def sink(self, table: Table) -> BackfillSink:
        """Find or assume the sink for a table. Raises :class:`BackfillError` if no location is possible."""
        try:
            return super().sink(table)
        except BackfillError:
            return _assumed(table, "delta:/written", "--sink", merged(lambda each: each.named_sinks))


def _assumed(table: Table, folder: str, what: str, named: Mapping[str, Callable[[Table, str, str], _Made]]) -> _Made:
    _check_declared(table)
    make, place = _at(f"{folder}/{quote(table.path[2], safe='')}", named)
    return make(table, place, what)


def _source_or_sink(
    table: Table,
    what: str,
    places: Mapping[str, str],
    named: Mapping[str, Callable[[Table, str, str], _Made]],
    declared: Mapping[str, Callable[[Table], _Made]],
) -> _Made:
    """Source or sink of a table: at the requested location, otherwise from its connector."""
    for name, uri in places.items():
        if _names(table.path, name):
            make_named, place = _at(uri, named)
            return make_named(table, place, f"{what} {name}")
    _check_declared(table)
    make = declared.get(table.option("connector") or "")
    if make is None:
        raise _unreachable(table, what, declared)
    return make(table)


def _at(uri: str, known: Mapping[str, _Made]) -> tuple[_Made, str]:
    """Constructor for a requested location, and the location in the form that it requires."""
    prefix, _, place = uri.partition(":")
    return (known[prefix], place) if prefix in known else (known[""], uri)


def _check_declared(table: Table) -> None:
    if not table.declared:
        raise Untranslatable(
            f"table {table.name} is not declared. Declare the table in the script or in the catalog DDL", table.span
        )


def _unreachable(table: Table, what: str, known: Iterable[str]) -> Untranslatable:
    connector = table.option("connector")
    return Untranslatable(
        f"table {table.name} has connector {connector or '(none)'}, but a backfill supports only "
        f"{', '.join(known)} tables. Specify the location of its history with {what} {table.path[2]}=URI",
        table.span,
    )


def _names(path: tuple[str, str, str], name: str) -> bool:
    parts = [part.strip("`") for part in name.removeprefix(_DEFAULTS).split(".")]
    own = [part for part in path if part]
    return len(parts) <= len(own) and own[-len(parts) :] == parts
