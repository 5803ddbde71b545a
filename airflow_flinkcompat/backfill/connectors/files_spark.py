"""Files that Spark reads."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession, Window
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.file_publication_spark import FilePublication
from airflow_flinkcompat.backfill.connectors.files import MODIFIED, FileSource
from airflow_flinkcompat.backfill.formats import text_reader
from airflow_flinkcompat.backfill.formats.columnar import ColumnarFormat, column_type, identifier, rows_within
from airflow_flinkcompat.backfill.formats.text import JsonFormat
from airflow_flinkcompat.backfill.formats.text_reader import ORDER, ordered_rows
from airflow_flinkcompat.backfill.protocols import TimeSpan
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark import FileSystem
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted, spark_type
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.plan.types import Column
from airflow_flinkcompat.savepoint.source_positions import FileSplit, FilesRead


def _columnar(
    session: SparkSession,
    format: str,
    table: str,
    place: str,
    stored: Sequence[Column],
    partitions: tuple[str, ...] = (),
    span: tuple[Column, TimeSpan] | None = None,
    ordered: bool = False,
) -> DataFrame:
    """Read columns of Parquet or ORC files by name, in their declared types.

    A column that is in no file is NULL. A column that Flink would read differently raises an error only if it is used.
    """
    calendar = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"} if format == "parquet" else {}
    loading = session.read.format(format).options(recursiveFileLookup=not partitions, **calendar)
    found = {} if FileSystem(session, place).is_bare(place) else _found(loading, place)
    wanted = {column.name: column_type(column.type) for column in stored}
    real = {name: found.get(name, kind) for name, kind in wanted.items() if kind}
    held = {name: real[name] for name in real if real[name] in _alike(wanted[name])}
    schema = [f"{identifier(name)} {kind}" for name, kind in held.items()]
    rows = loading.schema(", ".join([*schema, *(f"{identifier(name)} STRING" for name in partitions)])).load(place)
    rows = ordered_rows(rows, ordered)
    if span is not None and span[0].name in held:
        rows = rows_within(rows, span[1], span[0].name, held[span[0].name])
    values = []
    for column in stored:
        name, kind = column.name, spark_type(column.type)
        message = (
            f"{ERROR}table {table}: column {name} is {real.get(name)} in the files, not {column.type}. Correct "
            "the declaration"
        )
        text = f"CAST({identifier(name)} AS {kind})" if name in held else f"raise_error({quoted(message)})"
        values.append(F.expr(text).alias(name) if kind and held.get(name) != wanted[name] else F.col(identifier(name)))
    return rows.select(*values, *(identifier(name) for name in partitions), *(ORDER if ordered else ()))


def _found(loading: DataFrameReader, place: str) -> dict[str, str]:
    """Types of the columns in the files; empty if all files are hidden."""
    try:
        return {field.name: field.dataType.simpleString() for field in loading.load(place).schema.fields}
    except AnalysisException as error:
        if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
            raise
        return {}


def _alike(kind: str) -> tuple[str, ...]:
    """Stored timestamp types that are accepted for a type. Timestamps without a zone are in UTC."""
    return ("timestamp_ntz", "timestamp") if kind.startswith("timestamp") else (kind,)


class FileReader:
    """Reader of all visible files in a folder."""

    def __init__(self, session: SparkSession, source: FileSource) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        source = self._source
        if not FileSystem(self._session, source.place).exists(source.place):
            raise BackfillError(f"table {source.table}: {source.place} does not exist")

    def version(self) -> str:
        """Digest of the names, sizes and modification times of all files, which are not opened."""
        (row,) = self._listed().selectExpr("count(1)", "bit_xor(xxhash64(path, length, modificationTime))").collect()
        return f"{row[0]} files {row[1] or 0:x}"

    def files(self) -> list[tuple[str, int]]:
        """All visible files and their modification times in milliseconds since 1970. Files are not opened."""
        return [
            (row[0], row[1]) for row in self._listed().selectExpr("path", "unix_millis(modificationTime)").collect()
        ]

    def _listed(self) -> DataFrame:
        listing = self._session.read.format("binaryFile").option("recursiveFileLookup", "true")
        return listing.load(self._source.place)

    def rows(self) -> DataFrame:
        if self._source.read is None:
            return self._rows(ordered=False)
        return self.ordered_rows().drop(*text_reader.ORDER)

    def ordered_rows(self) -> DataFrame:
        """Rows in the order of their files' modification times, then of paths, then of lines."""
        rows, read = self._rows(ordered=True), self._source.read
        if read is None:
            return rows
        return rows_read(rows.withColumn(MODIFIED, F.expr("part.file_modification_time")), read, self._source)

    def check_sequence(self) -> None:
        """Accept every source, because rows are read one file after another."""

    def _rows(self, ordered: bool) -> DataFrame:
        session, source = self._session, self._source
        stored, folders = source.stored, source.partitioning.names
        names = tuple(column.name for column in stored)
        raw = {name: f"f{i}" for i, name in enumerate(names)}
        if isinstance(source.format, ColumnarFormat):
            span = None if source.span is None else (source.columns[source.span.field], source.span)
            kind, raw = source.format.name, {name: identifier(name) for name in names}
            rows = _columnar(session, kind, source.table, source.place, stored, folders, span, ordered)
        elif isinstance(source.format, JsonFormat):
            rows = text_reader.json(session, source.table, source.place, source.format, names, folders, ordered)
        else:
            rows = text_reader.csv(session, source.table, source.place, source.format, names, folders, ordered)
        raw |= {name: identifier(name) for name in folders}
        fields = (f"{raw[column.name]} AS f{i}" for i, column in enumerate(source.columns))
        return rows.selectExpr(*fields, *(text_reader.ORDER if ordered else ()))


_NUMBER = "flinkcompat_number"
_LOCAL = re.compile("^file:/+")


def rows_read(rows: DataFrame, read: FilesRead, source: FileSource) -> DataFrame:
    # Spark writes the URI of a file with or without an empty authority.
    files = {normal(file): _LOCAL.sub("file:/", file) for file in rows.inputFiles()}
    stream = F.regexp_replace("stream", _LOCAL.pattern, "file:/")
    waiting, in_progress = _whole(read.waiting, source), _whole(read.in_progress, source)
    seen = {normal(path) for path in read.seen}
    if gone := sorted(seen - files.keys()):
        raise BackfillError(
            f"table {source.table}: cannot read {gone[0]}"
            + (f" and {len(gone) - 1} more files" if len(gone) > 1 else "")
            + f", which {source.place} no longer contains"
        )
    done = [files[path] for path in seen - waiting.keys() - in_progress.keys()]
    parts = [rows.where(stream.isin(done))]
    for path, split in in_progress.items():
        if path not in files:
            raise BackfillError(
                f"table {source.table}: the job was reading {path}, which was deleted since. Restore the file"
            )
        order = Window.orderBy("part", "place")
        numbered = rows.where(stream == files[path]).withColumn(_NUMBER, F.row_number().over(order))
        parts.append(numbered.where(F.col(_NUMBER) <= split.records_read).drop(_NUMBER))
    return reduce(DataFrame.union, parts)


def normal(path: str) -> str:
    """Normalize a file's URI, which Flink and Spark write differently."""
    return _LOCAL.sub("file:/", unquote(path))


def _whole(splits: tuple[FileSplit, ...], source: FileSource) -> dict[str, FileSplit]:
    """Splits by file; each split must be a whole file.

    Raises BackfillError for a part of a file, because it is unknown which row is the first of the part.
    """
    found = defaultdict(list)
    for split in splits:
        found[normal(split.path)].append(split)
        if split.offset or split.length < split.file_size or split.position is not None:
            raise BackfillError(
                f"table {source.table}: the job was reading {split.path} in parts, and the number of rows in a "
                "part does not show which rows were read. Take a savepoint again when no file is being read"
            )
    return {path: splits[0] for path, splits in found.items()}


reader, publication = FileReader, FilePublication
