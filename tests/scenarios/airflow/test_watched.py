"""A DAG that follows the script of its deployment, in a real Airflow: no run waits, and an edit begins one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import AdoptedEntry, JobStart
from airflow_flinkcompat.model import JobSpec
from dev.demo.airflow_instance import AirflowStandalone
from dev.services.csv_job import wait_for
from tests.support.airflow.operators.fakes import script

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(900)]

DAG_ID = "redeploy_orders"
DAG = """\
from datetime import datetime
from pathlib import Path

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from airflow_flinkcompat.airflow.operators import Deployment, gated_redeploy, script_asset

orders = Deployment(name="orders", script="orders.sql", check={{"engine": "flink", "engine_version": "2.3.0"}})
with DAG(
    {dag_id!r}, schedule=[script_asset(orders, folders=Path(__file__).parent, poll_interval=1)],
    start_date=datetime(2026, 1, 1), max_active_runs=1, disable_bundle_versioning=True,
):
    gated_redeploy(
        orders, watch="asset", deploy=lambda task_id, start_mode, **more: EmptyOperator(task_id=task_id, **more)
    )
"""


@pytest.fixture
def airflow(tmp_path: Path) -> Iterator[AirflowStandalone]:
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "gate.py").write_text(DAG.format(dag_id=DAG_ID), encoding="utf-8")
    (dags / "orders.sql").write_text(script(), encoding="utf-8")
    # No Flink: what is deployed here are tasks that do nothing.
    flink = {"conn_type": "flink", "host": "127.0.0.1", "port": 1, "extra": {"ledger": str(tmp_path / "ledger")}}
    with AirflowStandalone(tmp_path / "airflow", dags, connections={"flink_default": flink}, log=print) as started:
        yield started


def test_an_edit_begins_a_run_and_nothing_waits(airflow: AirflowStandalone, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", "orders")
    deployed = JobSpec(script().strip(), engine="flink", engine_version="2.3.0")
    ledger.append(AdoptedEntry(job=deployed, start=JobStart()))
    client = airflow.client
    client.unpause(DAG_ID)
    # What is deployed begins no run; an edit does, once, also where the triggerer is another one by then.
    file = airflow.dags / "orders.sql"
    file.write_text(script().replace("SUM(price)", "SUM( price )") + "-- laid out anew\n", encoding="utf-8")
    wait_for(lambda: client.runs(DAG_ID), "a run begins", 180)
    (first,) = client.runs(DAG_ID)
    assert client.wait_for_run(DAG_ID, first) == "success"
    checked = ledger.entries()[-2:]
    assert [entry.kind for entry in checked] == ["checked", "unchanged"], "the gate looked at what was watched"
    airflow.restart("triggerer")
    file.write_text(script(size=5), encoding="utf-8")
    wait_for(lambda: ledger.entries()[-1].kind == "checked", "another run looks at it", 240)
    (second,) = set(client.runs(DAG_ID)) - {first}
    assert client.wait_for_question(DAG_ID, second, "approve") == 1
