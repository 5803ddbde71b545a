"""A gated deployment in a real Airflow, as its user sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from airflow_flinkcompat.deploy import Ledger
from dev.demo.airflow_client import AirflowClient
from dev.demo.airflow_instance import AirflowStandalone
from dev.services.csv_job import Files, wait_for


@dataclass
class Gate:
    """A script to edit, runs of a DAG to watch, files that arrive."""

    root: Path
    airflow: AirflowStandalone
    files: Files
    dag_id: str
    deployment: str
    script: Path
    seen: list[str] = field(default_factory=list, kw_only=True)

    @property
    def client(self) -> AirflowClient:
        return self.airflow.client

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.root / "ledger", self.deployment)

    def propose(self, text: str) -> None:
        """Put a script where the DAG looks, in one move: nobody reads half of it."""
        hidden = self.script.with_name(f".{self.script.name}")
        hidden.write_text(text, encoding="utf-8")
        hidden.rename(self.script)

    def run(self) -> str:
        """The run that waits for a change now: the DAG is scheduled continuously."""
        wait_for(lambda: set(self.client.runs(self.dag_id)) - set(self.seen), "another run begins", 60)
        (run,) = set(self.client.runs(self.dag_id)) - set(self.seen)
        self.seen.append(run)
        return run

    def wait(self, run: str, task: str, *states: str) -> str:
        return self.client.wait_for_task(self.dag_id, run, task, states or ("success",), timeout=180)

    def log(self, run: str, task: str) -> str:
        return "\n".join(self.client.log(self.dag_id, run, task))

    def everything_kept(self) -> str:
        """What is kept of all runs: the ledger, the logs of tasks, and Airflow's database."""
        stored = [path.read_text() for path in (self.root / "ledger").rglob("*.*") if path.is_file()]
        logs = [path.read_text(errors="replace") for path in (self.airflow.home / "logs").rglob("*.log")]
        database = (self.airflow.home / "airflow.db").read_bytes().decode("latin-1")
        return "\n".join([*stored, *logs, database])
