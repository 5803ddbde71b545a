"""Files as Spark reads them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.files.read_files import rows_read
from airflow_flinkcompat.backfill.connectors.files.spec import MODIFIED, FileSource
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.formats import text_reader
from airflow_flinkcompat.backfill.formats.columnar import ColumnarFormat
from airflow_flinkcompat.backfill.formats.text import JsonFormat
from airflow_flinkcompat.backfill.formats.text_reader import ORDER, ordered_rows
from airflow_flinkcompat.backfill.formats.typed_columns import column_type, identifier, rows_within
from airflow_flinkcompat.backfill.protocols import TimeSpan
from airflow_flinkcompat.backfill.spark.filesystem import FileSystem
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted, spark_type
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.plan.types import Column


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
    """The columns of parquet or orc files under their names, in the types they are declared with.

    One that no file has is NULL; one that Flink would not read so raises an error when it is asked for, and no sooner.
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
        message = f"{ERROR}table {table}: column {name} is {real.get(name)} in the files, not {column.type}"
        text = f"CAST({identifier(name)} AS {kind})" if name in held else f"raise_error({quoted(message)})"
        values.append(F.expr(text).alias(name) if kind and held.get(name) != wanted[name] else F.col(identifier(name)))
    return rows.select(*values, *(identifier(name) for name in partitions), *(ORDER if ordered else ()))


def _found(loading: DataFrameReader, place: str) -> dict[str, str]:
    """The types of the columns that are in the files; none if all files are hidden ones."""
    try:
        return {field.name: field.dataType.simpleString() for field in loading.load(place).schema.fields}
    except AnalysisException as error:
        if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
            raise
        return {}


def _alike(kind: str) -> tuple[str, ...]:
    """Types of timestamps that are accepted for each other; without a zone they are in UTC."""
    return ("timestamp_ntz", "timestamp") if kind.startswith("timestamp") else (kind,)


class FileReader:
    """Reader of all visible files of a folder."""

    def __init__(self, session: SparkSession, source: FileSource) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        source = self._source
        if not FileSystem(self._session, source.place).exists(source.place):
            raise BackfillError(f"table {source.table}: there is nothing at {source.place}")

    def version(self) -> str:
        """Digest of the names, sizes and modification times of all files; no file is opened."""
        (row,) = self._listed().selectExpr("count(1)", "bit_xor(xxhash64(path, length, modificationTime))").collect()
        return f"{row[0]} files {row[1] or 0:x}"

    def files(self) -> list[tuple[str, int]]:
        """All visible files, each with the milliseconds since 1970 at which it was changed; none is opened."""
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
        """Rows in the order of their files' modification, those of one millisecond by path, and within a file."""
        rows, read = self._rows(ordered=True), self._source.read
        if read is None:
            return rows
        return rows_read(rows.withColumn(MODIFIED, F.expr("part.file_modification_time")), read, self._source)

    def check_sequence(self) -> None:
        """One file after the other."""

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


reader = FileReader
