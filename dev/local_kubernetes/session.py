"""A session cluster that is a LocalFlink: a FlinkDeployment whose JobManager the operator finds on this machine.

An operator outside of a cluster talks to ``localhost`` and the ``rest.port`` of the resource, so the JobManager of a
LocalFlink is the one of the FlinkDeployment. The Deployments that the operator makes for it have no pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubernetes import client

from airflow_flinkcompat.local_flink import LocalFlink
from dev.local_kubernetes import flink_operator
from dev.local_kubernetes.cluster import GROUP, GROUP_VERSION, NAMESPACE, LocalKube


def create_session(kube: LocalKube, flink: LocalFlink, name: str = "session") -> dict[str, Any]:
    """Create the session FlinkDeployment of a LocalFlink, and wait until the operator says that it is ready.

    The Kubernetes has no controllers: what they would report of the two Deployments is reported here.
    """
    kube.create(session_deployment(flink, name))
    apps = client.AppsV1Api(kube.api)
    parts = (name, f"{name}-taskmanager")

    def ready(resource: Mapping[str, Any]) -> bool:
        for part in parts:
            _report_available(apps, part)
        status = resource.get("status", {})
        return (status.get("jobManagerDeploymentStatus"), status.get("lifecycleState")) == ("READY", "STABLE")

    return kube.wait("FlinkDeployment", name, ready, "READY and STABLE")


def session_deployment(flink: LocalFlink, name: str) -> dict[str, Any]:
    """The FlinkDeployment without a job, in standalone mode."""
    return {
        "apiVersion": f"{GROUP}/{GROUP_VERSION}",
        "kind": "FlinkDeployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "image": "flink:1.20",
            "flinkVersion": flink_operator.flink_version(),
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
    """Report one replica, as the controller of Deployments does; of a Deployment that is not there yet, nothing."""
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
