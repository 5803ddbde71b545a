"""A moved job returns to the version before it, wherever the return dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployRefused, Ledger, Options, deploy
from airflow_flinkcompat.deploy.redeploy.run import StartFailed
from airflow_flinkcompat.deploy.redeploy.way_back import move_back
from airflow_flinkcompat.deploy.target import Start
from airflow_flinkcompat.deploy.two_lines import TwoLines
from dev.services.csv_job import Side
from tests.support.airflow.operators.fakes import script
from tests.support.deploy.fake_cluster import FakeCluster, number_ids

OLD, NEW = Side(script(), engine_version="1.20.3"), Side(script(), engine_version="2.3.0")
OPTIONS = Options(settle_seconds=0)


class Moved:
    """A job that moved from one cluster to another."""

    def __init__(self, folder: Path) -> None:
        self.former: Any = FakeCluster("1.20.3")
        self.new = FakeCluster("2.3.0")
        self.ledger = Ledger(folder, "orders")
        self.both: Any = TwoLines(self.former, self.new)
        first = deploy(self.former, self.ledger, OLD, checked_old_sha256=None, options=OPTIONS)
        more: Any = {"start_mode": "savepoint", "checked_old_sha256": first.sha256, "options": OPTIONS}
        self.moved = deploy(self.both, self.ledger, NEW, **more)

    def back(self, owner: str = "back") -> Any:
        return move_back(self.both, self.ledger, owner=owner, options=OPTIONS)


@pytest.fixture
def moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Moved:
    number_ids(monkeypatch)
    return Moved(tmp_path)


def test_the_former_version_runs_from_the_savepoint_of_its_stop(moved: Moved) -> None:
    entry = moved.back()
    assert (entry.kind, entry.sha256, entry.job_id) == ("rolled-back", OLD.sha256, "job-3")
    assert (moved.former.now, moved.new.now) == ({"job-1": "FINISHED", "job-3": "RUNNING"}, {"job-2": "CANCELED"})
    assert moved.former.starts[-1][1] == Start(moved.moved.start.savepoint)
    assert "may again write the rows that the new job wrote" in entry.message
    assert moved.back() == entry, "a retry finds the result"


@pytest.mark.parametrize(("on", "place"), [("new", "cancel"), ("former", "submit"), ("former", "submitted")])
def test_a_return_that_died_is_resumed(moved: Moved, on: str, place: str) -> None:
    class Killed(BaseException):
        pass

    def kill() -> None:
        raise Killed

    getattr(moved, on).before[place] = kill
    with pytest.raises(Killed):
        moved.back()
    entry = moved.back()
    assert (moved.former.now, moved.new.now) == ({"job-1": "FINISHED", entry.job_id: "RUNNING"}, {"job-2": "CANCELED"})


def test_a_return_that_fails_shows_how_to_start_by_hand(moved: Moved) -> None:
    moved.former.fail = "restore"
    with pytest.raises(StartFailed, match="The rollback also failed"):
        moved.back()


def test_a_job_without_a_former_version_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number_ids(monkeypatch)
    cluster: Any = FakeCluster()
    ledger = Ledger(tmp_path, "orders")
    deploy(cluster, ledger, NEW, checked_old_sha256=None, options=OPTIONS)
    with pytest.raises(DeployRefused, match="orders cannot move back"):
        move_back(cluster, ledger, owner="back")
