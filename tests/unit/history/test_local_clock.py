"""When windows fire that the clock of a zone cuts, by Flink's own examples and around changes of clocks."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.history.entries import LocalClock
from airflow_flinkcompat.migration import NotMigratable
from dev.measure.progress import epoch_millis

LOS_ANGELES = LocalClock("America/Los_Angeles")
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("local", "moment"),
    [
        ("2021-03-14 00:00:00", 1615708800000),
        ("2021-03-14 01:00:00", 1615712400000),
        ("2021-03-14 02:00:00", 1615716000000),
        ("2021-03-14 02:59:59", 1615716000000),
        ("2021-03-14 03:00:00", 1615716000000),
        ("2021-11-07 00:00:00", 1636268400000),
        ("2021-11-07 01:00:00", 1636275600000),
        ("2021-11-07 02:00:00", 1636279200000),
    ],
)
def test_examples_of_flink(local: str, moment: int) -> None:
    """Those that its source names."""
    assert LOS_ANGELES.fires(epoch_millis(local) + 1) == moment


def test_a_clock_that_goes_forward() -> None:
    """What has fired is what the timers say, at each moment of the four hours around."""
    change = 1615716000000
    for watermark in range(change - 2 * HOUR, change + 2 * HOUR, 60_000):
        local = LOS_ANGELES.reached(watermark)
        assert LOS_ANGELES.fires(local + 1) <= watermark < LOS_ANGELES.fires(local + 2)


def test_an_hour_that_clocks_show_twice() -> None:
    change = 1636275600000
    for watermark in (change - HOUR, change, change + HOUR - 1):
        with pytest.raises(NotMigratable, match="repeat an hour"):
            LOS_ANGELES.reached(watermark)
    for watermark in (change - HOUR - 1, change + HOUR):
        assert LOS_ANGELES.fires(LOS_ANGELES.reached(watermark) + 1) == watermark


def test_zones_that_change_otherwise() -> None:
    with pytest.raises(NotMigratable, match="were not measured"):
        LocalClock("Australia/Lord_Howe").reached(epoch_millis("2024-04-06 12:00:00"))
    with pytest.raises(NotMigratable, match="Java and Python may disagree"):
        LocalClock("Africa/Casablanca").fires(1)


@pytest.mark.parametrize(
    ("zone", "hours", "punctual"),
    [
        ("UTC", 24, True),
        ("Europe/Berlin", 24, True),
        ("Asia/Tokyo", 1, True),
        ("Asia/Tokyo", 24, False),
        ("Asia/Kolkata", 1, False),
        ("GMT+08:00", 8, True),
    ],
)
def test_windows_that_fire_as_soon_as_they_end(zone: str, hours: int, punctual: bool) -> None:
    """An hour in Kolkata ended late on a real Flink 2.3: it looks after rows where hours end by UTC."""
    assert LocalClock(zone).is_punctual(hours * HOUR) is punctual
