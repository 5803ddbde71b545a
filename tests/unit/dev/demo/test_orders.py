"""The demo's own arithmetic, files and words."""

from __future__ import annotations

import io
import threading
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from airflow_flinkcompat import Side, check
from dev.demo.narration import DemoError, Narrator, wait_for
from dev.demo.orders import SLICE, START, Feed, Order, differences, ended, orders_of, totals
from dev.demo.world import BOUNDARY, DAG_ID, VERSIONS, World, result_rows

MINUTE = timedelta(minutes=1)
REPOSITORY = Path(__file__).parents[4]


def test_totals_as_a_sink_holds_them() -> None:
    orders = [Order("desk", 10, START), Order("desk", 5, START + MINUTE / 2), Order("lamp", None, START + MINUTE / 2)]
    late = Order("desk", 99, START + MINUTE)
    begin, end = "2026-03-02 12:00:00", "2026-03-02 12:01:00"
    assert totals([*orders, late], 1, average=True, before=START + MINUTE) == [
        (begin, end, "desk", "15", "2", "7"),
        (begin, end, "lamp", "", "1", ""),
    ]


def test_orders_stay_in_their_slice_and_come_out_of_order() -> None:
    times = [order.at for order in orders_of(7, START)]
    assert all(START <= at < START + SLICE for at in times)
    assert times != sorted(times)
    assert [order.price for order in orders_of(7, START, broken=True)].count(None) == 1


def test_differences_name_missing_extra_and_doubled_rows() -> None:
    a, b, c = ("1", "a"), ("1", "b"), ("1", "c")
    assert differences([a, b], [a, b]) == ""
    assert differences([a, a, c], [a, b]) == "missing: 1,b\nextra:   1,a\nextra:   1,c"


def test_the_feed_stays_in_step_with_the_job(tmp_path: Path) -> None:
    """No slice is written before the job has seen the one before; at the goal files keep arriving."""
    seen = threading.Event()
    with Feed(tmp_path, lambda: datetime.max if seen.is_set() else None, pause=0, linger=0.01) as feed:
        feed.go_on(START + 3 * SLICE)
        wait_for("the first file", lambda: feed.arrived, limit=10)
        assert not feed.there()
        assert len(feed.arrived) == 1
        seen.set()
        wait_for("the goal", feed.there, limit=10)
        wait_for("more files", lambda: len(feed.arrived) > 5, limit=10)
    in_step = [file.slice_start for file in feed.arrived if file.in_step]
    assert in_step == [START, START + SLICE, START + 2 * SLICE]
    assert {file.slice_start for file in feed.arrived if not file.in_step} <= set(in_step)
    assert sorted(tmp_path.iterdir()) == [file.path for file in feed.arrived]


def test_the_feed_tells_of_its_end(tmp_path: Path) -> None:
    with Feed(tmp_path, lambda: None, pause=0, patience=0.1) as feed:
        feed.go_on(START + SLICE)
        with pytest.raises(DemoError, match="the orders could not be written: timed out after"):
            wait_for("the goal", feed.there, limit=10)


def test_a_wait_ends_with_what_was_seen() -> None:
    with pytest.raises(DemoError, match=r"timed out after 0 s of waiting for tea: .*It is cold"):
        wait_for("tea", lambda: None, limit=0, seen=lambda: "It is cold")


def test_results_of_job_and_backfill_are_told_apart(tmp_path: Path) -> None:
    files = {"part-1": "1,2", "backfill-a-b-00000.csv": "3,4", ".part-2.inprogress": "5,6", "_SUCCESS": ""}
    for name, line in files.items():
        (tmp_path / name).write_text(f"{line}\n")
    assert [result_rows(tmp_path, by=by) for by in ("all", "job", "backfill")] == [
        [("1", "2"), ("3", "4")],
        [("1", "2")],
        [("3", "4")],
    ]


def test_old_files_move_to_the_archive(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.make()
    with Feed(world.live, lambda: datetime.max, pause=0, linger=60) as feed:
        feed.go_on(BOUNDARY + SLICE)
        wait_for("the goal", feed.there, limit=30)
    assert world.move_to_archive(feed.arrived, BOUNDARY) == 30
    assert len(list(world.archive.iterdir())) == 30
    left = sorted(path.name for path in world.live.iterdir())
    assert left == [file.path.name for file in feed.arrived if file.slice_start >= BOUNDARY]
    assert ended(totals(feed.orders(), 5, average=True, before=BOUNDARY), BOUNDARY)


def test_the_gate_says_of_each_version_what_the_story_tells(tmp_path: Path) -> None:
    world = World(tmp_path)
    sides = [Side(world.version(number), engine="flink", engine_version="2.3") for number in VERSIONS]
    verdicts = [check(old, new) for old, new in pairwise(sides)]
    assert [verdict.outcome for verdict in verdicts] == ["compatible", "unknown", *["incompatible"] * 3]
    assert "aggregate-reordered" in [finding.rule for finding in verdicts[-1].findings]


def test_a_version_appears_whole(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.make()
    world.propose(1)
    world.propose(2)
    assert world.script.read_text() == world.version_file(2).read_text() == world.version(2)
    assert "${" not in world.version(4)
    assert sorted(path.name for path in tmp_path.glob("orders.*")) == ["orders.sql"]


def test_the_dag_gains_a_shadow_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.make()
    file = world.dags / f"{DAG_ID}.py"
    before = file.read_text()
    world.add_shadow_run()
    added = set(file.read_text().splitlines()) - set(before.splitlines())
    assert {line.strip() for line in added} == {'start_mode="shadow",', 'shadow={"duration": "5s"},'}
    assert set(world.dags.glob(f"{DAG_ID}*")) == {file}


def test_the_table_keeps_its_columns_aligned() -> None:
    stream = io.StringIO()
    Narrator(stream).table(("a", "long"), [("x", "word " * 20), ("y", "z")], widest=30)
    lines = stream.getvalue().splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines) > 6


def test_the_variables_are_those_of_the_containers(tmp_path: Path) -> None:
    lines = (REPOSITORY / "compose.env").read_text(encoding="utf-8").splitlines()
    names = {line.split("=", 1)[0] for line in lines if line.startswith("FLINKCOMPAT_")}
    assert names == set(World(tmp_path).environment("http://gateway", "http://jobmanager"))
