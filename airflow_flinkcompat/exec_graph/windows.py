"""Event-time windows that Flink stores in slices, and reuse of these slices by changed windows.

The facts are from the source code of Flink 1.20 and 2.3 (``SliceAssigners``,
``AbstractSliceSyncStateWindowAggProcessor``). A slice is identified by its end. A window fires when the watermark
reaches the millisecond before its end. Flink keeps a slice until the last window with rows of the slice has fired,
and drops rows that arrive later. TUMBLE and HOP (slide ``s``, size ``S``) keep a slice with end ``e`` until the
window with end ``e - s + S`` fires. Each kept slice contains all of its rows. CUMULATE keeps all rows of a full-size
window until that window fires. Rows of fired slices are merged under the end of the first slice.

Changed windows therefore find every row of the windows that have not fired yet, if both conditions are met:

* The new size is not greater than the old size. The last new window with a row then ends no later than the last old
  window with this row, so Flink has not dropped the row with its slice or as a late row.
* Each new slice consists of whole old slices that can be distinguished (for CUMULATE, of whole full-size windows). An
  old slice then belongs to the first new slice that ends at or after the end of the old slice. The accumulators of
  old slices that belong to one new slice are merged.

Each end of a new window is also the end of an old window. The old job has therefore never emitted a window that the
new job still has to emit. Rows of new slices whose windows have all fired are left out, because no timer would fire
or clear these slices. The omitted rows include all rows that are late for the new windows, but were not late for the
old windows. For each slice, a key needs a timer at the end of the first window that has not fired. When this timer
fires, HOP and CUMULATE set the timer of the next window. A timer without a slice would make TUMBLE emit an empty row,
so no such timer is written. HOP detects empty windows by the number of rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from airflow_flinkcompat.exec_graph.exec_node import seconds
from airflow_flinkcompat.plan.nodes import Measure, Window, WindowKind

_LONGER = "its windows are longer, but the state of ended windows is deleted"
_SPLIT = "its windows begin or end within a stored slice"
_UNCOUNTED = "it now has hopping windows, which require a count of the rows in each slice"


@dataclass(frozen=True)
class SlicedWindow:
    """Event-time windows that are stored in slices. All lengths are in milliseconds.

    Attributes:
        kind: The kind of window: TUMBLE, HOP or CUMULATE.
        size: The length of a window; for CUMULATE, the greatest length.
        step: The length of a slice: the slide of HOP, the step of CUMULATE, or the size of TUMBLE.
        offset: The shift of all windows.
    """

    kind: WindowKind
    size: int
    step: int
    offset: int = 0

    @classmethod
    def of(cls, window: Window) -> SlicedWindow | None:
        """Convert a window of a script; None if it is not stored in slices."""
        step = window.size if window.kind is WindowKind.TUMBLE else window.slide
        if window.kind is WindowKind.SESSION or window.measure is not Measure.TIME or not window.size or not step:
            return None
        return cls(window.kind, window.size, step, window.normalised_offset)

    def unfit(self, old: SlicedWindow) -> str:
        """The reason why these windows cannot reuse the slices of old windows; "" if they can."""
        if self.size > old.size:
            return _LONGER
        apart = old.size if old.kind is WindowKind.CUMULATE else old.step
        if self.step % old.step or self.size % apart or (self.offset - old.offset) % apart:
            return _SPLIT
        return _UNCOUNTED if self.kind is WindowKind.HOP is not old.kind else ""

    def merges(self, old: SlicedWindow) -> bool:
        """True if several slices of the old windows may become one."""
        return self != old and (self.step != old.step or WindowKind.CUMULATE in (self.kind, old.kind))

    def next_end(self, moment: int) -> int:
        """The first slice end at or after a timestamp."""
        return moment + (self.offset - moment) % self.step

    def place(self, end: int, watermark: int) -> tuple[int, int] | None:
        """The ends of an old slice's new slice and of its next window; None if all its windows have fired."""
        found, fires = slice_place(self.kind is WindowKind.CUMULATE, self.size, self.step, self.offset, end, watermark)
        return None if fires == FIRED else (found, fires)


FIRED = -(1 << 63)
"""The end of the next window if all windows have fired."""


def slice_place(cumulates: bool, size: int, step: int, offset: int, end: int, watermark: int) -> tuple[int, int]:
    """The ends of an old slice's new slice and of its next window. The migration compiles this function."""
    found = end + (offset - end) % step
    last = found - step + size
    if cumulates:
        last = found + (offset - found) % size
    if last - 1 <= watermark:
        return found, FIRED
    fires = max(found, watermark + 2 + (offset - watermark - 2) % step)
    if cumulates and found < fires:
        found = last - size + step
    return found, fires


_KINDS: Mapping[object, tuple[WindowKind, str, str]] = {
    "TumblingWindow": (WindowKind.TUMBLE, "size", "size"),
    "HoppingWindow": (WindowKind.HOP, "size", "slide"),
    "CumulativeWindow": (WindowKind.CUMULATE, "maxSize", "step"),
}
"""For each kind of window, the names of the fields with its size and its slice length."""
_BY_EVENT_TIME = {
    "strategy": "TimeAttribute",
    "isRowtime": True,
    "timeAttributeType": (("kind", "ROWTIME"), ("precision", 3), ("type", "TIMESTAMP_WITHOUT_TIME_ZONE")),
}
"""Properties of windows whose time attribute needs no conversion to the time of their timers."""


def sliced_window(windowing: Hashable) -> SlicedWindow | None:
    """The windows of an aggregation; None if they are not stored in slices."""
    windowing_parts = dict(windowing) if isinstance(windowing, tuple) else {}
    if any(windowing_parts.get(key) != wanted for key, wanted in _BY_EVENT_TIME.items()):
        return None
    window = dict(windowing_parts.get("window", ()))
    if window.get("type") not in _KINDS:
        return None
    kind, size, step = _KINDS[window["type"]]
    offset = Decimal(window.get("offset", 0))
    lengths = [1000 * length for length in (seconds(window[size]), seconds(window[step]), offset)]
    whole = all(length == int(length) for length in lengths)
    return SlicedWindow(kind, *map(int, lengths)) if whole else None


def meaning_without_window(windowing: Hashable) -> Hashable:
    """The properties of an aggregation's windows, such as the time attribute, without the windows."""
    return tuple(pair for pair in windowing if pair[0] != "window") if isinstance(windowing, tuple) else windowing
