"""A fleet that moves in waves from one real Flink to another of a later line, in a real Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.services.csv_job import wait_for
from dev.services.upgrade_fleet import DAG_ID, ROWS, SECOND, UpgradeFleet, upgrade_fleet

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]

TAGS = {"orders": "canary", "clicks": "small", "views": "other"}
UPGRADE = """\
wave = ["canary", "small", "*"]
hold = "20 s"
lag = { numRecordsIn = 10000 }
"""
MANY = [("ann", 0, "01:20")] * 20_000


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[UpgradeFleet]:
    with upgrade_fleet(tmp_path, TAGS, UPGRADE) as fleet:
        yield fleet


def test_waves_stop_at_lag_and_go_on_after_it(fleet: UpgradeFleet) -> None:
    client = fleet.airflow.client
    run = client.trigger(DAG_ID)
    client.wait_for_task(DAG_ID, run, "canary.healthy", ("success",), timeout=600)
    assert fleet.lines()["orders"] == "2.3"
    assert client.xcom(DAG_ID, run, "audit")["views"]["decision"] == "moves"

    # The second job has much to read once it has moved: its wave fails, and the third job does not move.
    client.wait_for_task(DAG_ID, run, "small.clicks.resume", ("success",), timeout=300)
    fleet.files("clicks").arrive("many.csv", MANY)
    assert client.wait_for_run(DAG_ID, run, timeout=600) == "failed"
    states = fleet.states(run)
    assert (states["small.healthy"], states["rest.views.turn"]) == ("failed", "upstream_failed")
    assert "clicks: numRecordsIn is " in "\n".join(client.log(DAG_ID, run, "small.healthy"))
    assert fleet.running() == (["views"], ["clicks", "orders"])

    # It moves back, from the savepoint with which it had left.
    run = client.trigger(DAG_ID, {"back": ["clicks"]})
    assert client.wait_for_run(DAG_ID, run, timeout=300) == "success", fleet.states(run)
    assert fleet.running() == (["clicks", "views"], ["orders"])

    # A later run leaves the job that has moved alone.
    for name in fleet.names:
        fleet.files(name).arrive("2.csv", SECOND)
    run = client.trigger(DAG_ID)
    assert client.wait_for_run(DAG_ID, run, timeout=900) == "success", fleet.states(run)
    states = fleet.states(run)
    assert (states["canary.orders.turn"], states["small.clicks.resume"], states["rest.views.resume"]) == (
        "skipped",
        "success",
        "success",
    )
    assert fleet.running() == ([], sorted(fleet.names))
    assert set(fleet.lines().values()) == {"2.3"}
    for name in fleet.names:
        wait_for(lambda name=name: len(fleet.files(name).rows()) >= len(ROWS), f"{name} closes minute 1", 60)
        assert fleet.files(name).rows() == ROWS
