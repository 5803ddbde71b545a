"""DuckDB SQL for partial aggregates that are certainly equal to Spark's, and its execution in tasks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.connectors.delta import DeltaSource
from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.backfill.connectors.iceberg import IcebergSource
from airflow_flinkcompat.backfill.duckdb.data_files import DataFiles, NotEligible, filled_in, floored, kind_of, path_of
from airflow_flinkcompat.backfill.formats.columnar import ColumnarFormat
from airflow_flinkcompat.backfill.formats.text import CsvFormat
from airflow_flinkcompat.backfill.spark_sql.expressions import spark_type
from airflow_flinkcompat.backfill.steps import Assign, Group, Read, Select, Slices, Where
from airflow_flinkcompat.plan.types import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


MEMORY = "1GB"  # Memory of DuckDB in one task. Beyond this amount, DuckDB uses the disk.
_FAILED = "native partials failed: "
_REASON = re.compile(f"{_FAILED}(.*)")
_COLUMN = re.compile(r"c(\d+)")
_PARTIAL = re.compile(r"(sum|count|min|max)\((?:c(\d+)|1)\)")
# A comparison of a column, by index, with NULL or a literal. A condition is a combination of comparisons.
_TEST = re.compile(
    r"\(c(\d+) (?:IS NULL|IS NOT NULL|(?:=|<>|<=|>=|<|>) "
    r"(CAST\('-?\d+' AS (?:TINYINT|SMALLINT|INT|BIGINT)\)|DATE '[\d-]+'|'[^'\\]*'))\)"
)
_CONDITION = re.compile(r"(?:\(|\)| AND | OR )*")
_WHOLE = {"TINYINT", "SMALLINT", "INT", "BIGINT"}
_LITERALS = {
    "C": _WHOLE,
    "D": {"DATE"},
    "'": {"VARCHAR"},
}  # Types that may be compared with a literal, by the first letter of the literal.


@dataclass(frozen=True)
class ReadColumns:
    """Columns of a table that an aggregation reads, by index, and the event-time column."""

    read: Read
    columns: dict[int, Column]
    time: Column


@dataclass(frozen=True)
class Partials:
    """DuckDB queries for the partial aggregates of one aggregation, with Spark's types.

    ``query``: Query over ``held`` with the columns of ``schema``: keys, ``slice``, partials, the number of rows, and
    the number of rows without a time. Rows outside every slice are only counted. ``sample``: Query for (hash of the
    keys, slice, time) of the first rows.
    """

    read: Read
    held: DataFiles
    query: str
    sample: str
    schema: str


def windows_of(group: Group) -> Assign:
    below = group.input
    while isinstance(below, Select | Where):
        below = below.input
    if not isinstance(below, Assign):
        raise NotEligible("the aggregation is not directly over a windowing function")
    return below


def wanted_by(assign: Assign, slices: Slices) -> ReadColumns:
    """Columns that an aggregation reads; steps between table and windows may only select plain columns."""
    tests = _tests(slices.condition)
    if slices.values:
        raise NotEligible("an aggregate is DISTINCT")
    if assign.zone:
        raise NotEligible(f"windows use the time zone {assign.zone}")
    positions = {_column(sql) for _, sql in slices.keys}
    positions |= {place for _, place in map(_call, slices.partials) if place is not None}
    positions |= {position for position, _ in tests}
    step, places = assign.input, {position: position for position in {*positions, assign.time}}
    while isinstance(step, Select):
        columns = dict(step.columns)
        places = {position: _column(columns[below]) for position, below in places.items()}
        step = step.input
    if not isinstance(step, Read):
        raise NotEligible("rows are filtered or combined before they are assigned to windows")
    if step.watermark is not None or step.condition:
        raise NotEligible("late rows or whole folders are skipped")
    found = {position: _stored(step, below, position == assign.time) for position, below in places.items()}
    for position, literal in tests:
        if literal and found[position].type.name not in _LITERALS[literal[0]]:
            raise NotEligible(f"rows are filtered by comparing {found[position].type} with {literal}")
    time = found[assign.time]
    if time.type.name != "TIMESTAMP":
        raise NotEligible(f"column {time.name} is {time.type}")
    return ReadColumns(step, {position: found[position] for position in positions}, time)


def partials_of(assign: Assign, slices: Slices, wanted: ReadColumns, held: DataFiles, first: int) -> Partials:
    """Build the queries over files.

    ``first``: Number of rows in the sample. Raises :class:`NotEligible` if results may differ.
    """
    schema = []
    for position, sql in slices.keys:
        schema.append(f"k{position} {spark_type(wanted.columns[_column(sql)].type)}")
    schema += ["slice BIGINT"]
    inner, outer = [], []
    for i, (function, place) in enumerate(map(_call, slices.partials)):
        value, kind = _aggregate(function, None if place is None else wanted.columns[place])
        inner.append(f"{function}({'*' if place is None else f'c{place}'}) AS p{i}")
        outer.append(f"{value.format(f'p{i}')} AS p{i}")
        schema.append(f"p{i} {kind}")
    keys = [f"k{position}" for position, _ in slices.keys]
    named = [f"{sql} AS k{position}" for position, sql in slices.keys]
    slice_ = floored("micros", assign.windows.slice, assign.windows.offset)
    inside = f"CASE WHEN {_spanned(assign)} AND {slices.condition} THEN {slice_} END AS slice"
    counts = ["count(*) AS rows", "count(*) FILTER (WHERE micros IS NULL) AS nulls"]
    rows = _rows(wanted, held)
    grouped = f"SELECT {', '.join([*named, inside, *inner, *counts])} FROM ({rows}) GROUP BY ALL"
    sampled = f"micros IS NOT NULL AND {slices.condition}"
    hashed = f"hash({', '.join(sql for _, sql in slices.keys)})" if keys else "0"
    return Partials(
        wanted.read,
        held,
        f"SELECT {', '.join([*keys, 'slice', *outer, 'rows', 'nulls'])} FROM ({grouped})",
        f"SELECT {hashed}, {slice_}, micros FROM ({rows} LIMIT {first}) WHERE {sampled}",
        ", ".join([*schema, "rows BIGINT", "nulls BIGINT"]),
    )


def _rows(wanted: ReadColumns, held: DataFiles) -> str:
    """DuckDB SQL for the requested rows: columns ``c0`` … and the time in microseconds."""
    columns = [f"{held.value(column)} AS c{position}" for position, column in sorted(wanted.columns.items())]
    rows = f"SELECT {', '.join([*columns, f'{held.micros(wanted.time)} AS micros'])} FROM {held.relation}"
    source = wanted.read.source
    if not isinstance(source, FileSource | DeltaSource | IcebergSource) or (span := source.span) is None:
        return rows
    if source.columns[span.field] != wanted.time:
        raise NotEligible("rows are filtered by a different time column")
    time = held.value(wanted.time)
    bounds = ((">=", span.first), ("<", span.last))
    asked = (f"({time} IS NULL OR epoch_us({time}) {sign} {micros})" for sign, micros in bounds if micros is not None)
    return f"{rows} WHERE {' AND '.join(asked) or 'TRUE'}"


def _stored(read: Read, position: int, is_time: bool) -> Column:
    source, fields, columns = read.source, dict(read.fields), dict(read.columns)
    if not isinstance(source, FileSource | DeltaSource | IcebergSource):
        raise NotEligible(f"table {read.table} is not read from files")
    if position not in fields:
        raise NotEligible(f"a column of table {read.table} is computed")
    column = source.columns[fields[position]]
    if isinstance(source, FileSource) and column.name in source.partitioning.names:
        raise NotEligible(f"the values of column {column.name} are folder names")
    if not column.type.nullable:
        raise NotEligible(f"column {column.name} is NOT NULL, which only Spark checks")
    kind_of(column)
    if isinstance(source, FileSource) and isinstance(source.format, CsvFormat):
        return column
    plain = column.type.name == "TIMESTAMP" or columns[position] == f"f{fields[position]}"
    if not plain or (not is_time and column.type.name == "TIMESTAMP" and column.type.parameters[0] < 6):
        raise NotEligible(f"Spark must check the values of column {column.name} of type {column.type}")
    if isinstance(source, FileSource) and not (
        isinstance(source.format, ColumnarFormat) and source.format.name == "parquet"
    ):
        raise NotEligible(f"table {read.table} is stored as {source.format.name}")
    return column


def _column(sql: str) -> int:
    found = _COLUMN.fullmatch(sql)
    if found is None:
        raise NotEligible("a key or a time is computed")
    return int(found[1])


def _tests(condition: str) -> list[tuple[int, str]]:
    """Pairs of a column index and a literal in a condition; the literal is "" for NULL.

    The SQL of such a condition is the same in DuckDB and in Spark.
    """
    if condition == "TRUE":
        return []
    if not _CONDITION.fullmatch(_TEST.sub("", condition)):
        raise NotEligible("rows are filtered by more than comparisons of columns with literals")
    return [(int(position), literal) for position, literal in _TEST.findall(condition)]


def _call(sql: str) -> tuple[str, int | None]:
    """Function of an aggregate and the column index of its argument; None for count(*)."""
    found = _PARTIAL.fullmatch(sql)
    if found is None or (found[2] is None and found[1] != "count"):
        raise NotEligible("the argument of an aggregate is an expression")
    return found[1], None if found[2] is None else int(found[2])


def _aggregate(function: str, column: Column | None) -> tuple[str, str]:
    """DuckDB SQL that converts an aggregate to Spark's value, and Spark's type."""
    if function == "count" or column is None:
        return "{}", "BIGINT"
    kind = column.type
    if function in ("min", "max") and kind.name != "BOOLEAN":
        return "{}", str(spark_type(kind))
    if function == "sum" and kind.name in _WHOLE:
        # DuckDB adds with 128 bits. The lower 64 bits equal the overflowed sum of Flink and Spark.
        low = "({0} & 18446744073709551615::HUGEINT)"
        wrapped = f"CASE WHEN {low} > 9223372036854775807 THEN {low} - 18446744073709551616::HUGEINT ELSE {low} END"
        return f"CAST({wrapped} AS BIGINT)", "BIGINT"
    if function == "sum" and kind.name == "DECIMAL":
        precision, scale = min(kind.parameters[0] + 10, 38), kind.parameters[1]
        return f"CAST({{}} AS DECIMAL({precision}, {scale}))", f"DECIMAL({precision}, {scale})"
    raise NotEligible(f"{function.upper()} of {kind} may have a different result")


def _spanned(assign: Assign) -> str:
    """SQL that is true if a requested window may contain the row. Rows without a time are excluded."""
    first, last = assign.windows.span(assign.window_range)
    bounds = [f"micros {sign} {micros}" for sign, micros in ((">=", first), ("<", last)) if micros is not None]
    return " AND ".join(bounds) or "micros IS NOT NULL"


def pieces(session: SparkSession, partials: Partials) -> DataFrame:
    """Compute the partials in Spark's tasks, one share of the files in each task."""
    slots = session.sparkContext.defaultParallelism
    shares = _shares(partials.held.files, slots)
    queries = [filled_in(partials.query, share) for share in shares]
    paths = [[path_of(file) for file in share] for share in shares]
    forbidden, failed = partials.held.forbidden, _FAILED
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": max(1, slots // len(shares)),
        "memory_limit": MEMORY,
        "preserve_insertion_order": "false",
    }

    # Without type annotations, because the task would import the types.
    def check(path):  # type: ignore[no-untyped-def]
        import mmap

        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:  # noqa: PTH123
            for each in forbidden:
                if held.find(each) >= 0:
                    raise ValueError(f"{path} contains {each!r}")

    def computed(batches):  # type: ignore[no-untyped-def]
        import tempfile

        try:
            import duckdb

            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for path in paths[number] if forbidden else ():
                        check(path)
                    with (
                        tempfile.TemporaryDirectory() as folder,
                        duckdb.connect(config={**config, "temp_directory": folder}) as connection,
                    ):
                        yield from connection.sql(queries[number]).to_arrow_reader(65_536)
        except Exception as error:
            what = (str(error).splitlines() or [""])[0]
            raise RuntimeError(f"{failed}{type(error).__name__}: {what}") from None

    return session.range(0, len(shares), 1, len(shares)).mapInArrow(computed, partials.schema)


def reason(error: Exception) -> str:
    """Reason why a task failed, as a single line. If the process of the task ended, the reason is Spark's."""
    found = _REASON.search(str(error))
    return found[1].strip() if found else next(iter(str(error).splitlines()), type(error).__name__)


def _shares(files: tuple[str, ...], slots: int) -> list[list[str]]:
    """Divide files into shares of similar size, with a few shares per slot to balance the load."""
    count = max(1, min(len(files), 2 * slots))
    sized = sorted(((Path(path_of(file)).stat().st_size, file) for file in files), reverse=True)
    shares: list[tuple[int, list[str]]] = [(0, []) for _ in range(count)]
    for size, file in sized:
        smallest = min(range(count), key=lambda i: shares[i][0])
        total, members = shares[smallest]
        shares[smallest] = (total + size, [*members, file])
    return [members for _, members in shares]
