"""Tasks that wait in the triggerer of a real Airflow, and are ended there by a person, or see it restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.local_flink import LocalFlink
from dev.services.csv_job import Files, wait_for
from tests.scenarios.airflow.gate import Gate

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(900)]

DAG_ID, NAME = "flink_waits", "waits"
# How long is waited is read anew by every task: a moment, or until somebody ends it.
DAG = """\
import json
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG

from airflow_flinkcompat.airflow.operators import Deployment, gated_redeploy

settle = json.loads(Path({settle!r}).read_text())
quick = {{"patience": 2, "poll_interval": 1}}
with DAG({dag_id!r}, schedule=None, start_date=datetime(2026, 1, 1), max_active_runs=1):
    gated_redeploy(
        Deployment(
            name={name!r},
            script={script!r},
            check={{"policy": {{"incompatible": "restart"}}}},
            deploy={{**quick, "settle_seconds": settle["deploy"]}},
            rehearse={{**quick, "settle_seconds": settle["rehearse"]}},
        ),
        watch=False,
    )
"""
HOUR = 3600.0


@dataclass
class Waits:
    """One deployment that is triggered; ``settle`` says how long its tasks wait."""

    gate: Gate
    flink: LocalFlink
    files: Files = field(init=False)

    def __post_init__(self) -> None:
        root = self.gate.root / NAME
        self.files = Files(root)
        self.files.arrive("1.csv", [("ann", 1, "00:10")])
        self.settle()
        self.propose(self.files.script())
        text = DAG.format(dag_id=DAG_ID, name=NAME, script=str(root / "job.sql"), settle=str(root / "settle.json"))
        (self.gate.airflow.dags / f"{DAG_ID}.py").write_text(text, encoding="utf-8")

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.gate.root / "ledger", NAME)

    def settle(self, **seconds: float) -> None:
        given = {"deploy": 0.5, "rehearse": 0.5, **seconds}
        (self.gate.root / NAME / "settle.json").write_text(json.dumps(given), encoding="utf-8")

    def propose(self, text: str) -> None:
        (self.gate.root / NAME / "job.sql").write_text(text, encoding="utf-8")

    def log(self, run: str, task: str) -> str:
        """Of the latest try; empty before there is one."""
        if not self.gate.client.task_states(DAG_ID, run).get(task):
            return ""
        return "\n".join(self.gate.client.log(DAG_ID, run, task))

    def deferred(self, run: str, task: str, words: str) -> None:
        """Until the triggerer waits for what the task's log says in these words, also after it was restarted."""
        for times in (1, 2):
            wait_for(lambda times=times: self.log(run, task).count(words) >= times, f"{task} is looked after", 120)
            self.gate.client.wait_for_task(DAG_ID, run, task, ("deferred",))
            if times == 1:
                self.gate.airflow.restart("triggerer")

    def jobs(self, beside: bool) -> list[str]:
        """Ids of those that run: of a rehearsal beside, or the deployment's own."""
        with JobManager(self.flink.jobmanager_url) as jobmanager:
            found = jobmanager.jobs().values()
        own = [job for job in found if not job.terminal and job.name.split(" rehearsal ")[0] == NAME]
        return [job.job_id for job in own if (job.name != NAME) == beside]


@pytest.fixture
def waits(gate: Gate, local_flink: LocalFlink) -> Iterator[Waits]:
    (gate.root / NAME).mkdir()
    made = Waits(gate, local_flink)
    yield made
    with JobManager(local_flink.jobmanager_url) as jobmanager:
        for job_id in (*made.jobs(beside=False), *made.jobs(beside=True)):
            jobmanager.cancel(job_id)


def test_ended_while_it_waits(waits: Waits) -> None:
    client = waits.gate.client
    client.unpause(DAG_ID)
    run = client.trigger(DAG_ID)
    assert client.wait_for_run(DAG_ID, run) == "success"
    (job_id,) = waits.jobs(beside=False)

    # A rehearsal that waits outlives the triggerer it waits in; a person who ends it ends its jobs, and no other.
    waits.settle(rehearse=HOUR)
    run = client.trigger(DAG_ID, {"redeploy_unchanged": True})
    wait_for(
        lambda: "to keep running: waiting in the triggerer" in waits.log(run, "rehearse"), "the control is watched", 180
    )
    (control,) = waits.jobs(beside=True)
    waits.deferred(run, "rehearse", f"waiting for job {control} to keep running next to the live one")
    assert waits.jobs(beside=True) == [control]
    client.mark_task(DAG_ID, run, "rehearse", "failed")
    wait_for(lambda: not waits.jobs(beside=True), "the control is ended", 60)
    assert waits.jobs(beside=False) == [job_id]
    assert client.wait_for_run(DAG_ID, run) == "failed"
    assert client.task_states(DAG_ID, run)["resume"] == "upstream_failed"
    waits.settle()
    client.clear_task(DAG_ID, run, "rehearse", downstream=True)
    assert client.wait_for_run(DAG_ID, run) == "success"
    assert client.xcom(DAG_ID, run, "rehearse")["finding"] == "restored"
    head = waits.ledger.head()
    assert head is not None
    assert head.start.start_mode == "savepoint"
    assert (waits.jobs(beside=False), waits.jobs(beside=True)) == ([head.job_id], [])

    # A deploy task: nothing is written when the triggerer restarts; a person's end is told, and nothing is ended.
    waits.settle(deploy=HOUR)
    waits.propose(waits.files.script().replace("'1' MINUTE", "'2' MINUTE"))
    run = client.trigger(DAG_ID)
    waits.deferred(run, "restart", "the verification of job")
    (new,) = waits.jobs(beside=False)
    assert [entry.kind for entry in waits.ledger.entries()][-1] == "started"
    client.mark_task(DAG_ID, run, "restart", "failed")
    wait_for(lambda: waits.ledger.entries()[-1].kind == "interrupted", "the ledger says so", 60)
    last = waits.ledger.entries()[-1]
    assert (last.job_id, last.owner) == (new, f"airflow:{DAG_ID}/{run}/restart")
    assert "the job is RUNNING and is neither ended nor verified. Clear this task" in last.message
    told = last.message.removeprefix("the ")
    wait_for(lambda: told in waits.log(run, "restart"), "the log says so", 60)
    assert waits.jobs(beside=False) == [new]
    waits.settle()
    client.clear_task(DAG_ID, run, "restart")
    client.wait_for_task(DAG_ID, run, "restart", ("success",))
    head = waits.ledger.head()
    assert head is not None
    assert (head.kind, head.job_id, waits.jobs(beside=False)) == ("deployed", new, [new]), "the same job, not a second"
