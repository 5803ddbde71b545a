"""Window arithmetic against its definition, counted out: assignments, offsets, and the windows a range asks for."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_flinkcompat.backfill.spark_sql.windows import Aligned, WindowRange, from_micros, to_micros
from airflow_flinkcompat.plan.nodes import Window, WindowKind
from airflow_flinkcompat.plan.windows import refusal

MINUTE = 60_000
SOON = st.integers(-200_000, 200_000)
OPEN = st.none() | SOON


@st.composite
def aligned(draw: st.DrawFn) -> Aligned:
    """Windows of a few milliseconds; offsets of either sign and any length."""
    kind = draw(st.sampled_from([WindowKind.TUMBLE, WindowKind.HOP, WindowKind.CUMULATE]))
    slide = draw(st.integers(1, 7))
    size = slide * draw(st.integers(1, 6)) if kind is WindowKind.CUMULATE else draw(st.integers(1, 20))
    offset = draw(st.integers(-50, 50))
    return Aligned.of(Window(kind, size=size, slide=None if kind is WindowKind.TUMBLE else slide, offset=offset))


def all_windows(windows: Aligned, around: int) -> list[tuple[int, int]]:
    """The definition: every window near a time, whatever it holds."""
    step = windows.size if windows.kind is not WindowKind.HOP else windows.slide
    near = range((around - windows.offset) // step - 40, (around - windows.offset) // step + 40)
    starts = [windows.offset + number * step for number in near]
    if windows.kind is WindowKind.CUMULATE:
        lengths = range(windows.slide, windows.size + 1, windows.slide)
        return [(start, start + length) for start in starts for length in lengths]
    return [(start, start + windows.size) for start in starts]


@given(windows=aligned(), micros=SOON)
def test_a_time_belongs_to_the_windows_around_it(windows: Aligned, micros: int) -> None:
    expected = [(start, end) for start, end in all_windows(windows, micros) if start <= micros < end]
    assert list(windows.windows_of(micros)) == expected


@given(windows=aligned(), micros=SOON)
def test_a_slice_lies_wholly_inside_or_outside_of_every_window(windows: Aligned, micros: int) -> None:
    start = micros - (micros - windows.offset) % windows.slice
    assert windows.windows_of(start) == windows.windows_of(micros)


@given(windows=aligned(), micros=SOON, starts=OPEN, ends=OPEN, until=OPEN)
@example(Aligned(WindowKind.TUMBLE, 10_000, 10_000), 5_000, 0, None, 10_000)
@example(Aligned(WindowKind.HOP, 10_000, 3_000), -1, -9_000, None, 1_000)
@example(Aligned(WindowKind.CUMULATE, 10_000, 5_000), -1, None, 0, 0)
def test_rows_in_the_span_are_enough(
    windows: Aligned, micros: int, starts: int | None, ends: int | None, until: int | None
) -> None:
    """A row outside belongs to no window asked for; where windows do not overlap, one inside to no other."""
    window_range = WindowRange(starts, ends, until)
    first, last = windows.span(window_range)
    inside = (first is None or micros >= first) and (last is None or micros < last)
    found = windows.windows_of(micros)
    wanted = [window for window in found if windows.wanted(*window, window_range)]
    if not inside:
        assert wanted == []
    elif not windows.overlapping:
        assert wanted == list(found)


@given(windows=aligned(), first=SOON, length=st.integers(0, 50))
def test_a_window_over_windows_asks_for_those_whose_time_it_holds(windows: Aligned, first: int, length: int) -> None:
    first = first // 1000 * 1000
    last = first + length * 1000
    window_range = WindowRange.at(first, last)
    for start, end in all_windows(windows, first):
        assert windows.wanted(start, end, window_range) == (first <= end - 1000 < last)


def test_a_published_range_asks_for_the_windows_wholly_inside() -> None:
    hour = WindowRange.inside(datetime(2024, 1, 1, 8), datetime(2024, 1, 1, 9))
    windows = Aligned.of(Window(WindowKind.HOP, size=30 * MINUTE, slide=20 * MINUTE))
    found = [w for w in all_windows(windows, to_micros(datetime(2024, 1, 1, 8))) if windows.wanted(*w, hour)]
    assert [(str(from_micros(start))[11:16], str(from_micros(end))[11:16]) for start, end in found] == [
        ("08:00", "08:30"),
        ("08:20", "08:50"),
    ]
    assert tuple(str(from_micros(moment or 0))[11:16] for moment in windows.span(hour)) == ("08:00", "08:50")
    assert windows.span(WindowRange.inside(None, None)) == (None, None)


# The examples of the documentation: 2021-06-30 00:00:04 in tumbling windows of ten minutes.
@pytest.mark.parametrize(
    ("offset", "start", "end"),
    [
        (-16, "2021-06-29 23:54:00", "2021-06-30 00:04:00"),
        (-6, "2021-06-29 23:54:00", "2021-06-30 00:04:00"),
        (-4, "2021-06-29 23:56:00", "2021-06-30 00:06:00"),
        (0, "2021-06-30 00:00:00", "2021-06-30 00:10:00"),
        (4, "2021-06-29 23:54:00", "2021-06-30 00:04:00"),
        (6, "2021-06-29 23:56:00", "2021-06-30 00:06:00"),
        (16, "2021-06-29 23:56:00", "2021-06-30 00:06:00"),
    ],
)
def test_offsets_are_the_assignment_they_stand_for(offset: int, start: str, end: str) -> None:
    window = Window(WindowKind.TUMBLE, size=10 * MINUTE, offset=offset * MINUTE)
    (found,) = Aligned.of(window).windows_of(to_micros(datetime(2021, 6, 30, 0, 0, 4)))
    assert tuple(str(from_micros(moment)) for moment in found) == (start, end)
    # Flink runs those that are shorter than the window.
    assert (refusal(window) is None) == (abs(offset) < 10)


@pytest.mark.parametrize("window", [Window(WindowKind.SESSION, gap=1), Window(WindowKind.TUMBLE)])
def test_only_windows_with_a_length_are_aligned(window: Window) -> None:
    with pytest.raises(ValueError, match="is not aligned"):
        Aligned.of(window)


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (Window(WindowKind.CUMULATE, size=12, slide=5), "integral multiple of step, but got maxSize 12 ms and step 5"),
        (Window(WindowKind.CUMULATE, size=5, slide=10), "integral multiple of step"),
        (Window(WindowKind.CUMULATE, size=5, slide=0), "requires maxSize and step to be positive"),
        (Window(WindowKind.HOP, size=5, slide=-5), "requires slide and size to be positive"),
        (Window(WindowKind.TUMBLE, size=0), "requires size to be positive"),
        (Window(WindowKind.TUMBLE, size=10, offset=-10), r"abs\(offset\) < size"),
    ],
)
def test_what_flink_refuses(window: Window, words: str) -> None:
    reason = refusal(window)
    assert reason is not None
    assert re.search(words, reason)


@pytest.mark.parametrize(
    "window",
    [
        Window(WindowKind.HOP, size=10, slide=3, offset=16),
        Window(WindowKind.HOP, size=3, slide=10),
        Window(WindowKind.CUMULATE, size=10, slide=5, offset=-16),
    ],
)
def test_what_flink_runs(window: Window) -> None:
    assert refusal(window) is None


@pytest.mark.nightly
@pytest.mark.slow
def test_spark_counts_as_the_reference_does(spark: object) -> None:
    """Every kind of window, before and after 1970, offsets of both signs."""
    from pyspark.sql import SparkSession

    assert isinstance(spark, SparkSession)
    times = [*range(-60, 60, 7), *range(-5_000_000, 5_000_000, 777_777)]
    rows = spark.createDataFrame([(time,) for time in times], "t BIGINT")
    for windows in (
        Aligned(WindowKind.TUMBLE, 20, 20, 7),
        Aligned(WindowKind.HOP, 20, 6, 5),
        Aligned(WindowKind.HOP, 20, 5),
        Aligned(WindowKind.HOP, 6, 20, 3),
        Aligned(WindowKind.CUMULATE, 24, 6, 11),
    ):
        found = rows.selectExpr("t", f"{windows.slice_of('t')} AS s", f"{windows.ends('t')} AS e").where("t < e")
        by_time: dict[int, list[tuple[int, int]]] = {time: [] for time in times}
        for time, piece, start, end in found.selectExpr("t", "s", f"{windows.start('e')}", "e").collect():
            assert piece == time - (time - windows.offset) % windows.slice
            by_time[time].append((start, end))
        assert {time: tuple(sorted(ends)) for time, ends in by_time.items()} == {
            time: windows.windows_of(time) for time in times
        }
