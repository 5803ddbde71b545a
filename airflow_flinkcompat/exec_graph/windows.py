"""Windows over event time that Flink stores in slices, and their reuse by other windows.

Read in Flink 1.20 and 2.3 (``SliceAssigners``, ``AbstractSliceSyncStateWindowAggProcessor``). A slice goes by its
end, and a window fires when the watermark reaches the millisecond in front of its end. A slice is kept until the last
window that takes its rows has fired, and rows that come later are dropped. At any watermark the slices of TUMBLE and
HOP (slide ``s``, size ``S``) that are kept are those whose end ``e`` has ``e - s + S`` still to fire, each with all
of its rows. CUMULATE keeps all rows of a size until that has fired, those of fired slices as one, under the end of
the first slice.

So another definition finds every row that one of its windows still to fire takes, where

* its size is no greater: the last window that takes a row ends no later than the last one did before, so no row of it
  was dropped, neither with its slice nor for coming late;
* each of its slices is made of whole slices that can be distinguished (of CUMULATE: of whole sizes): a former slice
  then lies in the new one whose end is the next from its own on, and accumulators that meet are merged.

Each end of its windows is an end of former ones too, so a window that is still to fire fired under neither definition.
Rows of new slices whose windows have all fired are left out, as nothing would ever fire or clear them; among them are
all rows that came too late for the new definition and early enough for the former. A key needs a timer where the first
window still to fire of each of its slices ends: when they fire, HOP and CUMULATE set the next one. A timer without a
slice makes TUMBLE emit a row of nothing, so there is none. HOP checks the number of rows to see if a window is empty.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from airflow_flinkcompat.exec_graph.exec_node import seconds
from airflow_flinkcompat.plan.nodes import Measure, Window, WindowKind

_LONGER = "its windows are longer, and nothing is left of those that ended"
_SPLIT = "its windows begin or end where what is stored cannot be split"
_UNCOUNTED = "it hops now, for which the rows of each slice are counted, and they were not"


@dataclass(frozen=True)
class SlicedWindow:
    """Windows over event time in slices; all lengths in milliseconds.

    Attributes:
        kind: TUMBLE, HOP or CUMULATE.
        size: The length of a window, of CUMULATE the greatest.
        step: The length of a slice: the slide of HOP, the step of CUMULATE, the size of TUMBLE.
        offset: By how much windows are shifted.
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
        """The reason why these windows cannot resume from the slices of others, "" if they can."""
        if self.size > old.size:
            return _LONGER
        apart = old.size if old.kind is WindowKind.CUMULATE else old.step
        if self.step % old.step or self.size % apart or (self.offset - old.offset) % apart:
            return _SPLIT
        return _UNCOUNTED if self.kind is WindowKind.HOP is not old.kind else ""

    def merges(self, old: SlicedWindow) -> bool:
        """Return whether several slices of others may become one."""
        return self != old and (self.step != old.step or WindowKind.CUMULATE in (self.kind, old.kind))

    def next_end(self, moment: int) -> int:
        """The first slice end at or after a timestamp."""
        return moment + (self.offset - moment) % self.step

    def place(self, end: int, watermark: int) -> tuple[int, int] | None:
        """The slice end under which these windows store the rows of an old slice."""
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
"""Group windows, which the aggregation assigns itself by a time that equals its timers'."""


def sliced_window(windowing: Hashable) -> SlicedWindow | None:
    """The sliced windows of an aggregation; None for others."""
    told = dict(windowing) if isinstance(windowing, tuple) else {}
    if any(told.get(key) != wanted for key, wanted in _BY_EVENT_TIME.items()):
        return None
    window = dict(told.get("window", ()))
    if window.get("type") not in _KINDS:
        return None
    kind, size, step = _KINDS[window["type"]]
    offset = Decimal(window.get("offset", 0))
    lengths = [1000 * length for length in (seconds(window[size]), seconds(window[step]), offset)]
    whole = all(length == int(length) for length in lengths)
    return SlicedWindow(kind, *map(int, lengths)) if whole else None


def meaning_without_window(windowing: Hashable) -> Hashable:
    """The time and kind by which windows are assigned."""
    return tuple(pair for pair in windowing if pair[0] != "window") if isinstance(windowing, tuple) else windowing
