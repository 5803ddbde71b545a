"""Taking over a job that already runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import DeployRefused, Ledger, LedgerConflict, Options, ScriptRefused, StartMode
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.ledger.entries import (
    DeployedEntry,
    DeployingEntry,
    JobStart,
    Review,
    StartedEntry,
    StartingEntry,
)
from airflow_flinkcompat.deploy.redeploy.adopt import Adoption, adopt
from airflow_flinkcompat.deploy.redeploy.run import Run
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from dev.services.object_stores import serving
from tests.support.deploy.fake_cluster import FakeCluster
from tests.unit.deploy.jobmanager_stand_in import JobManagerStandIn

SCRIPT = """\
CREATE TABLE orders (customer STRING, amount BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE rates (customer STRING, rate BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');
SET 'pipeline.name' = 'order totals';
INSERT INTO totals SELECT customer, amount FROM orders;
"""
SIDE = Side(SCRIPT, engine="flink", source="orders.sql")
JOB, OTHER = "a" * 32, "b" * 32
TASKS = ("Source: orders[1] -> Calc[2]", "totals[3]: Writer -> totals[3]: Committer")
Adopt = Callable[..., Adoption]


@pytest.fixture
def cluster() -> Iterator[JobManagerStandIn]:
    stand_in = JobManagerStandIn()
    stand_in.job(JOB, "order totals", *TASKS)
    with serving(stand_in):
        yield stand_in


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path, "orders")


@pytest.fixture
def take(cluster: JobManagerStandIn, ledger: Ledger) -> Iterator[Adopt]:
    with JobManagerTarget(JobManager(cluster.url, retry_wait=0.01)) as target:

        def take(side: Side = SIDE, job_id: str = JOB, **more: bool) -> Adoption:
            return adopt(target, ledger, side, job_id, owner="ann", **more)

        yield take


def test_the_entry_is_what_is_deployed(take: Adopt, ledger: Ledger, cluster: JobManagerStandIn) -> None:
    done = take(replace(SIDE, settings={"parallelism.default": "2"}))
    assert ledger.head() == done.entry
    assert (done.entry.kind, done.entry.job_id, done.entry.owner) == ("adopted", JOB, "ann")
    assert done.entry.message == "script supplied by ann, not verified"
    assert done.entry.sha256 == replace(SIDE, settings={"parallelism.default": "2"}, engine_version="2.3.0").sha256
    assert (done.job.name, done.job.state) == ("order totals", "RUNNING")
    assert done.warnings == ()
    assert done.compared == (
        "name: the script's pipeline.name is 'order totals', the job's name 'order totals'",
        "tables that the job reads: orders on the cluster, orders in the script",
        "tables that the job writes: totals on the cluster, totals in the script",
    )
    assert {request.split()[0] for request in cluster.asked} == {"GET"}, "the job is not touched"


def test_differences_are_told(take: Adopt, cluster: JobManagerStandIn) -> None:
    cluster.job(JOB, "nightly", "Source: payments[1] -> Calc[2]", "Sink: sums[3]")
    assert take().warnings == (
        "the job's name is 'nightly', but the script names it 'order totals'",
        "the job reads payments, but the script does not",
        "the job writes sums, but the script does not",
    )


def test_what_cannot_be_compared_is_said(take: Adopt, cluster: JobManagerStandIn) -> None:
    cluster.job(JOB, "order totals", "TableSourceScan(table=[[default_catalog, default_database, orders]])")
    done = take()
    assert done.warnings == ()
    assert done.compared[1:] == (
        "tables that the job reads: cannot be compared",
        ("tables that the job writes: cannot be compared"),
    )


@pytest.mark.parametrize("state", ["RESTARTING", "FAILED", "FINISHED", "CANCELED", "CREATED"])
def test_job_that_does_not_run(state: str, take: Adopt, ledger: Ledger, cluster: JobManagerStandIn) -> None:
    cluster.job(JOB, "order totals", state=state)
    with pytest.raises(DeployRefused, match=f"is {state}, but only a RUNNING job can be adopted"):
        take()
    assert ledger.entries() == ()


def test_batch_job(take: Adopt, cluster: JobManagerStandIn) -> None:
    cluster.job(JOB, "order totals", kind="BATCH")
    with pytest.raises(DeployRefused, match="is a batch job"):
        take()


def test_unknown_job(take: Adopt, cluster: JobManagerStandIn) -> None:
    cluster.job("c" * 32, "ended", state="FINISHED")
    with pytest.raises(DeployRefused, match=rf"has no job {OTHER}\. .* not ended: {JOB} \(order totals, RUNNING\)$"):
        take(job_id=OTHER)


def test_a_redeploy_that_goes_on_notices(take: Adopt, ledger: Ledger) -> None:
    run = Run(FakeCluster(), ledger, SIDE, StartMode.AUTO_FIRST, Review(), None, "bob", Options(), print)
    take()
    with pytest.raises(LedgerConflict):
        run.append(DeployingEntry(**run.attempt))


@pytest.mark.parametrize("job_id", ["", "a" * 31, "A" * 32, "../overview", "a" * 32 + "\n"])
def test_what_is_no_job_id(job_id: str, take: Adopt) -> None:
    with pytest.raises(DeployRefused, match="is not a job id"):
        take(job_id=job_id)


def test_what_is_deployed_already(take: Adopt) -> None:
    take()
    with pytest.raises(
        DeployRefused,
        match=r"entry 1 of the ledger of orders \(adopted\) already records job .* there is nothing to adopt",
    ):
        take()


def test_running_deployment_is_not_replaced(take: Adopt, ledger: Ledger, cluster: JobManagerStandIn) -> None:
    ledger.append(DeployedEntry(job=SIDE, start=JobStart(job_id=OTHER)))
    cluster.job(OTHER, "order totals")
    for former_ended in (False, True):
        with pytest.raises(DeployRefused, match=f"job {OTHER} of entry 1 .* is RUNNING: two jobs"):
            take(former_ended=former_ended)
    cluster.job(OTHER, "order totals", state="CANCELED")
    assert take().entry.number == 2


def test_former_job_nobody_knows(take: Adopt, ledger: Ledger) -> None:
    ledger.append(DeployedEntry(job=SIDE, start=JobStart(job_id=OTHER)))
    with pytest.raises(DeployRefused, match=r"is unknown to .* may run elsewhere\. .*--former-ended"):
        take()
    assert take(former_ended=True).entry.number == 2


def test_redeploy_under_way(take: Adopt, ledger: Ledger, cluster: JobManagerStandIn) -> None:
    ledger.append(DeployedEntry(job=SIDE, start=JobStart(job_id=OTHER)))
    ledger.append(StartedEntry(job=SIDE, start=JobStart(job_id=JOB), owner="bob"))
    cluster.job(OTHER, "order totals", state="FINISHED")
    with pytest.raises(DeployRefused, match=r"the redeploy of bob is unfinished .entry 2 .*started"):
        take()
    assert take(former_ended=True).entry.number == 3


def test_job_of_a_redeploy_that_still_runs(take: Adopt, ledger: Ledger, cluster: JobManagerStandIn) -> None:
    ledger.append(StartingEntry(job=SIDE, start=JobStart(job_id=OTHER), owner="bob"))
    cluster.job(OTHER, "order totals")
    with pytest.raises(DeployRefused, match=f"job {OTHER} of entry 1 .* is RUNNING"):
        take(former_ended=True)


def test_engine_version(take: Adopt) -> None:
    with pytest.raises(DeployRefused, match=r"--engine-version is 1.20, but the cluster runs 2\.3\.0"):
        take(replace(SIDE, engine_version="1.20"))
    assert take(replace(SIDE, engine_version="2.3")).entry.job.engine_version == "2.3.0"


@pytest.mark.parametrize(
    "side",
    [
        replace(SIDE, script=SCRIPT.replace("'print'", "'jdbc', 'password' = 'hunter2hunter2'")),
        replace(SIDE, settings={"s3.secret-key": "hunter2hunter2"}),
        replace(SIDE, script=SCRIPT + SCRIPT.splitlines()[-1]),
    ],
)
def test_script_that_no_ledger_may_hold(side: Side, take: Adopt, ledger: Ledger) -> None:
    with pytest.raises(ScriptRefused) as caught:
        take(side)
    assert "hunter2" not in str(caught.value)
    assert ledger.entries() == ()
