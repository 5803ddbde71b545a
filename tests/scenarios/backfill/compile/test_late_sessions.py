"""Sessions that leave out late rows: like Flink as a streaming job, which cuts sessions as rows come."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, plan
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.engines import by_both
from tests.support.backfill.scripts import filled, script, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.flink_batch import FlinkBatch


COLUMNS = "ts TIMESTAMP(3), k STRING, v INT, nr INT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
KEYED = "TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
WHOLE = "TABLE(SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '1' SECOND))"
OLD = "SESSION(ts, INTERVAL '10' SECOND)"
BOUNDS = "window_start, window_end"
SUMS = "k STRING, ws TIMESTAMP(3), we TIMESTAMP(3), s INT, n BIGINT"
ROWS = "k STRING, ws TIMESTAMP(3), we TIMESTAMP(3), v INT, nr INT"
QUERIES = {
    "aggregation": (f"SELECT k, {BOUNDS}, SUM(v), COUNT(*) FROM {KEYED} GROUP BY k, {BOUNDS}", SUMS),
    "without keys": (f"SELECT 'x', {BOUNDS}, SUM(v), COUNT(*) FROM {WHOLE} GROUP BY {BOUNDS}", SUMS),
    "rows": (f"SELECT k, {BOUNDS}, v, nr FROM {KEYED}", ROWS),
    "rows of some": (f"SELECT k, {BOUNDS}, v, nr FROM {KEYED} WHERE v > 0", ROWS),
    # Watermarks come from all rows, also those a filter takes away.
    "aggregation of some": (
        f"SELECT k, {BOUNDS}, SUM(v), COUNT(*) FROM {KEYED} WHERE v > 0 GROUP BY k, {BOUNDS}",
        SUMS,
    ),
    "older": (
        f"SELECT k, SESSION_START({OLD[8:]}, SESSION_END({OLD[8:]}, SUM(v), COUNT(*) FROM t GROUP BY k, {OLD}",
        SUMS,
    ),
    "Top-N": (
        f"SELECT k, {BOUNDS}, v, nr FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {BOUNDS}, k ORDER BY v, nr) AS rn "
        f"FROM {KEYED}) WHERE rn <= 2",
        ROWS,
    ),
    "windows of sessions": (
        "SELECT 'x', window_start, window_end, SUM(s), COUNT(*) FROM TABLE(TUMBLE(TABLE summed, DESCRIPTOR(wt), "
        f"INTERVAL '20' SECOND)) GROUP BY {BOUNDS}",
        SUMS,
    ),
}
VIEW = f"CREATE VIEW summed AS SELECT k, window_time AS wt, SUM(v) AS s FROM {KEYED} GROUP BY k, {BOUNDS}, window_time"


def history(folder: Path, seed: int, columns: str = COLUMNS, zone: str = "") -> str:
    """2,000 rows of 16 keys, from before 1970 on; times go on, by leaps too, come back by up to 40 seconds, and often
    touch or miss each other by a millisecond."""
    draw, now, rows = random.Random(seed), datetime(1969, 12, 31, 23, 58), []
    for number in range(2000):
        now += timedelta(
            milliseconds=draw.choice([0, 200, 999, 1000, 1000, 2500, 12_000 if draw.random() < 0.2 else 0])
        )
        time = now - timedelta(
            milliseconds=draw.choice([0, 0, 0, 0, 3_000, 4_999, 5_001, 9_000, 15_000, 20_000, 40_000])
        )
        if draw.random() < 0.3:
            edge = timedelta(milliseconds=draw.choice([0, 0, -1, 1]))
            time = time.replace(second=time.second // 5 * 5, microsecond=0) + edge
        key = draw.choice(["", *"abcdefghijklmno"])
        rows.append(f"{time.isoformat(' ', 'milliseconds')}{zone},{key},{draw.randint(-9, 9)},{number}\n")
    return filled("t", columns, folder, rows)


@pytest.mark.slow
@pytest.mark.parametrize("seed", mostly_nightly([1, 2, 3, 4], 0))
@pytest.mark.parametrize("name", mostly_nightly(list(QUERIES), 1))
def test_like_flink(flink: FlinkBatch, spark: SparkSession, tmp_path: Path, name: str, seed: int) -> None:
    query, columns = QUERIES[name]
    statements = [history(tmp_path / "in", seed), VIEW, table("o", columns, "OUT"), f"INSERT INTO o {query}"]
    by_flink, by_spark, result = by_both(flink, tmp_path, statements, late="drop")
    assert by_spark == by_flink
    assert len(by_flink) > 100
    assert result.rows_late > 100
    if name == "rows":
        assert len(by_flink) == 2000 - result.rows_late


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("zone", mostly_nightly(["UTC", "GMT+05:30"], 1))
def test_instants(flink: FlinkBatch, spark: SparkSession, tmp_path: Path, zone: str) -> None:
    source = history(tmp_path / "in", 5, COLUMNS.replace("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"), "Z")
    query, columns = QUERIES["aggregation"]
    settings = {"table.local-time-zone": zone}
    statements = [source, table("o", columns, "OUT"), f"INSERT INTO o {query}"]
    by_flink, by_spark, result = by_both(flink, tmp_path, statements, settings, late="drop")
    assert by_spark == by_flink
    assert result.rows_late > 100


CHAINED = "TABLE(SESSION(TABLE summed PARTITION BY k, DESCRIPTOR(wt), INTERVAL '30' SECOND))"
TWICE = "CREATE VIEW twice AS SELECT * FROM t UNION ALL SELECT * FROM t"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            f"SELECT k, {BOUNDS}, SUM(s), COUNT(*) FROM {CHAINED} GROUP BY k, {BOUNDS}",
            "not the output of another operator",
        ),
        (QUERIES["aggregation"][0].replace("TABLE t", "TABLE twice"), "UNION ALL depend"),
    ],
)
def test_what_is_not_known_to_be_late_is_refused(query: str, words: str) -> None:
    text = script(table("t", COLUMNS, "/in"), VIEW, TWICE, table("o", SUMS, "/out"), f"INSERT INTO o {query}")
    plan(BackfillRequest(JobSpec(text)))
    with pytest.raises(BackfillError, match=words) as caught:
        plan(BackfillRequest(JobSpec(text, source="job.sql"), late="drop"))
    assert str(caught.value).startswith("job.sql:")


def test_clocks_that_change_are_refused() -> None:
    source = table("t", COLUMNS.replace("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"), "/in")
    text = script(source, table("o", ROWS, "/out"), f"INSERT INTO o {QUERIES['rows'][0]}")
    settings = {"table.local-time-zone": "Europe/Berlin"}
    plan(BackfillRequest(JobSpec(text, settings=settings)))
    with pytest.raises(BackfillError, match="whose clocks change"):
        plan(BackfillRequest(JobSpec(text, settings=settings), late="drop"))
