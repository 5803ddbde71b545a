"""A real Airflow around the one real Flink of the run, with the DAG of this repository in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from airflow_flinkcompat.deploy import Ledger, SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from demo.airflow_client import AirflowClient
from demo.airflow_instance import AirflowStandalone
from tests.deploy.jobs import Files, wait_for

DAG_ID = "flink_gated_deploy"
DEPLOYMENT = "orders-gate"
SECRET = "planted-connection-pw"
REPOSITORY = Path(__file__).parents[2]


@dataclass
class Gate:
    """The gated deployment as its user sees it: a script to edit, runs to watch, files that arrive."""

    root: Path
    airflow: AirflowStandalone
    files: Files
    seen: list[str] = field(default_factory=list)

    @property
    def client(self) -> AirflowClient:
        return self.airflow.client

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.root / "ledger", DEPLOYMENT)

    def propose(self, text: str) -> None:
        hidden = self.root / ".orders.sql"
        hidden.write_text(text, encoding="utf-8")
        hidden.rename(self.root / "orders.sql")

    def run(self) -> str:
        """The run that waits for a change now: the DAG is scheduled continuously."""
        wait_for(lambda: set(self.client.runs(DAG_ID)) - set(self.seen), "another run begins", 60)
        (run,) = set(self.client.runs(DAG_ID)) - set(self.seen)
        self.seen.append(run)
        return run

    def wait(self, run: str, task: str, *states: str) -> str:
        return self.client.wait_for_task(DAG_ID, run, task, states or ("success",), timeout=180)

    def log(self, run: str, task: str) -> str:
        return "\n".join(self.client.log(DAG_ID, run, task))


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory, local_flink: LocalFlink) -> Iterator[Gate]:
    root = tmp_path_factory.mktemp("gate")
    (root / "dags").mkdir()
    shutil.copy(REPOSITORY / "dags" / f"{DAG_ID}.py", root / "dags")
    gateway = urlsplit(local_flink.gateway_url)
    flink = {
        "conn_type": "flink",
        "host": gateway.hostname,
        "port": gateway.port,
        "extra": {"jobmanager_url": local_flink.jobmanager_url, "ledger": str(root / "ledger")},
    }
    files = Files(root)
    backfill = {
        "tables": {"orders": (root / "archive").as_uri()},
        "sinks": {"totals": (root / "history").as_uri()},
        "to": "2026-01-01 00:04:00",
    }
    airflow = AirflowStandalone(
        root / "airflow",
        root / "dags",
        connections={
            "flink_default": flink,
            "spark_default": {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}},
            # The script asks for its sink's place and for a password.
            "lake": {"conn_type": "generic", "password": SECRET, "extra": {"totals": files.sink.as_uri()}},
        },
        config={
            "FLINKCOMPAT_DEPLOYMENT": DEPLOYMENT,
            "FLINKCOMPAT_SCRIPT": str(root / "orders.sql"),
            "FLINKCOMPAT_BACKFILL": json.dumps(backfill),
            "FLINKCOMPAT_DEPLOY": json.dumps({"patience": 2, "poll_interval": 1}),
        },
        log=print,
    )
    with airflow:
        yield Gate(root, airflow, files)
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        for job in target.running(DEPLOYMENT):
            target.cancel(job)
