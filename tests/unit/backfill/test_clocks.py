"""Bounds with a zone mean the same instant on every clock that windows run on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, plan
from airflow_flinkcompat.backfill.request import parse_time
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import BID_COLUMNS, SUM, SUM_COLUMNS, Run, lines, script, table

LTZ = BID_COLUMNS.replace("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", 1)
JSON = {"json__timestamp_format__standard": "ISO-8601"}


def sums(zone: str | None, history: Path | str = "/history", results: Path | str = "/results", name: str = "") -> str:
    """The sums of windows on the local time of a zone; of windows without one."""
    zoned = f"SET 'table.local-time-zone' = '{zone}';\n" if zone else ""
    query = SUM.replace("TABLE bid", f"TABLE bid{name}")
    return zoned + script(
        table(f"bid{name}", LTZ if zone else BID_COLUMNS, history, "json", **JSON),
        table(f"results{name}", SUM_COLUMNS, results),
        f"INSERT INTO results{name} {query}",
    )


def bounds(text: str, from_: str, to: str) -> list[str]:
    found = plan(BackfillRequest(JobSpec(text), from_=parse_time(from_), to=parse_time(to))).bounds
    return [str(found.from_), str(found.to)]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        (None, ["2026-01-01 00:00:00", "2026-01-02 00:00:00"]),
        ("UTC", ["2026-01-01 00:00:00", "2026-01-02 00:00:00"]),
        ("Asia/Shanghai", ["2026-01-01 08:00:00", "2026-01-02 08:00:00"]),
        ("America/Los_Angeles", ["2025-12-31 16:00:00", "2026-01-01 16:00:00"]),
        ("GMT-03:30", ["2025-12-31 20:30:00", "2026-01-01 20:30:00"]),
        ("GMT+5", ["2026-01-01 05:00:00", "2026-01-02 05:00:00"]),
    ],
)
def test_an_instant_is_taken_to_the_windows_clock(zone: str | None, expected: list[str]) -> None:
    # As Airflow writes data_interval_start and data_interval_end.
    assert bounds(sums(zone), "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00") == expected
    assert bounds(sums(zone), "2026-01-01T09:00:00+09:00", "2026-01-01T19:00:00-05:00") == expected


@pytest.mark.parametrize("zone", [None, "Asia/Shanghai"])
def test_a_time_without_a_zone_is_the_windows(zone: str | None) -> None:
    assert bounds(sums(zone), "2026-01-01", "2026-01-02") == ["2026-01-01 00:00:00", "2026-01-02 00:00:00"]


def test_one_end_may_have_a_zone() -> None:
    assert bounds(sums("Asia/Shanghai"), "2026-01-01", "2026-01-01T00:00:00Z")[1] == "2026-01-01 08:00:00"
    with pytest.raises(BackfillError, match="the range is empty"):
        bounds(sums("Asia/Shanghai"), "2026-01-01 08:00:00", "2026-01-01T00:00:00Z")


def test_clocks_that_disagree_are_refused() -> None:
    text = sums("Asia/Shanghai") + sums(None, "/others", "/elsewhere", "2")
    with pytest.raises(BackfillError) as caught:
        bounds(text, "2026-01-01T00:00:00Z", "2026-01-02")
    assert str(caught.value).startswith(
        "--from 2026-01-01 00:00:00+00:00 is 2026-01-01 08:00:00 to results (Asia/Shanghai), "
        "and 2026-01-01 00:00:00 to results2 (UTC), because windows of the script use different time zones"
    )
    assert bounds(text, "2026-01-01", "2026-01-02") == ["2026-01-01 00:00:00", "2026-01-02 00:00:00"]
    # Two zones of one offset do agree.
    text = sums("Asia/Shanghai") + sums("GMT+8", "/others", "/elsewhere", "2")
    assert bounds(text, "2026-01-01T00:00:00Z", "2026-01-02")[0] == "2026-01-01 08:00:00"


@pytest.mark.parametrize("hour", ["00:30:00Z", "01:30:00Z", "01:00:00Z"])
def test_an_hour_that_comes_twice_is_refused(hour: str) -> None:
    with pytest.raises(BackfillError, match="This hour occurs twice"):
        bounds(sums("Europe/Berlin"), f"2025-10-26T{hour}", "2025-10-27")
    assert bounds(sums("Europe/Berlin"), "2025-10-26T02:00:00Z", "2025-10-27")[0] == "2025-10-26 03:00:00"


def test_what_is_settled_is_the_hand_overs_too() -> None:
    request = BackfillRequest(
        JobSpec(sums("Asia/Shanghai")), boundary=datetime(2026, 1, 1, tzinfo=UTC), sinks={"results": "/elsewhere"}
    )
    assert BackfillRequest.from_json(json.dumps(request.to_dict())) == request
    assert request.to_dict()["to"] == "2026-01-01T00:00:00+00:00"
    found = plan(request)
    assert found.hand_over is not None
    assert found.hand_over.boundary == "2026-01-01 08:00:00"
    assert (str(found.request.to), str(found.bounds.to)) == ("2026-01-01 08:00:00", "2026-01-01 08:00:00")
    assert found.hand_over.sources[0].history_until == "2026-01-01T00:00:01Z"


@pytest.mark.nightly
@pytest.mark.slow
def test_the_windows_of_an_instant_are_published(run: Run, tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    rows = [f'{{"bidtime": "2026-01-01T{hour:02}:00:00Z", "price": 1, "item": "A"}}\n' for hour in range(4)]
    (tmp_path / "history" / "a.json").write_text("".join(rows), encoding="utf-8")
    result = run(
        sums("Asia/Shanghai", tmp_path / "history", tmp_path / "results"),
        "2026-01-01T01:00:00+00:00",
        "2026-01-01T03:00:00+00:00",
    )
    assert [line.split(",")[0] for line in lines(tmp_path / "results")] == [
        '"2026-01-01 09:00:00"', '"2026-01-01 10:00:00"',
    ]  # fmt: skip
    assert (str(result.from_), str(result.to)) == ("2026-01-01 09:00:00", "2026-01-01 11:00:00")
