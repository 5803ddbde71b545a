"""Where results land: what a place holds before and after, whatever happens in between."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, plan
from airflow_flinkcompat.backfill.connectors import registry
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import BID_COLUMNS, FIRST, SECOND, SUM, SUM_COLUMNS, Run, bids, lines, script, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_ranges_as_names() -> None:
    from airflow_flinkcompat.backfill.connectors.file_publication_spark import overlaps, range_name

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


@pytest.mark.nightly
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


@pytest.mark.nightly
@pytest.mark.slow
def test_a_source_that_is_not_there(run: Run, results: Path, tmp_path: Path) -> None:
    with pytest.raises(BackfillError, match="table bid: file: does not exist"):
        run(bids(SUM, SUM_COLUMNS, tmp_path / "missing", results))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_source_given_instead_of_the_declared_one(run: Run, history: Path, results: Path) -> None:
    run(bids(SUM, SUM_COLUMNS, "/nowhere", results), tables={"bid": str(history)})
    assert lines(results) == [FIRST, SECOND]


@pytest.mark.nightly
@pytest.mark.slow
def test_settings_of_a_session_in_use_come_back(spark: SparkSession, run: Run, history: Path, results: Path) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        run(bids(SUM, SUM_COLUMNS, history, results))
        assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


DAY = ("2020-04-15 00:00:00", "2020-04-16 00:00:00")
MORE = "2020-04-15 08:01:00,100.00,G\n"


def _failing_moves(monkeypatch: pytest.MonkeyPatch, first: int, last: int = 10_000) -> None:
    """Moves from the ``first`` to before the ``last``, counted from 0 in all places, fail as on a full disk."""
    from airflow_flinkcompat.backfill.spark import FileSystem

    move, number = FileSystem.move, itertools.count()

    def moves(self: FileSystem, place: str, target: str) -> None:
        if first <= next(number) < last:
            raise BackfillError("the disk is full")
        move(self, place, target)

    monkeypatch.setattr(FileSystem, "move", moves)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("stuck", [False, True])
def test_a_run_that_fails_between_its_moves(
    spark: SparkSession, run: Run, history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: bool
) -> None:
    """The sink is as it was; where not even that can be done, the next run, however it ends, leaves rows of one run."""
    assert spark.getActiveSession() is spark
    sinks = [tmp_path / "one", tmp_path / "two"]
    text = script(
        table("bid", BID_COLUMNS, history),
        *(table(sink.name, SUM_COLUMNS, sink) for sink in sinks),
        *(f"INSERT INTO {sink.name} {SUM}" for sink in sinks),
    )
    run(text, *DAY)
    before = lines(sinks[0])
    (history / "more.csv").write_text(MORE, encoding="utf-8")
    run(text, *DAY)
    after = lines(sinks[0])
    assert after != before
    for first in range(30):
        (history / "more.csv").write_text("", encoding="utf-8")
        if any(lines(sink) != before or len([*sink.iterdir()]) > 1 for sink in sinks):
            run(text, *DAY)
        assert [lines(sink) for sink in sinks] == [before, before]
        (history / "more.csv").write_text(MORE, encoding="utf-8")
        with monkeypatch.context() as patched:
            _failing_moves(patched, first, 10_000 if stuck else first + 1)
            try:
                run(text, *DAY)
                break
            except BackfillError:
                pass
        if not stuck:
            assert lines(sinks[1]) == before, first
            assert lines(sinks[0]) in (before, after), first
            assert not [path.name for sink in sinks for path in sink.iterdir() if path.name.startswith(".")]
        (history / "broken.csv").write_text("broken\n", encoding="utf-8")
        with pytest.raises(BackfillError, match="broken"):
            run(text, *DAY)
        (history / "broken.csv").unlink()
        assert all(lines(sink) in (before, after) for sink in sinks), first
    assert first == 2 * 4
    assert [lines(sink) for sink in sinks] == [after, after]


def _publication(spark: SparkSession, text: str, sinks: dict[str, str], **bounds: datetime) -> Any:
    planned = plan(BackfillRequest(JobSpec(text, source="job.sql"), sinks=sinks, **bounds))
    (write,) = planned.work.writes
    return registry.publication(spark, write.target, write.rows, planned.bounds)


@pytest.mark.nightly
@pytest.mark.slow
def test_two_runs_do_not_publish_to_one_folder_at_once(
    spark: SparkSession, run: Run, history: Path, results: Path
) -> None:
    """Runs over ranges apart do."""
    text, sinks = bids(SUM, SUM_COLUMNS, history, results), {"results": str(results)}
    other = _publication(spark, text, sinks)
    other.check()
    try:
        with pytest.raises(BackfillError, match=f"another backfill .process {os.getpid()} on .* is writing to"):
            run(text, sinks=sinks)
        assert not results.exists()
    finally:
        other.discard()
    run(text, sinks=sinks)
    assert lines(results) == [FIRST, SECOND]
    other = _publication(spark, text, {}, from_=datetime(2020, 4, 15, 8, 10), to=datetime(2020, 4, 15, 8, 30))
    other.check()
    try:
        with pytest.raises(BackfillError, match="another backfill"):
            run(text, "2020-04-15 08:00:00", "2020-04-15 08:20:00")
        run(text, "2020-04-15 08:00:00", "2020-04-15 08:10:00")
    finally:
        other.discard()
    assert sorted(path.name for path in results.parent.iterdir()) == ["history", "results"]


@pytest.mark.nightly
@pytest.mark.slow
def test_what_dead_runs_left_is_removed(
    run: Run, history: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this machine at once, of another one after a silence."""
    from airflow_flinkcompat.backfill.connectors import file_publication_spark as claims

    monkeypatch.setattr(claims, "_PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(claims, "_BEAT_SECONDS", 0.1)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for owner in (f"{claims._machine()}@{ended.pid}", f"{claims._machine()}@{os.getpid()}", "elsewhere@1"):
        left = results.parent / f".results.staged-all@{owner}@0123456789ab"
        (left / "rows").mkdir(parents=True)
        (left / "alive").touch()
    run(bids(SUM, SUM_COLUMNS, history), sinks={"results": str(results)})
    assert sorted(path.name for path in results.parent.iterdir()) == ["history", "results"]


@pytest.mark.nightly
@pytest.mark.slow
def test_a_run_taken_for_dead_publishes_nothing(spark: SparkSession, history: Path, results: Path) -> None:
    import shutil

    late = _publication(spark, bids(SUM, SUM_COLUMNS, history, results), {"results": str(results)})
    late.check()
    shutil.rmtree(late._staged.removeprefix("file:"))
    with pytest.raises(BackfillError, match="removed during the run"):
        late.publish()
    late.discard()
    assert not results.exists()


@pytest.mark.nightly
@pytest.mark.slow
def test_what_cannot_be_removed_is_said_and_hides_nothing(
    spark: SparkSession, history: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_flinkcompat.backfill import run_backfill
    from airflow_flinkcompat.backfill.connectors.file_publication_spark import FilePublication

    assert spark.getActiveSession() is spark
    discard, said = FilePublication.discard, list[str]()

    def discards(self: FilePublication) -> None:
        discard(self)
        raise RuntimeError("password=TOPSECRET")

    monkeypatch.setattr(FilePublication, "discard", discards)
    text = script(
        table("bid", BID_COLUMNS, history),
        *(table(name, SUM_COLUMNS, results / name) for name in ("a", "b")),
        *(f"INSERT INTO {name} {SUM}" for name in ("a", "b")),
    )
    request = BackfillRequest(JobSpec(text, source="job.sql"), from_=datetime(2020, 4, 15), to=datetime(2020, 4, 16))
    run_backfill(request, said.append)
    assert len([line for line in said if "could not be removed" in line]) == 2
    assert "TOPSECRET" not in "".join(said)
    (history / "broken.csv").write_text("broken\n", encoding="utf-8")
    with pytest.raises(BackfillError, match="broken"):
        run_backfill(request)
