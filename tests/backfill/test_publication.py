"""Where results land: what a place holds before and after, whatever happens in between."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError
from tests.backfill.scripts import FIRST, SECOND, SUM, SUM_COLUMNS, Run, bids, lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_ranges_as_names() -> None:
    from airflow_flinkcompat.backfill.publishing.files import overlaps, range_name

    first = range_name(datetime(2024, 1, 1), datetime(2024, 1, 2, 0, 0, 0, 5))
    assert first == "20240101T000000000000-20240102T000000000005"
    assert range_name(None, None) == "begin-end"
    assert overlaps(first, "begin-end")
    assert overlaps(first, "20240102T000000000000-end")
    assert not overlaps(first, "20240102T000000000005-end")
    assert not overlaps("begin-20240101T000000000000", first)


@pytest.mark.slow
def test_a_given_place_holds_exactly_this_run(run: Run, history: Path, results: Path) -> None:
    results.mkdir()
    (results / "old.csv").write_text("old\n", encoding="utf-8")
    (results / ".part.crc").write_text("old\n", encoding="utf-8")
    result = run(bids(SUM, SUM_COLUMNS, history), sinks={"results": results.as_uri()})
    assert lines(results) == [FIRST, SECOND]
    assert sorted(path.name for path in results.iterdir()) == sorted(result.sinks[0].files)
    assert sorted(path.name for path in results.parent.iterdir()) == ["history", "results"]


@pytest.mark.slow
def test_a_declared_place_keeps_what_others_wrote_and_a_repeated_run_replaces_its_own(
    run: Run, history: Path, results: Path
) -> None:
    results.mkdir()
    (results / "part-live").write_text("live\n", encoding="utf-8")
    text = bids(SUM, SUM_COLUMNS, history, results)
    for _ in range(2):
        run(text, "2020-04-15 08:00:00", "2020-04-15 08:20:00")
        assert lines(results) == [FIRST, SECOND, "live"]
    run(text, "2020-04-15 08:20:00", "2020-04-15 08:40:00")
    with pytest.raises(BackfillError, match="overlapping range"):
        run(text, "2020-04-15 08:10:00", "2020-04-15 08:30:00")
    assert lines(results) == [FIRST, SECOND, "live"]
    assert not [path.name for path in results.iterdir() if path.name.startswith((".", "_"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["folder", "file"])
def test_a_place_that_is_something_else_is_left_alone(run: Run, history: Path, results: Path, name: str) -> None:
    if name == "file":
        results.write_text("mine", encoding="utf-8")
    else:
        (results / "mine").mkdir(parents=True)
    with pytest.raises(BackfillError, match=f"a {name}"):
        run(bids(SUM, SUM_COLUMNS, history), sinks={"results": str(results)})
    assert results.exists()


@pytest.mark.slow
def test_a_run_killed_between_its_two_moves_is_repaired(run: Run, history: Path, results: Path) -> None:
    previous = results.parent / ".results.previous"
    previous.mkdir()
    (previous / "part-00000.csv").write_text("earlier\n", encoding="utf-8")
    (history / "c.csv").write_text("broken\n", encoding="utf-8")
    with pytest.raises(BackfillError):
        run(bids(SUM, SUM_COLUMNS, history), sinks={"results": str(results)})
    assert lines(results) == ["earlier"]


@pytest.mark.slow
def test_a_source_that_is_not_there(run: Run, results: Path, tmp_path: Path) -> None:
    with pytest.raises(BackfillError, match="table bid: there is nothing at file:"):
        run(bids(SUM, SUM_COLUMNS, tmp_path / "missing", results))


@pytest.mark.slow
def test_a_source_given_instead_of_the_declared_one(run: Run, history: Path, results: Path) -> None:
    run(bids(SUM, SUM_COLUMNS, "/nowhere", results), tables={"bid": str(history)})
    assert lines(results) == [FIRST, SECOND]


@pytest.mark.slow
def test_settings_of_a_session_in_use_come_back(spark: SparkSession, run: Run, history: Path, results: Path) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        run(bids(SUM, SUM_COLUMNS, history, results))
        assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
