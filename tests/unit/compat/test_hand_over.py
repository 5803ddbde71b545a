"""Time zones that Flink takes for table.local-time-zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_flinkcompat.compat.hand_over import time_zone


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("UTC", 0), ("GMT+08:00", 8), ("GMT-3", -3), ("GMT-03:30", -3.5), ("GMT+18", 18), ("GMT-18:00", -18),
        ("Etc/GMT+8", -8), ("Europe/Berlin", 1), ("CET", 1), ("GMT0", 0),
    ],
)  # fmt: skip
def test_zones_flink_takes(name: str, hours: float) -> None:
    found = time_zone(name)
    assert found is not None
    assert datetime(2026, 1, 1, tzinfo=UTC).astimezone(found).utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize(
    "name",
    ["", "Nope/City", "+08:00", "UTC+8", "EST", "europe/berlin", "GMT+8:30", "GMT+18:01", "GMT+00:60", "Z", "../etc"],
)
def test_zones_flink_refuses(name: str) -> None:
    assert time_zone(name) is None
