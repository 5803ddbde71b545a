"""The connectors, found by their modules, and the places of tables.

``NAME.py`` describes a connector in ``CONNECTOR`` and imports no Spark. ``NAME_spark.py`` is imported when Spark runs:
a readable connector has ``reader(session, source)`` there, a writable one ``publication(session, sink, rows, bounds)``.
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
"""Constructor of a source from a table, the requested place, and the argument name in messages."""
NamedSink = Callable[[Table, str, str], BackfillSink]
_Made = TypeVar("_Made")
_RUN = "_spark"
"""Ending of the module of a connector that is imported when Spark runs."""
_DEFAULTS = "default_catalog.default_database."
# Types whose order is the same in Flink and Spark.
_ORDERED = (*INTEGERS, "DECIMAL", "DATE", *TIMESTAMPS)


@dataclass(frozen=True)
class Connector:
    """Sources and sinks of one module.

    Attributes:
        sources: Constructors of a table's source, by the value of its option ``connector``. A constructor raises
        :class:`BackfillError` if such a table is not read.
        sinks: The same for sinks.
        named_sources: Constructors of a source at a place that a request names, by the text before its first colon
            (``delta:/place``); "" is any other place.
        named_sinks: The same for sinks.
        listed: The place among other connectors where a message names them all.
    """

    sources: Mapping[str, MakeSource] = field(default_factory=dict)
    sinks: Mapping[str, MakeSink] = field(default_factory=dict)
    named_sources: Mapping[str, NamedSource] = field(default_factory=dict)
    named_sinks: Mapping[str, NamedSink] = field(default_factory=dict)
    listed: int = 99


def known_connectors() -> tuple[Connector, ...]:
    """All connectors, in the order in which messages name them."""
    return _known(tuple(connectors.__path__))


@cache
def _known(folders: tuple[str, ...]) -> tuple[Connector, ...]:
    names = {found.name for found in pkgutil.iter_modules(folders)}
    described = sorted(name for name in names if f"{name}{_RUN}" in names)
    found = (import_module(f"{connectors.__name__}.{name}").CONNECTOR for name in described)
    return tuple(sorted(found, key=lambda each: each.listed))


def merged(part: Callable[[Connector], Mapping[str, _Made]]) -> dict[str, _Made]:
    """One of the mappings of :class:`Connector`, over all connectors."""
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
    """Places of a request that replace the declared ones, by table name as the user wrote it."""

    tables: Mapping[str, str] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)
    orders: Mapping[str, str] = field(default_factory=dict)
    """Columns, ``a,b``, of the arrival order, by table name as written; "" stands for every other table."""

    def check(self, sources: Iterable[Table], sinks: Iterable[Table]) -> None:
        """Raise :class:`BackfillError` for a name that matches no table that is read or written, or several."""
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
                    raise BackfillError(f"{what} {name} matches several tables; write the full name ({known})")

    def source(self, table: Table) -> BackfillSource:
        """The source of a table. Raises :class:`BackfillError` if it is unknown or not read exactly."""
        if any(name and _names(table.path, name) for name in self.orders):
            self.order(table)
        named, declared = merged(lambda each: each.named_sources), merged(lambda each: each.sources)
        return _source_or_sink(table, "--table", self.tables, named, declared)

    def order(self, table: Table) -> tuple[int, ...]:
        """Positions of the columns that define the arrival order of a table's rows; none if undeclared."""
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
                    f"--order-by {text}: column {name} of table {table.name} is {kind}; use whole or "
                    "decimal numbers, dates or timestamps"
                )
            positions.append(names.index(name))
        return tuple(positions)

    def sink(self, table: Table) -> BackfillSink:
        """The sink of a table. Raises :class:`BackfillError` if it is unknown or not written exactly."""
        named, declared = merged(lambda each: each.named_sinks), merged(lambda each: each.sinks)
        return _source_or_sink(table, "--sink", self.sinks, named, declared)


@dataclass(frozen=True)
class AssumedLocations(TableLocations):
    """Places without a request: an unreachable declared table is assumed to get one."""

    def source(self, table: Table) -> BackfillSource:
        """The source of a table. Raises :class:`BackfillError` if no place is possible."""
        try:
            return super().source(table)
        except BackfillError:
            return _assumed(table, "parquet:/read", "--table", merged(lambda each: each.named_sources))

    def sink(self, table: Table) -> BackfillSink:
        """The sink of a table. Raises :class:`BackfillError` if no place is possible."""
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
    """The source or sink of a table: at the place in a request, else by its connector."""
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
    """The constructor of a source or sink at a requested place, and the place in its form."""
    prefix, _, place = uri.partition(":")
    return (known[prefix], place) if prefix in known else (known[""], uri)


def _check_declared(table: Table) -> None:
    if not table.declared:
        raise Untranslatable(
            f"table {table.name} is not declared; declare it in the script or in the catalog DDL", table.span
        )


def _unreachable(table: Table, what: str, known: Iterable[str]) -> Untranslatable:
    connector = table.option("connector")
    return Untranslatable(
        f"table {table.name} has connector {connector or '(none)'}, but a backfill supports "
        f"{', '.join(known)} tables only; name the place of its history with {what} {table.path[2]}=URI",
        table.span,
    )


def _names(path: tuple[str, str, str], name: str) -> bool:
    parts = [part.strip("`") for part in name.removeprefix(_DEFAULTS).split(".")]
    own = [part for part in path if part]
    return len(parts) <= len(own) and own[-len(parts) :] == parts
