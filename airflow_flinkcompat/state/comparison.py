"""Comparison of the tables of two savepoints, row by row."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import duckdb
import pyarrow as pa

from airflow_flinkcompat.model.text import duckdb_name
from airflow_flinkcompat.savepoint.arrow_columns import MICROS, NANOSECONDS
from airflow_flinkcompat.savepoint.binary_row import FieldForm, field_form, split_type
from airflow_flinkcompat.state.columns import LAST_ACCESS, shown_type
from airflow_flinkcompat.state.operators import SOURCES
from airflow_flinkcompat.state.query import tables_in_sql
from airflow_flinkcompat.state.tables import OpenSavepoint, StateTable

SHOWN = 10
"""Number of differing rows that are shown of each table."""
_SIDES = ("first", "second")
_NUMBER = "row_number"
"""Number of a row among the positions of equal parts of a source, which the output lacks."""


@dataclass(frozen=True)
class TableDifference:
    """The difference of one table between two savepoints.

    Attributes:
        table: Name of the table.
        added: Number of rows whose key, window and position only the second savepoint has.
        removed: Number of rows whose key, window and position only the first savepoint has.
        changed: Number of rows that both savepoints have, with different values.
        columns: Number of changed rows in which the column has different values, by column.
        new_columns: Columns that only the second savepoint has.
        old_columns: Columns that only the first savepoint has.
        retyped: Both types of each column whose type differs. Its values are not compared.
        rows: Some of the differing rows, each with its ``change`` and both values of each column.
        only_in: ``first`` or ``second`` if only one savepoint has the table with this key; else "".
    """

    table: str
    added: int = 0
    removed: int = 0
    changed: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    new_columns: tuple[str, ...] = ()
    old_columns: tuple[str, ...] = ()
    retyped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    rows: pa.Table | None = field(default=None, repr=False)
    only_in: str = ""

    def __bool__(self) -> bool:
        counts = self.added or self.removed or self.changed
        return bool(counts or self.new_columns or self.old_columns or self.retyped or self.only_in)


def compare(first: OpenSavepoint, second: OpenSavepoint, shown: int = SHOWN) -> tuple[TableDifference, ...]:
    """Compare the tables of two savepoints, and the positions of their sources.

    The last access time of values with a state TTL is not compared.

    Args:
        first: The first savepoint.
        second: The second savepoint. Both savepoints must be opened with scripts, or both without.
        shown: Number of differing rows of each table to return.

    Returns:
        The difference of each table, in the order of the tables in the first savepoint, and of ``_sources``.

    Raises:
        SavepointUnreadable: A savepoint is damaged; the message names the file.
    """
    fine = {
        (table.name, column.name)
        for table in (*first.tables, *second.tables)
        for column in table.form.columns
        if (split_type(column.type)[1] or 0) > MICROS and field_form(column.type) is FieldForm.TIMESTAMP
    }
    first, second = _with_nanoseconds(first, fine), _with_nanoseconds(second, fine)
    of_both = {table.name: table for table in second.tables}
    with tables_in_sql({"first": first, "second": second}) as connection:
        return (*_differences(connection, first, of_both, shown), _of_sources(connection, shown))


def _with_nanoseconds(savepoint: OpenSavepoint, fine: Container[tuple[str, str]]) -> OpenSavepoint:
    """Add a column with the digits after the sixth to timestamps, which are compared exactly."""
    tables = []
    for table in savepoint.tables:
        added = [
            replace(column, name=f"{column.name} nanoseconds", type=NANOSECONDS)
            for column in table.form.columns
            if (table.name, column.name) in fine and field_form(column.type) is FieldForm.TIMESTAMP
        ]
        tables.append(replace(table, form=replace(table.form, columns=(*table.form.columns, *added))))
    return replace(savepoint, tables=tuple(tables))


def _differences(
    connection: duckdb.DuckDBPyConnection, first: OpenSavepoint, second: dict[str, StateTable], shown: int
) -> Iterator[TableDifference]:
    for table in first.tables:
        other = second.get(table.name)
        if other is None or _key_columns(other) != _key_columns(table):
            yield TableDifference(table.name, only_in="first")
        else:
            sides = [f"(SELECT *, true AS in_savepoint FROM {side}.{duckdb_name(table.name)})" for side in _SIDES]
            columns = _values(table), _values(other)
            yield _difference(connection, table.name, sides, table.identity, columns, shown)
            del second[table.name]
    for name in second:
        yield TableDifference(name, only_in="second")


def _of_sources(connection: duckdb.DuckDBPyConnection, shown: int) -> TableDifference:
    """The difference of the positions, without the ids of operators, which a migration may change."""
    keys = ("operator", "connector", "split", "partition")
    names = ", ".join(map(duckdb_name, keys))
    number = f"row_number() OVER (PARTITION BY {names} ORDER BY operator_id, position) AS {_NUMBER}"
    sides = [f"(SELECT *, {number}, true AS in_savepoint FROM {side}.{SOURCES.name})" for side in _SIDES]
    values = {field.name: str(field.type) for field in SOURCES.schema if field.name not in (*keys, "operator_id")}
    return _difference(connection, SOURCES.name, sides, (*keys, _NUMBER), (values, values), shown)


def _difference(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    sides: Sequence[str],
    keys: Sequence[str],
    columns: tuple[dict[str, str], dict[str, str]],
    shown: int,
) -> TableDifference:
    """The difference of two tables in SQL; ``columns``: types of the columns to compare, by name."""
    stored, new = columns
    retyped = {name: (stored[name], new[name]) for name in stored if name in new and stored[name] != new[name]}
    values = [name for name in stored if name in new and name not in retyped]
    changed = [
        f"(f.in_savepoint AND s.in_savepoint AND f.{duckdb_name(name)} IS DISTINCT FROM s.{duckdb_name(name)})"
        for name in values
    ]
    selected = [
        "CASE WHEN f.in_savepoint IS NULL THEN 'added' WHEN s.in_savepoint IS NULL THEN 'removed' "
        "ELSE 'changed' END AS change",
        *(f"coalesce(f.{duckdb_name(key)}, s.{duckdb_name(key)}) AS {duckdb_name(key)}" for key in keys),
        *(
            f"{side}.{duckdb_name(name)} AS {duckdb_name(f'{name} ({words})')}"
            for name in values
            for side, words in (("f", "first"), ("s", "second"))
        ),
        *(f"{condition} AS {duckdb_name(f'{name} differs')}" for name, condition in zip(values, changed, strict=True)),
    ]
    same = " AND ".join(f"f.{duckdb_name(key)} IS NOT DISTINCT FROM s.{duckdb_name(key)}" for key in keys) or "true"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE difference AS SELECT {', '.join(selected)} "
        f"FROM {sides[0]} AS f FULL JOIN {sides[1]} AS s ON {same} "
        f"WHERE {' OR '.join(('f.in_savepoint IS NULL', 's.in_savepoint IS NULL', *changed))}"
    )
    counts = dict(connection.execute("SELECT change, count(*) FROM difference GROUP BY ALL").fetchall())
    sums = ["count(*)", *(f"count(*) FILTER (WHERE {duckdb_name(f'{name} differs')})" for name in values)]
    ((_, *differing),) = connection.execute(f"SELECT {', '.join(sums)} FROM difference").fetchall()
    unshown = [*(f"{name} differs" for name in values), *(key for key in keys if key == _NUMBER)]
    hidden = f" EXCLUDE ({', '.join(map(duckdb_name, unshown))})" if unshown else ""
    rows = connection.sql(f"SELECT *{hidden} FROM difference ORDER BY ALL LIMIT {shown}").to_arrow_table()
    return TableDifference(
        table,
        counts.get("added", 0),
        counts.get("removed", 0),
        counts.get("changed", 0),
        {name: count for name, count in zip(values, differing, strict=True) if count},
        tuple(name for name in new if name not in stored),
        tuple(name for name in stored if name not in new),
        retyped,
        rows,
    )


def _key_columns(table: StateTable) -> list[object]:
    """Names and types of the columns that identify a row."""
    return [table.schema.field(name) for name in table.identity]


def _values(table: StateTable) -> dict[str, str]:
    """Flink's types of the columns to compare, by name."""
    columns = {column.name: shown_type(column.type) for column in table.form.columns}
    return {name: type for name, type in columns.items() if name not in (*table.identity, LAST_ACCESS)}
