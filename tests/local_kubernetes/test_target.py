"""The target keeps the contract on a real API server, with the real operator and a real Flink behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.target import KubernetesTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.processes import choose_ports
from airflow_flinkcompat.testing.target_contract import Connect, TargetContract
from tests.deploy.jobs import wait_for
from tests.local_kubernetes.cluster import NAMESPACE, LocalKube
from tests.local_kubernetes.kubelet import ProcessKubelet
from tests.local_kubernetes.resources import application, job_spec
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


@pytest.fixture(scope="module")
def applications(
    kubernetes_binary: Path,
    flink_1_20: Path,
    runner_jar_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[LocalKube, Path, int]]:
    """A Kubernetes with the operator, whose pods are processes; a folder for state, and the port of JobManagers."""
    work = tmp_path_factory.mktemp("applications")
    images = {"/opt/flink/usrlib/runner.jar": runner_jar_path}
    (port,) = choose_ports({"JobManagers": None}).values()
    with (
        LocalKube(work / "kube", controllers=True) as kube,
        ProcessKubelet(kube, flink_1_20, images) as kubelet,
    ):
        kube.start_operator()
        yield kube, work / "state", port
        kubelet.check()


class TestApplications(TargetContract):
    """``FlinkDeployment`` in application mode, whose script is mounted from a ConfigMap."""

    settle_seconds = 0.5

    @pytest.fixture
    def connect(self, applications: tuple[LocalKube, Path, int]) -> Connect:
        kube, state, port = applications
        job = job_spec(["--scriptUri", "{statements_uri}"], "local:///opt/flink/usrlib/runner.jar")
        document = application("any", job, port, state)
        document["spec"]["flinkConfiguration"]["execution.submit-failed-job-on-application-error"] = "true"
        manifest = Manifest.of({"manifest": document}, "the test")

        def connect() -> KubernetesTarget:
            api = KubernetesApi(kube.api, NAMESPACE)
            return KubernetesTarget(api, manifest, jobmanager=lambda _: Endpoint(f"http://127.0.0.1:{port}"))

        return connect

    @pytest.fixture(autouse=True)
    def nothing_is_left(self, applications: tuple[LocalKube, Path, int]) -> Iterator[None]:
        """After each test every resource is deleted: all JobManagers have one port here."""
        yield
        kube, _, _ = applications
        core = client.CoreV1Api(kube.api)
        for left in kube.all("FlinkDeployment"):
            kube.delete("FlinkDeployment", left["metadata"]["name"])
        wait_for(lambda: not core.list_namespaced_pod(NAMESPACE).items, "the end of every pod")
