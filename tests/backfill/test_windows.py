"""Window arithmetic without Spark: assignments, offsets, and which windows lie inside a range."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_flinkcompat.backfill.windows import Tumbling, from_micros, to_micros
from airflow_flinkcompat.plan.nodes import Window, WindowKind

MINUTE = 60_000
MOMENTS = st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2100, 1, 1))


def start_of(text: str, window: Window) -> str:
    return str(from_micros(Tumbling.of(window).start(to_micros(datetime.fromisoformat(text)))))


# The examples of the documentation: 2021-06-30 00:00:04 in tumbling windows of ten minutes.
@pytest.mark.parametrize(
    ("offset", "start"),
    [
        (-16, "2021-06-29 23:54:00"),
        (-6, "2021-06-29 23:54:00"),
        (-4, "2021-06-29 23:56:00"),
        (0, "2021-06-30 00:00:00"),
        (4, "2021-06-29 23:54:00"),
        (6, "2021-06-29 23:56:00"),
        (16, "2021-06-29 23:56:00"),
    ],
)
def test_offsets_are_the_assignment_they_stand_for(offset: int, start: str) -> None:
    window = Window(WindowKind.TUMBLE, size=10 * MINUTE, offset=offset * MINUTE)
    assert start_of("2021-06-30 00:00:04", window) == start


@pytest.mark.parametrize(
    ("time", "start"),
    [
        ("1969-12-31 23:59:59.999999", "1969-12-31 23:50:00"),
        ("1969-12-31 23:50:00", "1969-12-31 23:50:00"),
        ("1970-01-01 00:00:00", "1970-01-01 00:00:00"),
        ("1969-12-31 23:49:59.999", "1969-12-31 23:40:00"),
    ],
)
def test_times_before_1970_go_down_not_towards_zero(time: str, start: str) -> None:
    assert start_of(time, Window(WindowKind.TUMBLE, size=10 * MINUTE)) == start


@pytest.mark.parametrize("window", [Window(WindowKind.HOP, size=1, slide=1), Window(WindowKind.TUMBLE)])
def test_only_tumbling_windows_with_a_length(window: Window) -> None:
    with pytest.raises(ValueError, match="no tumbling window"):
        Tumbling.of(window)


def test_an_open_range_has_no_bounds() -> None:
    assert Tumbling(600_000_000).span(None, None) == (None, None)


@given(
    moment=MOMENTS,
    size=st.integers(1, 10**9),
    offset=st.integers(-(10**9), 10**9),
    before=MOMENTS,
    length=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3)),
)
@example(moment=datetime(1970, 1, 1), size=600_000, offset=0, before=datetime(1970, 1, 1), length=timedelta(minutes=10))
def test_rows_kept_are_those_of_windows_wholly_inside(
    moment: datetime, size: int, offset: int, before: datetime, length: timedelta
) -> None:
    """Whatever the window, a row survives the range exactly when its whole window lies inside."""
    window = Tumbling.of(Window(WindowKind.TUMBLE, size=size, offset=offset))
    time = to_micros(moment)
    start = window.start(time)
    assert start <= time < start + window.size
    assert (start - offset * 1000) % window.size == 0
    first, last = window.span(before, before + length)
    assert first is not None
    assert last is not None
    inside = start >= to_micros(before) and start + window.size <= to_micros(before + length)
    assert (first <= time < last) == inside
