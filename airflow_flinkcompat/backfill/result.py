"""Results of a backfill, as frozen values that travel as JSON, and its errors.

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
    """Rows read from one table, and their place without secrets."""

    table: str
    place: str
    rows: int


@dataclass(frozen=True)
class SinkRows:
    """Rows published into one sink, and its files; ``windows`` is None if no column shows them."""

    table: str
    place: str
    rows: int
    files: tuple[str, ...]
    windows: int | None = None


@dataclass(frozen=True)
class BackfillResult:
    """Result of a backfill.

    Attributes:
        sources: Rows read; with several chunks, rows count each time they are read.
        sinks: Rows published.
        rows_dropped: Rows that belong to no window because their event time is NULL (Flink in batch mode drops them).
        from_: The requested lower bound; None if open.
        to: The requested upper bound; None if open.
        ties: Windows of a Top-N in which a tie decided which rows are published: Flink takes them as they arrived, a
            backfill by their other columns.
        chunks: Number of chunks of the range.
        rows_late: Rows dropped because they were late for a window in the range, once for each such window.
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
        """Rows in all files read."""
        return sum(source.rows for source in self.sources)

    @property
    def rows_written(self) -> int:
        """Rows published into all sinks."""
        return sum(sink.rows for sink in self.sinks)

    @property
    def windows_written(self) -> int | None:
        """Windows published into all sinks; None if one of them is unknown."""
        found = [sink.windows for sink in self.sinks]
        return None if None in found else sum(windows or 0 for windows in found)

    def lines(self) -> tuple[str, ...]:
        """The reconciliation for a person: rows read, left out and written.

        Returns:
            One line per count, those of single sources and sinks indented by two blanks.
        """
        again = f" (in {self.chunks} chunks, some rows more than once)" if self.chunks > 1 else ""
        ties = f"{self.ties} windows of a Top-N whose last rank was decided by a tie"
        return (
            f"{self.rows_read} rows read{again}",
            *(f"  {source.rows} from {source.table}: {source.place}" for source in self.sources),
            f"{self.rows_dropped} rows dropped for a NULL event time",
            *((f"{self.rows_late} rows dropped because they were late for their window",) if self.rows_late else ()),
            *((ties,) if self.ties else ()),
            f"{self.rows_written} rows written" + _of_windows(self.windows_written),
            *(f"  {sink.rows} into {sink.table}{_of_windows(sink.windows)}: {sink.place}" for sink in self.sinks),
        )

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values.

        Returns:
            The range as ISO 8601, the counts of rows, windows and chunks, and one entry per source and sink.
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
"""Remedy if a backfill has no exact answer."""


class BackfillError(ValueError):
    """A backfill that cannot be done exactly, or failed; the text is meant for the user.

    Attributes:
        message: The fault and its remedy, without the place.
        span: The place in the script; None if the cause is not in the script.
    """

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message if span is None else f"{span}: {message}")
        self.message = message
        self.span = span


class Untranslatable(BackfillError):
    """A construct in the script without an exact translation for the backfill."""


def combined(errors: Sequence[BackfillError]) -> BackfillError:
    """One error from several, one line each, without duplicates, in their order."""
    if len(errors) == 1:
        return errors[0]
    lines = dict.fromkeys(str(error) for error in errors)
    if len(lines) == 1:
        return errors[0]
    kind = Untranslatable if all(isinstance(error, Untranslatable) for error in errors) else BackfillError
    return kind("\n".join(lines))
