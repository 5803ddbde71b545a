"""Fills Airflow's database for the pages: DAGs, their runs, a question that waits, connections. Run as a module."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk.execution_time.hitl import HITLUser

from airflow_flinkcompat.airflow.operators.approval import REJECT, RESTART, RESUME
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import ShadowedEntry
from airflow_flinkcompat.deploy.shadow.question import render_question
from tests.scenarios.airflow.pages.world import DAGS, HOSTILE

RUNS = {
    "redeploy_orders": 4,
    "redeploy_parcels": 2,
    "redeploy_revenue": 2,
    "redeploy_loyalty": 2,
    "redeploy_hostile": 3,
    "redeploy_other": 1,
}
# The run of a DAG that asks, the deployment that it asks about, and who may answer.
WAITING: dict[str, tuple[str, str, list[HITLUser] | None]] = {
    "redeploy_orders": ("manual__4", "orders", None),
    "redeploy_revenue": ("manual__2", "revenue", None),
    "redeploy_loyalty": ("manual__2", "loyalty", None),
    "redeploy_hostile": ("manual__3", "x-hostile", [HITLUser(id="ana", name=HOSTILE[1])]),
}
OPTIONS = [RESUME, RESTART, REJECT]
REASON = {"reason": {"value": None, "description": "Why", "schema": {"type": ["null", "string"]}}}
_DAG = """\
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

for dag_id in {dag_ids}:
    with DAG(dag_id, schedule=None, tags=["flink"]) as dag:
        check = EmptyOperator(task_id="check")
        approve = EmptyOperator(task_id="approve")
        check >> approve >> [EmptyOperator(task_id=name) for name in ("resume", "restart", "migrate")]
    globals()[dag_id] = dag
"""


def write_dags(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "redeploy.py").write_text(_DAG.format(dag_ids=(*DAGS, "redeploy_other")), encoding="utf-8")


def _body(root: str, deployment: str) -> str:
    """The shadow run and the report of a deployment's last change, as the approval has them."""
    ledger = Ledger(root, deployment)
    runs = [each for each in ledger.entries() if isinstance(each, ShadowedEntry)]
    if not runs or runs[-1].review.report_path is None:
        return ""
    return f"{render_question(runs[-1])}\n\n{ledger.read_report(runs[-1].review.report_path)[1]}"


def fill(ledger: str, fleet: str) -> None:
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.models.connection import Connection
    from airflow.models.dagrun import DagRun
    from airflow.models.hitl import HITLDetail
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState, TaskInstanceState
    from airflow.utils.types import DagRunTriggeredByType
    from sqlalchemy import select

    for dag_id, count in RUNS.items():
        for number in range(1, count + 1):
            trigger_dag(
                dag_id,
                triggered_by=DagRunTriggeredByType.TEST,
                run_id=f"manual__{number}",
                logical_date=datetime(2026, 11, 20, 8 + number, tzinfo=UTC),
            )
    with create_session() as session:
        for run in session.scalars(select(DagRun)):
            waiting, deployment, assigned = WAITING.get(run.dag_id, ("", "", None))
            asks = waiting == run.run_id
            run.state = DagRunState.RUNNING if asks else DagRunState.SUCCESS
            run.start_date = datetime(2026, 11, 20, 9, tzinfo=UTC)
            for instance in run.get_task_instances(session=session):
                done = instance.task_id in ("check", "approve")
                instance.state = TaskInstanceState.SUCCESS if done else TaskInstanceState.SKIPPED
                if asks and instance.task_id == "approve":
                    instance.state = TaskInstanceState.DEFERRED
                    rendered = RenderedTaskInstanceFields(
                        instance, render_templates=False, rendered_fields={"deployment": deployment}
                    )
                    asked = HITLDetail(
                        ti_id=instance.id, options=OPTIONS, subject=f"A change to {deployment} needs a decision",
                        body=_body(ledger, deployment), params=REASON, assignees=assigned,
                    )  # fmt: skip
                    session.add_all([rendered, asked])
        for name, uri in (("flink_default", ledger), ("flink_fleet", fleet)):
            extra = {"ledger": uri, "jobmanager_url": "http://flink:8081", "ui_url": "https://ui.example.org/flink"}
            session.add(Connection(conn_id=name, conn_type="flink", host="gateway", extra=extra))


if __name__ == "__main__":
    fill(*sys.argv[1:])
