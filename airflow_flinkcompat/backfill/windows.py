"""Arithmetic of tumbling windows: which window a time belongs to, and which windows lie inside a range.

All times are microseconds since 1970-01-01 on the clock of the time attribute; negative before. Windows are half open.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_flinkcompat.plan.nodes import Window, WindowKind

EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Microseconds since the epoch of a time without zone."""
    return (moment - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The time without zone of microseconds since the epoch."""
    return EPOCH + timedelta(microseconds=micros)


@dataclass(frozen=True)
class Tumbling:
    """A tumbling window: length and offset in microseconds, the offset as the assignment it stands for."""

    size: int
    offset: int = 0

    @classmethod
    def of(cls, window: Window) -> Tumbling:
        """The window of a plan. ValueError when it does not tumble or has no length."""
        if window.kind is not WindowKind.TUMBLE or not window.size or window.size < 0:
            raise ValueError(f"{window.kind} of length {window.size} is no tumbling window")
        return cls(window.size * 1000, window.normalised_offset * 1000)

    def start(self, micros: int) -> int:
        """The start of the window a time belongs to: floor modulo, so that times before 1970 are right as well."""
        return micros - (micros - self.offset) % self.size

    def span(self, from_: datetime | None, to: datetime | None) -> tuple[int | None, int | None]:
        """Start of the first and end of the last window wholly inside [from, to); None where the range is open.

        The rows of exactly these windows are those with ``first <= time < last``. When no window fits, first >= last.
        """
        first = None if from_ is None else self.start(to_micros(from_) - 1) + self.size
        last = None if to is None else self.start(to_micros(to))
        return first, last
