"""Late rows: included, or dropped exactly as a streaming job drops them that emits a watermark with each row."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, plan
from airflow_flinkcompat.backfill.steps import DropLate, Step, UnionAll
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.engines import by_both
from tests.support.backfill.scripts import SUM, SUM_COLUMNS, TUMBLE, Run, bids, filled, lines, script, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.flink_batch import FlinkBatch


COLUMNS = "ts TIMESTAMP(3), k STRING, v INT, nr INT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
WINDOWS = {
    "tumble": "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))",
    "hop": "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '15' SECOND))",
    "cumulate": "TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND))",
}
SUMS = "k STRING, ws TIMESTAMP(3), we TIMESTAMP(3), s INT, n BIGINT"
BOUNDS = "window_start, window_end"
SUMMED = f"SELECT k, {BOUNDS}, SUM(v), COUNT(*) FROM {{}} GROUP BY k, {BOUNDS}"
VIEWS = (
    "CREATE VIEW only_a AS SELECT * FROM t WHERE k = 'a'",
    "CREATE VIEW hops AS SELECT k, window_time AS wt, SUM(v) AS s "
    f"FROM {WINDOWS['hop']} GROUP BY k, {BOUNDS}, window_time",
)
BEGIN = datetime(1969, 12, 31, 23, 58)


def moments(count: int = 300) -> list[datetime]:
    """Times that go on by and by, by leaps too, and come back by up to 40 seconds; some right at a window's end."""
    draw, found, now = random.Random(31), [], BEGIN
    for _ in range(count):
        now += timedelta(milliseconds=draw.choice([0, 200, 999, 1000, 2500, 12_000]))
        back = draw.choice([0, 0, 0, 0, 3_000, 5_000, 5_001, 9_000, 20_000, 40_000])
        time = now - timedelta(milliseconds=back)
        found.append(time.replace(second=time.second // 5 * 5, microsecond=0) if draw.random() < 0.2 else time)
    return found


def history(folder: Path, columns: str = COLUMNS, zone: str = "") -> str:
    draw = random.Random(7)
    rows = [
        f"{time.isoformat(' ', 'milliseconds')}{zone},{draw.choice(['a', 'b', ''])},{draw.randrange(-9, 9)},{number}\n"
        for number, time in enumerate(moments())
    ]
    return filled("t", columns, folder, rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "columns"),
    mostly_nightly(
        [
            (SUMMED.format(WINDOWS["tumble"]), SUMS),
            (SUMMED.format(WINDOWS["hop"]), SUMS),
            (SUMMED.format(WINDOWS["cumulate"]), SUMS),
            # Watermarks come from all rows, also those a filter takes away.
            (SUMMED.format(WINDOWS["tumble"].replace("TABLE t", "TABLE only_a")), SUMS),
            (
                "SELECT k, TUMBLE_START(ts, INTERVAL '10' SECOND), TUMBLE_END(ts, INTERVAL '10' SECOND), SUM(v), "
                "COUNT(*) FROM t GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND)",
                SUMS,
            ),
            (
                f"SELECT k, {BOUNDS}, v, nr FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {BOUNDS} ORDER BY v, nr) "
                f"AS rn FROM {WINDOWS['hop']}) WHERE rn <= 2",
                SUMS.replace("BIGINT", "INT"),
            ),
            # What the first aggregation emits is not late for the second.
            (
                f"SELECT k, {BOUNDS}, SUM(s), COUNT(*) FROM TABLE(TUMBLE(TABLE hops, DESCRIPTOR(wt), "
                f"INTERVAL '20' SECOND)) GROUP BY k, {BOUNDS}",
                SUMS,
            ),
        ],
        0,
    ),
)
def test_what_a_streaming_job_drops_is_dropped(
    flink: FlinkBatch, spark: SparkSession, tmp_path: Path, query: str, columns: str
) -> None:
    statements = [history(tmp_path / "in"), *VIEWS, table("o", columns, "OUT"), f"INSERT INTO o {query}"]
    by_flink, by_spark, result = by_both(flink, tmp_path, statements, late="drop")
    assert by_spark == by_flink
    assert len(by_flink) > 10
    assert result.rows_late > 10
    assert result.to_dict()["rows_late"] == result.rows_late


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("zone", mostly_nightly(["UTC", "GMT+05:30"], 1))
def test_instants(flink: FlinkBatch, spark: SparkSession, tmp_path: Path, zone: str) -> None:
    source = history(tmp_path / "in", COLUMNS.replace("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"), "Z")
    window = WINDOWS["tumble"].replace("'10' SECOND", "'20' SECOND")
    statements = [source, table("o", SUMS, "OUT"), f"INSERT INTO o {SUMMED.format(window)}"]
    by_flink, by_spark, result = by_both(flink, tmp_path, statements, {"table.local-time-zone": zone}, late="drop")
    assert by_spark == by_flink
    assert result.rows_late > 5


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("format", ["csv", "json"])
def test_files_arrive_in_the_order_they_were_modified(run: Run, tmp_path: Path, format: str) -> None:
    """Against the definition itself, over several files in folders, three of them of one moment, and small splits."""
    place, rows = tmp_path / "in", [(time, number) for number, time in enumerate(moments())]
    names = ["z/1", "a/9", "m/a", "m/b", "m/c", "b/0"]
    for part, name in enumerate(names):
        file = place / f"{name}.{format}"
        file.parent.mkdir(parents=True, exist_ok=True)
        own = rows[part * 50 : part * 50 + 50]
        shape = "{},{}\n" if format == "csv" else '{{"ts": "{}", "v": {}}}\n'
        file.write_text("".join(shape.format(time.isoformat(" "), v) for time, v in own), encoding="utf-8")
        moment = 1_700_000_000 + (2 if name.startswith("m/") else part)
        os.utime(file, (moment, moment))
    highest, kept, late = datetime.min, defaultdict(list), 0
    for time, value in rows:
        seconds = (time - BEGIN).total_seconds() // 10 * 10
        end = BEGIN + timedelta(seconds=seconds + 10)
        if end - timedelta(milliseconds=1) > highest:
            kept[end].append(value)
        else:
            late += 1
        watermark = time - timedelta(seconds=5)
        highest = max(highest, watermark) if watermark > datetime(1970, 1, 1) else highest
    options: dict[str, Any] = {"csv__disable_quote_character": "true"} if format == "csv" else {}
    text = script(
        table("t", COLUMNS.replace(" k STRING, v INT, nr INT,", " v INT,"), place, format, **options),
        table("o", "we TIMESTAMP(3), s INT, n BIGINT", tmp_path / "out"),
        f"INSERT INTO o SELECT window_end, SUM(v), COUNT(*) FROM {WINDOWS['tumble']} GROUP BY {BOUNDS}",
    )
    result = run(text, late="drop")
    assert lines(tmp_path / "out") == [
        f'"{end.isoformat(" ")}",{sum(values)},{len(values)}' for end, values in sorted(kept.items())
    ]
    assert (result.rows_late, late > 20) == (late, True)
    included = run(text, sinks={"o": str(tmp_path / "all")})
    assert included.rows_late == 0
    assert sum(int(line.rsplit(",", 1)[1]) for line in lines(tmp_path / "all")) == len(rows)


# --- without Spark ----------------------------------------------------------------------------------------------------


def late_steps(text: str) -> int:
    (write,) = plan(BackfillRequest(JobSpec(text), late="drop")).work.writes
    pending: list[Step] = list(write.inputs)
    found = 0
    while pending:
        step = pending.pop()
        found += isinstance(step, DropLate)
        pending += step.inputs if isinstance(step, UnionAll) else [step.input] if hasattr(step, "input") else []
    return found


def test_only_what_keeps_windows_open_drops_rows() -> None:
    assert late_steps(bids(SUM, SUM_COLUMNS)) == 1
    assert late_steps(bids(f"SELECT item FROM {TUMBLE}", "item STRING")) == 0


def test_which_rows_of_a_union_came_late_is_not_known() -> None:
    view = "CREATE VIEW twice AS SELECT * FROM bid UNION ALL SELECT * FROM bid;\nINSERT INTO"
    text = bids(SUM.replace("TABLE bid", "TABLE twice"), SUM_COLUMNS).replace("INSERT INTO", view)
    plan(BackfillRequest(JobSpec(text)))
    with pytest.raises(BackfillError, match="UNION ALL depend") as caught:
        plan(BackfillRequest(JobSpec(text, source="job.sql"), late="drop"))
    assert str(caught.value).startswith("job.sql:")


OLDER = "SELECT SUM(price) FROM bid GROUP BY TUMBLE(bidtime, INTERVAL '10' MINUTE)"


@pytest.mark.parametrize(
    ("query", "columns", "setting"),
    [
        (SUM, SUM_COLUMNS, "table.exec.emit.allow-lateness"),
        (OLDER, "total DECIMAL(38, 2)", "table.exec.emit.allow-lateness"),
        (OLDER, "total DECIMAL(38, 2)", "table.exec.state.ttl"),
    ],
)
def test_windows_that_take_late_rows_drop_none(query: str, columns: str, setting: str) -> None:
    text = f"SET '{setting}' = '1 h';\n{bids(query, columns)}"
    plan(BackfillRequest(JobSpec(text)))
    with pytest.raises(
        BackfillError, match=rf"job\.sql:.*windows accept late rows because of {setting} = '1 h'"
    ) as caught:
        plan(BackfillRequest(JobSpec(text, source="job.sql"), late="drop"))
    assert "include late rows" in str(caught.value)
    plan(BackfillRequest(JobSpec(text.replace("1 h", "0")), late="drop"))


def test_rows_without_an_order_cannot_be_late() -> None:
    text = bids(SUM, SUM_COLUMNS).replace(
        "'filesystem', 'path' = '/history', 'format' = 'csv'", "'delta', 'table-path' = '/d'"
    )
    with pytest.raises(BackfillError, match="late rows depend on the order of arrival"):
        plan(BackfillRequest(JobSpec(text), late="drop"))


def test_the_request_says_what_becomes_of_late_rows() -> None:
    request = BackfillRequest(JobSpec(""), late="drop")
    assert BackfillRequest.from_dict(request.to_dict()) == request
    assert BackfillRequest.from_dict({"script": ""}).late == "include"
    with pytest.raises(BackfillError, match="include or drop"):
        BackfillRequest(JobSpec(""), late="sometimes")
