"""The story that ``make demo`` tells, told once in this process: a real Flink, Airflow and Spark, six versions."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from airflow_flinkcompat.deploy.target import same_snapshot
from airflow_flinkcompat.local_flink import LocalFlink
from dev.demo.narration import DemoError, Narrator, Step
from dev.demo.orders import MINUTE, Feed, ended, text, totals
from dev.demo.parts import Parts
from dev.demo.story import AFTER_V2, AFTER_V3, COMPARED, PROPOSE_V2, PROPOSE_V3, Story
from dev.demo.world import BOUNDARY, World

REPOSITORY = Path(__file__).parents[3]

Told = tuple[World, Feed, dict[str, Step], list[str]]

# The gate of test_gate runs the same DAG in make test.
pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1200)]


def processes_of(root: Path) -> list[str]:
    """Command lines of the processes that name a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join([*process.cmdline(), *(f"{k}={v}" for k, v in process.environ().items())])
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        if str(root) in words and process.pid != psutil.Process().pid:
            found.append(" ".join(process.cmdline())[:200])
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, local_flink: LocalFlink) -> Told:
    """The world and its orders, the steps by version, and the processes that were left after the end."""
    world = World(tmp_path_factory.mktemp("story").resolve())
    world.make()
    with Parts(world, print, flink=local_flink) as parts, Feed(world.live, parts.watermark) as feed:
        steps = Story(world, parts, feed, Narrator()).tell()
    return world, feed, {step.version: step for step in steps}, processes_of(world.root)


def test_each_version_takes_its_branch(told: Told) -> None:
    _, _, steps, _ = told
    assert [(step.version, step.verdict, step.branch) for step in steps.values()] == [
        ("v1", "first deployment", "deploy_first"),
        ("v2", "compatible", "resume"),
        ("v3", "unknown", "approve → resume"),
        ("v4", "incompatible", "restart + backfill"),
        ("v5", "incompatible", "approve → migrate"),
        ("v6", "incompatible", "shadow → migrate"),
    ]
    assert steps["v3"].facts["approved_by"] == "admin"


@pytest.mark.parametrize(("version", "proposed", "goal"), [("v2", PROPOSE_V2, AFTER_V2), ("v3", PROPOSE_V3, AFTER_V3)])
def test_a_resumed_job_goes_on_from_its_savepoint(told: Told, version: str, proposed: datetime, goal: datetime) -> None:
    _, feed, steps, _ = told
    facts = steps[version].facts
    assert facts["savepoint"]
    assert same_snapshot(facts["restored_path"], facts["savepoint"])
    # The window that was open: its values hold orders from before the savepoint and from after it, each once.
    start = proposed.replace(second=0)
    wanted = totals(feed.orders(), 1, average=False, before=start + MINUTE)
    assert facts["open_window"] == ended(wanted, start + MINUTE, after=start)
    assert len(facts["open_window"]) == 3
    assert all(facts["orders_before"][row[2]] > 0 and facts["orders_after"][row[2]] > 0 for row in facts["open_window"])
    # No file was read again: every row is there once, and the new job read no more than what arrived since.
    assert len({row[:3] for row in facts["rows"]}) == len(facts["rows"]) > 0
    assert facts["rows"][-1][1] == text(goal - MINUTE)
    assert 0 < facts["orders_read"] <= facts["orders_since"]


def test_an_order_with_a_broken_price_is_counted_and_adds_nothing(told: Told) -> None:
    _, feed, steps, _ = told
    (broken,) = [order for order in feed.orders() if order.price is None]
    row = next(row for row in steps["v3"].facts["rows"] if row[0] <= text(broken.at) < row[1] and row[2] == broken.item)
    same = [o for o in feed.orders() if row[0] <= text(o.at) < row[1] and o.item == broken.item]
    assert row[3:5] == (str(sum(o.price for o in same if o.price is not None)), str(len(same)))


def test_spark_fills_in_what_the_live_job_alone_lacks(told: Told) -> None:
    world, _, steps, _ = told
    facts = steps["v4"].facts
    assert facts["restored_path"] is None
    assert facts["missing_before"] == len(facts["backfilled"]) == 6
    assert not ended(facts["live_alone"], BOUNDARY)
    assert ended(facts["live_alone"], COMPARED)
    assert all(row[1] <= text(BOUNDARY) for row in facts["backfilled"])
    assert list(world.archive.iterdir())


def test_the_joined_result_equals_flinks_own_from_scratch_run(told: Told) -> None:
    _, feed, steps, _ = told
    facts = steps["v4"].facts
    assert facts["joined"] == facts["from_scratch"] == totals(feed.orders(), 5, average=True, before=COMPARED)
    assert len({row[:2] for row in facts["joined"]}) == 4


def test_a_migrated_job_keeps_the_sums_of_its_open_window(told: Told) -> None:
    _, feed, steps, _ = told
    facts = steps["v5"].facts
    assert same_snapshot(facts["restored_path"], facts["savepoint"])
    assert not same_snapshot(facts["savepoint"], facts["migrated_from"])
    assert (str(facts["alone"].finding), facts["alone"].at) == ("refused", "restore")
    end = COMPARED + 5 * MINUTE
    wanted = ended(totals(feed.orders(), 5, average=True, before=end), end, after=COMPARED)
    assert [row[:-1] for row in facts["open_window"]] == wanted
    assert len(wanted) == 3
    assert all(facts["orders_before"][row[2]] > 0 and facts["orders_after"][row[2]] > 0 for row in wanted)
    # The new metric counts what came after the switch: all of that for certain, and nothing that there is not.
    prices = [(order.item, order.price) for order in feed.orders() if COMPARED <= order.at < end]
    for row in facts["open_window"]:
        since = max(order.price for order in facts["since"] if order.item == row[2])
        assert since <= int(row[-1]) <= max(price for item, price in prices if item == row[2] and price is not None)


def test_a_shadow_run_compares_rows_before_the_state_is_migrated(told: Told) -> None:
    _, feed, steps, _ = told
    facts = steps["v6"].facts
    shadow = facts["shadow"]
    assert (shadow["finding"], shadow["left"], shadow["migration"]["kept"]) == ("equal", [], "whole")
    assert [(sink["sink"], sink["old_changes"], sink["new_changes"]) for sink in shadow["sinks"]] == [("totals", 3, 3)]
    assert facts["orders_meanwhile"] > 0
    assert same_snapshot(facts["restored_path"], facts["savepoint"])
    assert not same_snapshot(facts["savepoint"], facts["migrated_from"])
    end = COMPARED + 10 * MINUTE
    wanted = totals(feed.orders(), 5, average=True, highest=True, before=end)
    assert facts["open_window"] == ended(wanted, end, after=COMPARED + 5 * MINUTE)
    assert len(facts["open_window"]) == 3
    assert all(facts["orders_before"][row[2]] > 0 and facts["orders_after"][row[2]] > 0 for row in facts["open_window"])


def test_nothing_is_left_running(told: Told, local_flink: LocalFlink) -> None:
    _, _, _, left = told
    assert left == []


def test_a_step_that_does_not_hold_stops_the_story(tmp_path: Path, local_flink: LocalFlink) -> None:
    """The checks can fail: with a result that is not what was added up by hand, the step says what is missing."""
    world = World(tmp_path)
    world.make()
    parts = Parts(world, print, flink=local_flink)
    story = Story(world, parts, Feed(world.live, lambda: None), Narrator())
    parts.check_job = lambda: None  # type: ignore[method-assign]
    parts.rows = lambda: None  # type: ignore[method-assign]
    (world.totals / "part-0").write_text('"2026-03-02 12:00:00","2026-03-02 12:01:00",desk,1,1\n')
    with pytest.raises(DemoError, match=r"extra: +2026-03-02 12:00:00,2026-03-02 12:01:00,desk,1,1"):
        story._expect_minutes(BOUNDARY)


def test_an_interrupted_demo_leaves_nothing_running(tmp_path: Path) -> None:
    work, log = tmp_path / "work", tmp_path / "log"
    with log.open("wb") as stream:
        demo = subprocess.Popen(
            [sys.executable, "-m", "dev.demo", "--keep", str(work)], cwd=REPOSITORY, stdout=stream, stderr=stream
        )
    try:
        deadline = time.monotonic() + 180
        while "making the database" not in log.read_text():
            assert demo.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        assert processes_of(work), "Flink runs"
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(60) == 130, log.read_text()
    finally:
        demo.kill()
        demo.wait()
    assert processes_of(work) == []
    assert "interrupted" in log.read_text()
    assert "Traceback" not in log.read_text()
