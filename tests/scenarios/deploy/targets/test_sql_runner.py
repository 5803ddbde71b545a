"""The shipped SQL runner: it runs scripts on Flink 1.19 and later."""

from __future__ import annotations

import re
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from importlib.resources import as_file
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.target import JobRef
from airflow_flinkcompat.deploy.targets.jar_run import ENTRY_CLASS, encode_statements, runner_jar
from airflow_flinkcompat.local_flink import LocalFlink
from dev.measure.pairs import home
from dev.services.csv_job import Files, wait_for
from tests.support.nightly import mostly_nightly


def test_statements_travel_as_one_line() -> None:
    encoded = encode_statements(["SET 'a' = '; \"ü\"\n'", "INSERT INTO t SELECT 1"])
    assert re.fullmatch(r"[\w=-]+,[\w=-]+", encoded, re.ASCII)


def test_a_script_without_statements_is_refused() -> None:
    with pytest.raises(ValueError, match="Write at least an INSERT"):
        encode_statements([])


def test_the_jar_names_its_class() -> None:
    with as_file(runner_jar()) as path, zipfile.ZipFile(path) as jar:
        assert f"Main-Class: {ENTRY_CLASS}\r\n" in jar.read("META-INF/MANIFEST.MF").decode()
        assert f"{ENTRY_CLASS.replace('.', '/')}.class" in jar.namelist()


class Runner:
    """Runs scripts by the runner's jar on one cluster."""

    def __init__(self, flink: LocalFlink) -> None:
        self.flink = flink
        self.jobmanager = JobManager(flink.jobmanager_url)
        self.jar = self.jobmanager.upload_jar("runner.jar", runner_jar().read_bytes())

    def run(self, arguments: Sequence[str], *, savepoint: str | None = None) -> JobRef:
        """Submit, and wait until every task runs."""
        wanted = uuid.uuid4().hex
        body: dict[str, Any] = {"programArgsList": list(arguments), "jobId": wanted, "allowNonRestoredState": False}
        if savepoint:
            body["savepointPath"] = savepoint
        answer = self.jobmanager.call("POST", f"jars/{self.jar}/run", body, timeout=180)
        assert answer["jobid"] == wanted
        job = JobRef(wanted)
        wait_for(lambda: self._all_run(job), "every task runs")
        return job

    def _all_run(self, job: JobRef) -> bool:
        vertices = self.jobmanager.call("GET", f"jobs/{job}")["vertices"]
        return all(vertex["status"] == "RUNNING" for vertex in vertices)

    def parallelism(self, job: JobRef) -> set[int]:
        return {vertex["parallelism"] for vertex in self.jobmanager.call("GET", f"jobs/{job}")["vertices"]}


@pytest.fixture(scope="module", params=mostly_nightly(["2.3", "1.20", "1.19"]))
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    if request.param == "2.3":
        yield Runner(request.getfixturevalue("local_flink"))
        return
    with LocalFlink(tmp_path_factory.mktemp("flink"), home=home(request.param)) as flink:
        yield Runner(flink)


def statements(files: Files, *setup: str) -> list[str]:
    """The statements of the windowed job, after those given."""
    return [*setup, *(part.strip() for part in files.script().split(";\n") if part.strip())]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_job_goes_on_from_its_savepoint(runner: Runner, tmp_path: Path) -> None:
    """A RESET of everything leaves the submission's own options alone: the job id and the savepoint."""
    files = Files(tmp_path)
    files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 2, "01:10")])
    interval = "SET 'execution.checkpointing.interval' = '500 ms'"
    script = statements(files, "SET 'pipeline.name' = 'gone'", "RESET", interval)
    job = runner.run(["--statements", encode_statements(script)])
    wait_for(lambda: files.rows() == ['ann,1,"2026-01-01 00:00:00"'], "the first window's row")
    savepoint = runner.jobmanager.stop_with_savepoint(job, runner.flink.savepoint_directory)
    files.arrive("2.csv", [("ann", 5, "01:20"), ("ann", 7, "02:10")])
    (tmp_path / "script").write_text(encode_statements(script).replace(",", ",\n"))
    again = runner.run(["--scriptUri", (tmp_path / "script").as_uri()], savepoint=savepoint)
    assert runner.jobmanager.restored_from(again) == savepoint
    wait_for(lambda: 'ann,7,"2026-01-01 00:01:00"' in files.rows(), "the window that the savepoint held open")
    runner.jobmanager.cancel(again)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_first_cause_of_all_is_told_first(runner: Runner, tmp_path: Path) -> None:
    """Who keeps the beginning of a stack trace alone, as the Kubernetes operator does, still learns why."""
    script = encode_statements(statements(Files(tmp_path)))
    body = {"programArgsList": ["--statements", script], "savepointPath": (tmp_path / "nowhere").as_uri()}
    with httpx.Client(trust_env=False, timeout=180) as web:
        answer = web.post(f"{runner.flink.jobmanager_url}/jars/{runner.jar}/run", json=body)
    assert answer.status_code == 400
    assert re.search(r"Statement 3 of 3 failed: [^;\n]*\bnowhere\b", "\n".join(answer.json()["errors"]))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_options_are_set_and_reset_in_order(runner: Runner, tmp_path: Path) -> None:
    setup = [
        "-- a comment\nSET 'pipeline.name' = 'it''s; named'",
        "SET 'parallelism.default' = '3'",
        "RESET 'parallelism.default'",
        "RESET 'taskmanager.numberOfTaskSlots'",  # the cluster's own, which a script cannot take away
        "SET 'table.exec.resource.default-parallelism' = '2'",
        "SET 'table.dml-sync' = 'true'",  # would never return
        "SET",
    ]
    job = runner.run(["--statements", encode_statements(statements(Files(tmp_path), *setup))])
    assert runner.jobmanager.call("GET", f"jobs/{job}")["name"] == "it's; named"
    assert 2 in runner.parallelism(job)
    assert 3 not in runner.parallelism(job)
    runner.jobmanager.cancel(job)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--statements", encode_statements(["SET 'a' = 'b'", "INSERT INTO nowhere SELECT 1"])],
            "Statement 2 of 2 failed",
        ),
        (["--statements", "U0VU,?"], "Statement 2 of the list is not base64"),
        (["--statements", encode_statements(["SET 'a' = 'b'; SET 'c' = 'd'"])], "Statement 1 of 1 failed"),
        (["--statements", "_w"], "Statement 1 of the list is not base64 of UTF-8"),
        (["--script", "SELECT 1"], "got the option --script"),
        ([], "got 0 arguments"),
    ],
)
def test_what_cannot_run_is_told_with_its_place(runner: Runner, arguments: Sequence[str], said: str) -> None:
    with pytest.raises(JobManagerError) as refused:
        runner.run(arguments)
    assert said in str(refused.value.reason) + str(refused.value)
