"""Rehearsals beside a job that really runs: what they find, and that nothing of it is left or was touched."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from airflow.sdk import Connection

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.triggers.deploy import FlinkRehearsalTrigger
from airflow_flinkcompat.deploy import ApiError, Wait
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.rehearsal.sequence import rehearse
from airflow_flinkcompat.deploy.rehearsal.waiting import Paused
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import RehearsalFinding
from dev.benchmarks.rehearsal import QUICK, Script, cluster, expected, pairs, rehearsed, running
from dev.measure.measured import Restore
from dev.services.csv_job import SETTINGS, Files, wait_for
from tests.support.nightly import mostly_nightly

pytestmark = pytest.mark.slow

FIRST = [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 5, "01:10")]  # the last one closes minute 0, opens minute 1
SECOND = [("ann", 7, "01:20"), ("ann", 1, "02:10")]  # closes minute 1
MINUTE_0, MINUTE_1 = 'ann,3,"2026-01-01 00:00:00"', 'ann,12,"2026-01-01 00:01:00"'
NAME = "rehearsed"

# One that Flink takes and one that it refuses every time; every pair in the nightly run.
TAKEN = [pair for pair in pairs() if pair.outcome.startswith("restored")]
REFUSED = [pair for pair in pairs() if pair.outcome.startswith("refused")]
MEASURED = [*mostly_nightly(TAKEN, few=1), *mostly_nightly(REFUSED, few=1)]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def side(script: str, source: str = "orders.sql") -> Script:
    return Script(script, SETTINGS, source)


def of_rehearsals(jobs: JobManager, name: str = NAME) -> list[str]:
    """Ids of the rehearsal jobs that have not ended."""
    return [job.job_id for job in jobs.jobs().values() if job.name.startswith(f"{name} rehearsal") and not job.terminal]


def savepoints(flink: LocalFlink) -> set[Path]:
    return set((flink.work_dir / "savepoints").iterdir())


class WithoutLog(JobManager):
    """Of a cluster whose log is not to be had over REST."""

    def lines(self, path: str) -> Iterator[str]:
        raise ApiError(f"404: {path}")


class SlowSavepoints(JobManager):
    """Of a cluster that has written no savepoint yet when it is first asked for it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._asked: set[str] = set()

    def get(self, path: str) -> Any:
        answer = super().get(path)
        if "/savepoints/" in path and path not in self._asked:
            self._asked.add(path)
            return {"status": {"id": "IN_PROGRESS"}}
        return answer


def test_the_live_job_goes_on_as_if_alone(
    local_flink: LocalFlink, gateway: SqlGateway, jobs: JobManager, files: Files
) -> None:
    """One job, three rehearsals beside it; its rows are those of an undisturbed run."""
    before = savepoints(local_flink)
    old = side(files.script())
    files.arrive("1.csv", FIRST)
    with running(gateway, jobs, old, NAME) as job_id:
        wait_for(lambda: files.rows() == [MINUTE_0], "minute 0 is written")

        unchanged = rehearse(cluster(gateway, jobs), job_id, old, old, QUICK, log=print)
        assert unchanged.finding is RehearsalFinding.RESTORED
        assert [each.name.partition("[")[0] for each in unchanged.claimed or ()] == [
            "GlobalWindowAggregate",
            "Source: orders",
        ]
        assert (unchanged.dropped, unchanged.begun) == ((), ())
        assert [each.name for each in unchanged.unclaimed or ()] == ["StreamingFileWriter"], "sinks have stand-ins"
        assert unchanged.live == "RUNNING, no restart meanwhile"

        filtered = side(files.script(where=" WHERE amount > 1"), "new.sql")
        with WithoutLog(local_flink.jobmanager_url) as mute:
            refused = rehearse(cluster(gateway, mute), job_id, old, filtered, QUICK, log=print)
        assert (refused.finding, refused.at, refused.left) == (RehearsalFinding.REFUSED, "submit", ())
        assert refused.basis == ("operators in the metadata of both savepoints",)
        assert "Cannot map checkpoint/savepoint state" in refused.reason
        assert [each.name.partition("[")[0] for each in refused.dropped or ()] == ["GlobalWindowAggregate"]

        mistaken = rehearse(cluster(gateway, jobs), job_id, filtered, old, QUICK, log=print)
        assert mistaken.finding is RehearsalFinding.INCONCLUSIVE
        assert "is the job's script" in mistaken.reason

        assert of_rehearsals(jobs) == []
        assert savepoints(local_flink) == before
        files.arrive("2.csv", SECOND)
        wait_for(lambda: len(files.rows()) >= 2, "minute 1 is written")
        assert files.rows() == [MINUTE_1, MINUTE_0]
        status = jobs.status(job_id)
        assert status is not None
        assert (status.state, status.failure) == ("RUNNING", None)


@pytest.mark.nightly
def test_too_few_slots_are_named(local_flink: LocalFlink, gateway: SqlGateway, jobs: JobManager, files: Files) -> None:
    before = savepoints(local_flink)
    with ExitStack() as stack:
        old = side(files.script())
        job_id = stack.enter_context(running(gateway, jobs, old, NAME))
        free = jobs.get("overview")["slots-available"]
        filler = "CREATE TABLE s (x STRING) WITH ('connector' = 'datagen', 'rows-per-second' = '1');"
        filler += "CREATE TABLE k (x STRING) WITH ('connector' = 'blackhole'); INSERT INTO k SELECT x FROM s;"
        wide = Script(filler, {"parallelism.default": str(free)}, "filler.sql")
        stack.enter_context(running(gateway, jobs, wide, "filler"))
        found = rehearse(cluster(gateway, jobs), job_id, old, old, QUICK, log=print)
    assert found.finding is RehearsalFinding.INCONCLUSIVE
    assert "it needs 1 free slot, the cluster has 0 of 16" in found.reason
    assert (found.live, savepoints(local_flink)) == ("not touched", before)


@pytest.mark.parametrize("pair", MEASURED, ids=str)
def test_the_finding_is_what_was_measured(
    pair: Restore, local_flink: LocalFlink, gateway: SqlGateway, jobs: JobManager, tmp_path: Path
) -> None:
    before = savepoints(local_flink)
    found = rehearsed(gateway, jobs, pair, tmp_path)
    assert (found.finding, found.at) == expected(pair), "\n".join(found.lines())
    assert (found.live, found.left) == ("RUNNING, no restart meanwhile", ())
    assert (of_rehearsals(jobs, pair.id), savepoints(local_flink)) == ([], before)


@pytest.mark.nightly
def test_a_killed_rehearsal_leaves_nothing(
    local_flink: LocalFlink, gateway: SqlGateway, jobs: JobManager, files: Files, tmp_path: Path
) -> None:
    """If a rehearsal is killed while the control runs, its watcher ends the job.

    If the watcher is also killed, the next rehearsal cannot distinguish the job from one in progress until the job runs
    longer than the time in its name.
    """
    before = savepoints(local_flink)
    script = tmp_path / "orders.sql"
    script.write_text(files.script(), encoding="utf-8")
    old = side(files.script())
    files.arrive("1.csv", FIRST)
    with running(gateway, jobs, old, NAME) as job_id:
        with _command(local_flink, script, job_id) as process:
            wait_for(lambda: of_rehearsals(jobs), "the control runs")
            (watcher,) = psutil.Process(process.pid).children()
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert of_rehearsals(jobs), "it was killed in the middle"
            watcher.wait(60)
        wait_for(lambda: not of_rehearsals(jobs), "the control is gone")
        assert savepoints(local_flink) == before

        with _command(local_flink, script, job_id) as process:
            wait_for(lambda: of_rehearsals(jobs), "the control runs again")
            (watcher,) = psutil.Process(process.pid).children()
            watcher.kill()
            process.send_signal(signal.SIGKILL)
            process.wait()
        (orphan,), (leftover,) = of_rehearsals(jobs), savepoints(local_flink) - before
        said: list[str] = []
        found = rehearse(cluster(gateway, jobs), job_id, old, old, QUICK, log=said.append)
        assert found.finding is RehearsalFinding.RESTORED
        assert f"another rehearsal of {NAME} is in progress, in job {orphan}" in said
        assert (of_rehearsals(jobs), savepoints(local_flink) - before) == ([orphan], {leftover})
        jobs.cancel(orphan)
        jobs.dispose_savepoint(leftover.as_uri())

        # TERM is heard: it cleans up by itself.
        with _command(local_flink, script, job_id) as process:
            wait_for(lambda: of_rehearsals(jobs), "the control runs once more")
            process.terminate()
            assert process.wait(60) == 130
            assert (of_rehearsals(jobs), savepoints(local_flink)) == ([], before)
        status = jobs.status(job_id)
        assert status is not None
        assert status.state == "RUNNING"


@pytest.mark.nightly
def test_a_rehearsal_that_waits_elsewhere_comes_to_the_same(
    local_flink: LocalFlink, gateway: SqlGateway, files: Files
) -> None:
    """Every wait is left to somebody else; each process that goes on knows nothing but the state it is given."""
    before = savepoints(local_flink)
    old, filtered = side(files.script()), side(files.script(where=" WHERE amount > 1"), "new.sql")
    files.arrive("1.csv", FIRST)
    impatient = replace(QUICK, timeouts=replace(QUICK.timeouts, settle=1, here=0.0))
    with SlowSavepoints(local_flink.jobmanager_url) as jobs, running(gateway, jobs, old, NAME) as job_id:
        for proposed, finding in ((old, RehearsalFinding.RESTORED), (filtered, RehearsalFinding.REFUSED)):
            ever = _ever(jobs)
            said, waits, state, found = [], [], None, None
            while found is None:
                try:
                    found = rehearse(cluster(gateway, jobs), job_id, old, proposed, impatient, said.append, state)
                except Paused as paused:
                    waits.append((paused.wait.job_id, paused.wait.request_id is not None))
                    state = json.loads(json.dumps(paused.state))
                    wait_for(_over(local_flink, paused), f"{paused}")
            assert found.finding is finding, found.lines()
            assert [writes for job, writes in waits if job == job_id] == [True], "the live job's savepoint"
            assert {writes for job, writes in waits if job != job_id} == {True, False}
            assert (found.live, found.left) == ("RUNNING, no restart meanwhile", ())
            assert len(said) == len(set(said)) + said.count("checking the sources and sinks of orders.sql") - 1 + max(
                said.count("checking the sources and sinks of new.sql") - 1, 0
            ), "nothing but the plans is done again"
            started = _ever(jobs) - ever
            assert len(started) == (2 if finding is RehearsalFinding.RESTORED else 3), (
                "control, new, and the strict one"
            )
            assert (of_rehearsals(jobs), savepoints(local_flink)) == ([], before)


def _ever(jobs: JobManager) -> set[str]:
    """Ids of all rehearsal jobs that the cluster ever had."""
    return {job.job_id for job in jobs.jobs().values() if job.name.startswith(f"{NAME} rehearsal")}


def _over(flink: LocalFlink, paused: Paused) -> Callable[[], bool]:
    """Whether the triggerer would go on: by the trigger's own look."""
    settle = QUICK.timeouts.settle if paused.wait.proven_since else 0.0
    trigger = FlinkRehearsalTrigger("flink_default", asdict(paused.wait), settle, 0.1, paused.state)
    with_target = SimpleNamespace(get_conn=lambda: SqlGatewayTarget(flink.gateway_url, flink.jobmanager_url))
    vars(trigger)["hook"] = with_target
    return lambda: isinstance(trigger._look(paused.wait), Wait)


@pytest.mark.nightly
def test_a_rehearsal_ended_while_it_waits_leaves_nothing(
    local_flink: LocalFlink, gateway: SqlGateway, jobs: JobManager, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person ends the task in the triggerer while the control runs: what Airflow calls then ends all of it."""
    before = savepoints(local_flink)
    old = side(files.script())
    files.arrive("1.csv", FIRST)
    at = urlsplit(local_flink.gateway_url)
    extra = json.dumps({"jobmanager_url": local_flink.jobmanager_url})
    connection = Connection(conn_id="f", conn_type="flink", host=at.hostname, port=at.port, extra=extra)
    monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(lambda _: connection))
    impatient = replace(QUICK, timeouts=replace(QUICK.timeouts, settle=600, here=2.0))
    with running(gateway, jobs, old, NAME) as job_id:
        state = None
        while not of_rehearsals(jobs):
            with pytest.raises(Paused) as paused:
                rehearse(cluster(gateway, jobs), job_id, old, old, impatient, print, state)
            state = paused.value.state
        assert savepoints(local_flink) != before
        trigger = FlinkRehearsalTrigger("flink_default", asdict(paused.value.wait), 600.0, 0.1, paused.value.state)

        async def scenario() -> None:
            waiting = asyncio.create_task(anext(trigger.run()))  # type: ignore[arg-type]
            await asyncio.sleep(1)
            waiting.cancel()
            await trigger.cleanup()
            assert of_rehearsals(jobs), "a triggerer that stops ends nothing"
            await trigger.on_kill()

        asyncio.run(scenario())
        assert (of_rehearsals(jobs), savepoints(local_flink)) == ([], before)
        status = jobs.status(job_id)
        assert status is not None
        assert status.state == "RUNNING"


def _command(flink: LocalFlink, script: Path, job_id: str) -> subprocess.Popen[bytes]:
    """``flinkcompat rehearse`` on its way; it would watch the control for ten minutes."""
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "airflow_flinkcompat.cli", "rehearse", str(script), str(script), *settings]
    command += ["--job-id", job_id, "--gateway", flink.gateway_url, "--jobmanager", flink.jobmanager_url]
    return subprocess.Popen([*command, "--settle", "600"], cwd=Path(__file__).parents[4], stderr=subprocess.DEVNULL)


@pytest.mark.nightly
def test_the_command_prints_the_finding(
    local_flink: LocalFlink, gateway: SqlGateway, jobs: JobManager, files: Files, tmp_path: Path
) -> None:
    """Sinks and sources that are temporary tables already, metadata, partitions: all have stand-ins."""
    text = files.script().replace("CREATE TABLE", "CREATE TEMPORARY TABLE")
    text = text.replace("since TIMESTAMP(3))", "since TIMESTAMP(3)) PARTITIONED BY (customer)")
    script = tmp_path / "orders.sql"
    script.write_text(text, encoding="utf-8")
    files.arrive("1.csv", FIRST)
    with running(gateway, jobs, side(text), NAME) as job_id:
        command = [sys.executable, "-m", "airflow_flinkcompat.cli", "rehearse", str(script), str(script)]
        command += [
            "--job-id",
            job_id,
            "--gateway",
            local_flink.gateway_url,
            "--jobmanager",
            local_flink.jobmanager_url,
        ]
        command += ["--set", "parallelism.default=1", "--settle", "0.3", "--format", "json"]
        done = subprocess.run(command, cwd=Path(__file__).parents[4], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["schema"], found["finding"]) == ("flinkcompat-rehearsal/1", "restored")
    assert "control: " in done.stderr
