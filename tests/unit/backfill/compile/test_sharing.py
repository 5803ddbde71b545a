"""Several INSERTs in one run: what they share is found when the script is compiled, and computed once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, plan
from airflow_flinkcompat.backfill.execution.frames import shared_steps
from airflow_flinkcompat.backfill.steps import Group, Read, Select, Step, Where
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import BID_COLUMNS, BIDS, TUMBLE, Run, lines, script, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


BOUNDS = "window_start, window_end"
SUMS = f"SELECT item, {BOUNDS}, SUM(price) AS total, COUNT(*) AS n FROM {TUMBLE} GROUP BY item, {BOUNDS}"
VIEW = f"CREATE VIEW sums AS {SUMS}"
TOTALS = "item STRING, total DECIMAL(38, 2)"


def two(first: str, second: str, source: str | Path = "/h", columns: str = TOTALS, out: str | Path = "/out") -> str:
    return script(
        table("bid", BID_COLUMNS, source),
        VIEW,
        table("a", columns, Path(out) / "a"),
        table("b", columns, Path(out) / "b"),
        f"INSERT INTO a {first}",
        f"INSERT INTO b {second}",
    )


def shared_in(text: str) -> frozenset[Step]:
    return shared_steps(plan(BackfillRequest(JobSpec(text))).work.writes)


def test_a_view_is_one_step_with_the_columns_all_readers_need() -> None:
    text = two("SELECT item, total FROM sums", "SELECT item, CAST(n AS DECIMAL(38, 2)) FROM sums WHERE total > 3")
    (step,) = shared_in(text)
    assert isinstance(step, Select)
    assert [position for position, _ in step.columns] == [0, 3, 4]
    assert isinstance(step.input, Group)


def test_the_same_written_twice_is_shared_as_well() -> None:
    filtered = f"SELECT item, total FROM ({SUMS}) WHERE total > 3"
    (step,) = shared_in(two(filtered, f"SELECT item, 0 - total FROM (SELECT * FROM ({SUMS})) WHERE total > 3"))
    assert isinstance(step, Select | Where)


def test_a_table_read_differently_is_read_once() -> None:
    hop = TUMBLE.replace("'10'", "'5'")
    other = f"SELECT item, SUM(price) FROM {hop} GROUP BY item, {BOUNDS}"
    (step,) = shared_in(two("SELECT item, total FROM sums", other))
    assert isinstance(step, Read)
    assert [position for position, _ in step.columns] == [0, 1, 2]


def test_rows_that_come_once_per_window_are_not_kept() -> None:
    hop = TUMBLE.replace("TUMBLE", "HOP").replace("INTERVAL", "INTERVAL '5' MINUTES, INTERVAL")
    first = f"SELECT item, SUM(price) FROM {hop} GROUP BY item, {BOUNDS}"
    second = f"SELECT item, MAX(price) + 0 FROM {hop} WHERE price > 1 GROUP BY item, {BOUNDS}"
    (step,) = shared_in(two(first, second))
    assert isinstance(step, Read)


def test_a_pipeline_may_read_twice_itself() -> None:
    twice = "SELECT item, total FROM sums UNION ALL SELECT item, 0 - total FROM sums WHERE n > 1"
    text = script(table("bid", BID_COLUMNS, "/h"), VIEW, table("a", TOTALS, "/a"), f"INSERT INTO a {twice}")
    (step,) = shared_in(text)
    assert isinstance(step, Select)


def test_other_settings_are_other_work() -> None:
    text = two("SELECT item, total FROM sums", "SELECT item, total FROM sums")
    assert len(shared_in(text)) == 1
    changed = text.replace("INSERT INTO b", "SET 'table.local-time-zone' = 'Europe/Berlin';\nINSERT INTO b")
    works = plan(BackfillRequest(JobSpec(changed))).work.writes
    assert [write.rows.name for write in works] == ["a", "b"]


def _bytes_read(spark: SparkSession, action: Callable[[], object]) -> int:
    """Bytes that an action reads from files; tasks run in the driver's JVM here."""

    def total() -> int:
        statistics = spark._jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()  # type: ignore[union-attr]
        return sum(each.getBytesRead() for each in statistics if each.getScheme() == "file")

    before = total()
    action()
    return total() - before


@pytest.mark.slow
def test_the_source_is_scanned_once(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop counts the bytes its files give: with two readers of a view no more than with one."""
    place = tmp_path / "in"
    place.mkdir()
    (place / "rows.csv").write_text(BIDS * 50 + "2020-04-15 09:00:00,9.99,Z\n", encoding="utf-8")
    first, second = "SELECT item, total FROM sums WHERE n > 1", "SELECT item, 0 - total FROM sums"
    both = two(first, second, place, out=tmp_path / "both")
    persisted = spark.sparkContext._jsc.getPersistentRDDs().size()
    result = run(both)
    assert [(source.table, source.rows) for source in result.sources] == [("bid", 301)]
    one = script(table("bid", BID_COLUMNS, place), VIEW, table("b", TOTALS, tmp_path / "b"), f"INSERT INTO b {second}")
    alone = _bytes_read(spark, lambda: run(one))
    assert _bytes_read(spark, lambda: run(both)) == alone > 0
    assert lines(tmp_path / "both" / "b") == lines(tmp_path / "b")
    assert len(lines(tmp_path / "both" / "a")) == 6
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == persisted
