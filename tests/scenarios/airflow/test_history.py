"""State from history in a real Airflow: a migration, a backfill of what was sent, a restart that is warm.

The DAG decides by itself; Flink and Spark are real.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, MigratedEntry
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from dev.demo.airflow_client import AirflowClient
from dev.demo.airflow_instance import AirflowStandalone
from dev.services.csv_job import Files, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(900)]

DAG_ID, NAME = "flink_history", "history"
DAG = """\
from datetime import datetime

from airflow.sdk import DAG

from airflow_flinkcompat.airflow.operators import Deployment, gated_redeploy

with DAG({dag_id!r}, schedule=None, start_date=datetime(2026, 1, 1), max_active_runs=1):
    gated_redeploy(
        Deployment(
            name={name!r},
            script={script!r},
            migrate={{"spark_master": "local[2]"}},
            check={{
                "explain_plan": True,
                "history": {{"orders": ""}},
                "policy": {{"migratable": "migrate", "incompatible": "restart", "unknown": "restart"}},
            }},
            deploy={{"settle_seconds": 1}},
            backfill={{"sinks": {{"totals": {filled!r}}}}},
            backfill_sent=True,
            warm_restart=True,
        ),
        watch=False,
    )
"""
MORE = {
    "columns": "customer STRING, total BIGINT, since TIMESTAMP(3), most BIGINT",
    "select": "customer, SUM(amount), window_start, MAX(amount)",
}


@dataclass
class Deployed:
    """One deployment that is triggered, its files, and what backfills have published."""

    root: Path
    airflow: AirflowStandalone
    files: Files

    @property
    def client(self) -> AirflowClient:
        return self.airflow.client

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.root / "ledger", NAME)

    @property
    def head(self) -> DeployedEntry:
        head = self.ledger.head()
        assert isinstance(head, DeployedEntry)
        return head

    def run(self, script: str) -> tuple[str, dict[str, str | None]]:
        """A run that deploys a script: its id, and the tasks that were not skipped with their states."""
        (self.root / "job.sql").write_text(script, encoding="utf-8")
        run = self.client.trigger(DAG_ID)
        state = self.client.wait_for_run(DAG_ID, run, timeout=400)
        tasks = {task: each for task, each in self.client.task_states(DAG_ID, run).items() if each != "skipped"}
        assert state == "success", "\n".join(self.log(run, task) for task, each in tasks.items() if each == "failed")
        return run, tasks

    def log(self, run: str, task: str) -> str:
        return "\n".join(self.client.log(DAG_ID, run, task))

    def filled(self) -> list[str]:
        """The rows that backfills have published."""
        files = (path for path in (self.root / "filled").rglob("*.csv") if path.name[0] not in "._")
        return sorted(line for path in files for line in path.read_text().splitlines())


@pytest.fixture
def deployed(tmp_path: Path, local_flink: LocalFlink) -> Iterator[Deployed]:
    (tmp_path / "dags").mkdir()
    filled = (tmp_path / "filled").as_uri()
    text = DAG.format(dag_id=DAG_ID, name=NAME, script=str(tmp_path / "job.sql"), filled=filled)
    (tmp_path / "dags" / "history.py").write_text(text, encoding="utf-8")
    gateway = urlsplit(local_flink.gateway_url)
    flink = {
        "conn_type": "flink",
        "host": gateway.hostname,
        "port": gateway.port,
        "extra": {"jobmanager_url": local_flink.jobmanager_url, "ledger": str(tmp_path / "ledger")},
    }
    spark = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    airflow = AirflowStandalone(
        tmp_path / "airflow",
        tmp_path / "dags",
        connections={"flink_default": flink, "spark_default": spark},
        config={},
        log=print,
    )
    with airflow:
        airflow.client.unpause(DAG_ID)
        yield Deployed(tmp_path, airflow, Files(tmp_path))
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        for job in target.running(NAME):
            target.cancel(job)


def test_what_a_change_would_begin_without_comes_from_history(deployed: Deployed) -> None:
    files = deployed.files
    files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 50, "01:10")])
    _, tasks = deployed.run(files.script())
    assert tasks["deploy_first"] == "success"
    wait_for(lambda: files.rows() == ['ann,3,"2026-01-01 00:00:00"'], "minute 0 is written")

    # A metric comes: the open window is made whole, and the one that was sent is published once more with it.
    run, tasks = deployed.run(files.script(**MORE))
    assert (tasks["migrate"], tasks["backfill_sent"]) == ("success", "success")
    (done,) = [each for each in deployed.ledger.entries() if isinstance(each, MigratedEntry)]
    assert done.migration["sent_until"] == "2026-01-01T00:01:10.001"
    assert "prepared rows of " in deployed.log(run, "migrate")
    assert deployed.filled() == ['ann,3,"2026-01-01 00:00:00",2']
    files.arrive("2.csv", [("ann", 7, "01:20"), ("ann", 1, "02:10")])
    minute_1 = 'ann,57,"2026-01-01 00:01:00",50'
    wait_for(lambda: minute_1 in files.rows(), "minute 1 is written")

    # The rows come from another place: no stored position holds there, and the job begins with what they come to.
    moved = deployed.root / "moved"
    moved.mkdir()
    for each in files.source.iterdir():
        (moved / each.name).write_bytes(each.read_bytes())
    script = files.script(**MORE).replace(files.source.as_uri(), moved.as_uri())
    run, tasks = deployed.run(script)
    assert (tasks["restart"], tasks["backfill"]) == ("success", "success")
    assert "that end by 2026-01-01T00:02:10.001 count as emitted" in deployed.log(run, "restart")
    assert deployed.head.start.savepoint
    (moved / "3.csv").write_text("ann,90,2026-01-01 00:02:30\nann,1,2026-01-01 00:03:10\n")
    wait_for(lambda: 'ann,91,"2026-01-01 00:02:00",90' in files.rows(), "the open window has the row from before")
    assert minute_1 in deployed.filled()
