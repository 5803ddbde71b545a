"""Arithmetic of aligned windows: the windows of a time, and the rows that a range of windows needs.

All times are microseconds since 1970-01-01 on the clock of the time attribute, in local time; negative before. Windows
are half open. The functions are the reference for :meth:`Aligned.ends` in Spark SQL.
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
    """Microseconds since the epoch of a time without zone."""
    return (moment - EPOCH) // _MICROSECOND


_FIRST, _LAST = to_micros(datetime.min), to_micros(datetime.max)


def from_micros(micros: int) -> datetime:
    """The time without zone of microseconds since the epoch, clamped to the years 1 to 9999."""
    return EPOCH + timedelta(microseconds=min(max(micros, _FIRST), _LAST))


def timestamp(moment: datetime, kind: str = "TIMESTAMP_NTZ") -> str:
    """A constant of a type in SQL: ``TIMESTAMP_NTZ '2026-01-01 00:00:00'``."""
    return f"{kind} '{moment.isoformat(' ')}'"


def micros_of(time: str) -> str:
    """Spark SQL of a time's microseconds since the epoch; the session's zone is UTC."""
    return f"unix_micros(CAST({time} AS TIMESTAMP_LTZ))"


@dataclass(frozen=True)
class WindowRange:
    """Requested windows: those that start at ``starts`` or later and end from ``ends`` to ``until``.

    None is open. Publishing requests ``starts`` and ``until``, a window over windows ``ends`` and ``until``, because a
    window's time is its last millisecond.
    """

    starts: int | None = None
    ends: int | None = None
    until: int | None = None

    @classmethod
    def inside(cls, from_: datetime | None, to: datetime | None, after: datetime | None = None) -> WindowRange:
        """The windows wholly inside [from, to) that end after ``after``."""
        return cls(
            starts=None if from_ is None else to_micros(from_),
            ends=None if after is None else to_micros(after) + MILLISECOND,
            until=None if to is None else to_micros(to),
        )

    @classmethod
    def at(cls, first: int | None, last: int | None, slack: int = 0) -> WindowRange:
        """The windows whose time is in [first, last), and possibly some up to ``slack`` away."""
        return cls(
            ends=None if first is None else first + MILLISECOND - slack, until=None if last is None else last + slack
        )

    def covering(self, inside: WindowRange) -> WindowRange:
        """These windows and those of :meth:`inside`, and perhaps some around and in between."""
        lower = [end for end in (inside.ends, inside.starts) if end is not None]
        return WindowRange(
            ends=None if self.ends is None or not lower else min(self.ends, max(lower)),
            until=None if self.until is None or inside.until is None else max(self.until, inside.until),
        )


@dataclass(frozen=True)
class Aligned:
    """Windows at the same positions for all keys: TUMBLE, HOP and CUMULATE.

    ``size`` is the length (the longest for CUMULATE). ``slide`` is the slide of HOP, the step of CUMULATE, or the size
    of TUMBLE, which is a HOP from one window to the next. ``offset`` is that of the assignment.
    """

    kind: WindowKind
    size: int
    slide: int
    offset: int = 0

    @classmethod
    def of(cls, window: Window) -> Aligned:
        """The windows of a plan. ValueError for a SESSION window and one without a length."""
        if window.kind is WindowKind.SESSION or not window.size:
            raise ValueError(f"a {window.kind} window of length {window.size} is not aligned")
        slide = window.size if window.kind is WindowKind.TUMBLE else window.slide or window.size
        return cls(window.kind, window.size * MILLISECOND, slide * MILLISECOND, window.normalised_offset * MILLISECOND)

    @property
    def period(self) -> int:
        """Distance from one start to the next."""
        return self.size if self.kind is WindowKind.CUMULATE else self.slide

    @property
    def slice(self) -> int:
        """Length of the aligned pieces that are wholly inside or outside of every window."""
        return gcd(self.size, self.slide)

    @property
    def overlapping(self) -> bool:
        """True if a time can belong to several windows."""
        return self.slide < self.size

    def _floor(self, micros: int, step: int) -> int:
        """Floor modulo, which is also right for times before 1970."""
        return micros - (micros - self.offset) % step

    def _ceiling(self, micros: int, step: int) -> int:
        return self._floor(micros - 1, step) + step

    def windows_of(self, micros: int) -> tuple[tuple[int, int], ...]:
        """The (start, end) of all windows a time belongs to, in order; none in a gap of HOP."""
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

        A row of such a window has ``first <= time < last``. If windows do not overlap, these are the rows of exactly
        these windows. If there is no window, first >= last, or every row belongs to other windows.
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
        """Spark SQL of the ends of a time's windows, one a row; in a gap of HOP an end not after the time."""
        floor = f"{micros} - pmod({micros} - {self.offset}, {{0}})"
        if self.kind is WindowKind.CUMULATE:
            first = f"{floor.format(self.slide)} + {self.slide}"
            return f"explode(sequence({first}, {floor.format(self.size)} + {self.size}, {self.slide}))"
        last = f"{floor.format(self.slide)} + {self.size}"
        if not self.overlapping:
            return last
        # The first end after the time, on the grid of the ends.
        shift = self.offset + self.size
        first = f"{micros} - pmod({micros} - {shift}, {self.slide}) + {self.slide}"
        return f"explode(sequence({first}, {last}, {self.slide}))"

    def start(self, end: str) -> str:
        """Spark SQL of a window's start from its end, both in microseconds."""
        if self.kind is WindowKind.CUMULATE:
            return f"{end} - 1 - pmod({end} - 1 - {self.offset}, {self.size})"
        return f"{end} - {self.size}"

    def slice_of(self, micros: str) -> str:
        """Spark SQL of the start of a time's slice; all times of a slice have the same windows."""
        return f"{micros} - pmod({micros} - {self.offset}, {self.slice})"


@dataclass(frozen=True)
class AskedWindows:
    """Computed windows of one windowing, as a function of the published ones.

    Attributes:
        above: The windows over these rows, their requested windows, and the largest error of their time in
        microseconds; None if nothing is between these windows and the published rows.
        every: True if all are computed, regardless of the published range.
        published_too: True if those of the published range are computed as well.
    """

    above: tuple[Aligned, AskedWindows, int] | None = None
    every: bool = False
    published_too: bool = False

    def within(self, published: WindowRange) -> WindowRange:
        """The windows that are computed for a range of published ones, and perhaps some more."""
        if self.every:
            found = WindowRange()
        elif self.above is None:
            return published
        else:
            windows, asked, slack = self.above
            found = WindowRange.at(*windows.span(asked.within(published)), slack)
        return found.covering(published) if self.published_too else found
