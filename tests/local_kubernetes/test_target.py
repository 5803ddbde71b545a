"""The target keeps the contract on a real API server, with the real operator and a real Flink behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.target import KubernetesTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.testing.target_contract import Connect, TargetContract
from tests.local_kubernetes.cluster import NAMESPACE, LocalKube
from tests.local_kubernetes.session import create_session

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.kubernetes, pytest.mark.timeout(3600)]
MANIFEST = """
kind: FlinkSessionJob
spec:
  deploymentName: session
  job:
    jarURI: file://{jar}
    entryClass: flinkcompat.SqlRunner
    args: ["--statements", "{{statements}}"]
"""


@pytest.fixture(scope="module")
def operated(
    kubernetes_binary: Path,
    flink_1_20: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[LocalKube, LocalFlink]]:
    """A Kubernetes with the operator, and the Flink that is its session cluster."""
    work = tmp_path_factory.mktemp("operated")
    with LocalFlink(work / "flink", home=flink_1_20) as flink, LocalKube(work / "kube") as kube:
        kube.start_operator()
        create_session(kube, flink)
        yield kube, flink


class TestSessionJobs(TargetContract):
    """``FlinkSessionJob``, run by the runner of this package."""

    settle_seconds = 0.5

    @pytest.fixture
    def connect(self, operated: tuple[LocalKube, LocalFlink], runner_jar_path: Path) -> Connect:
        kube, flink = operated
        manifest = Manifest.of({"manifest": MANIFEST.format(jar=runner_jar_path)}, "the test")

        def connect() -> KubernetesTarget:
            api = KubernetesApi(kube.api, NAMESPACE)
            return KubernetesTarget(api, manifest, jobmanager=lambda _: Endpoint(flink.jobmanager_url))

        return connect
