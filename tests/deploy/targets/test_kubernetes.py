"""The Flink Kubernetes Operator as a target, against a small API server that validates by the operator's own CRDs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest
from kubernetes import client

from airflow_flinkcompat.deploy.target import Target
from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.target import KubernetesTarget
from airflow_flinkcompat.testing.target_contract import Connect, TargetContract
from tests.deploy.targets.kubernetes_stand_in import KubernetesStandIn, serving

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


def connected(stand_in: KubernetesStandIn, manifest: Manifest) -> KubernetesTarget:
    """A target of the stand-in."""
    return KubernetesTarget(
        KubernetesApi(client.ApiClient(client.Configuration(host=stand_in.url)), "default"), manifest
    )


class KubernetesContract(TargetContract):
    """The contract; a subclass says which kind of resource."""

    settings: ClassVar[dict[str, str]]

    @pytest.fixture(params=["1.7", "1.10"])
    def stand_in(self, request: pytest.FixtureRequest) -> Iterator[KubernetesStandIn]:
        with serving(KubernetesStandIn(request.param)) as stand_in:
            stand_in.objects["flinkdeployments", "session"] = SESSION
            yield stand_in

    @pytest.fixture
    def connect(self, stand_in: KubernetesStandIn) -> Iterator[Connect]:
        opened: list[KubernetesTarget] = []

        def connect() -> KubernetesTarget:
            opened.append(connected(stand_in, Manifest.of(self.settings, "the test")))
            return opened[-1]

        yield connect
        for target in opened:
            target.close()

    @pytest.fixture(autouse=True)
    def _operator(self, stand_in: KubernetesStandIn) -> None:
        self.operator = stand_in

    def misfits(self, target: Target, name: str) -> None:
        """The next savepoint that a job of this name is given does not fit."""
        self.operator.flink.misfits.add(name)


class TestSessionJobs(KubernetesContract):
    """``FlinkSessionJob``."""

    settings: ClassVar = {"session_cluster": "session"}


class TestApplications(KubernetesContract):
    """``FlinkDeployment`` in application mode."""

    settings: ClassVar = {"manifest": APPLICATION}
