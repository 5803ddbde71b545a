"""A small model of how Flink keeps windows in slices, by itself: nothing of ours is asked.

One key of ``WindowAggOperator`` over event time: what its slice assigners, its processors of shared and unshared slices
and its timers do with rows and watermarks. What is counted of rows is added up.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["TUMBLE", "HOP", "CUMULATE"]
NO_TIME = -(2**63)


@dataclass
class Operator:
    """What one key keeps, and what it has put out: the end of each window, and what was counted of its rows."""

    kind: Kind
    size: int
    step: int
    offset: int
    watermark: int = NO_TIME
    slices: dict[int, Counter[str]] = field(default_factory=dict)
    timers: set[int] = field(default_factory=set)
    put_out: list[tuple[int, Counter[str]]] = field(default_factory=list)

    def row(self, time: int, row: Counter[str]) -> None:
        end = time - (time - self.offset) % self.step + self.step
        if not self._fired(end):
            self._add(end, row)
            self.timers.add(end)
        elif not self._fired(self._last_window(end)):
            self._add(self._first_slice(end) if self.kind == "CUMULATE" else end, row)
            while self._fired(end):
                end += self.step
            self.timers.add(end)

    def advance(self, watermark: int) -> None:
        """All rows that came are in their slices before a watermark, and before a savepoint."""
        self.watermark = max(self.watermark, watermark)
        while due := sorted(end for end in self.timers if self._fired(end)):
            self.timers.remove(due[0])
            self._fire(due[0])

    def _fire(self, end: int) -> None:
        if self.kind == "HOP":
            inside: Counter[str] = Counter()
            for slice_end in range(end - self.size + self.step, end + 1, self.step):
                inside += self.slices.get(slice_end, Counter())
            if inside:
                self.put_out.append((end, inside))
                self.timers.add(end + self.step)
            self.slices.pop(end - self.size + self.step, None)
        elif self.kind == "CUMULATE":
            first = self._first_slice(end)
            self.slices.setdefault(first, Counter())
            if end != first:
                self.slices[first] += self.slices.pop(end, Counter())
            self.put_out.append((end, Counter(self.slices[first])))
            if end < self._last_window(end):
                self.timers.add(end + self.step)
            else:
                del self.slices[first]
        else:  # it asks no count whether anything is there
            self.put_out.append((end, self.slices.pop(end, Counter())))

    def _add(self, end: int, row: Counter[str]) -> None:
        self.slices[end] = self.slices.get(end, Counter()) + row

    def _fired(self, end: int) -> bool:
        return self.watermark >= end - 1

    def _last_window(self, end: int) -> int:
        if self.kind == "CUMULATE":
            start = end - 1 - (end - 1 - self.offset) % self.size
            return start + self.size
        return end - self.step + self.size if self.kind == "HOP" else end

    def _first_slice(self, end: int) -> int:
        return self._last_window(end) - self.size + self.step
