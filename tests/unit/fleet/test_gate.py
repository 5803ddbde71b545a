"""The gate of one deployment: facts about the running job reach Flink's planner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.compat import check
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, JobStart
from airflow_flinkcompat.deploy.target import JobDescription, JobRef, JobVertex
from airflow_flinkcompat.fleet import review
from airflow_flinkcompat.fleet.gate import DeploymentGate
from airflow_flinkcompat.model import InputError, JobSpec
from airflow_flinkcompat.planner.judgement import DeployedJob
from airflow_flinkcompat.project.job_options import JobOptions
from airflow_flinkcompat.project.settings import load_project
from airflow_flinkcompat.testing.fake_target import AnswerLost, FakeTarget
from tests.support.cli.command import COMPATIBLE, V1


class Described(FakeTarget):
    """A target that shows the options of its cluster and the operators of its jobs."""

    answers = True

    def cluster_options(self, job: JobRef | None = None) -> Mapping[str, str]:
        return {"table.exec.state.ttl": "1 d", "rest.port": "8081"}

    def jobs(self) -> tuple[Any, ...]:
        return ()

    def describe(self, job: JobRef) -> JobDescription:
        if not self.answers:
            raise AnswerLost("no answer")
        return JobDescription((JobVertex("a" * 32, "Source: orders[1]", 1),))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The facts about the job with which the planner is asked."""
    found: list[Any] = []

    def judge(old: Any, new: Any, mode: str, jars: Any, *, job: DeployedJob | None) -> Any:
        found.append((mode, job))
        return check(old, new)

    monkeypatch.setattr(review, "judge", judge)
    return found


def gate(folder: Path, target: FakeTarget, log: list[str], **given: Any) -> DeploymentGate:
    (folder / "flinkcompat.toml").write_text('[deployments.orders]\nscript = "orders.sql"\n', encoding="utf-8")
    (folder / "orders.sql").write_text(COMPATIBLE, encoding="utf-8")
    project = load_project(folder / "flinkcompat.toml")
    ledger = Ledger(folder / "ledger", "orders")
    job = JobSpec(V1, engine="flink", engine_version="2.3.0")
    head = ledger.append(DeployedEntry(job=job, start=JobStart(job_id=JobRef("job-1"))))
    (deployment,) = project.deployments
    return DeploymentGate(target, ledger, head, project, deployment, JobOptions(**given), "run", log.append)


def test_the_planner_knows_the_running_job(tmp_path: Path, asked: list[Any]) -> None:
    found = gate(tmp_path, Described(), [])
    new = found.proposed()
    assert (new.engine, new.engine_version) == ("flink", "2.3.0"), "of the target"
    found.review(new)
    assert asked == [("auto", DeployedJob({"table.exec.state.ttl": "1 d"}, {"a" * 32}))]


def test_without_an_answer_the_planner_knows_no_job(tmp_path: Path, asked: list[Any]) -> None:
    target, log = Described(), list[str]()
    target.answers = False
    found = gate(tmp_path, target, log)
    found.review(found.proposed())
    assert asked == [("auto", None)]
    assert log[0] == "warning: Flink's planner does not know the options of the cluster: no answer"
    never = gate(tmp_path, target, [], planner="never")
    never.review(never.proposed())
    assert asked[1:] == [("never", None)]


def test_a_script_that_changes_during_the_check_is_not_deployed(tmp_path: Path, asked: list[Any]) -> None:
    found = gate(tmp_path, FakeTarget(), [])
    new = found.proposed()
    (tmp_path / "orders.sql").write_text(V1, encoding="utf-8")
    with pytest.raises(InputError, match=r"orders.sql changed while it was checked: run the command again"):
        found.review(new)
