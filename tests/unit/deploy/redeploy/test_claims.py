"""How long an unfinished run keeps others out: as long as its own waits may take."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployRefused, Ledger, Options, Waiting, deploy
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, DeployingEntry, JobStart
from dev.services.csv_job import Side, wait_for
from tests.support.deploy.fake_cluster import FakeCluster

SCRIPT = "CREATE TABLE s (a INT) WITH ('connector'='datagen'); CREATE TABLE k LIKE s; INSERT INTO k SELECT a FROM s;"
V1, V2 = Side(SCRIPT), Side(SCRIPT, settings={"parallelism.default": "2"})
JOB = "a" * 32
Later = Callable[..., None]


class Slow(FakeCluster):
    """Its savepoint takes for ever."""

    def stop_result(self, job_id: str, trigger_id: str) -> str | None:
        return None


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Of a deployment whose first version runs."""
    made = Ledger(tmp_path, "orders")
    made.append(DeployedEntry(job=V1, start=JobStart(job_id=JOB), owner="first"))
    return made


@pytest.fixture
def later(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Later:
    """Sets the clock that claims are measured by, to a time after the ledger's last entry."""

    def put(**time: float) -> None:
        now = datetime.fromisoformat(ledger.entries()[-1].at) + timedelta(**time)

        class Clock(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return now

        monkeypatch.setattr("airflow_flinkcompat.deploy.redeploy.run.datetime", Clock)

    return put


def run(target: FakeCluster, ledger: Ledger, owner: str, **options: Any) -> DeployedEntry:
    target.run(JOB)
    given = Options(**{"settle_seconds": 0, **options})
    return deploy(target, ledger, V2, checked_old_sha256=V1.sha256, owner=owner, options=given)


@pytest.mark.parametrize(
    ("timeouts", "minutes"), [({}, 15), ({"stop_timeout": 3600}, 65), ({"start_timeout": 1500}, 30)]
)
def test_a_claim_outlasts_the_waits_of_whoever_holds_it(
    timeouts: dict[str, float], minutes: int, ledger: Ledger, later: Later
) -> None:
    with pytest.raises(Waiting):
        run(Slow(), ledger, "one", patience=0, **timeouts)
    later(minutes=minutes, seconds=-1)
    with pytest.raises(DeployRefused, match=r"one is deploying orders \(entry 3, stopping, .* take over in 1 s"):
        run(FakeCluster(), ledger, "another")
    later(minutes=minutes, seconds=1)
    assert run(FakeCluster(), ledger, "another").kind == "deployed"


def test_a_claim_of_an_earlier_release_holds_for_a_quarter_of_an_hour(ledger: Ledger, later: Later) -> None:
    ledger.append(DeployingEntry(job=V2, owner="one"))
    later(minutes=15, seconds=-1)
    with pytest.raises(DeployRefused, match="take over in 1 s"):
        run(FakeCluster(), ledger, "another")
    later(minutes=15, seconds=1)
    assert run(FakeCluster(), ledger, "another").kind == "deployed"


def _stops_for_ever(root: Path) -> None:
    run(Slow(), Ledger(root, "orders"), "one", stop_timeout=3600)


@pytest.mark.slow
def test_a_long_stop_in_another_process_is_not_taken_over(ledger: Ledger, later: Later) -> None:
    """Neither while that process waits for it, nor, before its time is over, when it has died."""
    process = multiprocessing.get_context("spawn").Process(
        target=_stops_for_ever, args=(Path(str(ledger.directory.parent)),), daemon=True
    )
    process.start()
    try:
        wait_for(lambda: ledger.entries()[-1].kind == "stopping" or process.exitcode, "the other process stops the job")
        assert process.is_alive()
        later(minutes=16)
        with pytest.raises(DeployRefused, match=r"one is deploying orders .*stopping, 960 s ago"):
            run(FakeCluster(), ledger, "another")
    finally:
        process.kill()
        process.join(30)
    with pytest.raises(DeployRefused, match="If that run died, this run can take over in 2940 s"):
        run(FakeCluster(), ledger, "another")
    assert [entry.kind for entry in ledger.entries()] == ["deployed", "deploying", "stopping"]
    later(minutes=65, seconds=1)
    assert run(FakeCluster(), ledger, "another").kind == "deployed"
