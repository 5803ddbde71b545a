"""The filesystem connector: tables as folders of csv or json files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from airflow_flinkcompat.backfill.connectors.base import Needs, Range, Rows
from airflow_flinkcompat.backfill.connectors.text import CsvFormat, Format, JsonFormat, decode, format_of
from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_flinkcompat.backfill.publishing.files import FilePublication


@dataclass(frozen=True)
class Files:
    """A table read from the text files of a folder. ``fields`` are its physical columns in order."""

    table: str
    place: str
    format: Format
    fields: tuple[str, ...]
    needs: ClassVar[Needs] = Needs()

    @classmethod
    def of(cls, table: Table, place: str) -> Files:
        """The files of a table at a place. Raises :class:`Untranslatable` for what is not read exactly."""
        if table.partitioned_by:
            raise Untranslatable(f"table {table.name} is partitioned; a backfill reads plain folders only", table.span)
        format = format_of(table)
        if len(table.physical) == 1 and isinstance(format, CsvFormat):
            raise Untranslatable(
                f"table {table.name} has one column only: a blank line is a row to Flink and nothing to Spark; "
                "declare it with format json",
                table.span,
            )
        return cls(table.name, place, format, table.physical)

    def decode(self, column: Column, field: str, table: Table) -> str:
        return decode(self.format, column, field, table)

    def check(self, session: SparkSession) -> None:
        from airflow_flinkcompat.backfill.publishing.files import FileSystem

        if not FileSystem(session, self.place).exists(self.place):
            raise BackfillError(f"table {self.table}: there is nothing at {self.place}")

    def frame(self, session: SparkSession) -> DataFrame:
        from airflow_flinkcompat.backfill.connectors import reading

        read: Callable[..., DataFrame] = reading.json if isinstance(self.format, JsonFormat) else reading.csv
        return read(session, self.table, self.place, self.format, self.fields)

    def arriving(self, session: SparkSession) -> DataFrame:
        """Files arrive in the order of their modification, those of one millisecond by path; rows as they stand."""
        from airflow_flinkcompat.backfill.connectors import reading

        read: Callable[..., DataFrame] = reading.json if isinstance(self.format, JsonFormat) else reading.csv
        return read(session, self.table, self.place, self.format, self.fields, ordered=True)


@dataclass(frozen=True)
class Folder:
    """A sink written as text files into a folder, see :class:`FilePublication`."""

    place: str
    format: Format
    exclusive: bool
    needs: ClassVar[Needs] = Needs()

    @classmethod
    def of(cls, table: Table, place: str, exclusive: bool) -> Folder:
        """The folder of a sink. Raises :class:`Untranslatable` for what is not written exactly."""
        if table.partitioned_by:
            raise Untranslatable(f"sink {table.name} is partitioned; a backfill writes plain folders only", table.span)
        return cls(place, format_of(table), exclusive)

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
