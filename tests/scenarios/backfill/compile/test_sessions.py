"""SESSION windows: like Flink as a streaming job, which alone runs them; ranges; and what is refused."""

from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, plan
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.engines import by_both
from tests.support.backfill.scripts import Run, bids, filled, lines, script, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.flink_batch import FlinkBatch


COLUMNS = "ts TIMESTAMP(3), k STRING, v INT, WATERMARK FOR ts AS ts - INTERVAL '1' DAY"
KEYED = "TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
WHOLE = "TABLE(SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND))"
OLD = "SESSION(ts, INTERVAL '10' SECOND)"
OLD_FIELDS = ", ".join(OLD.replace("SESSION", f"SESSION_{field}") for field in ("START", "END", "ROWTIME"))
ROWS = "k STRING, v INT, ws TIMESTAMP(3), we TIMESTAMP(3), wt TIMESTAMP(3)"
SUMS = "k STRING, ws TIMESTAMP(3), we TIMESTAMP(3), s INT, n BIGINT"
BOUNDS = "window_start, window_end"
TIME = "CAST(window_time AS TIMESTAMP(3))"


def history(folder: Path, columns: str = COLUMNS, zone: str = "") -> str:
    """200 rows around 1970, at times that repeat and touch: to the second, sometimes one millisecond off."""
    draw = random.Random(23)
    found = []
    for _ in range(200):
        second, milli = draw.randrange(-600, 600), draw.choice([0, 0, 0, 1, 999])
        time = f"1969-12-31 23:{60 + second // 60:02d}" if second < 0 else f"1970-01-01 00:{second // 60:02d}"
        values = draw.choice(["a", "b", "c", ""]), draw.choice(["", str(draw.randrange(-9, 9))])
        found.append(f"{time}:{second % 60:02d}.{milli:03d}{zone},{','.join(values)}\n")
    return filled("t", columns, folder, found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "columns"),
    mostly_nightly(
        [
            (f"SELECT k, v, {BOUNDS}, {TIME} FROM {KEYED}", ROWS),
            (f"SELECT k, v, {BOUNDS}, {TIME} FROM {WHOLE} WHERE v > 0", ROWS),
            (f"SELECT k, {BOUNDS}, SUM(v), COUNT(*) FROM {KEYED} GROUP BY {BOUNDS}, k", SUMS),
            (f"SELECT 'x', {BOUNDS}, SUM(v), COUNT(v) FROM {WHOLE} GROUP BY {BOUNDS}", SUMS),
            # A filter above is one below, unless it reads a field of the window.
            (f"SELECT k, {BOUNDS}, SUM(v), COUNT(*) FROM {KEYED} WHERE v > 0 GROUP BY k, {BOUNDS}", SUMS),
            (
                "SELECT key, ws, we, SUM(w), COUNT(*) FROM (SELECT k AS key, v + 1 AS w, window_start AS ws, "
                f"window_end AS we FROM {KEYED}) WHERE w > 0 GROUP BY key, ws, we",
                SUMS,
            ),
            (
                f"SELECT k, {BOUNDS}, SUM(v), COUNT(*) FROM {KEYED} "
                f"WHERE v > 0 AND window_end > window_start + INTERVAL '15' SECOND GROUP BY k, {BOUNDS}",
                SUMS,
            ),
            (
                f"SELECT k, {BOUNDS}, s, n FROM (SELECT k, {BOUNDS}, SUM(v) AS s, COUNT(*) AS n FROM {KEYED} "
                f"GROUP BY k, {BOUNDS}) WHERE s > 0",
                SUMS,
            ),
            (f"SELECT k, SUM(v), {OLD_FIELDS} FROM t WHERE v > 0 GROUP BY k, {OLD}", ROWS),
            (
                f"SELECT k, {BOUNDS}, v, v + 0 FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {BOUNDS}, k "
                f"ORDER BY v DESC) AS rn FROM {KEYED} WHERE v > 0) WHERE rn = 1",
                SUMS.replace("BIGINT", "INT"),
            ),
        ],
        2,
    ),
)
def test_like_flink(flink: FlinkBatch, spark: SparkSession, tmp_path: Path, query: str, columns: str) -> None:
    statements = [history(tmp_path / "in"), table("o", columns, "OUT"), f"INSERT INTO o {query}"]
    by_flink, by_spark, _ = by_both(flink, tmp_path, statements)
    assert by_spark == by_flink
    assert len(by_flink) > 10


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("gap", mostly_nightly(["10' SECOND", "90' MINUTE"], 1))
@pytest.mark.parametrize(
    "query",
    mostly_nightly(
        [
            "SELECT k, v, window_start, window_end, window_time FROM TABLE(SESSION(TABLE t PARTITION BY k, "
            "DESCRIPTOR(ts), INTERVAL '10' SECOND))",
            f"SELECT k, SUM(v), {OLD_FIELDS} FROM t GROUP BY k, {OLD}",
        ],
        1,
    ),
)
def test_instants_are_put_together_in_local_time(
    flink: FlinkBatch, spark: SparkSession, tmp_path: Path, query: str, gap: str
) -> None:
    """Over the hours that clocks skip and repeat; measured: local times decide what one session is."""
    rows = [
        "1969-12-31 23:59:59.999Z,b,7", "2024-03-31 00:59:55Z,a,1", "2024-03-31 01:00:03Z,a,2",
        "2024-10-27 00:59:55Z,a,3", "2024-10-27 01:00:03Z,a,4",
        "2024-10-27 00:00:00Z,b,5", "2024-10-27 01:00:05Z,b,6",
    ]  # fmt: skip
    place = tmp_path / "in"
    place.mkdir()
    (place / "rows.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    sink = "k STRING, v INT, ws TIMESTAMP(3), we TIMESTAMP(3), wt TIMESTAMP_LTZ(3)"
    statements = [
        table("t", COLUMNS.replace("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"), place),
        table("o", sink, "OUT"),
        f"INSERT INTO o {query}".replace("10' SECOND", gap),
    ]
    by_flink, by_spark, _ = by_both(flink, tmp_path, statements, {"table.local-time-zone": "Europe/Berlin"})
    assert by_spark == by_flink
    assert len(by_flink) > 3


@pytest.mark.nightly
@pytest.mark.slow
def test_sessions_wholly_inside_the_range(run: Run, tmp_path: Path) -> None:
    """Rows outside of it decide where a session begins; rows without a time belong to none and are counted."""
    place = tmp_path / "in"
    place.mkdir()
    times = ["08:00:00", "08:00:09", "08:00:19", "08:00:40", "08:00:50", "08:01:00.001", "08:02:00"]
    text = "".join(f"2020-01-01 {time},a,1\n" for time in times) + "n/a,a,1\nn/a,b,1\n"
    (place / "rows.csv").write_text(text, encoding="utf-8")
    statements = script(
        table("t", COLUMNS, place, csv__null_literal="n/a"),
        table("o", SUMS, tmp_path / "out"),
        f"INSERT INTO o SELECT k, {BOUNDS}, SUM(v), COUNT(*) FROM {KEYED} GROUP BY k, {BOUNDS}",
    )
    day = '"2020-01-01 '
    every = [
        f'a,{day}08:00:00",{day}08:00:29",3,3',
        f'a,{day}08:00:40",{day}08:01:00",2,2',
        f'a,{day}08:01:00.001",{day}08:01:10.001",1,1',
        f'a,{day}08:02:00",{day}08:02:10",1,1',
    ]
    ranges = [
        (None, None, every),
        ("2020-01-01 08:00:05", None, every[1:]),
        ("2020-01-01 08:00:40", "2020-01-01 08:01:00", every[1:2]),
        ("2020-01-01 08:00:40", "2020-01-01 08:00:59", []),
        (None, "2020-01-01 08:01:59", every[:3]),
    ]
    for number, (from_, to, expected) in enumerate(ranges):
        given = tmp_path / f"given{number}"
        result = run(statements, from_, to, sinks={"o": str(given)})
        assert lines(given) == expected
        assert result.rows_dropped == 2


# --- refused before Spark starts --------------------------------------------------------------------------------------

SESSION = "TABLE(SESSION(TABLE bid PARTITION BY item, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES))"
NOT_ITS_KEYS = "Flink plans a windowed aggregation of a SESSION only if"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (f"SELECT SUM(price) FROM {SESSION} GROUP BY {BOUNDS}", NOT_ITS_KEYS),
        (f"SELECT SUM(price) FROM {SESSION} GROUP BY {BOUNDS}, item, price", NOT_ITS_KEYS),
        (f"SELECT SUM(price) FROM {SESSION} GROUP BY {BOUNDS}, UPPER(item)", NOT_ITS_KEYS),
        (f"SELECT SUM(price) FROM {SESSION} WHERE item = 'a' GROUP BY {BOUNDS}, item", NOT_ITS_KEYS),
        (
            f"SELECT SUM(price) FROM {SESSION} WHERE price > 1 GROUP BY {BOUNDS}, item "
            "HAVING window_start > TIMESTAMP '2020-01-01 00:00:00'",
            "Flink's planner decides",
        ),
        (
            f"SELECT price FROM (SELECT price, ROW_NUMBER() OVER (PARTITION BY {BOUNDS} ORDER BY price) AS rn "
            f"FROM {SESSION}) WHERE rn <= 3",
            "ranks all sessions together that end at the same time",
        ),
    ],
)
def test_what_flink_does_not_make_sessions_of_is_refused(query: str, words: str) -> None:
    with pytest.raises(BackfillError, match=words) as caught:
        plan(BackfillRequest(JobSpec(bids(query, "v DECIMAL(38, 2)"), source="job.sql")))
    assert str(caught.value).startswith("job.sql:")


def test_a_range_of_sessions_is_planned() -> None:
    query = f"SELECT item, {BOUNDS}, SUM(price) FROM {SESSION} WHERE price > 1 GROUP BY {BOUNDS}, item"
    text = bids(query, "item STRING, a TIMESTAMP(3), b TIMESTAMP(3), v DECIMAL(38, 2)")
    (write,) = plan(BackfillRequest(JobSpec(text), from_=datetime(2020, 1, 1))).work.writes
    assert (write.rows.windows.start, write.rows.windows.end, write.rows.windows.size) == ("a", "b", None)
