"""OVER aggregations: like Flink as a streaming job; late rows; the order of arrival; and what is refused."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.backfill.engines import by_both
from tests.support.backfill.scripts import filled, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.flink_batch import FlinkBatch


COLUMNS = (
    "nr INT, ts TIMESTAMP(3), k STRING, v INT, d DECIMAL(10, 2), x DOUBLE, s STRING, pt AS PROCTIME(), "
    "WATERMARK FOR ts AS ts - INTERVAL {}"
)
DAY = "'1' DAY"
BEGIN = datetime(2020, 1, 1)


def moments(draw: random.Random, count: int, begin: datetime) -> list[datetime]:
    """Times that go on, by leaps too, that repeat, and that come back by up to 40 seconds."""
    found, now = [], begin
    for _ in range(count):
        now += timedelta(milliseconds=draw.choice([0, 0, 500, 1000, 2500, 12_000]))
        back = draw.choice([0, 0, 0, 0, 500, 3_000, 5_000, 5_001, 20_000, 40_000])
        found.append(now - timedelta(milliseconds=back))
    return found


def history(folder: Path, delay: str = DAY, begin: datetime = BEGIN) -> str:
    """Rows of several keys, one of them NULL; times and values repeat."""
    draw = random.Random(5)
    rows = []
    for number, time in enumerate(moments(draw, 250, begin)):
        key, value = draw.choice(["a", "a", "b", "c", ""]), draw.choice(["", "2147483600", *map(str, range(-5, 9))])
        decimal, double = draw.choice(["", "1.25", "-3.50"]), draw.choice(["", "0.5", "-2.25", "8.0"])
        text = draw.choice(["", "p", "q", "r"])
        rows.append(f"{number},{time.isoformat(' ', 'milliseconds')},{key},{value},{decimal},{double},{text}\n")
    return filled("t", COLUMNS.format(delay), folder, rows)


KEYED = "PARTITION BY k ORDER BY ts"
FRAMES = {
    "range": KEYED,
    "rows": f"{KEYED} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "rows 2": f"{KEYED} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "range 10 s": f"{KEYED} RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW",
    "range 60 s": f"{KEYED} RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW",
    "range 0.5 s": f"{KEYED} RANGE BETWEEN INTERVAL '0.500' SECOND PRECEDING AND CURRENT ROW",
    "global range": "ORDER BY ts",
    "global rows 3": "ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW",
    "global range 5 s": "ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW",
    "arrived": "PARTITION BY k ORDER BY pt",
    "arrived rows": "PARTITION BY k ORDER BY PROCTIME() ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "arrived rows 2": "PARTITION BY k ORDER BY pt ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "arrived global": "ORDER BY pt ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
}
CALLS = {
    "SUM(v)": "INT",
    "COUNT(*)": "BIGINT",
    "COUNT(v)": "BIGINT",
    "AVG(d)": "DECIMAL(38, 6)",
    "SUM(d)": "DECIMAL(38, 2)",
    "MIN(v)": "INT",
    "MAX(s)": "STRING",
    "COUNT(DISTINCT v)": "BIGINT",
    "COUNT(DISTINCT s)": "BIGINT",
    "AVG(x)": "DOUBLE",
}


def over(frame: str, *calls: str) -> list[str]:
    """The sink and the statement of calls over a frame."""
    columns = ", ".join(["nr INT", "k STRING", *(f"r{i} {CALLS[call]}" for i, call in enumerate(calls))])
    values = ", ".join(f"{call} OVER ({FRAMES[frame]})" for call in calls)
    return [table("o", columns, "OUT"), f"INSERT INTO o SELECT nr, k, {values} FROM t"]


@pytest.mark.slow
@pytest.mark.parametrize("frame", mostly_nightly(list(FRAMES), 1))
def test_like_flink(flink: FlinkBatch, spark: SparkSession, tmp_path: Path, frame: str) -> None:
    calls = [call for call in CALLS if call != "AVG(x)" or frame in ("range", "rows", "arrived", "arrived rows")]
    by_flink, by_spark, result = by_both(flink, tmp_path, [history(tmp_path / "in"), *over(frame, *calls)])
    assert by_spark == by_flink
    assert (len(by_flink), result.rows_late) == (250, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "frame", mostly_nightly(["range", "rows", "rows 2", "global range", "global rows 3", "arrived rows 2"], 1)
)
def test_late_rows_are_dropped_as_flink_drops_them(
    flink: FlinkBatch, spark: SparkSession, tmp_path: Path, frame: str
) -> None:
    statements = [history(tmp_path / "in", delay="'5' SECOND"), *over(frame, "SUM(v)", "COUNT(*)", "COUNT(DISTINCT s)")]
    by_flink, by_spark, result = by_both(flink, tmp_path, statements, late="drop")
    assert by_spark == by_flink
    assert len(by_flink) == 250 - result.rows_late
    assert (result.rows_late > 10) is not frame.startswith("arrived")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frame", "late"),
    mostly_nightly(
        [("rows 2", "include"), ("range 60 s", "include"), ("range", "include"), ("rows 2", "drop"), ("range", "drop")],
        1,
    ),
)
def test_times_before_1970(flink: FlinkBatch, spark: SparkSession, tmp_path: Path, frame: str, late: str) -> None:
    """Of those, Flink drops all from a frame that has a beginning, however late a watermark is."""
    source = history(tmp_path / "in", "'5' SECOND" if late == "drop" else DAY, datetime(1969, 12, 31, 23, 57))
    by_flink, by_spark, result = by_both(flink, tmp_path, [source, *over(frame, "SUM(v)", "COUNT(*)")], late=late)
    assert by_spark == by_flink
    assert len(by_flink) == 250 - result.rows_late
    assert (result.rows_late > 10) is (frame in ("rows 2", "range 60 s") or (frame == "range" and late == "drop"))
