"""Comparison of the rows that two versions of a script wrote, in DuckDB.

Each sink has a folder with its changes in the format ``debezium-json``. The latest row of each key is compared if the
sink has a primary key. Otherwise the added rows minus the deleted rows are compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import duckdb
import pyarrow as pa
from upath import UPath

from airflow_flinkcompat.deploy.target import SinkTable
from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns, SinkPath
from airflow_flinkcompat.model.text import duckdb_name, sql_text
from airflow_flinkcompat.savepoint.store import place

CHANGED = "changed"
"""Name in place of a column, for all columns that the change names."""
SHOWN = 20
"""Number of differing rows that are shown of each sink."""
_NUMERIC = re.compile(r"(TINYINT|SMALLINT|INT|INTEGER|BIGINT|DECIMAL|NUMERIC|FLOAT|DOUBLE)\b")
_FLOATING = re.compile(r"(FLOAT|DOUBLE)\b")
_TOLERANCE = 1e-9
"""Relative difference of equal floating-point numbers, because sums depend on the order of rows."""
_PART = re.compile(r"part-.*-(\d+)-(\d+)")
_SIDES = ("old", "new")


class ShadowFinding(StrEnum):
    """Result of a shadow run, or of the comparison of one sink."""

    EQUAL = "equal"
    EXPECTED = "differs as expected"
    CHANGED = "differs in changed columns"
    DIFFERS = "differs"
    REFUSED = "refused"
    INCONCLUSIVE = "could not tell"


@dataclass(frozen=True)
class SinkDifference:
    """The difference between the rows of both scripts for one sink.

    Attributes:
        sink: Name of the sink.
        finding: Result of the comparison.
        compared: Number of rows that the old script wrote, and that the new script wrote.
        by_key: True if the latest rows by key were compared, False if all rows were compared.
        differing: Number of keys, or of rows without a key, that differ.
        columns: Number of differing keys by column; empty without a key.
        not_compared: Columns that only one script writes.
        rows: The first differing rows, with the values of both scripts.
        expected: Compared columns that a person expects to differ.
        changed: Columns that the change names; None if they are unknown.
    """

    sink: str
    finding: ShadowFinding
    compared: tuple[int, int]
    by_key: bool
    differing: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    not_compared: tuple[str, ...] = ()
    rows: pa.Table | None = field(default=None, repr=False)
    expected: tuple[str, ...] = ()
    changed: ChangedColumns | None = None


def compare_rows(
    old: Sequence[tuple[SinkTable, str]],
    new: Sequence[tuple[SinkTable, str]],
    *,
    expected: Collection[str] = (),
    changed: Mapping[SinkPath, ChangedColumns] | None = None,
    shown: int = SHOWN,
    store: Path | None = None,
    labels: tuple[str, str] = _SIDES,
) -> tuple[SinkDifference, ...]:
    """Compare the rows of two scripts, sink by sink.

    Args:
        old: Each sink of the old script with its folder, as a path or URI.
        new: Each sink of the new script with its folder.
        expected: Columns that may differ, as ``column`` or ``sink.column``. If no column has the name ``changed``,
            this name stands for all columns in ``changed``.
        changed: Columns that the change names, for each sink; None if they are unknown.
        shown: Number of differing rows to return for each sink.
        store: Local folder for all differing rows, as a Parquet file for each sink.
        labels: Names of both sides in the rows.

    Returns:
        The difference of each sink, in the order of the old script. A sink that only one script writes differs.
    """
    written = {sink.path: (sink, folder) for sink, folder in new}
    is_column = any(CHANGED in sink.columns for sink, _ in (*old, *new))
    wanted = _Wanted({*expected}, changed, CHANGED in expected and not is_column)
    found = []
    with duckdb.connect() as connection:
        for sink, folder in old:
            other, other_folder = written.pop(sink.path, (None, ""))
            counts = [_read(connection, "old", sink, folder), 0]
            if other is None:
                finding = ShadowFinding.DIFFERS if counts[0] else ShadowFinding.EQUAL
                found.append(SinkDifference(sink.name, finding, (counts[0], 0), False, counts[0]))
                continue
            counts[1] = _read(connection, "new", other, other_folder)
            comparison = _Comparison(connection, sink, other, wanted, shown, store, labels)
            found.append(comparison.difference((counts[0], counts[1])))
        for sink, folder in written.values():
            count = _read(connection, "new", sink, folder)
            finding = ShadowFinding.DIFFERS if count else ShadowFinding.EQUAL
            found.append(SinkDifference(sink.name, finding, (0, count), False, count))
    return tuple(found)


def worst(sinks: Sequence[SinkDifference]) -> ShadowFinding:
    """The worst finding of all sinks.

    Args:
        sinks: The difference of each sink.

    Returns:
        The finding; ``equal`` without sinks.
    """
    order = list(ShadowFinding)
    return max((each.finding for each in sinks), key=order.index, default=ShadowFinding.EQUAL)


def _read(connection: duckdb.DuckDBPyConnection, side: str, sink: SinkTable, folder: str) -> int:
    """Read a sink's changes into the table ``side``, in their order. Return their number."""
    files = _files(folder)
    names = ", ".join(f"{duckdb_name(name)} VARCHAR" for name in sink.columns)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {side} ({names}, deleted BOOLEAN, number BIGINT)")
    if not files:
        return 0
    if files[0].protocol not in ("", "file"):
        connection.register_filesystem(files[0].fs)
    # a partition's value is only in the path of its files
    values = ", ".join(
        f"coalesce(row ->> {sql_text(f'$.{duckdb_name(name)}')}, "
        f"nullif(regexp_extract(filename, {sql_text(f'/{re.escape(name)}=([^/]*)/')}, 1), ''))"
        for name in sink.columns
    )
    connection.execute(
        f"INSERT INTO {side} SELECT {values}, op = 'd', row_number() OVER () FROM ("
        "SELECT CASE op WHEN 'd' THEN before ELSE after END AS row, op, filename FROM read_json(?, "
        "format = 'newline_delimited', columns = {before: 'JSON', after: 'JSON', op: 'VARCHAR'}, filename = true, "
        "maximum_object_size = 134217728))",
        [[_in_duckdb(file) for file in files]],
    )
    ((count,),) = connection.execute(f"SELECT count(*) FROM {side}").fetchall()
    return int(count)


def _files(folder: str) -> list[UPath]:
    """The files of a sink in the order in which each subtask wrote them."""
    root = place(folder)
    if not root.exists():
        return []
    numbered = [(match, file) for file in root.glob("**/*") if (match := _PART.fullmatch(file.name))]
    return [file for _, file in sorted(numbered, key=lambda each: (int(each[0][1]), int(each[0][2]), str(each[1])))]


def _in_duckdb(file: UPath) -> str:
    return file.path if file.protocol in ("", "file") else str(file)


@dataclass(frozen=True)
class _Wanted:
    """Columns that may differ, by a person and by the change; ``all_changed``: a person expects both."""

    expected: Collection[str]
    changed: Mapping[SinkPath, ChangedColumns] | None
    all_changed: bool


class _Comparison:
    """The comparison of one sink; the tables ``old`` and ``new`` contain its changes."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        old: SinkTable,
        new: SinkTable,
        wanted: _Wanted,
        shown: int,
        store: Path | None,
        labels: tuple[str, str],
    ) -> None:
        self._connection, self._shown, self._store, self._labels = connection, shown, store, labels
        self._name = old.name
        common = [name for name in old.columns if name in new.columns]
        self._expected = {name for name in common if {name, f"{old.name}.{name}"} & {*wanted.expected}}
        self._changed = None if wanted.changed is None else wanted.changed.get(old.path)
        self._all_changed = wanted.all_changed
        self._key = old.key if old.key == new.key and set(old.key) <= {*common} - self._expected else ()
        self._columns = common
        self._values = [name for name in common if name not in self._key]
        self._not_compared = tuple(name for name in {**old.columns, **new.columns} if name not in common)
        self._inexact = {
            name: floating
            for name in self._values
            if (floating := _is_floating(old.columns[name], new.columns[name])) is not None
        }

    def difference(self, compared: tuple[int, int]) -> SinkDifference:
        columns, finding = self._by_key() if self._key else self._of_all_rows()
        ((differing,),) = self._connection.execute("SELECT count(*) FROM difference").fetchall()
        rows = None
        if differing:
            hidden = ", ".join(duckdb_name(f"{name} differs") for name in (self._values if self._key else ()))
            selected = f"SELECT *{f' EXCLUDE ({hidden})' if hidden else ''} FROM difference ORDER BY ALL"
            if self._store is not None:
                path = sql_text(str(self._store / f"{self._name}.parquet"))
                self._connection.execute(f"COPY ({selected}) TO {path} (FORMAT parquet)")
            rows = self._connection.sql(f"{selected} LIMIT {self._shown}").to_arrow_table()
        return SinkDifference(
            self._name,
            finding,
            compared,
            bool(self._key),
            differing,
            columns,
            self._not_compared,
            rows,
            tuple(name for name in self._columns if name in self._expected),
            self._changed,
        )

    def _finding(self, is_explained: Callable[[Collection[str], bool], bool]) -> ShadowFinding:
        """The mildest finding that explains all differences.

        ``is_explained`` receives the columns that may differ, and True if other rows may be written.
        """
        changed = self._changed or ChangedColumns()
        by_change = ({*changed.columns, *self._expected}, changed.rows)
        by_person = by_change if self._all_changed else (self._expected, False)
        if is_explained(*by_person):
            return ShadowFinding.EXPECTED
        return ShadowFinding.CHANGED if is_explained(*by_change) else ShadowFinding.DIFFERS

    def _by_key(self) -> tuple[dict[str, int], ShadowFinding]:
        """Compare the latest row of each key. Return the number of differing keys by column, and the finding."""
        keys = ", ".join(map(duckdb_name, self._key))
        for side in _SIDES:
            # a struct, because arg_max ignores NULL
            values = "".join(
                f", CASE WHEN arg_max(deleted, number) THEN NULL ELSE arg_max(struct_pack(v := {duckdb_name(name)}), "
                f"number).v END AS {duckdb_name(name)}"
                for name in self._values
            )
            self._connection.execute(
                f"CREATE OR REPLACE TEMP TABLE last_{side} AS SELECT {keys}, "
                f"CASE WHEN arg_max(deleted, number) THEN 'deleted' ELSE 'written' END AS state{values} "
                f"FROM {side} GROUP BY {keys}"
            )
        o, n = (f"coalesce({side}.state, 'not written')" for side in ("o", "n"))
        selected = [
            *(f"coalesce(o.{duckdb_name(name)}, n.{duckdb_name(name)}) AS {duckdb_name(name)}" for name in self._key),
            f"CASE WHEN {o} = {n} THEN 'changed' ELSE {o} || ' → ' || {n} END AS change",
            *(
                f"{side}.{duckdb_name(name)} AS {duckdb_name(f'{name} ({label})')}"
                for name in self._values
                for side, label in zip(("o", "n"), self._labels, strict=True)
            ),
            *(f"{self._differs(name)} AS {duckdb_name(f'{name} differs')}" for name in self._values),
        ]
        same = " AND ".join(f"o.{duckdb_name(name)} IS NOT DISTINCT FROM n.{duckdb_name(name)}" for name in self._key)
        conditions = " OR ".join(["o.state IS DISTINCT FROM n.state", *map(self._differs, self._values)])
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE difference AS SELECT {', '.join(selected)} "
            f"FROM last_old AS o FULL JOIN last_new AS n ON {same} WHERE {conditions}"
        )
        counted = [f"count(*) FILTER (WHERE {duckdb_name(f'{name} differs')})" for name in self._values]
        counted.insert(0, "count(*) FILTER (WHERE change <> 'changed')")
        ((changed, *counts),) = self._connection.execute(f"SELECT {', '.join(counted)} FROM difference").fetchall()
        columns = {name: count for name, count in zip(self._values, counts, strict=True) if count}
        if not (changed or columns):
            return columns, ShadowFinding.EQUAL
        return columns, self._finding(lambda named, rows: rows or not (changed or columns.keys() - {*named}))

    def _differs(self, name: str) -> str:
        old, new = f"o.{duckdb_name(name)}", f"n.{duckdb_name(name)}"
        different = f"{old} IS DISTINCT FROM {new}"
        return (
            f"({different} AND NOT {_close(old, new, self._inexact[name])})"
            if name in self._inexact
            else f"({different})"
        )

    def _net(self, names: str) -> None:
        """Rows that one script wrote more often than the other; ``times`` is positive for the new script."""
        sign = "CASE WHEN deleted THEN -1 ELSE 1 END"
        listed = f"{names}, " if names else ""
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE net AS SELECT {listed}sum(times)::BIGINT AS times FROM ("
            f"SELECT {listed}-({sign}) AS times FROM old UNION ALL SELECT {listed}{sign} FROM new"
            f") {f'GROUP BY {names} ' if names else ''}HAVING sum(times) <> 0"
        )

    def _of_all_rows(self) -> tuple[dict[str, int], ShadowFinding]:
        """Compare all rows. Return no columns, and the finding."""
        finding = ShadowFinding.EQUAL
        if self._unequal(self._columns):
            finding = self._finding(
                lambda named, rows: rows or not self._unequal([name for name in self._columns if name not in named])
            )
            self._unequal(self._columns)
        old, new = map(sql_text, self._labels)
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE difference AS SELECT CASE WHEN times > 0 THEN {new} ELSE {old} END "
            'AS "only in", abs(times) AS times, * EXCLUDE (times) FROM net'
        )
        return {}, finding

    def _unequal(self, columns: Sequence[str]) -> int:
        """Find the rows that differ by more than the tolerance of floating-point numbers. Return their number."""
        exact = [duckdb_name(name) for name in columns if name not in self._inexact]
        numbers = [name for name in columns if name in self._inexact]
        floats = [*map(duckdb_name, numbers)]
        self._net(", ".join((*exact, *floats)))
        if floats:
            part = ", ".join([*exact, "abs(times)", "sign(times)"])
            order = ", ".join(f"try_cast({name} AS DOUBLE)" for name in floats)
            same = [
                *(f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in exact),
                *("a.times = -b.times", "a.rank = b.rank"),
                *(_close(f"a.{duckdb_name(name)}", f"b.{duckdb_name(name)}", self._inexact[name]) for name in numbers),
            ]
            self._connection.execute(
                "CREATE OR REPLACE TEMP TABLE ranked AS "
                f"SELECT *, row_number() OVER (PARTITION BY {part} ORDER BY {order}) AS rank FROM net"
            )
            self._connection.execute(
                "CREATE OR REPLACE TEMP TABLE net AS SELECT * EXCLUDE (rank) FROM ranked AS a "
                f"WHERE NOT EXISTS (SELECT 1 FROM ranked AS b WHERE {' AND '.join(same)})"
            )
        ((count,),) = self._connection.execute("SELECT count(*) FROM net").fetchall()
        return int(count)


def _is_floating(old: str, new: str) -> bool | None:
    """True if a column is compared with a tolerance, False as a number of another type, None as a text."""
    if not all(map(_NUMERIC.match, (old, new))):
        return None
    return True if any(map(_FLOATING.match, (old, new))) else (None if old == new else False)


def _close(first: str, second: str, floating: bool) -> str:
    """SQL that is True for two equal numbers in text; ``floating``: if their relative difference is small."""
    if not floating:
        return f"coalesce(try_cast({first} AS DECIMAL(38, 18)) = try_cast({second} AS DECIMAL(38, 18)), false)"
    a, b = (f"try_cast({each} AS DOUBLE)" for each in (first, second))
    return f"coalesce({a} = {b} OR abs({a} - {b}) <= {_TOLERANCE} * greatest(abs({a}), abs({b})), false)"
