"""A gated deployment in a real Airflow on the local Kubernetes: the DAG of the page, as it stands there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.local_flink import LocalFlink
from dev.demo.airflow_instance import AirflowStandalone
from dev.local_kubernetes.cluster import NAMESPACE, LocalKube
from dev.local_kubernetes.resources import job_id, job_spec, restored_from, session_job
from dev.local_kubernetes.rigs import create_session
from dev.services.csv_job import Files
from tests.scenarios.airflow.gate import Gate
from tests.scenarios.local_kubernetes.service_proxy import behind_service

PAGE = Path(__file__).parents[3] / "docs" / "targets" / "kubernetes.md"
DAG_ID, DEPLOYMENT, KIND = "redeploy_orders", "orders", "FlinkSessionJob"
SECRET = "planted-connection-pw"
_INTERVAL = "SET 'execution.checkpointing.interval' = '500 ms';\n"


def page_dag() -> str:
    """The DAG file that the page shows first."""
    return str(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[0])


@dataclass
class KubernetesGate(Gate):
    """The deployment, and what it is on Kubernetes and in Flink."""

    kube: LocalKube
    jobmanager: JobManager

    def version(self, *, minutes: int = 1, poll: str = "150 ms", sink: str = "filesystem", default: str = "") -> str:
        """The script; ``default`` is an option of the sink that nobody has measured."""
        text = self.files.script(before=_INTERVAL).replace("INTERVAL '1' MINUTE", f"INTERVAL '{minutes}' MINUTE")
        head, into, rest = text.replace("150 ms", poll).partition("CREATE TABLE totals")
        option = f", 'partition.default-name' = '{default}'" if default else ""
        rest = rest.replace("'connector' = 'filesystem'", f"'connector' = '{sink}'{option}")
        return f"{head}{into}{rest}"

    @property
    def resource(self) -> dict[str, Any]:
        return self.kube.get(KIND, DEPLOYMENT)

    def restored(self) -> str | None:
        """What the job of the resource began from by the JobManager's word, once all of its tasks run."""
        return restored_from(self.jobmanager, job_id(self.resource))

    def running(self) -> list[str]:
        """The jobs that run in Flink, whatever their name."""
        return [str(status.job_id) for status in self.jobmanager.jobs().values() if not status.terminal]

    def answer(self, run: str, option: str) -> None:
        """A person's answer to the approval of a run."""
        assert self.client.answer(self.dag_id, run, "approve", option) == "success"


@contextmanager
def gated_on_kubernetes(work: Path, flink_home: Path, runner_jar: Path) -> Iterator[KubernetesGate]:
    """A session cluster, the operator, and an Airflow with the page's DAG, whose script is not there yet."""
    with LocalFlink(work / "flink", home=flink_home) as flink, LocalKube(work / "kube") as kube:
        kube.start_operator()
        create_session(kube, flink)
        files = Files(work)
        dags = work / "dags"
        (dags / "sql").mkdir(parents=True)
        (dags / f"{DAG_ID}.py").write_text(page_dag(), encoding="utf-8")
        airflow = AirflowStandalone(
            work / "airflow",
            dags,
            connections=_connections(work, kube, flink, runner_jar),
            variables={
                "orders_archive": (work / "archive").as_uri(),
                "totals_history": (work / "history").as_uri(),
            },
            log=print,
        )
        # Nothing but the Kubernetes connection leads to the JobManager.
        rest_port = int(flink.jobmanager_url.rpartition(":")[2])
        with (
            behind_service(kube, "session-rest", rest_port),
            JobManager(flink.jobmanager_url) as jobmanager,
            airflow,
        ):
            yield KubernetesGate(
                work, airflow, files, DAG_ID, DEPLOYMENT, dags / "sql" / "orders.sql", kube, jobmanager
            )


def _connections(work: Path, kube: LocalKube, flink: LocalFlink, runner_jar: Path) -> Mapping[str, Mapping[str, Any]]:
    manifest = session_job(DEPLOYMENT, "session", job_spec(["--statements", "{statements}"], runner_jar.as_uri()))
    kubeconfig = yaml.safe_load(kube.kubeconfig.read_text("utf-8"))  # the token in it is a secret
    return {
        "flink_default": {
            "conn_type": "flink",
            "extra": {
                "target": "kubernetes",
                "kubernetes_conn_id": "kubernetes_default",
                "namespace": NAMESPACE,
                "manifest": manifest,
                "ui_url": flink.jobmanager_url,
                "ledger": str(work / "ledger"),
            },
        },
        "kubernetes_default": {"conn_type": "kubernetes", "extra": {"kube_config": json.dumps(kubeconfig)}},
        # A script may ask for its password, which nothing but a FlinkDeployment can keep.
        "lake": {"conn_type": "generic", "password": SECRET},
        "spark_default": {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}},
    }
