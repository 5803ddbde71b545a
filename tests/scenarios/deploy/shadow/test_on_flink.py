"""Shadow runs next to a real job that reads files."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.rehearsal.restoring import Timeouts
from airflow_flinkcompat.deploy.shadow.report import ShadowReport
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding
from airflow_flinkcompat.deploy.shadow.sequence import ShadowOptions, shadow
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns
from airflow_flinkcompat.local_flink import LocalFlink
from dev.benchmarks.rehearsal import Script, cluster, running
from dev.benchmarks.shadow_changes import migration_of
from dev.services.csv_job import SETTINGS, Files, wait_for
from tests.support.deploy.targets.kubernetes_deployments import connected, operator

pytestmark = pytest.mark.slow

FIRST = [("ann", 1, "00:10"), ("ann", 5, "01:10"), ("ann", 3, "01:12")]  # minute 1 is open in the first savepoint
SECOND = [("ann", 7, "01:20"), ("ben", 1, "02:10")]
THIRD = [("cid", 9, "03:20")]
OPTIONS = ShadowOptions(seconds=1.0, run_seconds=120.0, timeouts=Timeouts(start=90, savepoint=60, clean_up=60))
MAXIMUM = "customer, MAX(amount), window_start"


WIDE = "customer STRING, total BIGINT, since TIMESTAMP(3), most BIGINT"
WIDE_SELECT = "customer, SUM(amount), window_start, MAX(amount)"


@dataclass
class Live:
    """A live job, which reads a file between the savepoints of a shadow run, and another one later."""

    gateway: SqlGateway
    jobs: JobManager
    files: Files

    def side(self, source: str, **query: str) -> Side:
        return Side(self.files.script(**query), SETTINGS, engine="flink", engine_version="2.3.0", source=source)

    def _log(self, line: str) -> None:
        print(line)
        if line.startswith("waiting"):
            self.files.arrive("2.csv", SECOND)
            wait_for(lambda: len(self.files.rows()) == 2, "the live job reads the second file")
        if line == "old.sql reads the rows again":
            self.files.arrive("3.csv", THIRD)

    @contextmanager
    def job(self, old: Side) -> Iterator[str]:
        with running(self.gateway, self.jobs, old, "shadowed") as job_id:
            wait_for(lambda: len(self.files.rows()) == 1, "the live job reads the first file")
            yield job_id
            status = self.jobs.status(job_id)
            assert status is not None
            assert (status.state, status.failure) == ("RUNNING", None)
            assert [job.name for job in self.jobs.jobs().values() if not job.terminal] == ["shadowed"]

    def compare(
        self,
        job_id: str,
        old: Side,
        new: Side,
        options: ShadowOptions = OPTIONS,
        migrate: bool = False,
        place: Callable[[str], tuple[Cluster, str]] | None = None,
    ) -> ShadowReport:
        where, job = place(job_id) if place else (cluster(self.gateway, self.jobs), job_id)
        made = migration_of(where, job_id, old, new) if migrate else None
        found = shadow(where, job, old, new, options, self._log, made)
        print("\n".join(found.lines()))
        assert found.left == ()
        return found


@pytest.fixture
def live(local_flink: LocalFlink, gateway: SqlGateway, jobs: JobManager, tmp_path: Path) -> Iterator[Live]:
    """A live job with rows in its first file; nothing of a shadow run remains on the cluster."""
    files = Files(tmp_path)
    files.arrive("1.csv", FIRST)
    before = set((local_flink.work_dir / "savepoints").iterdir())
    yield Live(gateway, jobs, files)
    assert set((local_flink.work_dir / "savepoints").iterdir()) == before


@pytest.fixture
def compare(live: Live) -> Iterator[Callable[..., ShadowReport]]:
    """Compare a script with that of the live job."""
    old = live.side("old.sql")

    def compared(
        options: ShadowOptions = OPTIONS,
        old: Side = old,
        place: Callable[[str], tuple[Cluster, str]] | None = None,
        **query: str,
    ) -> ShadowReport:
        return live.compare(job_id, old, live.side("new.sql", **query), options, place=place)

    with live.job(old) as job_id:
        yield compared


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
    """Flink restores the sum of the open window, 8, as its maximum, without an error. The largest amount is 7."""
    earlier = tmp_path / "earlier.differing.parquet"
    earlier.touch()
    found = compare(replace(OPTIONS, store=tmp_path), select=MAXIMUM)
    (sink,) = found.sinks
    assert (found.finding, sink.differing) == (ShadowFinding.CHANGED, 2)
    assert sink.changed == ChangedColumns(frozenset({"total"}))
    assert sink.rows is not None
    assert sink.rows.to_pylist() == [
        {"only in": side, "times": 1, "customer": "ann", "total": total, "since": "2026-01-01 00:01:00"}
        for side, total in (("new", "8"), ("old", "15"))
    ]
    assert not earlier.exists()
    assert (tmp_path / "default_catalog.default_database.totals.differing.parquet").exists()


@pytest.mark.nightly
def test_state_of_a_changed_aggregation_is_wrong(compare: Callable[..., ShadowReport]) -> None:
    found = compare(replace(OPTIONS, from_earliest=True), select="customer, MIN(amount), window_start")
    assert found.state is not None
    assert found.state.finding is ShadowFinding.DIFFERS
    (sink,) = found.state.sinks
    assert sink.rows is not None
    assert sink.rows.to_pylist() == [
        {"only in": label, "times": 1, "customer": "ann", "total": total, "since": "2026-01-01 00:01:00"}
        for label, total in (("all rows", "3"), ("stored state", "7"))
    ]


@pytest.mark.nightly
def test_state_below_a_changed_output_is_right(compare: Callable[..., ShadowReport]) -> None:
    """The rows differ, because the script is to compute other values from the same state."""
    found = compare(replace(OPTIONS, from_earliest=True), select="customer, SUM(amount) * 2, window_start")
    assert found.state is not None
    assert (found.finding, found.state.finding, found.left) == (ShadowFinding.CHANGED, ShadowFinding.EQUAL, ())


UNION = """
CREATE TABLE {first} (who STRING, amount BIGINT) WITH (
  'connector' = 'filesystem', 'path' = '{root}/{first}', 'format' = 'csv', 'source.monitor-interval' = '150 ms');
CREATE TABLE {second} (who STRING, amount BIGINT) WITH (
  'connector' = 'filesystem', 'path' = '{root}/{second}', 'format' = 'csv', 'source.monitor-interval' = '150 ms');
CREATE TABLE copies (who STRING, amount BIGINT) WITH ('connector' = 'filesystem', 'path' = '{root}/copies',
  'format' = 'csv');
INSERT INTO copies SELECT * FROM {first} UNION ALL SELECT * FROM {second};
"""


@pytest.mark.nightly
def test_sources_that_restore_the_positions_of_other_folders(
    gateway: SqlGateway, jobs: JobManager, tmp_path: Path
) -> None:
    """After a restart, each source reads all files of its folder, because the other source had not read them."""
    tables = ("a", "b")
    for name in tables:
        (tmp_path / name).mkdir()
    old = Script(UNION.format(first="a", second="b", root=tmp_path.as_uri()), SETTINGS, "old.sql")
    new = replace(old, script=UNION.format(first="b", second="a", root=tmp_path.as_uri()), source="new.sql")

    def arrive(number: int) -> None:
        for name in tables:
            hidden = tmp_path / name / f".{number}.csv"
            hidden.write_text(f"{name},{number}\n")
            hidden.rename(tmp_path / name / f"{number}.csv")
        wait_for(lambda: copied() == 2 * number, "the live job reads the files")

    def copied() -> int:
        parts = (path for path in (tmp_path / "copies").glob("*") if path.name[0] not in "._")
        return sum(path.read_text().count("\n") for path in parts)

    def log(line: str) -> None:
        print(line)
        if line.startswith("waiting"):
            arrive(2)

    with running(gateway, jobs, old, "union") as job_id:
        arrive(1)
        options = replace(OPTIONS, from_earliest=True)
        found = shadow(cluster(gateway, jobs), job_id, old, new, options, log)
    print("\n".join(found.lines()))
    assert found.state is not None
    assert (found.finding, found.state.finding, found.left) == (ShadowFinding.DIFFERS, ShadowFinding.DIFFERS, ())
    (sink,) = found.sinks
    assert sink.rows is not None
    assert [(row["only in"], row["who"], row["amount"]) for row in sink.rows.to_pylist()] == [
        ("new", "a", "1"),
        ("new", "b", "1"),
    ]


@pytest.mark.nightly
def test_an_expected_difference(compare: Callable[..., ShadowReport]) -> None:
    found = compare(replace(OPTIONS, seconds=120.0, until_rows=2, expected=("total",)), select=MAXIMUM)
    assert found.finding is ShadowFinding.EXPECTED
    assert found.seconds[0] < 60, "the live job has read both rows of the second file"


@pytest.mark.nightly
def test_a_refused_script(compare: Callable[..., ShadowReport]) -> None:
    found = compare(select="customer, AVG(amount), window_start")
    assert (found.finding, found.at) == (ShadowFinding.REFUSED, "restore"), found.lines()
    assert any("--migrate" in line for line in found.lines())


@pytest.mark.nightly
def test_a_change_that_cannot_be_migrated(live: Live) -> None:
    old = live.side("old.sql")
    new = replace(old, script=old.script.replace("INTERVAL '1' MINUTE", "INTERVAL '2' MINUTE"), source="new.sql")
    with live.job(old) as job_id:
        where = cluster(live.gateway, live.jobs)
        found = shadow(where, job_id, old, new, OPTIONS, print, migration_of(where, job_id, old, new))
    assert (found.finding, found.at) == (ShadowFinding.REFUSED, "migration")
    assert "its windows are longer" in found.reason


@pytest.mark.nightly
def test_a_script_that_the_job_does_not_run(compare: Callable[..., ShadowReport], live: Live) -> None:
    found = compare(old=live.side("old.sql", where=" WHERE amount > 1"))
    assert found.finding is ShadowFinding.INCONCLUSIVE
    assert "is the script of job" in found.reason


def test_a_migrated_savepoint(live: Live) -> None:
    """The query computes both metrics in the other order, which Flink alone confuses without an error."""
    old = live.side("old.sql", columns=WIDE, select=WIDE_SELECT)
    inner = "SELECT customer AS c, MAX(amount) AS m, SUM(amount) AS t, window_start AS s"
    text = old.script.replace(f"SELECT {WIDE_SELECT}", f"SELECT c, t, s, m FROM ({inner}").rstrip().rstrip(";") + ");"
    new = replace(old, script=text, source="new.sql")
    with live.job(old) as job_id:
        found = live.compare(job_id, old, new, migrate=True)
    assert (found.finding, found.dropped) == (ShadowFinding.EQUAL, ())
    assert found.sinks[0].compared == (2, 2)
    assert found.migration is not None
    assert found.migration.kept is MigrationExtent.WHOLE


PHASES = (
    "starting new.sql on empty input",
    "taking a savepoint",
    "waiting",
    "old.sql reads",
    "migrating",
    "new.sql reads",
)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("phase", PHASES)
def test_a_stopped_run_leaves_nothing(
    live: Live, phase: str, number: signal.Signals, local_flink: LocalFlink, tmp_path: Path
) -> None:
    """Ctrl-C and TERM clean up in the command itself, and the watcher cleans up after KILL."""
    old = live.side("old.sql")
    for name in ("old.sql", "new.sql"):
        (tmp_path / name).write_text(f"-- {name} in {tmp_path}\n{old.script}", encoding="utf-8")  # with a new template
    savepoints = local_flink.work_dir / "savepoints"
    before = set(savepoints.iterdir())
    with live.job(old) as job_id:
        command = [
            sys.executable, "-m", "airflow_flinkcompat.cli", "shadow", "old.sql", "new.sql", "--job-id", job_id,
            "--gateway", local_flink.gateway_url, "--jobmanager", local_flink.jobmanager_url, "--for", "2s",
            "--migrate", *(f"--set={key}={value}" for key, value in SETTINGS.items()),
        ]  # fmt: skip
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            lines = []
            for line in process.stderr:
                lines.append(line)
                if line.startswith(phase):
                    process.send_signal(number)
            code = process.wait(120)
        assert code == (130 if number is not signal.SIGKILL else -signal.SIGKILL), lines
        wait_for(
            lambda: (
                [job.name for job in live.jobs.jobs().values() if not job.terminal] == ["shadowed"]
                and set(savepoints.iterdir()) == before
            ),
            "jobs, savepoints and folders of the run are removed",
        )
