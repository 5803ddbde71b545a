"""Interfaces of a connector to the backfill: a source to read a table, and a sink to publish rows.

Both are frozen values made while the script is compiled, without Spark; everything inexact is refused then. A
:class:`SourceReader` and a :class:`Publication` do the work with Spark.
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
    """Bounds of the published windows, without zone; None where open.

    ``after`` is for a part of a range: only windows that end later, because those before belong to another part.
    """

    from_: datetime | None = None
    to: datetime | None = None
    after: datetime | None = None

    @property
    def bounded(self) -> bool:
        return self.from_ is not None or self.to is not None


@dataclass(frozen=True)
class Needs:
    """Spark requirements of a connector before the session starts: Maven coordinates and settings."""

    packages: tuple[str, ...] = ()
    conf: tuple[tuple[str, str], ...] = ()

    def __or__(self, other: Needs) -> Needs:
        return Needs(tuple(dict.fromkeys(self.packages + other.packages)), tuple(dict.fromkeys(self.conf + other.conf)))


class BackfillSource(Protocol):
    """Place and meaning of a table's rows. Equal sources read the same rows.

    Its rows are read by the :class:`SourceReader` of its connector.
    """

    @property
    def table(self) -> str:
        """The table's name."""

    @property
    def needs(self) -> Needs:
        """Requirements of the Spark session."""

    @property
    def place(self) -> str:
        """The place without secrets, for a user; an absolute URI for files."""

    @property
    def ordered(self) -> bool:
        """True if rows have the order in which a streaming job would read them (:class:`OrderedReader`)."""

    def decode(self, column: Column, field: str, table: Table) -> str:
        """Spark SQL from the raw field (a column name) to the value of a physical column."""


@runtime_checkable
class Metadata(Protocol):
    """A source whose rows carry more than the table's stored columns."""

    def metadata(self, key: str) -> tuple[DataType, str] | None:
        """Type (nullable) and Spark SQL over the raw frame for METADATA FROM ``key``; None: not exact."""


@dataclass(frozen=True)
class TimeSpan:
    """Rows with a time outside of [first, last) in the physical column ``field`` may be left out.

    Rows without a time stay. The bounds are in microseconds of the column's own clock, None if open.
    """

    field: int
    first: int | None
    last: int | None


@runtime_checkable
class TimeBounded(Protocol):
    """A source that reads less for a range of times."""

    def within(self, span: TimeSpan) -> BackfillSource:
        """The same source, where rows outside of the span may be left out."""


@runtime_checkable
class Partitioned(Protocol):
    """A source that skips whole folders by the columns in their names."""

    @property
    def folders(self) -> frozenset[int]:
        """Positions of the stored columns whose values are folder names."""


class Locations(Protocol):
    """Places of tables, from a script and a request."""

    def check(self, sources: Iterable[Table], sinks: Iterable[Table]) -> None:
        """Raise :class:`BackfillError` for a name that matches no table that is read or written, or several."""

    def source(self, table: Table) -> BackfillSource:
        """The source of a table. Raises :class:`BackfillError` if it is unknown or not read exactly."""

    def sink(self, table: Table) -> BackfillSink:
        """The sink of a table. Raises :class:`BackfillError` if it is unknown or not written exactly."""

    def order(self, table: Table) -> tuple[int, ...]:
        """Positions of the columns that define the arrival order of a table's rows; none if undeclared."""


class SourceReader(Protocol):
    """The rows of one source in one Spark session."""

    def check(self) -> None:
        """Raise :class:`BackfillError` if there is nothing to read."""

    def rows(self) -> DataFrame:
        """All rows, one raw column ``f{i}`` per physical column; Spark leaves out those that nobody reads."""


@runtime_checkable
class OrderedReader(Protocol):
    """The reader of an ordered source."""

    def ordered_rows(self) -> DataFrame:
        """The rows of :meth:`SourceReader.rows` with three columns more.

        These are ``part``, the arrival order of parts; ``place``, the order of rows in a part; and ``stream``: any
        job reads the rows of one stream in this order.
        """

    def check_sequence(self) -> None:
        """Raise :class:`BackfillError` if nothing defines how a job mixes the parts."""


@runtime_checkable
class Versioned(Protocol):
    """A reader that cheaply notices a change of its source's content."""

    def version(self) -> str:
        """A text that changes if rows are added, removed or written again."""


@dataclass(frozen=True)
class WindowColumns:
    """Columns of a sink with the windows of its rows, None if it has none.

    ``size`` is their common length in microseconds, if there is one: either bound then implies the other.
    """

    start: str | None = None
    end: str | None = None
    size: int | None = None


@dataclass(frozen=True)
class PublishedRows:
    """Published rows: the sink's table, its stored columns (``c0`` … in a frame) and its window columns."""

    table: Table
    columns: tuple[Column, ...]
    windows: WindowColumns = WindowColumns()

    @property
    def name(self) -> str:
        return self.table.name


class BackfillSink(Protocol):
    """Place to which a sink's rows are published. Two writes to one target are one."""

    @property
    def needs(self) -> Needs:
        """Requirements of the Spark session."""

    @property
    def place(self) -> str:
        """The place without secrets, for a user; an absolute URI for files."""

    @property
    def exclusive(self) -> bool:
        """True if the place was named for this run and afterwards holds only this run's rows."""

    @property
    def write_mode(self) -> str:
        """The way of putting rows in place, for a reader: "replaces …"."""

    @property
    def replaces(self) -> bool:
        """True if a live job's rows of the published windows are removed."""

    def check(self, rows: PublishedRows, bounds: Range) -> None:
        """Raise :class:`BackfillError` if such rows cannot be published here, idempotently and as a whole."""


class Publication(Protocol):
    """Publication of one sink's rows: check, stage, publish, and always discard at the end.

    After a run that failed or was killed, a repeated run leaves exactly its rows: none missing, none twice, none of
    an earlier run over the same range.
    """

    def check(self) -> None:
        """Raise :class:`BackfillError` if the place holds content that this run must not touch."""

    def stage(self, rows: DataFrame) -> None:
        """Run the computation and stage the rows next to the target, out of readers' sight."""

    def publish(self) -> tuple[str, ...]:
        """Put the staged content in place; return the names of the written files, if any."""

    def discard(self) -> None:
        """Remove remaining staged content."""


# Names and values that Spark leaves out of plans, event logs and pages. Whatever a script says of an Iceberg catalog is
# left out, because what is secret of it is up to the catalog; then what Spark hides by itself, keys of storages, and
# addresses with a password in them.
_SECRETS = f"{java_pattern()}|sasl|ssl[.]key|header[.]|sql[.]catalog[.]flinkcompat_|://[^/@ ]+@"
REDACTION = (("spark.redaction.regex", _SECRETS), ("spark.sql.redaction.options.regex", f"{_SECRETS}|url"))
