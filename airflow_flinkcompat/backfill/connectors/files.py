"""The filesystem connector: tables as folders of csv, json, parquet or orc files, partitioned or plain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from airflow_flinkcompat.backfill.connectors import columnar
from airflow_flinkcompat.backfill.connectors.base import Needs, Range, Rows
from airflow_flinkcompat.backfill.connectors.columnar import ColumnarFormat
from airflow_flinkcompat.backfill.connectors.folders import PLAIN, Partitioning
from airflow_flinkcompat.backfill.connectors.lakes import Span, identifier
from airflow_flinkcompat.backfill.connectors.text import CsvFormat, Format, JsonFormat, decode, format_of
from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable
from airflow_flinkcompat.backfill.filesystem import FileSystem
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_flinkcompat.backfill.publishing.files import FilePublication

FORMATS = ("csv", "json", *columnar.NAMES)


def file_format(table: Table, name: str | None = None) -> Format | ColumnarFormat:
    """The format of a table's files: the declared one, or that of an archive with the declared options where they are
    of the same format. Raises :class:`BackfillError` for what is not exact."""
    declared = table.option("format") or table.option("value.format")
    if name is not None and name != declared:
        return ColumnarFormat(name) if name in columnar.NAMES else {"csv": CsvFormat, "json": JsonFormat}[name]()
    if declared not in columnar.NAMES:
        return format_of(table)
    prefix = f"{declared}."
    given = {key.removeprefix(prefix): value for key, value in table.options if key.startswith(prefix)}
    try:
        format = columnar.columnar(table, declared, given)
    except ValueError as error:
        raise BackfillError(f"table {table.name}: {error}", table.span) from None
    # An archive somebody names as such was hardly written by this table's job; its times are those of UTC.
    return format if name is None else replace(format, utc=True)


@dataclass(frozen=True)
class Files:
    """A table read from the files of a folder. ``columns`` are its physical columns in order."""

    table: str
    place: str
    format: Format | ColumnarFormat
    columns: tuple[Column, ...]
    partitioning: Partitioning = PLAIN
    span: Span | None = None
    needs: ClassVar[Needs] = Needs()

    @classmethod
    def of(cls, table: Table, place: str, format_name: str | None = None) -> Files:
        """The files of a table at a place. Raises :class:`BackfillError` for what is not read exactly."""
        format = file_format(table, format_name)
        partitioning = Partitioning.of(table) if table.partitioned_by else PLAIN
        columns = table.stored
        if len(columns) - len(partitioning.columns) == 1 and isinstance(format, CsvFormat):
            raise Untranslatable(
                f"table {table.name} has one column only: a blank line is a row to Flink and nothing to Spark; "
                "declare it with format json",
                table.span,
            )
        return cls(table.name, place, format, columns, partitioning)

    @property
    def stored(self) -> tuple[Column, ...]:
        """The columns that are in the files."""
        return tuple(column for column in self.columns if column not in self.partitioning.columns)

    def decode(self, column: Column, field: str, table: Table) -> str:
        if column in self.partitioning.columns:
            return self.partitioning.value(column, field, table)
        if isinstance(self.format, ColumnarFormat):
            return self.format.read(column, field, table)
        return decode(self.format, column, field, table)

    @property
    def folders(self) -> frozenset[int]:
        """Positions, among the stored columns, of those that are names of folders."""
        return frozenset(i for i, column in enumerate(self.columns) if column in self.partitioning.columns)

    def within(self, span: Span) -> Files:
        """The same files; where they hold types of their own, rows outside of the span are left to their reader."""
        column = self.columns[span.field]
        reads_less = isinstance(self.format, ColumnarFormat) and self.format.prunes and column in self.stored
        return replace(self, span=span) if reads_less else self

    def check(self, session: SparkSession) -> None:
        if not FileSystem(session, self.place).exists(self.place):
            raise BackfillError(f"table {self.table}: there is nothing at {self.place}")

    def state(self, session: SparkSession) -> str:
        """Of the names, sizes and modification times of all files; no file is opened."""
        files = session.read.format("binaryFile").option("recursiveFileLookup", "true").load(self.place)
        (row,) = files.selectExpr("count(1)", "bit_xor(xxhash64(path, length, modificationTime))").collect()
        return f"{row[0]} files {row[1] or 0:x}"

    def frame(self, session: SparkSession) -> DataFrame:
        return self._frame(session, ordered=False)

    def arriving(self, session: SparkSession) -> DataFrame:
        """Files arrive in the order of their modification, those of one millisecond by path; rows as they stand."""
        return self._frame(session, ordered=True)

    def check_sequence(self, session: SparkSession) -> None:
        """One file after the other."""

    def _frame(self, session: SparkSession, ordered: bool) -> DataFrame:
        from airflow_flinkcompat.backfill.connectors import columnar_files, reading

        stored, folders = self.stored, self.partitioning.names
        names = tuple(column.name for column in stored)
        raw = {name: f"f{i}" for i, name in enumerate(names)}
        if isinstance(self.format, ColumnarFormat):
            span = None if self.span is None else (self.columns[self.span.field], self.span)
            kind, raw = self.format.name, {name: identifier(name) for name in names}
            rows = columnar_files.columns(session, kind, self.table, self.place, stored, folders, span, ordered)
        elif isinstance(self.format, JsonFormat):
            rows = reading.json(session, self.table, self.place, self.format, names, folders, ordered)
        else:
            rows = reading.csv(session, self.table, self.place, self.format, names, folders, ordered)
        raw |= {name: identifier(name) for name in folders}
        fields = (f"{raw[column.name]} AS f{i}" for i, column in enumerate(self.columns))
        return rows.selectExpr(*fields, *(reading.ORDER if ordered else ()))


@dataclass(frozen=True)
class Folder:
    """A sink written as files into a folder, see :class:`FilePublication`."""

    place: str
    format: Format | ColumnarFormat
    exclusive: bool
    partitioning: Partitioning = PLAIN
    needs: ClassVar[Needs] = Needs()

    @classmethod
    def of(cls, table: Table, place: str, exclusive: bool, format_name: str | None = None) -> Folder:
        """The folder of a sink. Raises :class:`BackfillError` for what is not written exactly."""
        partitioning = Partitioning.of(table) if table.partitioned_by else PLAIN
        partitioning.check_commit(table)
        format = file_format(table, format_name)
        if isinstance(format, ColumnarFormat):
            for column in table.stored:
                if column not in partitioning.columns:
                    format.check(column, table, "written")
        return cls(place, format, exclusive, partitioning)

    @property
    def replaces(self) -> bool:
        return self.exclusive

    @property
    def manner(self) -> str:
        if self.exclusive:
            return "a staged folder is swapped in, and holds this run's rows and nothing else"
        return "files named by the range take the place of those of an earlier run over it; other files stay"

    def check(self, rows: Rows, bounds: Range) -> None:
        if not self.place.rpartition("/")[2]:
            raise BackfillError(f"sink {rows.name}: {self.place} is no folder a backfill may replace")

    def publication(self, session: SparkSession, rows: Rows, bounds: Range) -> FilePublication:
        from airflow_flinkcompat.backfill.publishing.files import FilePublication

        return FilePublication(session, self, rows, bounds)
