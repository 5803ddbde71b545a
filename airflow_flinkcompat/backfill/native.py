"""Native partials: DuckDB inside Spark's tasks aggregates parquet files into slices; Spark combines and publishes.

Each task is given whole files and returns what Spark's own first aggregation would have (:mod:`slices`), a fraction of
the rows, at a fraction of the work. Only what gives the same values for certain is computed so: plain columns of types
both hold alike, sums of whole numbers with Flink's wrap-around, of decimals that cannot overflow, counts, minima and
maxima. Anything else is left to Spark's operators, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from airflow_flinkcompat.backfill.connectors.columnar import ColumnarFormat
from airflow_flinkcompat.backfill.connectors.files import Files
from airflow_flinkcompat.backfill.connectors.lakes import finer
from airflow_flinkcompat.backfill.expressions import spark_type
from airflow_flinkcompat.backfill.slices import density
from airflow_flinkcompat.backfill.steps import Assign, Group, Read, Select, Slices, Step, Together, Where, Work
from airflow_flinkcompat.plan.types import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DENSE = 4.0
"""Rows per key and slice from which on native partials are worth it: with fewer they are nearly as many as the rows."""
ROWS = 1_000_000
"""Rows in all files from which on they win back what starting Python beside the tasks costs."""
SAMPLE = 20_000
MEMORY = "1GB"  # of one task's DuckDB; beyond that it works on disk
_COLUMN = re.compile(r"c(\d+)")
_PARTIAL = re.compile(r"(sum|count|min|max)\((?:c(\d+)|1)\)")
# Flink's types → DuckDB's: what a file must hold to be read the same by both.
_KINDS = {
    "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INTEGER", "BIGINT": "BIGINT", "BOOLEAN": "BOOLEAN",
    "VARCHAR": "VARCHAR", "DATE": "DATE", "TIMESTAMP": "TIMESTAMP",
}  # fmt: skip
_WHOLE = {"TINYINT", "SMALLINT", "INT", "BIGINT"}


class NotNative(Exception):
    """Why Spark's own operators compute an aggregation."""


@dataclass(frozen=True)
class Partials:
    """One aggregation's partials: from which files, in DuckDB's words, with Spark's types.

    ``files`` are URIs as Spark names them; the query has ``{files}`` where its list of paths stands and gives the
    columns of ``schema``: keys, ``slice``, partials, then how many rows were read for the row and how many of those
    had no time. Rows without a slice are counted only.
    """

    read: Read
    files: tuple[str, ...]
    query: str
    schema: str
    rows_per_slice: float


class Natives:
    """Decides, once for each aggregation, whether it is computed natively."""

    def __init__(self, wanted: bool, progress: Callable[[str], None] = lambda line: None) -> None:
        self._wanted, self._progress = wanted, progress
        self._found: dict[Group, Partials | None] = {}
        self._contents: dict[tuple[str, ...], _Contents] = {}

    def __call__(self, group: Group) -> Partials | None:
        """How an aggregation is computed natively, None if not; the reason is told."""
        if not self._wanted or group.slices is None:
            return None
        if group not in self._found:
            self._found[group] = self._decided(group, group.slices)
        return self._found[group]

    def covers(self, work: Work) -> bool:
        """Whether nothing but native aggregations reads rows, so that little is left to Spark's own operators."""
        return all(self._covered(step) for write in work.writes for step in write.inputs)

    def _covered(self, step: Step) -> bool:
        if isinstance(step, Group) and self(step) is not None:
            return True
        if isinstance(step, Read):
            return False
        return all(self._covered(inner) for inner in (step.inputs if isinstance(step, Together) else (step.input,)))

    def _decided(self, group: Group, slices: Slices) -> Partials | None:
        kind = "windows"
        try:
            assign = windows_of(group)
            kind = str(assign.windows.kind)
            partials = self._partials(assign, slices)
        except NotNative as reason:
            self._progress(f"{kind}: Spark's own operators aggregate all rows, because {reason}")
            return None
        self._progress(
            f"{kind}: about {partials.rows_per_slice:.1f} rows per key and slice, so DuckDB aggregates files to slices"
        )
        return partials

    def _partials(self, assign: Assign, slices: Slices) -> Partials:
        try:
            import duckdb
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise NotNative(f"{error.name} is not installed (pip install 'airflow-flinkcompat[native]')") from None
        words = Words.of(assign, slices)
        contents = self._contents.setdefault(words.source.files, _Contents(words.source.files))
        try:
            contents.check(words.source.kinds)
            if contents.rows < ROWS:
                raise NotNative(f"{contents.rows} rows are too few for more")
            with duckdb.connect(config={"threads": 1}) as connection:
                sample = connection.sql(words.sample(contents.paths)).fetchall()
        except duckdb.Error as error:
            raise NotNative(f"DuckDB does not read the files: {str(error).splitlines()[0]}") from None
        found = density(sample, assign.windows.slice, contents.rows)
        if found < DENSE:
            raise NotNative(f"there are only about {found:.1f} rows per key and slice")
        return Partials(words.source.read, words.source.files, words.query, words.schema, found)


@dataclass(frozen=True)
class _Contents:
    files: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path_of(file) for file in self.files)

    @cached_property
    def _columns(self) -> tuple[dict[str, str], ...]:
        import duckdb

        with duckdb.connect(config={"threads": 1}) as connection:
            found = []
            for path in self.paths:
                rows = connection.sql(f"DESCRIBE SELECT * FROM {read_parquet([path])}").fetchall()
                found.append({str(row[0]): str(row[1]) for row in rows})
            return tuple(found)

    @cached_property
    def rows(self) -> int:
        """How many there are in all files."""
        import duckdb

        with duckdb.connect(config={"threads": 1}) as connection:
            listed = ", ".join(map(text, self.paths))
            query = f"SELECT sum(num_rows) FROM parquet_file_metadata([{listed}])"
            return int(connection.sql(query).fetchall()[0][0])

    def check(self, kinds: dict[str, tuple[str, ...]]) -> None:
        """Raises :class:`NotNative` unless all files have these columns in one of these types."""
        for path, columns in zip(self.paths, self._columns, strict=True):
            names = [name.lower() for name in columns]
            for name, wanted in kinds.items():
                if columns.get(name) not in wanted or names.count(name.lower()) != 1:
                    held = columns.get(name, "missing")
                    raise NotNative(f"column {name} is {held} in {Path(path).name}, not {wanted[0]}")


@dataclass(frozen=True)
class _Source:
    """The files below an aggregation, and its columns by position."""

    read: Read
    files: tuple[str, ...]
    positions: dict[int, Column]
    time: Column

    @property
    def kinds(self) -> dict[str, tuple[str, ...]]:
        """DuckDB's types for the columns, by name. Of a time only the count of microseconds is taken."""
        kinds: dict[str, tuple[str, ...]] = {column.name: (_kind(column),) for column in self.positions.values()}
        kinds[self.time.name] = ("TIMESTAMP", *(() if self.time.name in kinds else ("TIMESTAMP WITH TIME ZONE",)))
        return kinds


@dataclass(frozen=True)
class Words:
    """An aggregation's partials in DuckDB's SQL."""

    source: _Source
    query: str
    schema: str
    _sample: str

    def sample(self, paths: Iterable[str]) -> str:
        """The query of (hash of the keys, slice, time) of the first rows."""
        return self._sample.replace("{files}", read_parquet(paths))

    @classmethod
    def of(cls, assign: Assign, slices: Slices) -> Words:
        """Raises :class:`NotNative` for whatever is not the same for certain."""
        if slices.condition != "TRUE":
            raise NotNative("rows are filtered")
        if slices.values:
            raise NotNative("an aggregate is DISTINCT")
        if assign.zone:
            raise NotNative(f"windows are cut in the time zone {assign.zone}")
        keys = [(f"k{position}", _column(sql)) for position, sql in slices.keys]
        calls = [(f"p{i}", *_call(sql)) for i, sql in enumerate(slices.partials)]
        wanted = {column for _, column in keys} | {column for _, _, column in calls if column is not None}
        source = _source(assign, wanted)
        names, schema = [], []
        for name, position in keys:
            column = source.positions[position]
            names.append(f"{identifier(column.name)} AS {name}")
            schema.append(f"{name} {spark_type(column.type)}")
        inner, outer = [], []
        for name, function, place in calls:
            counted = None if place is None else source.positions[place]
            value, kind = _aggregate(function, counted)
            argument = "*" if counted is None else identifier(counted.name)
            inner.append(f"{function}({argument}) AS {name}")
            outer.append(f"{value.format(name)} AS {name}")
            schema.append(f"{name} {kind}")
        time = identifier(source.time.name)
        slice_ = f"CASE WHEN {_spanned(assign)} THEN {_slice('micros', assign)} END AS slice"
        counts = ["count(*) AS rows", "count(*) FILTER (WHERE micros IS NULL) AS nulls"]
        rows = f"SELECT *, {_micros(source)} AS micros FROM {{files}}"
        span = source.read.source.span if isinstance(source.read.source, Files) else None
        if span is not None:
            rows += " WHERE " + " AND ".join(
                f"({time} IS NULL OR epoch_us({time}) {operator} {micros})"
                for operator, micros in ((">=", span.first), ("<", span.last))
                if micros is not None
            )
        grouped = f"SELECT {', '.join([*names, slice_, *inner, *counts])} FROM ({rows}) GROUP BY ALL"
        outputs = [*(name for name, _ in keys), "slice", *outer, "rows", "nulls"]
        hashed = f"hash({', '.join(identifier(source.positions[p].name) for _, p in keys)})" if keys else "0"
        return cls(
            source,
            f"SELECT {', '.join(outputs)} FROM ({grouped})",
            ", ".join([*schema[: len(keys)], "slice BIGINT", *schema[len(keys) :], "rows BIGINT", "nulls BIGINT"]),
            f"SELECT {hashed}, {_slice('micros', assign)}, micros FROM (SELECT *, epoch_us({time}) AS micros "
            f"FROM {{files}} LIMIT {SAMPLE}) WHERE micros IS NOT NULL",
        )


def windows_of(group: Group) -> Assign:
    """The windows of an aggregation. Raises :class:`NotNative` where it is not over windows right above rows."""
    below = group.input
    while isinstance(below, Select | Where):
        below = below.input
    if not isinstance(below, Assign):
        raise NotNative("it is not right above a windowing function")
    return below


def read_parquet(paths: Iterable[str]) -> str:
    """DuckDB's relation of files, columns by name as they are: nothing is read into their folders' names."""
    return f"read_parquet([{', '.join(map(text, paths))}], hive_partitioning = false)"


def path_of(file: str) -> str:
    """The path of a file's URI. Raises :class:`NotNative` for one that is not on this machine."""
    address = urlsplit(file)
    if address.scheme != "file":
        raise NotNative(f"the files lie in {address.scheme}, which DuckDB does not read here")
    path = unquote(address.path)
    if any(letter in path for letter in "*?["):
        raise NotNative("DuckDB would take a file's name for a pattern")
    return path


def identifier(name: str) -> str:
    """A column's name in DuckDB's SQL."""
    return '"{}"'.format(name.replace('"', '""'))


def text(value: str) -> str:
    """A literal in DuckDB's SQL."""
    return "'{}'".format(value.replace("'", "''"))


def listed(place: str) -> tuple[str, ...]:
    """The URIs of the files a folder holds, as Spark lists them: at any depth, hidden ones passed over."""
    root = Path(path_of(place))
    if root.is_file():
        return (root.as_uri(),)
    files = []
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and not any(part.startswith((".", "_")) for part in parts):
            files.append(path.as_uri())
    return tuple(files)


def _source(assign: Assign, wanted: set[int]) -> _Source:
    """The files and columns below the windows, where only plain columns are in between."""
    step, places = assign.input, {position: position for position in {*wanted, assign.time}}
    while isinstance(step, Select):
        columns = dict(step.columns)
        places = {position: _column(columns[below]) for position, below in places.items()}
        step = step.input
    if not isinstance(step, Read):
        raise NotNative("rows are filtered or put together before their windows")
    source = step.source
    format = source.format if isinstance(source, Files) else None
    if not isinstance(source, Files) or not isinstance(format, ColumnarFormat) or format.name != "parquet":
        raise NotNative(f"{step.table} is not read from parquet files")
    if step.watermark is not None or step.condition:
        raise NotNative("late rows or whole folders are left out")
    fields, columns = dict(step.fields), dict(step.columns)
    found = {}
    for position, below in places.items():
        if below not in fields:
            raise NotNative(f"a column of {step.table} is computed")
        column = source.columns[fields[below]]
        if column.name in source.partitioning.names:
            raise NotNative(f"column {column.name} is the name of a folder")
        if not column.type.nullable:
            raise NotNative(f"column {column.name} is NOT NULL, which Spark checks")
        _kind(column)
        plain = column.type.name == "TIMESTAMP" or columns[below] == f"f{fields[below]}"
        if not plain or (position != assign.time and column.type.name == "TIMESTAMP" and column.type.parameters[0] < 6):
            raise NotNative(f"column {column.name} of type {column.type} is checked by Spark")
        found[position] = column
    files = listed(source.place)
    if not files:
        raise NotNative("there are no files")
    time = found[assign.time]
    if time.type.name != "TIMESTAMP":
        raise NotNative(f"column {time.name} is {time.type}")
    return _Source(step, files, {position: found[position] for position in wanted}, time)


def _kind(column: Column) -> str:
    if column.type.name == "DECIMAL":
        return "DECIMAL({},{})".format(*column.type.parameters)
    try:
        return _KINDS[column.type.name]
    except KeyError:
        raise NotNative(f"column {column.name} is {column.type}") from None


def _column(sql: str) -> int:
    found = _COLUMN.fullmatch(sql)
    if found is None:
        raise NotNative("a key or a time is computed")
    return int(found[1])


def _call(sql: str) -> tuple[str, int | None]:
    """The function and the position of its argument, None for all rows."""
    found = _PARTIAL.fullmatch(sql)
    if found is None or (found[2] is None and found[1] != "count"):
        raise NotNative("an aggregate is not over a plain column")
    return found[1], None if found[2] is None else int(found[2])


def _aggregate(function: str, column: Column | None) -> tuple[str, str]:
    """The value of DuckDB's aggregate as Spark would have it, and its type in Spark."""
    if function == "count" or column is None:
        return "{}", "BIGINT"
    kind = column.type
    if function in ("min", "max") and kind.name != "BOOLEAN":
        return "{}", str(spark_type(kind))
    if function == "sum" and kind.name in _WHOLE:
        # DuckDB adds up in 128 bits; the lower 64 of them are what Flink and Spark have after all their overflows.
        low = "({0} & 18446744073709551615::HUGEINT)"
        wrapped = f"CASE WHEN {low} > 9223372036854775807 THEN {low} - 18446744073709551616::HUGEINT ELSE {low} END"
        return f"CAST({wrapped} AS BIGINT)", "BIGINT"
    if function == "sum" and kind.name == "DECIMAL":
        precision, scale = min(kind.parameters[0] + 10, 38), kind.parameters[1]
        return f"CAST({{}} AS DECIMAL({precision}, {scale}))", f"DECIMAL({precision}, {scale})"
    raise NotNative(f"{function.upper()} of {kind} is not the same for certain")


def _micros(source: _Source) -> str:
    """Microseconds of the event time; an error for one finer than declared, as with Spark."""
    micros = f"epoch_us({identifier(source.time.name)})"
    precision = source.time.type.parameters[0]
    if precision >= 6:
        return micros
    refused = f"error({text(finer(source.read.table, source.time))})"
    return f"CASE WHEN {micros} % {10 ** (6 - precision)} <> 0 THEN CAST({refused} AS BIGINT) ELSE {micros} END"


def _spanned(assign: Assign) -> str:
    """Whether some window asked for may hold the row; not so without a time."""
    first, last = assign.windows.span(assign.demand)
    bounds = [f"micros {operator} {micros}" for operator, micros in ((">=", first), ("<", last)) if micros is not None]
    return " AND ".join(bounds) or "micros IS NOT NULL"


def _slice(micros: str, assign: Assign) -> str:
    """The start of the slice; DuckDB's remainder has the sign of what is divided."""
    length, offset = assign.windows.slice, assign.windows.offset
    return f"{micros} - ((({micros} - {offset}) % {length}) + {length}) % {length}"


def pieces(session: SparkSession, partials: Partials) -> DataFrame:
    """The partials as Spark's rows: one task for each share of the files. Code of ours runs there, as a value."""
    slots = session.sparkContext.defaultParallelism
    shares = _shares(partials.files, slots)
    queries = [partials.query.replace("{files}", read_parquet(map(path_of, share))) for share in shares]
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": max(1, slots // len(shares)),
        "memory_limit": MEMORY,
        "preserve_insertion_order": "false",
    }

    def computed(batches):  # type: ignore[no-untyped-def]  # its types would be imported by the task
        import tempfile

        import duckdb

        for batch in batches:
            for number in batch.column(0).to_pylist():
                with (
                    tempfile.TemporaryDirectory() as folder,
                    duckdb.connect(config={**config, "temp_directory": folder}) as connection,
                ):
                    yield from connection.sql(queries[number]).to_arrow_reader(65_536)

    return session.range(0, len(shares), 1, len(shares)).mapInArrow(computed, partials.schema)


def _shares(files: tuple[str, ...], slots: int) -> list[list[str]]:
    """The files in shares of about the same size, a few for each slot so that none waits long for another."""
    count = max(1, min(len(files), 2 * slots))
    sized = sorted(((Path(path_of(file)).stat().st_size, file) for file in files), reverse=True)
    shares: list[tuple[int, list[str]]] = [(0, []) for _ in range(count)]
    for size, file in sized:
        smallest = min(range(count), key=lambda i: shares[i][0])
        total, members = shares[smallest]
        shares[smallest] = (total + size, [*members, file])
    return [members for _, members in shares]
