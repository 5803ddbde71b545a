"""Plans of both sides of a change: asked of a target that compiles them, and refused by name where one does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, check
from airflow_flinkcompat.deploy import PlansUnavailable, explain_plans
from airflow_flinkcompat.deploy.ledger.entries import JobStop, StoppedEntry
from airflow_flinkcompat.deploy.plans import stored_job
from airflow_flinkcompat.deploy.target import JobRef, Snapshot, SnapshotStats
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayPlanner
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.exec_graph.from_savepoint import read_job
from airflow_flinkcompat.local_flink import LocalFlink
from tests.support.deploy.fake_cluster import FakeCluster
from tests.support.savepoint.savepoints import FOLDER
from tests.unit.deploy.flink.test_compiled_plans import SUMS, TABLES, Scripted, gateway, planner, side


def test_a_gateway_elsewhere_needs_a_folder_both_see(tmp_path: Path) -> None:
    elsewhere = SqlGatewayPlanner(gateway(Scripted(), "http://gateway.test:8083"))
    with pytest.raises(PlansUnavailable, match=r"http://gateway\.test:8083 writes .*--plan-dir"):
        explain_plans(side(TABLES + SUMS), side(TABLES + SUMS), elsewhere)
    old, new = explain_plans(side(TABLES + SUMS), side(TABLES + SUMS), elsewhere, folder=tmp_path.as_uri())
    assert len(old) == len(new) == 1


def test_the_planner_must_be_of_the_version_that_is_judged() -> None:
    asked = planner(Scripted(version="1.20.3"))
    with pytest.raises(PlansUnavailable, match=r"job\.sql will run on Flink 2\.3, but the planner is Flink 1\.20\.3"):
        explain_plans(side(TABLES + SUMS), side(TABLES + SUMS), asked)
    explain_plans(*[side(TABLES + SUMS, engine_version="1.20")] * 2, asked)


def test_a_target_without_a_planner_is_named_with_the_remedy() -> None:
    both = side(TABLES + SUMS), side(TABLES + SUMS)
    with (
        JobManagerTarget("http://jobs.test:8081") as target,
        pytest.raises(
            PlansUnavailable,
            match=r"^the JobManager at http://jobs\.test:8081 cannot compile plans\. Use a SQL .*--gateway URL\)$",
        ),
    ):
        explain_plans(*both, target)


GROUP = str(FOLDER / "2.3" / "group")
GONE, UNREAD = "/gone", "the stored state cannot be read, so the deployed script is used instead"


def test_the_last_savepoint_of_a_job_is_the_targets_else_the_ledgers(tmp_path: Path) -> None:
    cluster, job = FakeCluster(), JobRef("job-1")
    left = [
        StoppedEntry(job=side(TABLES + SUMS), stop=JobStop(JobRef(id), savepoint=Snapshot(place)), owner="me")
        for id, place in (("job-0", GONE), ("job-1", GROUP))
    ]
    assert stored_job(cluster, job, ()) == (None, "")
    assert stored_job(cluster, job, left) == (read_job(GROUP), "")
    cluster.states[job, "completed"] = SnapshotStats(Snapshot(GONE))
    assert stored_job(cluster, job, left) == (read_job(GROUP), ""), "a checkpoint that made room for another one"
    found, why = stored_job(cluster, job, ())
    assert (found, why) == (None, f"{UNREAD}: {GONE}/_metadata cannot be read from here (FileNotFoundError)")
    cluster.states[job, "completed"] = SnapshotStats(Snapshot(""))
    assert stored_job(cluster, job, ()) == (None, ""), "it lies in the memory of the JobManager"
    content = (FOLDER.parent / "checkpoints" / "2.3" / "rocksdb-incremental" / "_metadata").read_bytes()
    incremental, changelog = (bytes([kind, *[0] * 7]) for kind in (11, 14))
    (tmp_path / "_metadata").write_bytes(content.replace(incremental, changelog))
    cluster.states[job, "savepoint"] = SnapshotStats(Snapshot(str(tmp_path)))
    _, why = stored_job(cluster, job, ())
    assert "its keyed state is a log of changes, as in a changelog checkpoint: only a canonical savepoint" in why


def test_a_checkpoint_that_flink_deletes_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {"savepoint": iter([None, None]), "completed": iter([GONE, GROUP])}

    def stats(_: FakeCluster, __: str, kind: str) -> SnapshotStats | None:
        found = next(places[kind])
        return None if found is None else SnapshotStats(Snapshot(found))

    monkeypatch.setattr(FakeCluster, "snapshot_stats", stats)
    assert stored_job(FakeCluster(), JobRef("job-1"), ()) == (read_job(GROUP), "")


# --- a real planner ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFlink]:
    with LocalFlink(tmp_path_factory.mktemp("client"), gateway_only=True) as started:
        yield started


CHANGES = {
    "other meaning": ("SUM(amount)", "MAX(amount)", Outcome.INCOMPATIBLE),
    "another state": ("SUM(amount)", "SUM(amount) + COUNT(DISTINCT item)", Outcome.INCOMPATIBLE),
    "above the state": ("SUM(amount)", "SUM(amount) * 2", Outcome.COMPATIBLE),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_plans_of_flink_sharpen_a_check(change: str, client: LocalFlink) -> None:
    before, after, outcome = CHANGES[change]
    old, new = side(TABLES + SUMS), side(TABLES + SUMS.replace(before, after))
    with SqlGatewayPlanner(client.gateway_url) as asked:
        assert check(old, new, plans=explain_plans(old, new, asked)).outcome is outcome
