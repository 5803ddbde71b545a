"""Connector for folders of CSV, JSON, Parquet or ORC files, with or without partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from airflow_flinkcompat.backfill.connectors.registry import Connector
from airflow_flinkcompat.backfill.formats import columnar
from airflow_flinkcompat.backfill.formats.columnar import ColumnarFormat
from airflow_flinkcompat.backfill.formats.text import CsvFormat, Format, JsonFormat, decode, format_of
from airflow_flinkcompat.backfill.protocols import Needs, PublishedRows, Range, TimeSpan
from airflow_flinkcompat.backfill.request import normalised
from airflow_flinkcompat.backfill.result import FLINK_BATCH, BackfillError, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import CHARACTERS, INTEGERS, Column, DataType, timestamp_ltz
from airflow_flinkcompat.secrets import mask_secrets

if TYPE_CHECKING:
    from airflow_flinkcompat.savepoint.source_positions import FilesRead

# Flink writes a DATE as a number of days but cannot read it back. Times and decimals have similar errors.
_TYPES = (*CHARACTERS, *INTEGERS, "BOOLEAN")
_POLICY = "sink.partition-commit.policy.kind"
_SUCCESS_FILE = "sink.partition-commit.success-file.name"
_SHAPES = {**dict.fromkeys(INTEGERS, "^[+-]?[0-9]+$"), "BOOLEAN": "^(?i)(true|false)$"}


@dataclass(frozen=True)
class Partitioning:
    """Layout of a table's rows in partition folders.

    ``columns``: Partition columns, outermost first. ``default_name``: Folder name for NULL and the empty text.
    ``success_file``: Name of the file that marks a complete folder.
    """

    columns: tuple[Column, ...] = ()
    default_name: str = ""
    success_file: str | None = None

    @classmethod
    def of(cls, table: Table) -> Partitioning:
        """Partitioning of a table; raises :class:`Untranslatable` if folder names determine no exact values."""
        kinds = {column.name: column for column in table.columns}
        columns = tuple(kinds[name] for name in table.partitioned_by if name in table.physical)
        for column in columns:
            if column.type.name not in _TYPES:
                raise Untranslatable(
                    f"table {table.name}: a backfill cannot read or write the partition column {column.name} of "
                    f"type {column.type}; {FLINK_BATCH}",
                    table.span,
                )
        if len(columns) != len(table.partitioned_by) or len(columns) == len(table.physical):
            raise BackfillError(
                (
                    f"table {table.name}: partition columns must be stored columns, and the table needs at least "
                    "one other column"
                ),
                table.span,
            )
        return cls(
            columns,
            table.option("partition.default-name", "__DEFAULT_PARTITION__") or "",
            table.option(_SUCCESS_FILE, "_SUCCESS") if "success-file" in (table.option(_POLICY) or "") else None,
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def check_commit(self, table: Table) -> None:
        """Raise :class:`Untranslatable` if a partition commit does more than write files."""
        others = {kind.strip() for kind in (table.option(_POLICY) or "").split(",")} - {"", "success-file"}
        if others:
            raise Untranslatable(
                f"sink {table.name}: a backfill does not support {_POLICY} '{', '.join(sorted(others))}'. Write "
                f"to a different location with --sink {table.path[2]}=URI",
                table.span,
            )

    def value(self, column: Column, field: str, table: Table) -> str:
        """Spark SQL for the value of a partition column, from the name of its folder."""
        text, kind = f"nullif({field}, {quoted(self.default_name)})", column.type
        if kind.name not in CHARACTERS:
            shape = quoted(_SHAPES[kind.name])
            value = f"try_cast({text} AS {kind.name})"
            what = quoted(f"{ERROR}table {table.name}: a folder is named {column.name}=")
            refused = f"raise_error(concat({what}, {text}, {quoted(f', which is not a valid {kind}')}))"
            text = (
                f"(CASE WHEN {text} IS NULL THEN NULL WHEN {text} RLIKE {shape} AND {value} IS NOT NULL THEN {value} "
                f"ELSE {refused} END)"
            )
        return text

    def folder(self, column: Column, value: str) -> str:
        """Spark SQL for the folder name of a value."""
        return f"coalesce(nullif(CAST({value} AS STRING), ''), {quoted(self.default_name)})"


PLAIN = Partitioning()
"""Files that are all in one folder, or in folders that store no columns."""
FORMATS = ("csv", "json", *columnar.NAMES)
_OTHER_FORMATS = ("avro", "protobuf", "raw", "xml", "text", "paimon", "hudi", "debezium-json", "canal-json")
# Options for the file layout and discovery of a streaming job, which have no effect on a backfill.
_NEUTRAL = ("sink.", "source.monitor-interval", "auto-compaction", "compaction.", "partition.")


def file_format(table: Table, name: str | None = None) -> Format | ColumnarFormat:
    """Format of a table's files."""
    declared = table.option("format") or table.option("value.format")
    if name is not None and name != declared:
        return ColumnarFormat(name) if name in columnar.NAMES else {"csv": CsvFormat, "json": JsonFormat}[name]()
    if declared not in columnar.NAMES:
        return format_of(table)
    prefix = f"{declared}."
    settings = {key.removeprefix(prefix): value for key, value in table.options if key.startswith(prefix)}
    try:
        format = columnar.columnar(table, declared, settings)
    except ValueError as error:
        raise BackfillError(f"table {table.name}: {error}", table.span) from None
    # The table's job probably did not write an archive in a requested format. Times in such an archive are in UTC.
    return format if name is None else replace(format, utc=True)


MODIFIED = "m_modified"
"""Spark column with the modification time of a row's file."""


@dataclass(frozen=True)
class FileSource:
    """A table that is read from the files of a folder. ``columns``: Its physical columns in order.

    ``read``: Files, or parts of files, that a job had read; only their rows are read.
    """

    table: str
    place: str
    format: Format | ColumnarFormat
    columns: tuple[Column, ...]
    partitioning: Partitioning = PLAIN
    span: TimeSpan | None = None
    read: FilesRead | None = None
    needs: ClassVar[Needs] = Needs()
    ordered: ClassVar[bool] = True

    @classmethod
    def of(cls, table: Table, place: str, format_name: str | None = None) -> FileSource:
        """Files of a table at a location; raises :class:`BackfillError` if they cannot be read exactly."""
        format = file_format(table, format_name)
        partitioning = Partitioning.of(table) if table.partitioned_by else PLAIN
        columns = table.stored
        if len(columns) - len(partitioning.columns) == 1 and isinstance(format, CsvFormat):
            raise Untranslatable(
                f"table {table.name} has only one column: a blank line is a row for Flink, but not for Spark. "
                "Declare the table with format json",
                table.span,
            )
        return cls(table.name, place, format, columns, partitioning)

    @property
    def stored(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column not in self.partitioning.columns)

    def decode(self, column: Column, field: str, table: Table) -> str:
        if column in self.partitioning.columns:
            return self.partitioning.value(column, field, table)
        if isinstance(self.format, ColumnarFormat):
            return self.format.read(column, field, table)
        return decode(self.format, column, field, table)

    @property
    def folders(self) -> frozenset[int]:
        """Indexes of the stored columns whose values are folder names."""
        return frozenset(i for i, column in enumerate(self.columns) if column in self.partitioning.columns)

    def metadata(self, key: str) -> tuple[DataType, str] | None:
        """Type and SQL of the modification time of a file; None if the files that a job had read are unknown."""
        return (timestamp_ltz(3), MODIFIED) if key == "file.modification-time" and self.read is not None else None

    def within(self, span: TimeSpan) -> FileSource:
        """Restrict typed files to a time span. The reader of such files may skip rows outside the span.

        Files that a job was still reading are not restricted, because their rows must be counted.
        """
        column = self.columns[span.field]
        counted = self.read is not None and bool(self.read.in_progress)
        reads_less = (
            not counted and isinstance(self.format, ColumnarFormat) and self.format.prunes and column in self.stored
        )
        return replace(self, span=span) if reads_less else self


@dataclass(frozen=True)
class FileSink:
    """A sink that writes files to a folder; see ``file_publication_spark``."""

    place: str
    format: Format | ColumnarFormat
    exclusive: bool
    partitioning: Partitioning = PLAIN
    needs: ClassVar[Needs] = Needs()

    @classmethod
    def of(cls, table: Table, place: str, exclusive: bool, format_name: str | None = None) -> FileSink:
        """Folder of a sink; raises :class:`BackfillError` if rows cannot be written exactly."""
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
    def write_mode(self) -> str:
        if self.exclusive:
            return "a staged folder replaces the old folder, and contains only the rows of this run"
        return "files named by the range replace files of an earlier run with the same range; other files remain"

    def check(self, rows: PublishedRows, bounds: Range) -> None:
        if not self.place.rpartition("/")[2]:
            raise BackfillError(
                f"sink {rows.name}: {self.place} is not a folder that a backfill may replace. Pass a folder "
                "inside this location"
            )


def _declared_place(table: Table, what: str) -> str:
    for option, value in table.options:
        if not _understood(option, table):
            raise Untranslatable(
                f"table {table.name}: a backfill does not support the option {option} = '{mask_secrets(value)}'. "
                f"Remove the option, or specify plain files with {what} {table.path[2]}=URI",
                table.span,
            )
    path = table.option("path")
    if not path:
        raise BackfillError(f"table {table.name} has no option path: add it", table.span)
    return normalised(path, f"table {table.name}, option path")


def _understood(option: str, table: Table) -> bool:
    name = table.option("format") or ""
    return option in ("connector", "path", "format") or option.startswith((f"{name}.", *_NEUTRAL))


def _checked_place(format_name: str | None, place: str, what: str) -> str:
    """Check and normalize a location that a request specifies.

    Raises :class:`BackfillError` if the location has an unsupported format.
    """
    if format_name is None and (prefix := place.partition(":")[0]) in _OTHER_FORMATS:
        raise BackfillError(
            f"{what}: a backfill does not read or write the format {prefix}. Supported formats are "
            f"{', '.join(FORMATS)}, delta and iceberg"
        )
    return normalised(place, what)


def _source_at(format_name: str | None, table: Table, place: str, what: str) -> FileSource:
    return FileSource.of(table, _checked_place(format_name, place, what), format_name)


def _sink_at(format_name: str | None, table: Table, place: str, what: str) -> FileSink:
    return FileSink.of(table, _checked_place(format_name, place, what), exclusive=True, format_name=format_name)


CONNECTOR = Connector(
    sources={"filesystem": lambda table: FileSource.of(table, _declared_place(table, "--table"))},
    sinks={"filesystem": lambda table: FileSink.of(table, _declared_place(table, "--sink"), exclusive=False)},
    # Without a format in its location, a table's files have the declared format.
    named_sources={name or "": partial(_source_at, name) for name in (*FORMATS, None)},
    named_sinks={name or "": partial(_sink_at, name) for name in (*FORMATS, None)},
    listed=1,
)
