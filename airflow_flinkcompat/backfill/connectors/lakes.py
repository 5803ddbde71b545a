"""What the sinks in Delta Lake and Iceberg have in common: rows replaced in one commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airflow_flinkcompat.backfill.connectors.replaced_rows import Comparison, replaced_rows_with_keys
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range


@dataclass(frozen=True)
class LakeSink:
    """A sink whose rows of the range, or all of an exclusive place, are replaced in one commit."""

    exclusive: bool
    replaces: ClassVar[bool] = True

    @property
    def write_mode(self) -> str:
        return f"{'all of the table' if self.exclusive else 'the rows of the range'} replaced in one commit"

    def check(self, rows: PublishedRows, bounds: Range) -> None:
        self.replaced(rows, bounds)

    def replaced(self, rows: PublishedRows, bounds: Range) -> tuple[Comparison, ...]:
        """What is true of the rows that are replaced. Raises :class:`BackfillError` where that is not to be said."""
        return () if self.exclusive else replaced_rows_with_keys(rows, bounds)
