"""The rows of a sink that a run replaces: those of the windows wholly inside the range."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, NamedTuple

from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range
from airflow_flinkcompat.backfill.spark_sql.windows import timestamp


class Comparison(NamedTuple):
    """``column operator moment`` with ``>=`` or ``<=``; the column holds a bound of the row's window."""

    column: str
    operator: str
    moment: datetime

    def sql(self, column: str, kind: str = "TIMESTAMP_NTZ") -> str:
        """SQL of the comparison, for a column of this name and type."""
        return f"{column} {self.operator} {timestamp(self.moment, kind)}"


def replaced_rows(rows: PublishedRows, bounds: Range) -> tuple[Comparison, ...]:
    """Condition for exactly the rows whose windows are in the range; no comparison if it is open.

    Raises :class:`BackfillError` if no column of the sink shows the window.
    """
    windows = rows.windows
    size = None if windows.size is None else timedelta(microseconds=windows.size)
    found: list[Comparison] = []
    for bound, own, other, operator, name in (
        (bounds.from_, windows.start, windows.end, ">=", "window_start"),
        (bounds.to, windows.end, windows.start, "<=", "window_end"),
    ):
        if bound is None:
            continue
        if own is not None:
            found.append(Comparison(own, operator, bound))
        elif other is not None and size is not None:
            found.append(Comparison(other, operator, bound + size if operator == ">=" else bound - size))
        else:
            raise BackfillError(
                f"sink {rows.name}: a backfill of a time range replaces the rows of that range, but "
                f"the sink has no column of {name} as TIMESTAMP(3); add it to the sink and the query, "
                "or leave out --from and --to to replace everything",
                rows.table.span,
            )
    return tuple(found)


def order_column(rows: PublishedRows) -> str | None:
    """The column that orders two windows, if there is one."""
    windows = rows.windows
    return windows.end or (windows.start if windows.size is not None else None)


def replaced_rows_with_keys(rows: PublishedRows, bounds: Range) -> tuple[Comparison, ...]:
    """Comparisons of :func:`replaced_rows` for a table that does not look up a primary key's other rows.

    Raises :class:`BackfillError` if a row outside of the range may have the key of one inside.
    """
    windows, key, compared = rows.windows, rows.table.primary_key, replaced_rows(rows, bounds)
    if compared and key and windows.end not in key and (windows.size is None or windows.start not in key):
        raise BackfillError(
            f"sink {rows.name}: with its PRIMARY KEY ({', '.join(key)}), windows outside the range "
            "may have the same keys as those within, and Flink would keep one row; add window_end to "
            "the key, remove the key, or leave out --from and --to to replace everything",
            rows.table.span,
        )
    return compared


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
        """Condition for the replaced rows. Raises :class:`BackfillError` if there is none."""
        return () if self.exclusive else replaced_rows_with_keys(rows, bounds)
