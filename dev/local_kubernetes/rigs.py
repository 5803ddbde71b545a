"""Clusters for the target on a real operator: a session cluster (LocalFlink) or application clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client, config

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.target import KubernetesTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.processes import choose_ports
from dev.local_kubernetes import flink_operator
from dev.local_kubernetes.cluster import GROUP, GROUP_VERSION, NAMESPACE, LocalKube
from dev.local_kubernetes.kubelet import ProcessKubelet
from dev.local_kubernetes.resources import application, job_spec, session_job
from dev.services.csv_job import wait_for

RUNNER = "/opt/flink/usrlib/runner.jar"
MOUNTED = ("--scriptUri", "{statements_uri}")
INLINE = ("--statements", "{statements}")


@dataclass(frozen=True)
class Place:
    """Serializable settings with which another process can open the same target."""

    kubeconfig: Path
    manifest: Mapping[str, Any]
    jobmanager_url: str

    def target(self) -> KubernetesTarget:
        """The target, opened anew."""
        api = KubernetesApi(config.new_client_from_config(str(self.kubeconfig)), NAMESPACE)
        manifest = Manifest.of({"manifest": self.manifest}, "the test")
        return KubernetesTarget(api, manifest, jobmanager=lambda _: Endpoint(self.jobmanager_url))


@dataclass(frozen=True)
class Rig:
    """A Kubernetes with the operator, and where deployments of one kind are made on it.

    ``savepoints``: the folder of theirs. ``kubelet``: runs the pods of application clusters.
    """

    kube: LocalKube
    place: Place
    savepoints: Path
    kubelet: ProcessKubelet | None = None

    @property
    def kind(self) -> str:
        """The kind of its resources."""
        return str(self.place.manifest["kind"])

    def flink_jobs(self, name: str) -> tuple[str, ...]:
        """Running jobs of a name, as Flink reports them; none if there is no JobManager."""
        try:
            with JobManager(self.place.jobmanager_url, retry_wait=0.05) as jobmanager:
                found = jobmanager.jobs().values()
        except DeployError as error:
            if self.kubelet is None or not error.unanswered:
                raise
            return ()
        return tuple(job.job_id for job in found if job.name == name and not job.terminal)

    def clear(self) -> None:
        """Delete all resources of deployments and wait until their pods end, because JobManagers share a port."""
        core = client.CoreV1Api(self.kube.api)
        for left in self.kube.all(self.kind):
            if "job" in left["spec"]:
                self.kube.delete(self.kind, left["metadata"]["name"])
        if self.kubelet is not None:
            wait_for(lambda: not core.list_namespaced_pod(NAMESPACE).items, "the end of every pod")
            self.kubelet.check()


@contextmanager
def session_rig(work: Path, home: Path, runner_jar: Path) -> Iterator[Rig]:
    """``FlinkSessionJob``s on a LocalFlink, run by the runner of this package."""
    with LocalFlink(work / "flink", home=home) as flink, LocalKube(work / "kube") as kube:
        kube.start_operator()
        create_session(kube, flink)
        manifest = session_job("any", "session", job_spec(INLINE, runner_jar.as_uri()))
        place = Place(kube.kubeconfig, manifest, flink.jobmanager_url)
        yield Rig(kube, place, Path(flink.savepoint_directory.removeprefix("file://")))


@contextmanager
def application_rig(work: Path, home: Path, runner_jar: Path, args: Sequence[str] = MOUNTED) -> Iterator[Rig]:
    """``FlinkDeployment``s in application mode, whose pods are processes."""
    (port,) = choose_ports({"JobManagers": None}).values()
    manifest = application("any", job_spec(args, f"local://{RUNNER}"), port, work / "state")
    # Otherwise a refused script restarts the JobManager repeatedly, without a reported reason.
    manifest["spec"]["flinkConfiguration"]["execution.submit-failed-job-on-application-error"] = "true"
    with (
        LocalKube(work / "kube", controllers=True) as kube,
        ProcessKubelet(kube, home, {RUNNER: runner_jar}) as kubelet,
    ):
        kube.start_operator()
        place = Place(kube.kubeconfig, manifest, f"http://127.0.0.1:{port}")
        yield Rig(kube, place, work / "state" / "savepoints", kubelet)
        kubelet.check()


def create_session(
    kube: LocalKube, flink: LocalFlink, name: str = "session", flink_version: str | None = None
) -> dict[str, Any]:
    """Create the FlinkDeployment of a LocalFlink, report its Deployments available, and await readiness."""
    kube.create(session_deployment(flink, name, flink_version))
    apps = client.AppsV1Api(kube.api)
    parts = (name, f"{name}-taskmanager")

    def ready(resource: Mapping[str, Any]) -> bool:
        for part in parts:
            _report_available(apps, part)
        status = resource.get("status", {})
        return (status.get("jobManagerDeploymentStatus"), status.get("lifecycleState")) == ("READY", "STABLE")

    return kube.wait("FlinkDeployment", name, ready, "READY and STABLE")


def session_deployment(flink: LocalFlink, name: str, flink_version: str | None = None) -> dict[str, Any]:
    """The FlinkDeployment without a job, in standalone mode."""
    return {
        "apiVersion": f"{GROUP}/{GROUP_VERSION}",
        "kind": "FlinkDeployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "image": "flink:1.20",
            "flinkVersion": flink_version or flink_operator.flink_version(),
            "mode": "standalone",
            "serviceAccount": "default",
            "flinkConfiguration": {
                "rest.port": flink.jobmanager_url.rpartition(":")[2],
                "state.savepoints.dir": flink.savepoint_directory,
                "state.checkpoints.dir": (flink.work_dir / "checkpoints").as_uri(),
            },
            "jobManager": {"resource": {"memory": "1024m", "cpu": 0.5}},
            "taskManager": {"resource": {"memory": "1024m", "cpu": 0.5}, "replicas": 1},
        },
    }


def _report_available(apps: client.AppsV1Api, name: str) -> None:
    """Report one available replica, like the controller of Deployments, if the Deployment exists."""
    try:
        deployment = apps.read_namespaced_deployment(name, NAMESPACE)
        wanted = deployment.metadata.generation
        if deployment.status.observed_generation == wanted and deployment.status.available_replicas:
            return
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
        status = {"observedGeneration": wanted, **counts}
        apps.patch_namespaced_deployment_status(name, NAMESPACE, {"status": status})
    except client.ApiException as error:
        if error.status != 404:
            raise
