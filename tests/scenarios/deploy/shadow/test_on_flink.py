"""Shadow runs next to a real job that reads files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.rehearsal.restoring import Timeouts
from airflow_flinkcompat.deploy.shadow.report import ShadowReport
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding
from airflow_flinkcompat.deploy.shadow.sequence import ShadowOptions, shadow
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.local_flink import LocalFlink
from dev.benchmarks.rehearsal import Script, cluster, running
from dev.services.csv_job import SETTINGS, Files, wait_for
from tests.support.deploy.targets.kubernetes_deployments import connected, operator

pytestmark = pytest.mark.slow

FIRST = [("ann", 1, "00:10"), ("ann", 5, "01:10"), ("ann", 1, "01:12")]  # minute 1 is open in the first savepoint
SECOND = [("ann", 7, "01:20"), ("ben", 1, "02:10")]
THIRD = [("cid", 9, "03:20")]
OPTIONS = ShadowOptions(seconds=1.0, run_seconds=120.0, timeouts=Timeouts(start=90, savepoint=60, clean_up=60))
MAXIMUM = "customer, MAX(amount), window_start"


@pytest.fixture
def compare(
    local_flink: LocalFlink, gateway: SqlGateway, jobs: JobManager, tmp_path: Path
) -> Iterator[Callable[..., ShadowReport]]:
    """Compare a script with that of a live job, which reads a file between the savepoints and another one later."""
    files = Files(tmp_path)
    files.arrive("1.csv", FIRST)
    old = Script(files.script(), SETTINGS, "old.sql")

    def log(line: str) -> None:
        print(line)
        if line.startswith("waiting"):
            files.arrive("2.csv", SECOND)
            wait_for(lambda: len(files.rows()) == 2, "the live job reads the second file")
        if line == "old.sql reads the rows again":
            files.arrive("3.csv", THIRD)

    def compared(
        options: ShadowOptions = OPTIONS,
        old: Script = old,
        place: Callable[[str], tuple[Cluster, str]] = lambda job: (cluster(gateway, jobs), job),
        **query: str,
    ) -> ShadowReport:
        new = Script(files.script(**query), SETTINGS, "new.sql")
        found = shadow(*place(job_id), old, new, options, log)
        print("\n".join(found.lines()))
        return found

    before = set((local_flink.work_dir / "savepoints").iterdir())
    with running(gateway, jobs, old, "shadowed") as job_id:
        wait_for(lambda: len(files.rows()) == 1, "the live job reads the first file")
        yield compared
        status = jobs.status(job_id)
        assert status is not None
        assert (status.state, status.failure) == ("RUNNING", None)
        assert [job.name for job in jobs.jobs().values() if not job.terminal] == ["shadowed"]
    assert set((local_flink.work_dir / "savepoints").iterdir()) == before


def test_equal_scripts_write_equal_rows(compare: Callable[..., ShadowReport], local_flink: LocalFlink) -> None:
    """Next to a FlinkSessionJob: the JobManager runs the scripts, with the stand-ins as statements."""
    with operator("1.10") as server:
        server.jobmanager, server.stopped = local_flink.jobmanager_url, True
        target = connected(server, Manifest.of({"session_cluster": "session"}, "the test"))

        def place(job: str) -> tuple[Cluster, str]:
            spec = {"deploymentName": "session", "job": {"state": "running"}}
            metadata = {"name": "orders", "uid": "o", "generation": 1, "resourceVersion": "1"}
            status = {"jobStatus": {"jobId": job, "jobName": "shadowed", "state": "RUNNING"}, "observedGeneration": 1}
            server.objects["flinksessionjobs", "orders"] = {"metadata": metadata, "spec": spec, "status": status}
            return Cluster(target), "orders"

        found = compare(place=place)
        assert server.calls == [], "the resource is not changed"
        assert server.used >= {("services/proxy", verb) for verb in ("get", "create", "delete")}
    assert (found.finding, found.left) == (ShadowFinding.EQUAL, ())
    (sink,) = found.sinks
    assert sink.compared == (2, 2), "minute 1 of ann and minute 2 of ben; the third file is outside of the range"


def test_wrong_rows_are_found(compare: Callable[..., ShadowReport], tmp_path: Path) -> None:
    """Flink restores the sum of the open window as its maximum, without an error."""
    found = compare(replace(OPTIONS, store=tmp_path), select=MAXIMUM)
    (sink,) = found.sinks
    assert (found.finding, sink.differing) == (ShadowFinding.DIFFERS, 2)
    assert sink.rows is not None
    assert sink.rows.to_pylist() == [
        {"only in": side, "times": 1, "customer": "ann", "total": total, "since": "2026-01-01 00:01:00"}
        for side, total in (("new", "7"), ("old", "13"))
    ]
    assert (tmp_path / "totals.parquet").exists()


@pytest.mark.nightly
def test_an_expected_difference(compare: Callable[..., ShadowReport]) -> None:
    found = compare(replace(OPTIONS, expected=("total",)), select=MAXIMUM)
    assert found.finding is ShadowFinding.EXPECTED


@pytest.mark.nightly
def test_a_refused_script(compare: Callable[..., ShadowReport]) -> None:
    found = compare(select="customer, AVG(amount), window_start")
    assert (found.finding, found.at) == (ShadowFinding.REFUSED, "restore"), found.lines()


@pytest.mark.nightly
def test_a_script_that_the_job_does_not_run(compare: Callable[..., ShadowReport], tmp_path: Path) -> None:
    other = Script(Files(tmp_path).script(where=" WHERE amount > 1"), SETTINGS, "old.sql")
    found = compare(old=other)
    assert found.finding is ShadowFinding.INCONCLUSIVE
    assert "is the script of job" in found.reason
