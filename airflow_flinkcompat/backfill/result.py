"""Result of a backfill, as a frozen value that can be stored as JSON, and the backfill's errors.

Each error names the fault, the place and the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from airflow_flinkcompat.model import Span

SCHEMA = "flinkcompat-backfill/1"


@dataclass(frozen=True)
class SourceRows:
    """Rows read from one table, and the table's location without secrets."""

    table: str
    place: str
    rows: int


@dataclass(frozen=True)
class SinkRows:
    """Rows published to one sink, and the written files. ``windows``: None without window columns."""

    table: str
    place: str
    rows: int
    files: tuple[str, ...]
    windows: int | None = None


@dataclass(frozen=True)
class BackfillResult:
    """Result of a backfill.

    Attributes:
        sources: Rows read from each table. With several chunks, a row counts each time it is read.
        sinks: Rows published to each sink.
        rows_dropped: Number of rows in no window, because their event time is NULL. Flink in batch mode also drops rows
            without an event time.
        from_: Requested lower bound; None if it is open.
        to: Requested upper bound; None if it is open.
        ties: Number of Top-N windows in which a tie decided which rows are published. Flink breaks ties by order of
            arrival. A backfill breaks ties by the columns of the rows.
        chunks: Number of chunks of the range.
        rows_late: Number of dropped late rows. A row counts once for each window of the range that it
            missed.
    """

    sources: tuple[SourceRows, ...]
    sinks: tuple[SinkRows, ...]
    rows_dropped: int
    from_: datetime | None = None
    to: datetime | None = None
    ties: int = 0
    chunks: int = 1
    rows_late: int = 0

    @property
    def rows_read(self) -> int:
        """Number of rows read from all sources."""
        return sum(source.rows for source in self.sources)

    @property
    def rows_written(self) -> int:
        """Number of rows published to all sinks."""
        return sum(sink.rows for sink in self.sinks)

    @property
    def windows_written(self) -> int | None:
        """Number of windows published to all sinks; None if the number of one sink is unknown."""
        found = [sink.windows for sink in self.sinks]
        return None if None in found else sum(windows or 0 for windows in found)

    def lines(self) -> tuple[str, ...]:
        """Reconciliation for a person: rows that were read, dropped and written.

        Returns:
            One line per count. Lines of single sources and sinks are indented by two spaces.
        """
        again = f" (in {self.chunks} chunks, so some rows were read more than once)" if self.chunks > 1 else ""
        ties = f"{self.ties} Top-N windows in which a tie decided the last rank"
        return (
            f"{self.rows_read} rows read{again}",
            *(f"  {source.rows} from {source.table}: {source.place}" for source in self.sources),
            f"{self.rows_dropped} rows dropped because their event time is NULL",
            *((f"{self.rows_late} rows dropped because they were late for their window",) if self.rows_late else ()),
            *((ties,) if self.ties else ()),
            f"{self.rows_written} rows written" + _of_windows(self.windows_written),
            *(f"  {sink.rows} into {sink.table}{_of_windows(sink.windows)}: {sink.place}" for sink in self.sinks),
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert the result to JSON values.

        Returns:
            The range in ISO 8601, the counts of rows, windows and chunks, and one entry per source and sink.
        """
        return {
            "schema": SCHEMA,
            "from": None if self.from_ is None else self.from_.isoformat(),
            "to": None if self.to is None else self.to.isoformat(),
            "rows_read": self.rows_read,
            "rows_dropped_null_time": self.rows_dropped,
            "rows_late": self.rows_late,
            "rows_written": self.rows_written,
            "windows_written": self.windows_written,
            "windows_decided_by_ties": self.ties,
            "chunks": self.chunks,
            "sources": [asdict(source) for source in self.sources],
            "sinks": [{**asdict(sink), "files": list(sink.files)} for sink in self.sinks],
        }


def _of_windows(windows: int | None) -> str:
    return "" if windows is None else f" of {windows} windows"


FLINK_BATCH = "compute these rows with Flink in batch mode"
"""Remedy if a backfill cannot compute rows exactly."""


class BackfillError(ValueError):
    """A backfill cannot be done exactly, or has failed. The message is for the user.

    Attributes:
        message: The fault and its remedy, without the place in the script.
        span: Place in the script; None if the cause is elsewhere.
    """

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message if span is None else f"{span}: {message}")
        self.message = message
        self.span = span


class Untranslatable(BackfillError):
    """A construct in the script has no exact translation to Spark."""


def combined(errors: Sequence[BackfillError]) -> BackfillError:
    """Combine several errors into one, with one line each, in order and without duplicates."""
    if len(errors) == 1:
        return errors[0]
    lines = dict.fromkeys(str(error) for error in errors)
    if len(lines) == 1:
        return errors[0]
    kind = Untranslatable if all(isinstance(error, Untranslatable) for error in errors) else BackfillError
    return kind("\n".join(lines))
