"""How far a table is read, as it is written on the command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from airflow_flinkcompat.history.sources import ALL, Until
from airflow_flinkcompat.model import InputError


def test_offsets_and_moments() -> None:
    assert Until.of("orders", "0:1200,1:800") == Until(offsets=((0, 1200), (1, 800)))
    moment = Until.of("orders", "2026-01-31T01:00:00.250+01:00")
    assert moment.moment == datetime(2026, 1, 31, 1, 0, 0, 250_000, timezone(timedelta(hours=1)))
    assert moment.millis == datetime(2026, 1, 31, tzinfo=UTC).timestamp() * 1000 + 250
    assert Until.of("orders", "1969-12-31T23:59:59.999Z").millis == -1
    assert ALL.millis is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0:1,0:2", "--until orders=0:1,0:2: partition 0 is specified twice"),
        ("yesterday", "is neither offsets nor a time: write partition offsets such as 0:1200,1:800, or a time"),
        ("0:1200,", "is neither offsets nor a time"),
        ("", "is neither offsets nor a time"),
        ("2026-01-31T00:00:00", "has no time zone: write a time such as 2026-01-31T00:00:00Z"),
        (
            "2026-01-31T00:00:00.0001Z",
            "is more precise than the timestamps of records and files",
        ),
    ],
)
def test_what_is_neither(text: str, says: str) -> None:
    with pytest.raises(InputError) as raised:
        Until.of("orders", text)
    assert says in str(raised.value)
