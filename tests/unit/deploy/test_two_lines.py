"""Two clusters as one target: each job and each script goes to the cluster it belongs to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployRefused, Ledger, Options, RolledBack, deploy
from airflow_flinkcompat.deploy.rehearsal.place import RestoreTestTarget
from airflow_flinkcompat.deploy.target import Operation, PlanCompiler, SourceTables, Start, Verb
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.deploy.two_lines import TwoLines, two_lines
from dev.services.csv_job import Side
from tests.support.airflow.operators.fakes import script
from tests.support.deploy.fake_cluster import FakeCluster, number_ids

OLD, NEW = Side(script(), engine_version="1.20.3"), Side(script(), engine_version="2.3")
OPTIONS = Options(settle_seconds=0)


@pytest.fixture
def former() -> FakeCluster:
    return FakeCluster("1.20.3")


@pytest.fixture
def new() -> FakeCluster:
    return FakeCluster("2.3.0")


@pytest.fixture
def ledger(tmp_path: Path, former: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    number_ids(monkeypatch)
    ledger = Ledger(tmp_path, "orders")
    deploy(former, ledger, OLD, checked_old_sha256=None, options=OPTIONS)  # type: ignore[arg-type]
    return ledger


def move(former: FakeCluster, new: FakeCluster, ledger: Ledger, **more: Any) -> Any:
    both: Any = TwoLines(former, new)
    given = {"start_mode": "savepoint", "checked_old_sha256": OLD.sha256, "options": OPTIONS, "owner": "move", **more}
    return deploy(both, ledger, NEW, **given)


def test_a_job_moves_to_the_cluster_of_its_version(former: FakeCluster, new: FakeCluster, ledger: Ledger) -> None:
    moved = move(former, new, ledger)
    assert (former.now, new.now) == ({"job-1": "FINISHED"}, {"job-2": "RUNNING"})
    assert new.starts == [(NEW.script, Start(moved.start.savepoint))]
    assert move(former, new, ledger).number == moved.number, "a retry of this run finds its result"
    assert list(new.now) == ["job-2"]


def test_a_job_that_the_new_line_refuses_runs_on_the_old_line_again(
    former: FakeCluster, new: FakeCluster, ledger: Ledger
) -> None:
    new.fail = "restore"
    with pytest.raises(RolledBack, match="runs again as job job-3"):
        move(former, new, ledger)
    assert (former.now, new.now) == ({"job-1": "FINISHED", "job-3": "RUNNING"}, {"job-2": "CANCELED"})
    head = ledger.head()
    assert head is not None
    assert head.job.engine_version == "1.20.3"
    assert former.starts[-1][1] == Start(former.stops["job-2"])


@pytest.mark.parametrize("place", ["stop", "submit", "submitted"])
def test_a_move_that_died_is_resumed(former: FakeCluster, new: FakeCluster, ledger: Ledger, place: str) -> None:
    class Killed(BaseException):
        pass

    def kill() -> None:
        raise Killed

    (former if place == "stop" else new).before[place] = kill
    with pytest.raises(Killed):
        move(former, new, ledger)
    moved = move(former, new, ledger)
    assert (former.now, new.now) == ({"job-1": "FINISHED"}, {moved.job_id: "RUNNING"})


def test_a_job_of_its_name_on_either_cluster_is_seen(former: FakeCluster, new: FakeCluster) -> None:
    former.run("a")
    new.run("b")
    both = TwoLines(former, new)
    assert both.running("orders") == ("a", "b")
    assert [both.poll(Operation(Verb.START, each)).job for each in ("a", "b", "c")] == ["a", "b", None]


@pytest.mark.parametrize(
    ("version", "words"),
    [("2.2", r"for Flink 2.2, but the clusters run 1.20 and 2.3. Set engine_version"), (None, "of an unknown version")],
)
def test_a_script_of_another_version_is_refused(
    former: FakeCluster, new: FakeCluster, version: str | None, words: str
) -> None:
    both: Any = TwoLines(former, new)
    with pytest.raises(DeployRefused, match=words):
        both.validate(replace(NEW, engine_version=version), Start())


def test_two_clusters_of_one_line_are_refused(former: FakeCluster) -> None:
    both: Any = TwoLines(former, FakeCluster("1.20.1"))
    with pytest.raises(DeployRefused, match=r"both run Flink 1.20: .* Remove former_conn_id"):
        both.validate(OLD, Start())


def test_two_session_clusters_have_their_capabilities() -> None:
    gateways, jobmanagers = ["http://a:1", "http://b:1"], ["http://a:2", "http://b:2"]
    with two_lines(*map(SqlGatewayTarget, gateways, jobmanagers)) as both:
        assert isinstance(both, RestoreTestTarget)
        assert isinstance(both, PlanCompiler)
        assert isinstance(both, SourceTables)
        assert str(both) == "the SQL Gateway at http://b:1 (formerly the SQL Gateway at http://a:1)"
    with two_lines(*map(JobManagerTarget, jobmanagers)) as both:
        assert not isinstance(both, SourceTables)
    with pytest.raises(DeployRefused, match="jobs move only between session clusters"):
        two_lines(object(), SqlGatewayTarget(gateways[0], jobmanagers[0]))  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["savepoint", "stateless", "auto-first"])
def test_the_old_cluster_refuses_to_redeploy_a_moved_job(
    former: FakeCluster, new: FakeCluster, ledger: Ledger, mode: Any
) -> None:
    moved = move(former, new, ledger)
    entries, running = len(ledger.entries()), dict(new.now)
    changed = replace(OLD, script=script(size=5))
    with pytest.raises(DeployRefused) as raised:
        deploy(
            former,  # type: ignore[arg-type]
            ledger,
            changed,
            start_mode=mode,
            checked_old_sha256=moved.sha256,
            options=replace(OPTIONS, allow_ended=True),
        )
    assert str(raised.value).startswith(f"entry {moved.number} of the ledger of orders deployed job job-2 on flink 2.3")
    assert "is flink 1.20.3, which cannot read that job's state. Redeploy with the connection" in str(raised.value)
    assert (former.now, new.now) == ({"job-1": "FINISHED"}, running)
    assert len(ledger.entries()) == entries
