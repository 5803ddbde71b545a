"""A real Airflow around the one real Flink of the run, with the DAG of this repository in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from dev.demo.airflow_instance import AirflowStandalone
from dev.services.csv_job import Files
from tests.scenarios.airflow.gate import Gate

DAG_ID = "flink_gated_deploy"
DEPLOYMENT = "orders-gate"
SECRET = "planted-connection-pw"
REPOSITORY = Path(__file__).parents[3]


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
        yield Gate(root, airflow, files, DAG_ID, DEPLOYMENT, root / "orders.sql")
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        for job in target.running(DEPLOYMENT):
            target.cancel(job)
