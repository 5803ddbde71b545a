"""What was counted while rows were computed, at once or in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.result import SourceRows
from airflow_flinkcompat.backfill.spark.observations import counted

if TYPE_CHECKING:
    from pyspark.sql import Observation

    from airflow_flinkcompat.backfill.execution.frames import Execution


@dataclass(frozen=True)
class Counts:
    """Rows by table and place; per sink, in order, its rows and its windows (None where its columns do not tell)."""

    read: tuple[SourceRows, ...] = ()
    rows: tuple[int, ...] = ()
    windows: tuple[int | None, ...] = ()
    dropped: int = 0
    late: int = 0
    ties: int = 0

    @classmethod
    def of(cls, execution: Execution, sinks: Sequence[Observation]) -> Counts:
        """What an execution has counted once its actions have run."""
        return cls(
            tuple(SourceRows(table, place, rows) for (table, place), rows in execution.rows_read().items()),
            tuple(counted(seen, "rows") for seen in sinks),
            tuple(_windows(seen) for seen in sinks),
            execution.rows_dropped(),
            execution.late(),
            execution.ties(),
        )

    @classmethod
    def together(cls, parts: Iterable[Counts]) -> Counts:
        """Of several chunks.

        Rows read count each time they are read; every chunk meets the same rows without a time, so of those the chunk
        that met most speaks. A row is late for windows, and each window is of one chunk.
        """
        found = list(parts)
        if len(found) == 1:
            return found[0]
        read: dict[tuple[str, str], int] = {}
        for source in (source for part in found for source in part.read):
            read[source.table, source.place] = read.get((source.table, source.place), 0) + source.rows
        return cls(
            tuple(SourceRows(table, place, rows) for (table, place), rows in read.items()),
            tuple(map(sum, zip(*(part.rows for part in found), strict=True))),
            tuple(_sum(each) for each in zip(*(part.windows for part in found), strict=True)),
            max(part.dropped for part in found),
            sum(part.late for part in found),
            sum(part.ties for part in found),
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; :meth:`from_dict` reads them back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Counts:
        read = tuple(SourceRows(**source) for source in data["read"])
        return cls(**{**data, "read": read, "rows": tuple(data["rows"]), "windows": tuple(data["windows"])})

    def windows_written(self) -> int | None:
        """Windows in all sinks together; None where one of them does not tell."""
        return _sum(self.windows)


def _windows(seen: Observation) -> int | None:
    if counted(seen, "rows") == 0:
        return 0
    windows = counted(seen, "windows")
    return None if windows < 0 else windows


def _sum(numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    return None if None in found else sum(number or 0 for number in found)
