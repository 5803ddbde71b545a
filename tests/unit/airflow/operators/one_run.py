"""A DAG run of a real Airflow in this process: its own database and task runner, a cluster in memory for Flink.

Run as a program with a folder: ``python -m tests.unit.airflow.operators.one_run FOLDER``;
prints what the database holds then.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

DAG_FILE = """\
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset

from airflow_flinkcompat.airflow.operators import Deployment, deployment_asset, gated_redeploy, tables_alias

with DAG("gate", max_active_runs=1, schedule=None) as dag:
    gated_redeploy(
        Deployment(name="orders", script={script!r}, ledger={ledger!r}, check={{"engine": "flink"}},
                   deploy={{"settle_seconds": 0}}),
        watch=False,
    )
job = DAG("follows_the_job", schedule=[deployment_asset("orders")], is_paused_upon_creation=False)
tables = DAG("follows_its_tables", schedule=[tables_alias("orders")], is_paused_upon_creation=False)
table = DAG("follows_one_table", schedule=[Asset("file:///out")], is_paused_upon_creation=False)
other = DAG("follows_another", schedule=[deployment_asset("clicks")], is_paused_upon_creation=False)
for each in (job, tables, table, other):
    EmptyOperator(task_id="went_on", dag=each)
"""


def main(root: Path) -> None:
    os.environ |= {"AIRFLOW_HOME": str(root / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    os.environ["AIRFLOW_CONN_FLINK_DEFAULT"] = json.dumps({"conn_type": "flink", "host": "nowhere"})
    from airflow.utils.db import initdb

    from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
    from tests.support.airflow.operators.fakes import script
    from tests.support.deploy.fake_cluster import FakeCluster

    initdb()
    file = root / "airflow" / "dags" / "gate.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    (root / "orders.sql").write_text(script(), encoding="utf-8")
    names = {"script": str(root / "orders.sql"), "ledger": str(root / "ledger")}
    file.write_text(DAG_FILE.format(**names), encoding="utf-8")
    cluster = FakeCluster()
    FlinkHook.get_conn = lambda _self: cluster  # type: ignore[assignment, method-assign, return-value]
    run = runpy.run_path(str(file))["dag"].test()
    print(json.dumps({"state": run.state, "events": events(), "queued": queued()}, default=str))


def events() -> list[dict[str, Any]]:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(select(AssetEvent).order_by(AssetEvent.id))
        return [
            {
                "uri": each.asset.uri,
                "active": each.asset.active is not None,
                "task": each.source_task_id,
                "extra": each.extra,
                "aliases": sorted(alias.name for alias in each.source_aliases),
            }
            for each in found
        ]


def queued() -> list[str]:
    """The DAGs that wait for a run because of these events."""
    from airflow.models.asset import AssetDagRunQueue
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        return sorted(set(session.scalars(select(AssetDagRunQueue.target_dag_id))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
