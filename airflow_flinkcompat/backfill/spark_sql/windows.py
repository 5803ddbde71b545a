"""Arithmetic of aligned windows: the windows of a time, and the rows that a range of windows needs.

All times are microseconds since 1970-01-01 in the local time of the time attribute. Times before 1970 are negative.
Windows include their start and exclude their end. The functions in Python are the reference for :meth:`Aligned.ends` in
Spark SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import gcd

from airflow_flinkcompat.plan.nodes import Window, WindowKind

EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
MILLISECOND = 1000
DAY = 86_400_000_000


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970 for a time without a zone."""
    return (moment - EPOCH) // _MICROSECOND


_FIRST, _LAST = to_micros(datetime.min), to_micros(datetime.max)


def from_micros(micros: int) -> datetime:
    """Time without a zone for microseconds since 1970, clamped to the years 1 to 9999."""
    return EPOCH + timedelta(microseconds=min(max(micros, _FIRST), _LAST))


def timestamp(moment: datetime, kind: str = "TIMESTAMP_NTZ") -> str:
    """SQL constant of a timestamp type: ``TIMESTAMP_NTZ '2026-01-01 00:00:00'``."""
    return f"{kind} '{moment.isoformat(' ')}'"


def micros_of(time: str) -> str:
    """Spark SQL for a time in microseconds since 1970. The session's zone is UTC."""
    return f"unix_micros(CAST({time} AS TIMESTAMP_LTZ))"


@dataclass(frozen=True)
class WindowRange:
    """Range of requested windows.

    A window is requested if it starts at ``starts`` or later and ends from ``ends`` to ``until``.

    None leaves a bound open. A published range sets ``starts`` and ``until``. A window over windowed rows sets ``ends``
    and ``until``, because the time of an inner window is its last millisecond.
    """

    starts: int | None = None
    ends: int | None = None
    until: int | None = None

    @classmethod
    def inside(cls, from_: datetime | None, to: datetime | None, after: datetime | None = None) -> WindowRange:
        """Windows that lie completely inside [from, to) and end after ``after``."""
        return cls(
            starts=None if from_ is None else to_micros(from_),
            ends=None if after is None else to_micros(after) + MILLISECOND,
            until=None if to is None else to_micros(to),
        )

    @classmethod
    def at(cls, first: int | None, last: int | None, slack: int = 0) -> WindowRange:
        """Windows whose time is in [first, last), and possibly more windows up to ``slack`` away."""
        return cls(
            ends=None if first is None else first + MILLISECOND - slack, until=None if last is None else last + slack
        )

    def covering(self, inside: WindowRange) -> WindowRange:
        """Return a range that contains this range and ``inside``, and possibly more windows."""
        lower = [end for end in (inside.ends, inside.starts) if end is not None]
        return WindowRange(
            ends=None if self.ends is None or not lower else min(self.ends, max(lower)),
            until=None if self.until is None or inside.until is None else max(self.until, inside.until),
        )


@dataclass(frozen=True)
class Aligned:
    """Windows whose positions are equal for all keys: TUMBLE, HOP and CUMULATE.

    ``size``: Length of the windows; for CUMULATE, of the longest window. ``slide``: Slide of a HOP, step of a CUMULATE,
    or size of a TUMBLE, which is a HOP without overlap. ``offset``: Offset of the window definition.
    """

    kind: WindowKind
    size: int
    slide: int
    offset: int = 0

    @classmethod
    def of(cls, window: Window) -> Aligned:
        """Aligned windows of a plan's window definition.

        Raises ValueError for a SESSION window, or a window without a length.
        """
        if window.kind is WindowKind.SESSION or not window.size:
            raise ValueError(f"a {window.kind} window of length {window.size} is not aligned")
        slide = window.size if window.kind is WindowKind.TUMBLE else window.slide or window.size
        return cls(window.kind, window.size * MILLISECOND, slide * MILLISECOND, window.normalised_offset * MILLISECOND)

    @property
    def period(self) -> int:
        """Distance between the starts of consecutive windows."""
        return self.size if self.kind is WindowKind.CUMULATE else self.slide

    @property
    def slice(self) -> int:
        """Length of the longest aligned pieces that lie completely inside or outside each window."""
        return gcd(self.size, self.slide)

    @property
    def overlapping(self) -> bool:
        """True if a time can be in several windows."""
        return self.slide < self.size

    def _floor(self, micros: int, step: int) -> int:
        """Round down to a multiple of ``step``, also before 1970."""
        return micros - (micros - self.offset) % step

    def _ceiling(self, micros: int, step: int) -> int:
        return self._floor(micros - 1, step) + step

    def windows_of(self, micros: int) -> tuple[tuple[int, int], ...]:
        """Pairs (start, end) of all windows that contain a time, in order; empty in a gap of a HOP."""
        if self.kind is WindowKind.CUMULATE:
            start = self._floor(micros, self.size)
            ends = range(self._floor(micros, self.slide) + self.slide, start + self.size + 1, self.slide)
            return tuple((start, end) for end in ends)
        starts = range(self._ceiling(micros - self.size + 1, self.slide), micros + 1, self.slide)
        return tuple((start, start + self.size) for start in starts)

    def wanted(self, start: int, end: int, window_range: WindowRange) -> bool:
        return (
            (window_range.starts is None or start >= window_range.starts)
            and (window_range.ends is None or end >= window_range.ends)
            and (window_range.until is None or end <= window_range.until)
        )

    def span(self, window_range: WindowRange) -> tuple[int | None, int | None]:
        """Start of the first and end of the last requested window; None if the range is open.

        Rows in the requested windows have ``first <= time < last``. If windows do not overlap, no other rows have such
        a time. If no window is requested, ``first >= last``, or all rows with such a time are in windows that are not
        requested.
        """
        starts = [window_range.starts, None if window_range.ends is None else window_range.ends - self.size]
        known = [start for start in starts if start is not None]
        first = self._ceiling(max(known), self.period) if known else None
        if window_range.until is None:
            return first, None
        if self.kind is WindowKind.CUMULATE:
            return first, self._floor(window_range.until, self.slide)
        return first, self._floor(window_range.until - self.size, self.slide) + self.size

    def ends(self, micros: str) -> str:
        """Spark SQL for the ends of all windows that contain a time, one per row.

        For a time in a gap between the windows of a HOP, the returned end is not later than the time.
        """
        floor = f"{micros} - pmod({micros} - {self.offset}, {{0}})"
        if self.kind is WindowKind.CUMULATE:
            first = f"{floor.format(self.slide)} + {self.slide}"
            return f"explode(sequence({first}, {floor.format(self.size)} + {self.size}, {self.slide}))"
        last = f"{floor.format(self.slide)} + {self.size}"
        if not self.overlapping:
            return last
        # The first window end after the time.
        shift = self.offset + self.size
        first = f"{micros} - pmod({micros} - {shift}, {self.slide}) + {self.slide}"
        return f"explode(sequence({first}, {last}, {self.slide}))"

    def start(self, end: str) -> str:
        """Spark SQL for the start of a window from its end, both in microseconds."""
        if self.kind is WindowKind.CUMULATE:
            return f"{end} - 1 - pmod({end} - 1 - {self.offset}, {self.size})"
        return f"{end} - {self.size}"

    def slice_of(self, micros: str) -> str:
        """Spark SQL for the start of the slice that contains a time.

        All times in a slice have the same windows.
        """
        return f"{micros} - pmod({micros} - {self.offset}, {self.slice})"


@dataclass(frozen=True)
class AskedWindows:
    """Windows that one windowing node must compute, as a function of the published windows.

    Attributes:
        above: Windows that are computed over the rows of this node, their own requested windows, and the largest error
            of their time in microseconds; None if the rows of this node are published directly.
        every: True if all windows are computed for any published range.
        published_too: True if the windows of the published range are also computed.
    """

    above: tuple[Aligned, AskedWindows, int] | None = None
    every: bool = False
    published_too: bool = False

    def within(self, published: WindowRange) -> WindowRange:
        """Windows to compute for a range of published windows, and possibly some more."""
        if self.every:
            found = WindowRange()
        elif self.above is None:
            return published
        else:
            windows, asked, slack = self.above
            found = WindowRange.at(*windows.span(asked.within(published)), slack)
        return found.covering(published) if self.published_too else found
