"""A deployment by the Flink Kubernetes Operator, on a stand-in for the API server and the operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from airflow_flinkcompat.deploy import Ledger, Options, deploy
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import no_connections
from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.target import KubernetesTarget
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets.placeholders import AnyPlaceholder, Lookup
from airflow_flinkcompat.testing.target_contract import SCRIPT, SETTINGS
from tests.support.deploy.targets.kubernetes_stand_in import PLACEHOLDER, SECRET, FlinkJob, KubernetesStandIn, serving

SESSION = {
    "metadata": {"name": "session", "uid": "s", "generation": 1, "resourceVersion": "0"},
    "spec": {"flinkVersion": "v2_0"},
    "status": {"clusterInfo": {"flink-version": "2.3.0"}},
}
APPLICATION = """
kind: FlinkDeployment
spec:
  image: flink:1.18
  flinkVersion: v1_18
  serviceAccount: flink
  jobManager: {resource: {memory: 1g, cpu: 1}}
  taskManager: {resource: {memory: 1g, cpu: 1}}
  job:
    jarURI: local:///opt/flink/usrlib/sql-runner.jar
    entryClass: com.example.SqlRunner
    args: ["--script", "{script}"]
"""
BLUE_GREEN = yaml.safe_dump(
    {
        "kind": "FlinkBlueGreenDeployment",
        "spec": {
            "configuration": {"kubernetes.operator.bluegreen.abort.grace-period": "2 min"},
            "template": {"spec": yaml.safe_load(APPLICATION)["spec"]},
        },
    }
)
WITH_SECRET = SCRIPT.replace(
    "'connector' = 'blackhole'", "'connector' = 'blackhole', 'password' = '${conn.shop.password}'"
)


def connected(
    stand_in: KubernetesStandIn, manifest: Manifest, lookup: Lookup = no_connections, former: Manifest | None = None
) -> KubernetesTarget:
    """A target of the stand-in, whose operator writes a status once."""
    api_client = client.ApiClient(client.Configuration(host=stand_in.url))
    target = KubernetesTarget(KubernetesApi(api_client, "default"), manifest, former=former, lookup=lookup)
    target.quiet_seconds = dict.fromkeys(target.quiet_seconds, 0.0)
    return target


@contextmanager
def operator(version: str, kind: type[KubernetesStandIn] = KubernetesStandIn) -> Iterator[Any]:
    """The API server, an operator of this line and a session cluster."""
    with serving(kind(version)) as stand_in:
        stand_in.objects["flinkdeployments", "session"] = SESSION
        yield stand_in


class Deployments:
    """A deployment ``orders`` on the stand-in, and its ledger."""

    def __init__(self, stand_in: KubernetesStandIn, folder: Path, settings: dict[str, str]) -> None:
        self.stand_in = stand_in
        self.ledger = Ledger(folder, "orders")
        self.settings = settings

    def target(self) -> KubernetesTarget:
        """As another process opens it."""
        return connected(self.stand_in, Manifest.of(self.settings, "connection 'flink'"), _secrets)

    def deploy(self, script: str, engine_version: str | None = None, **more: object) -> DeployedEntry:
        """Deploy a script."""
        head = self.ledger.head()
        given = {
            "checked_old_sha256": head.sha256 if head else None,
            "owner": "run",
            "options": Options(settle_seconds=0.0, submit_timeout=3.0, start_timeout=3.0),
            **more,
        }
        job = JobSpec(script, SETTINGS, engine="flink", engine_version=engine_version, source="orders.sql")
        with self.target() as target:
            return deploy(target, self.ledger, job, **given)  # type: ignore[arg-type]

    @property
    def resource(self) -> dict[str, Any]:
        """The resource as the server keeps it."""
        (found,) = (each for (_, name), each in self.stand_in.objects.items() if name == "orders")
        return found

    @property
    def runs(self) -> list[FlinkJob]:
        """The jobs that run."""
        return [job for job in self.stand_in.flink.jobs.values() if job.state == "RUNNING"]


def _secrets(placeholder: AnyPlaceholder) -> str:
    assert str(placeholder) == PLACEHOLDER
    return SECRET
