"""Interfaces between connectors and the backfill: sources to read tables, and sinks to publish rows.

Sources and sinks are frozen values that are built without Spark while the script is compiled. Inexact parts are refused
at that time. A :class:`SourceReader` and a :class:`Publication` do the work with Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import Column, DataType
from airflow_flinkcompat.secrets.spellings import java_pattern

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Range:
    """Bounds of the published windows, without a time zone; None if a side is open.

    ``after``: Only windows that end later are included. ``after`` separates the chunks of a range.
    """

    from_: datetime | None = None
    to: datetime | None = None
    after: datetime | None = None

    @property
    def bounded(self) -> bool:
        return self.from_ is not None or self.to is not None


@dataclass(frozen=True)
class Needs:
    """Requirements of a connector for the Spark session: Maven coordinates and settings."""

    packages: tuple[str, ...] = ()
    conf: tuple[tuple[str, str], ...] = ()

    def __or__(self, other: Needs) -> Needs:
        return Needs(tuple(dict.fromkeys(self.packages + other.packages)), tuple(dict.fromkeys(self.conf + other.conf)))


class BackfillSource(Protocol):
    """Location and interpretation of a table's rows. Equal sources read the same rows.

    The connector's :class:`SourceReader` reads the rows.
    """

    @property
    def table(self) -> str:
        """Name of the table."""

    @property
    def needs(self) -> Needs:
        """Requirements for the Spark session."""

    @property
    def place(self) -> str:
        """Location without secrets, for messages. For files, an absolute URI."""

    @property
    def ordered(self) -> bool:
        """True if rows can be read in the order of a streaming job (:class:`OrderedReader`)."""

    def decode(self, column: Column, field: str, table: Table) -> str:
        """Spark SQL that converts a raw field (a column name) to the value of a physical column."""


@runtime_checkable
class Metadata(Protocol):
    """A source whose rows have metadata in addition to the stored columns of the table."""

    def metadata(self, key: str) -> tuple[DataType, str] | None:
        """Nullable type and Spark SQL for METADATA FROM ``key``; None if it cannot be read exactly."""


@dataclass(frozen=True)
class TimeSpan:
    """Time span in the physical column ``field``. A source may skip rows outside [first, last).

    Rows without a time are kept. The bounds are microseconds of the column's clock; None if a side is open.
    """

    field: int
    first: int | None
    last: int | None


@runtime_checkable
class TimeBounded(Protocol):
    """A source that can read fewer rows for a time span."""

    def within(self, span: TimeSpan) -> BackfillSource:
        """Restrict the source, so that it may skip rows outside the span."""


@runtime_checkable
class Selective(Protocol):
    """A source that reads only the needed columns."""

    def selecting(self, needed: frozenset[int], metadata: frozenset[str]) -> BackfillSource:
        """Add stored columns, by index, and metadata, by key, to those that the source reads."""


@runtime_checkable
class Partitioned(Protocol):
    """A source that can skip whole folders if a condition uses the columns in folder names."""

    @property
    def folders(self) -> frozenset[int]:
        """Indexes of the stored columns whose values are folder names."""


class Locations(Protocol):
    """Locations of tables, from a script and a request."""

    def check(self, sources: Iterable[Table], sinks: Iterable[Table]) -> None:
        """Raise :class:`BackfillError` for a name that does not match exactly one table in use."""

    def source(self, table: Table) -> BackfillSource:
        """Find the source of a table.

        Raises :class:`BackfillError` if the source is unknown or cannot be read exactly.
        """

    def sink(self, table: Table) -> BackfillSink:
        """Find the sink for a table.

        Raises :class:`BackfillError` if the sink is unknown or cannot be written exactly.
        """

    def order(self, table: Table) -> tuple[int, ...]:
        """Indexes of the columns that define in which order a table's rows arrived; empty if undeclared."""


class SourceReader(Protocol):
    """Reader of one source in one Spark session."""

    def check(self) -> None:
        """Raise :class:`BackfillError` if there is nothing to read."""

    def rows(self) -> DataFrame:
        """All rows, with one raw column ``f{i}`` per physical column. Spark skips columns that nothing uses."""


@runtime_checkable
class OrderedReader(Protocol):
    """Reader of an ordered source."""

    def ordered_rows(self) -> DataFrame:
        """Rows like :meth:`SourceReader.rows`, with three more columns for their order.

        ``part``: Number of the part, in the order in which parts arrived. ``place``: Position of the row within its
        part. ``stream``: Name of the stream; any job reads the rows of one stream in this order.
        """

    def check_sequence(self) -> None:
        """Raise :class:`BackfillError` if it is undefined how a job interleaves the parts."""


@runtime_checkable
class Versioned(Protocol):
    """Reader that can detect a change of its source's content cheaply."""

    def version(self) -> str:
        """Text that changes if rows are added, removed or rewritten."""


@dataclass(frozen=True)
class WindowColumns:
    """Columns of a sink that contain window bounds; None if the sink has no such column.

    ``size``: Common length of the windows in microseconds; None if lengths differ. With a common length, either bound
    determines the other.
    """

    start: str | None = None
    end: str | None = None
    size: int | None = None


@dataclass(frozen=True)
class PublishedRows:
    """Rows to publish: a sink's table, its stored columns (``c0`` … in a DataFrame) and window columns."""

    table: Table
    columns: tuple[Column, ...]
    windows: WindowColumns = WindowColumns()

    @property
    def name(self) -> str:
        return self.table.name


class BackfillSink(Protocol):
    """Target to which a sink's rows are published. Writes to equal targets are merged."""

    @property
    def needs(self) -> Needs:
        """Requirements for the Spark session."""

    @property
    def place(self) -> str:
        """Location without secrets, for messages. For files, an absolute URI."""

    @property
    def exclusive(self) -> bool:
        """True if the request specified this location, which then contains only rows of this run."""

    @property
    def write_mode(self) -> str:
        """Description of how rows are published, for the explanation of a plan."""

    @property
    def replaces(self) -> bool:
        """True if publishing removes a live job's rows of the same windows."""

    def check(self, rows: PublishedRows, bounds: Range) -> None:
        """Raise :class:`BackfillError` if the rows cannot be published repeatably and as a whole."""


class Publication(Protocol):
    """Publication of one sink's rows.

    The methods of a publication run in this order: check, stage, publish, discard.

    If a run failed or was killed, a repeated run leaves exactly the rows of the repeated run. No row is missing,
    duplicated, or left from an earlier run with the same range.
    """

    def check(self) -> None:
        """Raise :class:`BackfillError` if the location contains data that this run must not change."""

    def stage(self, rows: DataFrame) -> None:
        """Compute the rows, and stage them next to the target where readers do not see them."""

    def publish(self) -> tuple[str, ...]:
        """Publish the staged rows. Return the names of the written files, if any."""

    def discard(self) -> None:
        """Remove staged content that remains."""


# Names and values that Spark hides in plans, event logs and its UI. All options of an Iceberg catalog are hidden,
# because each catalog decides which are secret. The remaining patterns are Spark's own, storage keys, and addresses
# with a password.
_SECRETS = f"{java_pattern()}|sasl|ssl[.]key|header[.]|sql[.]catalog[.]flinkcompat_|://[^/@ ]+@"
REDACTION = (("spark.redaction.regex", _SECRETS), ("spark.sql.redaction.options.regex", f"{_SECRETS}|url"))
