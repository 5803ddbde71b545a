"""A session job of the real operator goes on from a rewritten savepoint; where it does not, the former one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import DeployRefused, Ledger, RolledBack, deploy
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, MigratedEntry, Review, StoppedEntry
from airflow_flinkcompat.deploy.migration import SavepointMigration
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.target import JobRef, Snapshot
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.target import KubernetesTarget
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.local_flink import LocalFlink, local_cluster
from airflow_flinkcompat.local_flink.cluster import HOME_VARIABLE
from dev.local_kubernetes.cluster import NAMESPACE, LocalKube
from dev.local_kubernetes.rigs import create_session
from dev.services.csv_job import SETTINGS, Files, wait_for
from tests.scenarios.deploy.redeploy.test_migrating_flink import (
    FIRST,
    MINUTE_0,
    MINUTE_1_OLD,
    NEW,
    OLD,
    OPTIONS,
    after_minute_1,
    damage,
)

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.kubernetes, pytest.mark.timeout(1800)]

Rig = tuple[LocalKube, LocalFlink]
MANIFEST = """
kind: FlinkSessionJob
spec:
  deploymentName: session
  job:
    jarURI: file://{jar}
    entryClass: flinkcompat.SqlRunner
    args: ["--statements", "{{statements}}"]
"""


@pytest.fixture(scope="module")
def operated(kubernetes_binary: Path, flink_1_20: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A Kubernetes with the operator, and the Flink that is its session cluster, with a SQL Gateway beside it."""
    work = tmp_path_factory.mktemp("operated")
    with LocalFlink(work / "flink", home=flink_1_20) as flink, LocalKube(work / "kube") as kube:
        kube.start_operator()
        create_session(kube, flink)
        yield kube, flink


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def target(operated: Rig, runner_jar_path: Path) -> Iterator[KubernetesTarget]:
    kube, flink = operated
    manifest = Manifest.of({"manifest": MANIFEST.format(jar=runner_jar_path)}, "the test")
    api = KubernetesApi(kube.api, NAMESPACE)
    with KubernetesTarget(api, manifest, jobmanager=lambda _: Endpoint(flink.jobmanager_url)) as target:
        yield target


@pytest.fixture
def ledger(tmp_path: Path, target: KubernetesTarget) -> Iterator[Ledger]:
    """Of a deployment of its own, whose job is cancelled in the end."""
    name = f"totals-{new_id()[:8]}"
    yield Ledger(tmp_path / "ledger", name)
    for job in target.running(name):
        target.cancel(job)


@pytest.fixture
def gateway(operated: Rig) -> Iterator[Callable[[], Cluster]]:
    """A SQL Gateway of the session cluster itself."""
    _, flink = operated
    where = TargetLocation("sql-gateway", {"gateway": flink.gateway_url, "jobmanager": flink.jobmanager_url})
    with SqlGatewayTarget(flink.gateway_url, flink.jobmanager_url) as opened:
        yield lambda: Cluster(opened, where)


def script(files: Files, **changes: str) -> Side:
    return Side(files.script(**changes), dict(SETTINGS), engine="flink", engine_version="1.20.3", source="orders.sql")


def deployed(target: KubernetesTarget, ledger: Ledger, side: Side, **more: Any) -> DeployedEntry:
    head = ledger.head()
    given = {"checked_old_sha256": head.sha256 if head else None, "options": OPTIONS, "log": print, **more}
    return deploy(target, ledger, side, **given)


def migrated(
    target: KubernetesTarget, ledger: Ledger, new: Side, planner: Callable[[], Cluster], at_least: MigrationExtent
) -> DeployedEntry:
    head = ledger.head()
    assert head is not None
    migration = SavepointMigration(
        Side.of(head.job),
        new,
        Cluster(target),
        head.job_id,
        at_least=at_least,
        plan_dir=None,
        rehearsed=True,
        planner=planner,
        log=print,
    )
    return deployed(target, ledger, new, start_mode="migrated", review=Review("incompatible"), migration=migration)


def test_a_metric_is_added_and_the_open_window_keeps_its_sum(
    target: KubernetesTarget,
    ledger: Ledger,
    files: Files,
    flink_1_20: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planned on a Flink that is started for it, of another cluster than the job's."""
    monkeypatch.setenv(HOME_VARIABLE, str(flink_1_20))
    files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 50, "01:10")])
    deployed(target, ledger, script(files))
    wait_for(lambda: files.rows() == ['ann,1,"2026-01-01 00:00:00"'], "minute 0 is written")
    with local_cluster() as started:
        entry = migrated(target, ledger, script(files, **OLD), lambda: started, MigrationExtent.PARTIAL)
        assert sum(not job.terminal for job in started.restore_test_target.jobs()) == 0, "nothing there runs on"
    (stopped,) = [each.stop.savepoint for each in ledger.entries() if isinstance(each, StoppedEntry)]
    (done,) = [each for each in ledger.entries() if isinstance(each, MigratedEntry)]
    assert (entry.start.savepoint, entry.start.migrated_from) == (done.migrated_to, stopped)
    assert done.evidence == ("rehearsed: a job of the new script was restored from the savepoint",)
    assert target.restored_from(entry.start.job_ref).snapshot == done.migrated_to
    assert target.running(ledger.deployment) == (entry.job_id,)
    assert after_minute_1(files) == ['ann,1,"2026-01-01 00:00:00"', 'ann,57,"2026-01-01 00:01:00",7']


def test_a_savepoint_that_was_damaged_brings_the_former_job_back(
    target: KubernetesTarget,
    ledger: Ledger,
    files: Files,
    gateway: Callable[[], Cluster],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Flink refuses the rewritten one in a rehearsal beside everything, and nothing of the open window is lost."""
    files.arrive("1.csv", FIRST)
    deployed(target, ledger, script(files, **OLD))
    wait_for(lambda: files.rows() == [MINUTE_0], "minute 0 is written")
    damage(monkeypatch)
    with pytest.raises(RolledBack, match="Rolled back: the script of entry 4 runs again"):
        migrated(target, ledger, script(files, **NEW), gateway, MigrationExtent.WHOLE)
    head = ledger.head()
    assert head is not None
    assert target.running(ledger.deployment) == (head.job_id,)
    assert after_minute_1(files) == [MINUTE_1_OLD, MINUTE_0]


def test_longer_windows_are_refused_and_the_job_goes_on(
    target: KubernetesTarget, ledger: Ledger, files: Files, gateway: Callable[[], Cluster]
) -> None:
    """Before anything is touched."""
    files.arrive("1.csv", FIRST)
    entry = deployed(target, ledger, script(files))
    longer = script(files, keys="customer, window_start, window_end")
    longer = Side(
        longer.script.replace("INTERVAL '1' MINUTE", "INTERVAL '2' MINUTE"),
        longer.settings,
        engine="flink",
        engine_version="1.20.3",
    )
    with pytest.raises(DeployRefused, match="its windows are longer"):
        migrated(target, ledger, longer, gateway, MigrationExtent.PARTIAL)
    assert target.running(ledger.deployment) == (entry.job_id,)
    assert ledger.head() == entry


def test_the_operator_takes_no_notice_of_a_savepoint_of_its_job(
    operated: Rig,
    target: KubernetesTarget,
    ledger: Ledger,
    files: Files,
) -> None:
    """It records none, the resource stays as it is, and the next stop has a savepoint of its own."""
    kube, _ = operated
    files.arrive("1.csv", FIRST)
    entry = deployed(target, ledger, script(files))
    job = JobRef(str(entry.job_id))

    def told() -> Any:
        found = kube.get("FlinkSessionJob", ledger.deployment)
        status = found["status"]
        return found["metadata"]["generation"], status["lifecycleState"], status["jobStatus"].get("savepointInfo")

    wait_for(lambda: told()[1] == "STABLE", "the operator has seen that the job runs", 120)
    before = told()
    asked = target.savepoint(job, new_id(), None)
    taken = poll(lambda: target.poll(asked).snapshot, lambda seen: seen is None, timeout=120)
    seen = kube.get("FlinkSessionJob", ledger.deployment)["status"]["jobStatus"].get("updateTime")
    assert told() == before
    successor = deployed(target, ledger, script(files, select="customer, SUM(amount) + 0, window_start"))
    assert successor.start.savepoint not in (None, taken)
    assert target.restored_from(JobRef(str(successor.job_id))).snapshot == successor.start.savepoint
    assert seen is not None
    target.dispose(Snapshot(str(taken)))
