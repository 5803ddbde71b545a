"""Savepoints of jobs that are custom resources: of those that go on, rewritten ones, and those that are deleted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployError, Options, RolledBack
from airflow_flinkcompat.deploy.errors import DeployRefused, SavepointFailed, TargetError
from airflow_flinkcompat.deploy.ledger.entries import Review
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.target import JobRef, Operation, Snapshot, Verb
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT
from tests.support.deploy.targets.kubernetes_deployments import APPLICATION, SESSION, Deployments
from tests.support.deploy.targets.kubernetes_stand_in import KubernetesStandIn


class Rewriting:
    """A migration that has Flink know what it wrote; ``fails``: why it writes nothing."""

    def __init__(self, stand_in: KubernetesStandIn, fails: str = "") -> None:
        self.stand_in, self.fails = stand_in, fails

    writes = "migrated"

    def prepare(self) -> None: ...

    def write(self, savepoint: str, folder: str, prepared: str | None) -> Mapping[str, Any]:
        if self.fails:
            raise DeployError(self.fails)
        assert savepoint in self.stand_in.flink.savepoints
        self.stand_in.flink.savepoints.append(folder)
        return {"kept": "whole", "operators": []}

    def rehearse(self, savepoint: Snapshot) -> str:
        return "rehearsed"


def migrate(orders: Deployments, script: str, fails: str = "") -> Any:
    migration = Rewriting(orders.stand_in, fails)
    return orders.deploy(
        script, owner="second", start_mode="migrated", review=Review("incompatible"), migration=migration
    )


def test_a_migrated_job_is_a_resource_made_anew(orders: Deployments) -> None:
    """The operator would start the suspended one from the savepoint of the stop, as it was."""
    entry = migrate(orders, MISFIT)
    assert entry.start.migrated_from == "file:/savepoints/savepoint-1"
    assert str(entry.start.savepoint).startswith("file:/savepoints/migrated-")
    (job,) = orders.runs
    assert job.restored == entry.start.savepoint
    assert orders.resource["spec"]["job"]["initialSavepointPath"] == entry.start.savepoint
    assert orders.stand_in.calls == [
        "patch flinksessionjobs", "delete flinksessionjobs", "create flinksessionjobs",
    ]  # fmt: skip


def test_a_savepoint_that_is_not_migrated_brings_the_former_job_back(orders: Deployments) -> None:
    """In the resource that is there, from what its stop left."""
    with pytest.raises(RolledBack, match="the savepoint was not migrated: sums differ"):
        migrate(orders, MISFIT, "sums differ")
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-1"
    assert orders.resource["spec"]["job"]["args"] == ["--script", SCRIPT]


def test_a_migrated_state_that_does_not_fit_is_rolled_back(orders: Deployments) -> None:
    """To the savepoint that was only read."""
    orders.stand_in.flink.misfits.add("orders")
    with pytest.raises(RolledBack):
        migrate(orders, MISFIT)
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-1"


def test_a_savepoint_goes_where_the_resource_says(orders: Deployments) -> None:
    """Unless another folder is asked for; the resource stays as it is."""
    orders.resource["spec"]["flinkConfiguration"]["state.savepoints.dir"] = "s3://bucket/orders"
    before = orders.resource["metadata"]["generation"]
    with orders.target() as target:
        (job,) = target.running("orders")
        taken = [target.poll(target.savepoint(job, new_id(), where)).snapshot for where in (None, "s3://bucket/own")]
    assert [str(each).rpartition("/")[0] for each in taken] == ["s3://bucket/orders", "s3://bucket/own"]
    assert orders.stand_in.calls == []
    assert orders.resource["metadata"]["generation"] == before


def test_a_savepoint_outlives_its_job(orders: Deployments) -> None:
    """Whoever asked for it finds it when the job was stopped, and when another follows that."""
    with orders.target() as target:
        (job,) = target.running("orders")
        asked = target.savepoint(job, new_id(), None)
        taken = target.poll(asked).snapshot
    orders.deploy(CHANGED, owner="second")
    with orders.target() as target:
        assert target.poll(asked).snapshot == taken
        with pytest.raises(SavepointFailed, match="has no job orders/never"):
            target.poll(Operation(Verb.SAVEPOINT, asked.request_id, JobRef("orders/never")))


def test_by_which_savepoint_a_job_ended(orders: Deployments) -> None:
    """Also when its successor runs, and not of a job that was cancelled."""
    with orders.target() as target:
        (first,) = target.running("orders")
    orders.deploy(CHANGED, owner="second")
    with orders.target() as target:
        (second,) = target.running("orders")
        target.cancel(second)
        found = [target.final_savepoint(job) for job in (first, second, JobRef("nothing"))]
    assert found == ["file:/savepoints/savepoint-1", None, None]


def test_old_savepoints_of_stops_are_disposed_of(orders: Deployments) -> None:
    """But for the latest ones, by the JobManager of the session cluster."""
    keep = Options(settle_seconds=0.0, submit_timeout=3.0, start_timeout=3.0, keep_savepoints=1)
    for script in (CHANGED, SCRIPT, CHANGED):
        orders.deploy(script, owner="next", options=keep)
    assert orders.stand_in.flink.savepoints == ["file:/savepoints/savepoint-3"]


def test_what_a_cluster_sets_is_told_without_secrets(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    """The manifest's options over those of the session cluster; the parallelism of the resource wins over both."""
    configured = {"table.exec.state.ttl": "1 d", "s3.secret-key": "planted", "parallelism.default": "9"}
    stand_in.objects["flinkdeployments", "session"] = SESSION | {"spec": {"flinkConfiguration": configured}}
    with Deployments(stand_in, tmp_path, {"session_cluster": "session"}).target() as target:
        assert target.cluster_options() == {
            "table.exec.state.ttl": "1 d", "s3.secret-key": "******", "parallelism.default": "1",
        }  # fmt: skip


def test_a_job_is_told_the_options_of_its_own_resource(orders: Deployments) -> None:
    """The manifest is for the first start: what was edited since holds for the job that runs."""
    orders.resource["spec"]["job"]["parallelism"] = 4
    orders.resource["spec"]["flinkConfiguration"]["table.exec.state.ttl"] = "1 d"
    head = orders.ledger.head()
    assert head is not None
    with orders.target() as target:
        told = target.cluster_options(head.job_id)
        assert (told["parallelism.default"], told["table.exec.state.ttl"]) == ("4", "1 d")
        assert target.cluster_options()["parallelism.default"] == "1"


def test_an_application_deletes_what_lies_in_its_folder(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    """The JobManager of another one may not reach it; where none is ready somebody has to do it by hand."""
    stand_in.flink.savepoints.append("file:/savepoints/savepoint-9")
    manifest = APPLICATION + "  flinkConfiguration: {state.savepoints.dir: 'file:/savepoints'}\n"
    orders = Deployments(stand_in, tmp_path, {"manifest": manifest})
    with orders.target() as target:
        with pytest.raises(
            TargetError, match=r"savepoint-9 cannot be deleted, .* is ready\. Delete the savepoint manually"
        ):
            target.dispose(Snapshot("file:/savepoints/savepoint-9"))
        orders.deploy(SCRIPT)
        target.dispose(Snapshot("file:/savepoints/savepoint-9"))
    assert stand_in.flink.savepoints == []


def test_a_shadow_run_is_of_the_session_cluster(orders: Deployments, tmp_path: Path) -> None:
    """To which others may submit jobs; an application has a cluster of its own."""
    (running,) = orders.runs
    with orders.target() as target:
        assert target.shared_job(JobRef("orders")) == running.id
        assert [each.job_id for each in target.shared_cluster().jobs()] == [running.id]
        with pytest.raises(DeployRefused, match=r"has no job sums on session cluster session\. Known jobs: orders/"):
            target.shared_job(JobRef("sums"))
    alone = Deployments(orders.stand_in, tmp_path / "application", {"manifest": APPLICATION})
    with alone.target() as target, pytest.raises(DeployRefused, match="whose JobManager accepts no second job"):
        target.shared_cluster()
