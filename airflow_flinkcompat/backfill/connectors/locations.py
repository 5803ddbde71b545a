"""Places of tables: declared or requested, checked as far as possible without access to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote

from airflow_flinkcompat.backfill.connectors.registry import merged
from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable
from airflow_flinkcompat.backfill.protocols import BackfillSink, BackfillSource
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import INTEGERS, TIMESTAMPS

_DEFAULTS = "default_catalog.default_database."
# What tells the order of arrival.
_ORDERED = (*INTEGERS, "DECIMAL", "DATE", *TIMESTAMPS)
_Made = TypeVar("_Made")


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
        for what, given, tables in by_option:
            paths = {table.path: table.name for table in tables}
            for name in filter(None, given):
                matching = [path for path in paths if _names(path, name)]
                known = ", ".join(sorted(paths.values())) or "none"
                if not matching:
                    verb = "writes" if what == "--sink" else "reads"
                    raise BackfillError(f"{what} {name}: the script {verb} no table of that name; it {verb} {known}")
                if len(matching) > 1:
                    raise BackfillError(f"{what} {name} matches several tables; write the full name ({known})")

    def source(self, table: Table) -> BackfillSource:
        """The source of a table. Raises :class:`BackfillError` if it is unknown or not read exactly."""
        if any(name and _names(table.path, name) for name in self.orders):
            self.order(table)
        given, declared = merged(lambda each: each.given_sources), merged(lambda each: each.sources)
        return _source_or_sink(table, "--table", self.tables, given, declared)

    def order(self, table: Table) -> tuple[int, ...]:
        """Positions of the columns that define the arrival order of a table's rows; none if undeclared.

        Raises :class:`BackfillError` for a missing column, or one whose order differs between Flink and Spark.
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
                    f"--order-by {text}: column {name} of table {table.name} is {kind}; use whole or "
                    "decimal numbers, dates or timestamps"
                )
            positions.append(names.index(name))
        return tuple(positions)

    def sink(self, table: Table) -> BackfillSink:
        """The sink of a table. Raises :class:`BackfillError` if it is unknown or not written exactly."""
        given, declared = merged(lambda each: each.given_sinks), merged(lambda each: each.sinks)
        return _source_or_sink(table, "--sink", self.sinks, given, declared)


@dataclass(frozen=True)
class AssumedLocations(TableLocations):
    """Places before a request names any: an unreachable declared table is assumed to get one."""

    def source(self, table: Table) -> BackfillSource:
        """The source of a table. Raises :class:`BackfillError` if no place would do."""
        try:
            return super().source(table)
        except BackfillError:
            _check_declared(table)
            make, place = _at(f"parquet:/read/{quote(table.path[2], safe='')}", merged(lambda each: each.given_sources))
            return make(table, place, "--table")

    def sink(self, table: Table) -> BackfillSink:
        """The sink of a table. Raises :class:`BackfillError` if no place would do."""
        try:
            return super().sink(table)
        except BackfillError:
            _check_declared(table)
            make, place = _at(f"delta:/written/{quote(table.path[2], safe='')}", merged(lambda each: each.given_sinks))
            return make(table, place, "--sink")


def _source_or_sink(
    table: Table,
    what: str,
    places: Mapping[str, str],
    given: Mapping[str, Callable[[Table, str, str], _Made]],
    declared: Mapping[str, Callable[[Table], _Made]],
) -> _Made:
    """The source or sink of a table: at the place in a request, else by its connector."""
    for name, uri in places.items():
        if _names(table.path, name):
            make_given, place = _at(uri, given)
            return make_given(table, place, f"{what} {name}")
    _check_declared(table)
    make = declared.get(table.option("connector") or "")
    if make is None:
        raise _unreachable(table, what, declared)
    return make(table)


def _at(uri: str, known: Mapping[str, _Made]) -> tuple[_Made, str]:
    """The maker of a source or sink at a requested place, and the place in its form."""
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
