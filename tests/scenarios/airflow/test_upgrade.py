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
wave = ["canary", "small", { size = "1 GB", risk = "none" }]
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
    assert client.wait_for_run(DAG_ID, run, timeout=600) == "success"
    assert fleet.running() == (["clicks", "views"], ["orders"])
    decisions = client.xcom(DAG_ID, run, "audit")
    assert {name: (row["decision"], row["wave"]) for name, row in decisions.items()} == {
        "orders": ("moves", "canary"),
        "clicks": ("waits", "small"),
        "views": ("waits", "size 1 GB, risk none"),
    }

    # The second job has much to read once it has moved: the next run fails, and the third job does not move.
    second = fleet.next_run(run)
    assert second is not None
    client.wait_for_task(DAG_ID, second, "jobs.clicks.resume", ("success",), timeout=600)
    fleet.files("clicks").arrive("many.csv", MANY)
    third, state = fleet.finish(second, timeout=600)
    assert (third, state) == (f"{second}__next", "failed")
    states = client.task_states(DAG_ID, third)
    assert (states["healthy"], states["audit"], states["jobs.views.check"]) == (
        "failed",
        "upstream_failed",
        "upstream_failed",
    )
    assert "clicks: numRecordsIn is " in "\n".join(client.log(DAG_ID, third, "healthy"))
    assert fleet.running() == (["views"], ["clicks", "orders"])

    # It moves back, from the savepoint with which it had left.
    run = client.trigger(DAG_ID, {"back": ["clicks"]})
    assert fleet.finish(run, timeout=300) == (run, "success")
    assert fleet.running() == (["clicks", "views"], ["orders"])

    # A later run leaves the job that has moved alone.
    for name in fleet.names:
        fleet.files(name).arrive("2.csv", SECOND)
    run = client.trigger(DAG_ID)
    last, state = fleet.finish(run, timeout=900)
    assert (last, state) == (f"{run}__next__next", "success")
    assert client.task(DAG_ID, run, "jobs.orders.check")["state"] == "skipped"
    assert fleet.running() == ([], sorted(fleet.names))
    assert set(fleet.lines().values()) == {"2.3"}
    for name in fleet.names:
        wait_for(lambda name=name: len(fleet.files(name).rows()) >= len(ROWS), f"{name} closes minute 1", 60)
        assert fleet.files(name).rows() == ROWS
