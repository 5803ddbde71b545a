"""Windows that go on from the slices of others, beside a model of what Flink makes of the same rows from scratch."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.plan.nodes import Measure, Window, WindowKind
from tests.unit.exec_graph.slices import NO_TIME, Operator

HOP, TUMBLE, CUMULATE = WindowKind.HOP, WindowKind.TUMBLE, WindowKind.CUMULATE


SHAPES = [
    SlicedWindow(kind, step * steps, step, offset)
    for kind in (TUMBLE, HOP, CUMULATE)
    for step in (1, 2, 3, 4, 6)
    for steps in ((1,) if kind is TUMBLE else (1, 2, 3))
    for offset in range(0, step if kind is HOP else step * steps, 2)
]
FITTING = [(old, new) for old in SHAPES for new in SHAPES if old != new and not new.unfit(old)]
EVENTS = st.lists(st.tuples(st.sampled_from([True, True, False]), st.integers(0, 20)), min_size=5, max_size=30)
"""Rows by their times, and watermarks."""
TRIED_AT_ONCE = 12


def run(operator: Operator, events: list[tuple[bool, int]], first: int) -> None:
    for number, (is_row, time) in enumerate(events, first):
        if is_row:
            operator.row(time, Counter({f"row {number}": 1}))
        else:
            operator.advance(time)


def operator(window: SlicedWindow) -> Operator:
    return Operator(window.kind.value, window.size, window.step, window.offset)  # type: ignore[arg-type]


def gone_on(old: Operator, windows: SlicedWindow) -> Operator:
    new = operator(windows)
    new.watermark = old.watermark
    for end, rows in old.slices.items():
        if place := windows.place(end, old.watermark):
            new.slices[place[0]] = new.slices.get(place[0], Counter()) + rows
            new.timers.add(place[1])
    return new


@given(st.integers(0, TRIED_AT_ONCE - 1), EVENTS, EVENTS)
def test_windows_that_go_on_put_out_what_they_would_from_scratch(
    first: int, before: list[tuple[bool, int]], after: list[tuple[bool, int]]
) -> None:
    for old, new in FITTING[first::TRIED_AT_ONCE]:
        gone_on_right(old, new, before, after)


def gone_on_right(
    old: SlicedWindow, new: SlicedWindow, before: list[tuple[bool, int]], after: list[tuple[bool, int]]
) -> None:
    former, scratch = operator(old), operator(new)
    run(former, before, 0)
    run(scratch, before, 0)
    told = len(scratch.put_out)
    going_on = gone_on(former, new)
    # No slice needs a timer that was not set: one that has none is no slice that this knows.
    assert going_on.timers <= {new.next_end(end) for end in former.timers}
    if not new.merges(old):
        assert going_on.slices.items() <= former.slices.items()
    run(going_on, after, len(before))
    run(scratch, after, len(before))
    for each in (going_on, scratch):
        each.advance(100)
    assert going_on.put_out == scratch.put_out[told:]
    assert not going_on.slices
    assert not going_on.timers


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (SlicedWindow(TUMBLE, 60, 60), SlicedWindow(TUMBLE, 120, 120), "longer"),
        (SlicedWindow(TUMBLE, 60, 60), SlicedWindow(HOP, 120, 60), "longer"),
        (SlicedWindow(HOP, 60, 20), SlicedWindow(HOP, 80, 20), "longer"),
        (SlicedWindow(HOP, 60, 20), SlicedWindow(HOP, 60, 10), "begin or end within a stored slice"),
        (SlicedWindow(HOP, 60, 20), SlicedWindow(TUMBLE, 30, 30), "begin or end within a stored slice"),
        (SlicedWindow(HOP, 60, 20), SlicedWindow(TUMBLE, 40, 40, 10), "begin or end within a stored slice"),
        (SlicedWindow(CUMULATE, 60, 20), SlicedWindow(CUMULATE, 40, 20), "begin or end within a stored slice"),
        (SlicedWindow(CUMULATE, 60, 20), SlicedWindow(TUMBLE, 60, 60, 20), "begin or end within a stored slice"),
        (SlicedWindow(CUMULATE, 60, 20), SlicedWindow(HOP, 60, 60), "hopping windows"),
        (SlicedWindow(TUMBLE, 60, 60), SlicedWindow(HOP, 60, 60), "hopping windows"),
        (SlicedWindow(HOP, 60, 20), SlicedWindow(HOP, 40, 20), ""),
        (SlicedWindow(HOP, 60, 20), SlicedWindow(HOP, 40, 40), ""),
        (SlicedWindow(HOP, 60, 20), SlicedWindow(TUMBLE, 60, 60, 40), ""),
        (SlicedWindow(HOP, 60, 20), SlicedWindow(CUMULATE, 60, 20), ""),
        (SlicedWindow(CUMULATE, 60, 10), SlicedWindow(CUMULATE, 60, 30), ""),
        (SlicedWindow(CUMULATE, 60, 20), SlicedWindow(TUMBLE, 60, 60), ""),
    ],
)
def test_which_windows_go_on_from_the_slices_of_others(old: SlicedWindow, new: SlicedWindow, reason: str) -> None:
    found = new.unfit(old)
    assert reason in found
    assert bool(found) is bool(reason)


@pytest.mark.parametrize(
    ("old", "new", "merges"),
    [
        (SlicedWindow(HOP, 60, 20), SlicedWindow(HOP, 40, 20), False),
        (SlicedWindow(HOP, 60, 20), SlicedWindow(TUMBLE, 20, 20), False),
        (SlicedWindow(HOP, 60, 20), SlicedWindow(HOP, 40, 40), True),
        (SlicedWindow(HOP, 60, 20), SlicedWindow(CUMULATE, 60, 20), True),
        (SlicedWindow(CUMULATE, 60, 20), SlicedWindow(TUMBLE, 60, 60), True),
    ],
)
def test_when_slices_are_put_together(old: SlicedWindow, new: SlicedWindow, merges: bool) -> None:
    assert new.merges(old) is merges


def test_before_any_watermark_every_slice_is_kept() -> None:
    assert SlicedWindow(HOP, 60, 20).place(20, NO_TIME) == (20, 20)


@pytest.mark.parametrize(
    ("window", "sliced"),
    [
        (Window(TUMBLE, 60), SlicedWindow(TUMBLE, 60, 60)),
        (Window(HOP, 60, 20, offset=-10), SlicedWindow(HOP, 60, 20, 10)),
        (Window(CUMULATE, 60, 20, offset=70), SlicedWindow(CUMULATE, 60, 20, 10)),
        (Window(WindowKind.SESSION, gap=10), None),
        (Window(TUMBLE, 60, measure=Measure.ROWS), None),
        (Window(HOP, 60), None),
    ],
)
def test_which_windows_of_scripts_are_kept_in_slices(window: Window, sliced: SlicedWindow | None) -> None:
    assert SlicedWindow.of(window) == sliced
