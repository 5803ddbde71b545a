"""Comparison of the rows that two versions of a script wrote, in DuckDB.

The latest row of each key is compared if the sink has a primary key, and if the order of each key's rows is known.
Otherwise the added rows minus the deleted rows are compared. Columns of users have names only in the last SELECT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.shadow.written_rows import WrittenRows, column, has_nested_numbers
from airflow_flinkcompat.deploy.target import SinkTable
from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns, SinkPath
from airflow_flinkcompat.model.shadow import CHANGED
from airflow_flinkcompat.model.text import sql_text

SHOWN = 20
"""Number of differing rows that are shown of each sink."""
_NUMERIC = re.compile(r"(TINYINT|SMALLINT|INT|INTEGER|BIGINT|DEC|DECIMAL|NUMERIC|FLOAT|DOUBLE)\b", re.IGNORECASE)
_TOLERANCES = {"FLOAT": 1e-5, "DOUBLE": 1e-9}
"""Relative difference of equal floating-point numbers, because sums depend on the order of rows."""
_ENDING = ".differing.parquet"
_ONLY_KEYS = "only one script writes each column outside the key, so no value was compared"
_NO_COLUMN = "no column is written by both scripts, so no value was compared"
_NO_ORDER = "several subtasks or partitions wrote rows of the same key, so all rows are compared, not the latest ones"
_SIDES = ("old", "new")
WrittenSink = tuple[SinkTable, str]
"""A sink with the folder of its changes."""


class ShadowFinding(StrEnum):
    """Result of a shadow run, or of the comparison of one sink, from the best to the worst."""

    EQUAL = "equal"
    EXPECTED = "differs as expected"
    CHANGED = "differs in changed columns"
    INCONCLUSIVE = "could not tell"
    DIFFERS = "differs"
    REFUSED = "refused"


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
        note: The reason why there is no result, or why rows of a sink with a key were not compared by key.
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
    note: str = ""


def compare_rows(
    old: Sequence[WrittenSink],
    new: Sequence[WrittenSink],
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
        store: Local folder for all differing rows, as a Parquet file for each sink. Files of earlier runs are deleted.
        labels: Names of both sides in the rows.

    Returns:
        The difference of each sink, in the order of the old script. A sink that only one script writes differs if it
        has rows.

    Raises:
        DeployError: The rows cannot be read, compared or stored.
    """
    written = {sink.path: (sink, folder) for sink, folder in new}
    is_column = any(CHANGED in sink.columns for sink, _ in (*old, *new))
    wanted = _Wanted({*expected}, changed, CHANGED in expected and not is_column)
    pairs = [(each, written.pop(each[0].path, None)) for each in old]
    found = []
    if store is not None:
        delete_rows(store)
    with (
        TemporaryDirectory(prefix="flinkcompat-rows-") as folder,  # for rows that exceed the memory
        duckdb.connect(config={"temp_directory": folder}) as connection,
    ):
        for each, other in (*pairs, *((None, each) for each in written.values())):
            sides, named = _both_sides(each, other), wanted if each and other else _Wanted()
            with _as_deploy_error(sides[0][0]):
                found.append(_Comparison(connection, *sides, named, shown, store, labels).difference())
    return tuple(found)


def _both_sides(old: WrittenSink | None, new: WrittenSink | None) -> tuple[WrittenSink, WrittenSink]:
    """Both sides of a sink. If only one script writes it, all its rows differ from no rows."""
    if old and new:
        return old, new
    (sink, folder), *_ = filter(None, (old, new))
    keyless = replace(sink, key=())
    return (keyless, folder if old else ""), (keyless, folder if new else "")


def delete_rows(store: Path) -> None:
    """Delete the differing rows of an earlier run.

    Args:
        store: Local folder of the rows. Other files in it remain.

    Raises:
        DeployError: A file cannot be deleted.
    """
    try:
        for file in store.glob(f"*{_ENDING}"):
            file.unlink()
    except OSError as error:
        raise DeployError(f"the differing rows of an earlier run cannot be deleted: {error}") from None


def worst(sinks: Sequence[SinkDifference]) -> ShadowFinding:
    """The worst finding of all sinks.

    Args:
        sinks: The difference of each sink.

    Returns:
        The finding; ``equal`` without sinks.
    """
    order = list(ShadowFinding)
    return max((each.finding for each in sinks), key=order.index, default=ShadowFinding.EQUAL)


@contextmanager
def _as_deploy_error(sink: SinkTable) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # DuckDB, pyarrow and stores raise errors of their own
        why = str(error).partition("\n")[0]
        raise DeployError(
            f"the rows of {sink.name} cannot be compared or stored ({type(error).__name__}): {why}"
        ) from error


@dataclass(frozen=True)
class _Wanted:
    """Columns that may differ, by a person and by the change; ``all_changed``: a person expects both."""

    expected: Collection[str] = ()
    changed: Mapping[SinkPath, ChangedColumns] | None = None
    all_changed: bool = False


class _Comparison:
    """The comparison of one sink; the tables ``old`` and ``new`` contain its changes."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        old: WrittenSink,
        new: WrittenSink,
        wanted: _Wanted,
        shown: int,
        store: Path | None,
        labels: tuple[str, str],
    ) -> None:
        self._connection, self._shown, self._store, self._labels = connection, shown, store, labels
        (before, old_folder), (after, new_folder) = old, new
        self._sink = before
        self._columns = [name for name in before.columns if name in after.columns]
        self._expected = {name for name in self._columns if {*names_of(before, name)} & {*wanted.expected}}
        self._changed = None if wanted.changed is None else wanted.changed.get(before.path)
        self._all_changed = wanted.all_changed
        self._not_compared = tuple(name for name in {**before.columns, **after.columns} if name not in self._columns)
        self._keys = {*before.key, *after.key}
        tolerances = {name: _tolerance(before.columns[name], after.columns[name]) for name in self._columns}
        self._inexact = {name: tolerance for name, tolerance in tolerances.items() if tolerance}
        nested = has_nested_numbers([*before.columns.values(), *after.columns.values()])
        kinds, others = ({name: side.columns[name] for name in self._columns} for side in (before, after))
        self._compared = (
            WrittenRows(kinds, old_folder, before.partitions, self._inexact, nested).read(connection, "old"),
            WrittenRows(others, new_folder, after.partitions, self._inexact, nested).read(connection, "new"),
        )
        key = before.key if before.key == after.key and self._keys <= {*self._columns} - self._expected else ()
        ordered = all(self._is_ordered(side, key) for side in _SIDES)
        self._note = "" if ordered else _NO_ORDER
        self._key = key if ordered else ()
        self._values = [name for name in self._columns if name not in self._key]

    def _is_ordered(self, side: str, key: Sequence[str]) -> bool:
        """True if one writer wrote all rows of each key, so their order is known."""
        keys = ", ".join(map(self._c, key))
        unordered = f"SELECT 1 FROM {side} GROUP BY {keys} HAVING min(writer) <> max(writer) LIMIT 1"
        return not (keys and self._connection.execute(unordered).fetchall())

    def _c(self, name: str) -> str:
        return column(self._columns.index(name))

    def difference(self) -> SinkDifference:
        columns, finding = self._by_key() if self._key else self._of_all_rows()
        accepted = finding in (ShadowFinding.EQUAL, ShadowFinding.EXPECTED)
        if accepted and any(self._compared) and self._not_compared and not {*self._columns} - self._keys:
            finding, self._note = ShadowFinding.INCONCLUSIVE, _ONLY_KEYS if self._columns else _NO_COLUMN
        ((differing,),) = self._connection.execute("SELECT count(*) FROM difference").fetchall()
        return SinkDifference(
            self._sink.name,
            finding,
            self._compared,
            bool(self._key),
            differing,
            columns,
            self._not_compared,
            self._shown_rows() if differing else None,
            tuple(name for name in self._columns if name in self._expected),
            self._changed,
            self._note,
        )

    def _shown_rows(self) -> pa.Table:
        """The first differing rows. Store all of them."""
        if self._key:
            pairs = [f"{name} ({label})" for name in self._values for label in self._labels]
            names = [*_apart(self._key, "change", *pairs), "change", *pairs]
            values = [f"{side}{self._c(name)}" for name in self._values for side in ("o", "n")]
            selected = ", ".join([*map(self._c, self._key), "change", *values])
        else:
            names = ["only in", "times", *_apart(self._columns, "only in", "times")]
            selected = ", ".join(["side", "times", *map(self._c, self._columns)])
        query = f"SELECT {selected} FROM difference ORDER BY ALL"
        if self._store is not None:
            path = ".".join(quote(part, safe="").replace(".", "%2E") for part in self._sink.path)
            batches = self._connection.sql(query).to_arrow_reader()
            schema = pa.schema(zip(names, batches.schema.types, strict=True))
            with pq.ParquetWriter(self._store / f"{path}{_ENDING}", schema) as file:
                for batch in batches:
                    file.write_batch(batch.rename_columns(names))
        return self._connection.sql(f"{query} LIMIT {self._shown}").to_arrow_table().rename_columns(names)

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
        keys, values = [*map(self._c, self._key)], [*map(self._c, self._values)]
        for side in _SIDES:
            # a struct, because arg_max ignores NULL
            latest = "".join(
                f", CASE WHEN arg_max(deleted, rowid) THEN NULL ELSE arg_max(struct_pack(v := {value}), rowid).v END "
                f"AS {value}"
                for value in values
            )
            self._connection.execute(
                f"CREATE OR REPLACE TEMP TABLE last_{side} AS SELECT {', '.join(keys)}, "
                f"CASE WHEN arg_max(deleted, rowid) THEN 'deleted' ELSE 'written' END AS state{latest} "
                f"FROM {side} GROUP BY {', '.join(keys)}"
            )
        o, n = (f"coalesce({side}.state, 'not written')" for side in ("o", "n"))
        differ = [self._differs(name) for name in self._values]
        selected = [
            *(f"coalesce(o.{key}, n.{key}) AS {key}" for key in keys),
            f"CASE WHEN {o} = {n} THEN 'changed' ELSE {o} || ' → ' || {n} END AS change",
            *(f"{side}.{value} AS {side}{value}" for value in values for side in ("o", "n")),
            *(f"{differs} AS d{value}" for differs, value in zip(differ, values, strict=True)),
        ]
        same = " AND ".join(f"o.{key} IS NOT DISTINCT FROM n.{key}" for key in keys)
        conditions = " OR ".join(["o.state IS DISTINCT FROM n.state", *differ])
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE difference AS SELECT {', '.join(selected)} "
            f"FROM last_old AS o FULL JOIN last_new AS n ON {same} WHERE {conditions}"
        )
        counted = [
            "count(*) FILTER (WHERE change <> 'changed')",
            *(f"count(*) FILTER (WHERE d{each})" for each in values),
        ]
        ((changed, *counts),) = self._connection.execute(f"SELECT {', '.join(counted)} FROM difference").fetchall()
        columns = {name: count for name, count in zip(self._values, counts, strict=True) if count}
        if not (changed or columns):
            return columns, ShadowFinding.EQUAL
        return columns, self._finding(lambda named, rows: rows or not (changed or columns.keys() - {*named}))

    def _differs(self, name: str) -> str:
        old, new = f"o.{self._c(name)}", f"n.{self._c(name)}"
        different = f"{old} IS DISTINCT FROM {new}"
        if name in self._inexact:
            different += f" AND NOT {_close(old, new, self._inexact[name])}"
        return f"({different})"

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
            "AS side, abs(times) AS times, * EXCLUDE (times) FROM net"
        )
        return {}, finding

    def _unequal(self, columns: Sequence[str]) -> int:
        """Find the rows that differ by more than the tolerance of floating-point numbers. Return their number."""
        exact = [self._c(name) for name in columns if name not in self._inexact]
        floats = {self._c(name): self._inexact[name] for name in columns if name in self._inexact}
        self._net(", ".join((*exact, *floats)))
        if floats:
            part = ", ".join([*exact, "abs(times)", "sign(times)"])
            order = ", ".join(f"try_cast({name} AS DOUBLE)" for name in floats)
            same = [
                *(f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in exact),
                *("a.times = -b.times", "a.rank = b.rank"),
                *(_close(f"a.{name}", f"b.{name}", tolerance) for name, tolerance in floats.items()),
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


def names_of(sink: SinkTable, column: str) -> tuple[str, str]:
    """The names of a column among the columns that may differ.

    Args:
        sink: The sink.
        column: A column of the sink.

    Returns:
        ``column`` and ``sink.column``.
    """
    return column, f"{sink.name}.{column}"


def _apart(names: Iterable[str], *taken: str) -> list[str]:
    """Names of columns in the result, apart from the ``taken`` names."""
    made = [*taken]
    for name in names:
        while name in made:
            name += " (2)"
        made.append(name)
    return made[len(taken) :]


def _tolerance(old: str, new: str) -> float | None:
    """The relative difference of equal numbers; None for a column whose texts are compared."""
    kinds = [match[1].upper() for match in map(_NUMERIC.match, (old, new)) if match]
    return max((_TOLERANCES[kind] for kind in kinds if kind in _TOLERANCES), default=None) if len(kinds) == 2 else None


def _close(first: str, second: str, tolerance: float) -> str:
    """SQL that is True for two equal numbers in text, or if their relative difference is small."""
    a, b = (f"try_cast({each} AS DOUBLE)" for each in (first, second))
    near = f"isfinite({a}) AND isfinite({b}) AND abs({a} - {b}) <= {tolerance} * greatest(abs({a}), abs({b}))"
    return f"coalesce({a} = {b} OR ({near}), false)"
