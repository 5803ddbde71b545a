"""Files as Spark reads them."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from airflow_flinkcompat.backfill.connectors.files.spec import FileSource
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.formats import columnar_reader, text_reader
from airflow_flinkcompat.backfill.formats.columnar import ColumnarFormat
from airflow_flinkcompat.backfill.formats.text import JsonFormat
from airflow_flinkcompat.backfill.formats.typed_columns import identifier
from airflow_flinkcompat.backfill.spark.filesystem import FileSystem


class FileReader:
    """Reads all visible files of a folder."""

    def __init__(self, session: SparkSession, source: FileSource) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        source = self._source
        if not FileSystem(self._session, source.place).exists(source.place):
            raise BackfillError(f"table {source.table}: there is nothing at {source.place}")

    def version(self) -> str:
        """Of the names, sizes and modification times of all files; no file is opened."""
        files = self._session.read.format("binaryFile").option("recursiveFileLookup", "true").load(self._source.place)
        (row,) = files.selectExpr("count(1)", "bit_xor(xxhash64(path, length, modificationTime))").collect()
        return f"{row[0]} files {row[1] or 0:x}"

    def rows(self) -> DataFrame:
        return self._rows(ordered=False)

    def ordered_rows(self) -> DataFrame:
        """Files arrive in the order of their modification, those of one millisecond by path; rows as they stand."""
        return self._rows(ordered=True)

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
            rows = columnar_reader.columns(session, kind, source.table, source.place, stored, folders, span, ordered)
        elif isinstance(source.format, JsonFormat):
            rows = text_reader.json(session, source.table, source.place, source.format, names, folders, ordered)
        else:
            rows = text_reader.csv(session, source.table, source.place, source.format, names, folders, ordered)
        raw |= {name: identifier(name) for name in folders}
        fields = (f"{raw[column.name]} AS f{i}" for i, column in enumerate(source.columns))
        return rows.selectExpr(*fields, *(text_reader.ORDER if ordered else ()))


reader = FileReader
