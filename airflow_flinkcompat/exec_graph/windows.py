"""Windows over event time that Flink stores in slices, and reuse of the slices by other windows.

Taken from the sources of Flink 1.20 and 2.3 (``SliceAssigners``, ``AbstractSliceSyncStateWindowAggProcessor``). A
slice is identified by its end. A window fires when the watermark reaches the millisecond before its end. Flink keeps a
slice until the last window with its rows has fired, and drops rows that arrive later. At any watermark, the kept slices
of TUMBLE and HOP (slide ``s``, size ``S``) are those whose end ``e`` has ``e - s + S`` still to fire. Each has all of
its rows. CUMULATE keeps all rows of a full-size window until it has fired, those of fired slices merged under the end
of the first slice.

Another definition therefore finds every row of its windows that still have to fire, if

* its size is no greater: the last window with a row ends no later than before, so that no row of it was dropped, either
  with its slice or because it was late;
* each of its slices consists of whole old slices that can be distinguished (for CUMULATE: of whole sizes). An old slice
  then belongs to the new slice with the next end at or after its own, and accumulators in one slice are merged.

Each end of a new window is also the end of an old one, so a window that still has to fire fired under neither
definition. Rows of new slices whose windows have all fired are left out, as nothing would fire or clear them. These
include all rows that were too late for the new definition, but not for the old one. For each of its slices, a key needs
a timer at the end of the first window that still has to fire. When these timers fire, HOP and CUMULATE set the next
ones. A timer without a slice would make TUMBLE emit an empty row, so none is written. HOP detects empty windows by the
number of rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from airflow_flinkcompat.exec_graph.exec_node import seconds
from airflow_flinkcompat.plan.nodes import Measure, Window, WindowKind

_LONGER = "its windows are longer, and the state of ended windows is deleted"
_SPLIT = "its windows begin or end within a stored slice"
_UNCOUNTED = "it now has hopping windows, which need a count of the rows in each slice"


@dataclass(frozen=True)
class SlicedWindow:
    """Windows over event time in slices; all lengths in milliseconds.

    Attributes:
        kind: TUMBLE, HOP or CUMULATE.
        size: The length of a window; for CUMULATE, the greatest length.
        step: The length of a slice: HOP's slide, CUMULATE's step or TUMBLE's size.
        offset: The shift of all windows.
    """

    kind: WindowKind
    size: int
    step: int
    offset: int = 0

    @classmethod
    def of(cls, window: Window) -> SlicedWindow | None:
        """A window of a script."""
        step = window.size if window.kind is WindowKind.TUMBLE else window.slide
        if window.kind is WindowKind.SESSION or window.measure is not Measure.TIME or not window.size or not step:
            return None
        return cls(window.kind, window.size, step, window.normalised_offset)

    def unfit(self, old: SlicedWindow) -> str:
        """The reason why these windows cannot resume from the slices of old ones; "" if they can."""
        if self.size > old.size:
            return _LONGER
        apart = old.size if old.kind is WindowKind.CUMULATE else old.step
        if self.step % old.step or self.size % apart or (self.offset - old.offset) % apart:
            return _SPLIT
        return _UNCOUNTED if self.kind is WindowKind.HOP is not old.kind else ""

    def merges(self, old: SlicedWindow) -> bool:
        """Return whether several slices of the old windows may become one."""
        return self != old and (self.step != old.step or WindowKind.CUMULATE in (self.kind, old.kind))

    def next_end(self, moment: int) -> int:
        """The first slice end at or after a timestamp."""
        return moment + (self.offset - moment) % self.step

    def place(self, end: int, watermark: int) -> tuple[int, int] | None:
        """The end of the slice for an old slice's rows, and the first end to fire; None if all have fired."""
        found = self.next_end(end)
        last = found - self.step + self.size
        if self.kind is WindowKind.CUMULATE:
            last = found + (self.offset - found) % self.size
        if last - 1 <= watermark:
            return None
        fires = max(found, self.next_end(watermark + 2))
        if self.kind is WindowKind.CUMULATE and found < fires:
            found = last - self.size + self.step
        return found, fires


_KINDS: Mapping[object, tuple[WindowKind, str, str]] = {
    "TumblingWindow": (WindowKind.TUMBLE, "size", "size"),
    "HoppingWindow": (WindowKind.HOP, "size", "slide"),
    "CumulativeWindow": (WindowKind.CUMULATE, "maxSize", "step"),
}
"""The names of the size and slice length of each kind of window."""
_BY_EVENT_TIME = {
    "strategy": "TimeAttribute",
    "isRowtime": True,
    "timeAttributeType": (("kind", "ROWTIME"), ("precision", 3), ("type", "TIMESTAMP_WITHOUT_TIME_ZONE")),
}
"""Windows that the aggregation assigns by a time equal to that of its timers."""


def sliced_window(windowing: Hashable) -> SlicedWindow | None:
    """The sliced windows of an aggregation; None for other windows."""
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
    """The time attribute and other properties of windows, without the windows themselves."""
    return tuple(pair for pair in windowing if pair[0] != "window") if isinstance(windowing, tuple) else windowing
