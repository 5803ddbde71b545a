"""A gated redeploy with shadow runs in a real Airflow: equal rows, different rows, and a run that a person ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.ledger.entries import ShadowedEntry
from airflow_flinkcompat.local_flink import LocalFlink
from dev.services.csv_job import Files, wait_for
from tests.scenarios.airflow.gate import Gate

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(900)]

DAG_ID, NAME = "flink_shadow", "shadowed"
DAG = """\
from datetime import datetime

from airflow.sdk import DAG

from airflow_flinkcompat.airflow.operators import Deployment, gated_redeploy

with DAG({dag_id!r}, schedule=None, start_date=datetime(2026, 1, 1), max_active_runs=1):
    gated_redeploy(
        Deployment(
            name={name!r},
            script={script!r},
            deploy={{"settle_seconds": 0.5, "patience": 2, "poll_interval": 1}},
            check={{"policy": {{"unknown": "resume"}}}},
            start_mode="shadow",
            shadow={{"duration": "10s", "timeout": "3min"}},
        ),
        watch=False,
    )
"""


class Shadowed:
    """One deployment with shadow runs. A file arrives while the live job waits between its savepoints."""

    def __init__(self, gate: Gate, flink: LocalFlink, root: Path) -> None:
        self.gate, self.flink, self.files, self.root = gate, flink, Files(root), root
        self.minute = 0
        self.arrive()
        self.propose("SUM(amount)")
        text = DAG.format(dag_id=DAG_ID, name=NAME, script=str(root / "job.sql"))
        (gate.airflow.dags / f"{DAG_ID}.py").write_text(text, encoding="utf-8")

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.gate.root / "ledger", NAME)

    def propose(self, total: str) -> None:
        text = self.files.script(f"customer, {total}, window_start")
        (self.root / "job.sql").write_text(text, encoding="utf-8")

    def arrive(self) -> None:
        """Rows of another minute, which close the window of the former one."""
        self.minute += 1
        rows = [("ann", 2, f"{self.minute:02}:10"), ("ann", 3, f"{self.minute:02}:20")]
        self.files.arrive(f"{self.minute}.csv", rows)

    def jobs(self) -> list[str]:
        """Names of the running jobs of the deployment, also next to the live one."""
        with JobManager(self.flink.jobmanager_url) as jobmanager:
            return [job.name for job in jobmanager.jobs().values() if not job.terminal and job.name.startswith(NAME)]

    def until_the_live_job_reads(self, run: str, tries: int = 1) -> None:
        """Let rows arrive between both savepoints of a shadow run."""
        client = self.gate.client

        def waits() -> bool:
            task = client.task(DAG_ID, run, "shadow") if client.task_states(DAG_ID, run).get("shadow") else None
            if task is None or task["try_number"] < tries:
                return False
            return "in which the live job reads rows" in "\n".join(client.log(DAG_ID, run, "shadow", tries))

        wait_for(waits, "the live job has taken its first savepoint", 180)
        self.arrive()

    def result(self) -> ShadowedEntry:
        return next(each for each in reversed(self.ledger.entries()) if isinstance(each, ShadowedEntry))


def test_rows_decide(gate: Gate, local_flink: LocalFlink) -> None:
    client = gate.client
    site = Shadowed(gate, local_flink, gate.root / NAME)
    savepoints = local_flink.work_dir / "savepoints"
    client.unpause(DAG_ID)
    run = client.trigger(DAG_ID)
    assert client.wait_for_run(DAG_ID, run) == "success"
    states = client.task_states(DAG_ID, run)
    assert [states[task] for task in ("deploy_first", "shadow", "approve", "resume")] == ["success", *["skipped"] * 3]
    kept = set(savepoints.iterdir())

    # A person ends the run: nothing is left, and a cleared task runs again. Equal rows resume the job.
    site.propose("SUM(amount) * 1")
    run = client.trigger(DAG_ID)
    site.until_the_live_job_reads(run)
    client.mark_task(DAG_ID, run, "shadow", "failed")
    wait_for(lambda: site.jobs() == [NAME] and set(savepoints.iterdir()) == kept, "nothing is left", 90)
    assert client.wait_for_run(DAG_ID, run) == "failed"
    client.clear_task(DAG_ID, run, "shadow", downstream=True)
    site.until_the_live_job_reads(run, 2)
    assert client.wait_for_run(DAG_ID, run) == "success"
    states = client.task_states(DAG_ID, run)
    assert [states[task] for task in ("shadow", "approve", "resume")] == ["success", "skipped", "success"]
    assert "SHADOW: equal: both scripts write the same rows" in "\n".join(client.log(DAG_ID, run, "shadow"))
    entry, head = site.result(), site.ledger.head()
    assert head is not None
    assert (entry.shadow["finding"], entry.branch, entry.shadow["left"]) == ("equal", "resume", [])
    assert entry.shadow["sinks"][0]["new_changes"] > 0
    assert (head.start.start_mode, head.review.approved_by) == ("savepoint", None)

    # The same verdict, but different rows: a person decides, with the rows in the ledger.
    site.propose("SUM(amount) * 100")
    run = client.trigger(DAG_ID)
    site.until_the_live_job_reads(run)
    client.wait_for_question(DAG_ID, run, "approve")
    entry = site.result()
    assert (entry.shadow["finding"], entry.branch, entry.review.outcome) == (
        "differs in changed columns",
        "approve",
        "compatible",
    )
    assert {"total": "500"}.items() <= next(
        row for row in entry.shadow["sinks"][0]["rows"] if row["only in"] == "new"
    ).items()
    assert site.jobs() == [NAME]
    pending = site.ledger.row().pending
    assert pending is not None
    assert pending.sha256 == entry.version.sha256
    assert client.xcom(DAG_ID, run, "shadow")["branch"] == "approve"
    assert client.answer(DAG_ID, run, "approve", "Resume from savepoint") == "success"
    assert client.wait_for_run(DAG_ID, run) == "success"
    head = site.ledger.head()
    assert head is not None
    assert (head.start.start_mode, head.review.approved_by) == ("savepoint", "admin")
    assert site.jobs() == [NAME]
    with JobManager(local_flink.jobmanager_url) as jobmanager:
        jobmanager.cancel(str(head.job_id))
