"""What a dry run says, word for word, without Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.backfill import BackfillRequest, explain, plan
from airflow_flinkcompat.backfill.explanation import Estimate
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import BID_COLUMNS, BIDS, bids, script, table

TWO_SINKS = script(
    table("bid", BID_COLUMNS, "/history"),
    table("totals", "window_start TIMESTAMP(3), window_end TIMESTAMP(3), item STRING, total DECIMAL(38, 2)", "/totals"),
    table("counts", "window_start TIMESTAMP(3), n BIGINT", "/counts"),
    "CREATE VIEW dear AS SELECT * FROM bid WHERE price > 2",
    "INSERT INTO totals SELECT window_start, window_end, item, SUM(price) FROM TABLE(HOP(TABLE dear, "
    "DESCRIPTOR(bidtime), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)) GROUP BY window_start, window_end, item "
    "HAVING COUNT(*) > 1",
    "INSERT INTO counts SELECT TUMBLE_START(bidtime, INTERVAL '10' MINUTE), COUNT(*) FROM bid "
    "GROUP BY TUMBLE(bidtime, INTERVAL '10' MINUTE)",
)
DAY = {"from_": datetime(2020, 4, 15), "to": datetime(2020, 4, 16)}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    (tmp_path / "_SUCCESS").write_text("", encoding="utf-8")
    (tmp_path / "day=1").mkdir()
    for name in ("a.csv", "day=1/b.csv", ".hidden"):
        (tmp_path / name).write_text(BIDS, encoding="utf-8")
    return tmp_path


def said(request: BackfillRequest, place: Path) -> str:
    return explain(plan(request), request).replace(place.as_uri(), "file:///HISTORY")


def test_two_sinks_over_one_table(history: Path, snapshot: SnapshotAssertion) -> None:
    request = BackfillRequest(JobSpec(TWO_SINKS, source="job.sql"), tables={"bid": str(history)}, **DAY)  # type: ignore[arg-type]
    assert said(request, history) == snapshot


def test_sessions_and_late_rows(history: Path) -> None:
    session = "SESSION(bidtime, INTERVAL '10' MINUTE)"
    text = TWO_SINKS.replace("TUMBLE(bidtime, INTERVAL '10' MINUTE)", session).replace("TUMBLE_START", "SESSION_START")
    text = text.replace("TUMBLE", "SESSION")
    request = BackfillRequest(JobSpec(text, source="job.sql"), tables={"bid": str(history)}, **DAY)  # type: ignore[arg-type]
    assert "all rows are read, because rows outside the range affect" in said(request, history)
    dropping = BackfillRequest(JobSpec(TWO_SINKS, source="job.sql"), tables={"bid": str(history)}, late="drop")
    assert "dropped, as if a watermark followed each row" in said(dropping, history)


def test_chunks_and_a_boundary(history: Path, snapshot: SnapshotAssertion) -> None:
    request = BackfillRequest(
        JobSpec(TWO_SINKS, source="job.sql"),
        tables={"bid": str(history)},
        sinks={"totals": "/backfilled/totals", "counts": "/backfilled/counts"},
        from_=datetime(2020, 4, 15),
        boundary=datetime(2020, 4, 16),
        chunk=timedelta(hours=2),
        journal="/journal",
    )
    lines = said(request, history).splitlines()
    # The name of the journal's folder changes with the version.
    assert [line.partition("backfill-")[0] if "journal" in line else line for line in lines] == snapshot


def test_all_of_a_history_elsewhere(snapshot: SnapshotAssertion) -> None:
    text = bids("SELECT item, price FROM bid", "item STRING, price DECIMAL(10, 2)")
    request = BackfillRequest(JobSpec(text, source="job.sql"), tables={"bid": "s3a://key:secret@archive/bids"})
    found = explain(plan(request), request)
    assert "secret" not in found
    assert found == snapshot


def test_one_sink_written_twice(snapshot: SnapshotAssertion) -> None:
    window = "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES))"
    text = bids(f"SELECT item, window_start FROM {window}", "item STRING, ws TIMESTAMP(3)")
    text += f"INSERT INTO results SELECT LOWER(item), window_start FROM {window} WHERE price < 3;\n"
    request = BackfillRequest(JobSpec(text, source="job.sql"), tables={"bid": "hdfs://archive/bids"}, **DAY)  # type: ignore[arg-type]
    assert explain(plan(request), request) == snapshot


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 KB"), (12_345_678, "12.3 MB"), (5 * 10**18, "5e+03 PB")],
)
def test_sizes_are_rounded(size: int, text: str) -> None:
    assert str(Estimate(2, size)) == f"2 files, {text}"
    assert str(replace(Estimate(2, size), files=1)) == f"1 file, {text}"
