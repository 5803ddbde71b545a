"""Custom resources of Flink's operator that run a script with the SQL runner, and their statuses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.target import JobRef
from airflow_flinkcompat.deploy.targets.jar_run import ENTRY_CLASS, encode_statements
from dev.local_kubernetes import flink_operator
from dev.local_kubernetes.cluster import GROUP, GROUP_VERSION, NAMESPACE
from dev.services.csv_job import Files, wait_for

Resource = dict[str, Any]

# With last-state fallback, the operator would use a checkpoint instead of the savepoint of an unhealthy job.
NO_FALLBACK = {"kubernetes.operator.job.upgrade.last-state-fallback.enabled": "false"}
_INTERVAL = "SET 'execution.checkpointing.interval' = '500 ms'"


def statements(files: Files, **changes: str) -> list[str]:
    """The statements of the windowed job of :mod:`dev.services.csv_job`."""
    return [_INTERVAL, *(part.strip() for part in files.script(**changes).split(";\n") if part.strip())]


def arguments(script: Sequence[str]) -> list[str]:
    """Arguments of the SQL runner's ``main`` for a script."""
    return ["--statements", encode_statements(script)]


def job_spec(args: Sequence[str], jar_uri: str, **more: Any) -> Resource:
    """The job of either kind of resource, which starts at once and is upgraded by a savepoint."""
    return {
        "jarURI": jar_uri,
        "entryClass": ENTRY_CLASS,
        "args": list(args),
        "parallelism": 1,
        "state": "running",
        "upgradeMode": "savepoint",
        "allowNonRestoredState": False,
        **more,
    }


def session_job(name: str, deployment: str, job: Resource) -> Resource:
    """A FlinkSessionJob."""
    spec = {"deploymentName": deployment, "job": job, "flinkConfiguration": dict(NO_FALLBACK)}
    return {
        "apiVersion": f"{GROUP}/{GROUP_VERSION}",
        "kind": "FlinkSessionJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def application(
    name: str, job: Resource, rest_port: int, folder: Path, pod_template: Resource | None = None
) -> Resource:
    """A native FlinkDeployment in application mode with local state and a unique ``rest_port``."""
    options = {
        "rest.port": str(rest_port),
        "state.savepoints.dir": (folder / "savepoints").as_uri(),
        "state.checkpoints.dir": (folder / "checkpoints").as_uri(),
        "taskmanager.numberOfTaskSlots": "2",
        "restart-strategy.type": "disable",
        # What the JobManager says of checkpoints is 3 s old by default: after a stop, the operator would take the last
        # checkpoint before it for its savepoint (README.md). And it looks as long as the JobManager is there.
        "web.refresh-interval": "1",
        "kubernetes.operator.jm-deployment.shutdown-ttl": "0 s",
        **NO_FALLBACK,
    }
    spec = {
        "image": "flink:1.20",
        "flinkVersion": flink_operator.flink_version(),
        "mode": "native",
        "serviceAccount": "default",
        "flinkConfiguration": options,
        "jobManager": {"resource": {"memory": "1024m", "cpu": 0.5}},
        "taskManager": {"resource": {"memory": "1024m", "cpu": 0.5}},
        "job": job,
        **({"podTemplate": pod_template} if pod_template else {}),
    }
    return {
        "apiVersion": f"{GROUP}/{GROUP_VERSION}",
        "kind": "FlinkDeployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def mounted_script(config_map: str, path: str) -> Resource:
    """The pod template that mounts a ConfigMap at a path of the main container."""
    mount = {"name": "sql", "mountPath": path}
    return {
        "spec": {
            "containers": [{"name": "flink-main-container", "volumeMounts": [mount]}],
            "volumes": [{"name": "sql", "configMap": {"name": config_map}}],
        }
    }


def reconciled_generation(resource: Mapping[str, Any]) -> int | None:
    """Generation of the spec that the operator has reconciled. Operator 1.7.0 records it only in the spec."""
    status = resource.get("status", {})
    if status.get("observedGeneration"):
        return int(status["observedGeneration"])
    last = status.get("reconciliationStatus", {}).get("lastReconciledSpec")
    found = json.loads(last).get("resource_metadata", {}).get("metadata", {}).get("generation") if last else None
    return None if found is None else int(found)


def reconciled(resource: Mapping[str, Any]) -> bool:
    """True if the operator has reconciled the current spec."""
    return reconciled_generation(resource) == int(resource["metadata"]["generation"])


def runs(resource: Mapping[str, Any]) -> bool:
    """True if the job of the current spec runs; STABLE alone may refer to an earlier spec."""
    status = resource.get("status", {})
    state = status.get("jobStatus", {}).get("state")
    return reconciled(resource) and (status.get("lifecycleState"), state) == ("STABLE", "RUNNING")


def suspended(resource: Mapping[str, Any]) -> bool:
    """True if it was suspended, as in the current spec."""
    return reconciled(resource) and str(resource["status"]["lifecycleState"]) == "SUSPENDED"


def cancelled(resource: Mapping[str, Any]) -> bool:
    """True if it was suspended without a savepoint. From 1.10 on, it then stays UPGRADING forever."""
    status = resource.get("status", {})
    last = json.loads(status.get("reconciliationStatus", {}).get("lastReconciledSpec") or "{}")
    state = status.get("jobStatus", {}).get("state")
    return last["spec"]["job"]["state"] == "suspended" and state in ("CANCELED", "FINISHED")


def stopped(resource: Mapping[str, Any]) -> bool:
    """True if an application was suspended and its JobManager has ended."""
    return suspended(resource) and str(resource["status"]["jobManagerDeploymentStatus"]) == "MISSING"


def job_id(resource: Mapping[str, Any]) -> JobRef:
    return JobRef(resource["status"]["jobStatus"]["jobId"])


def savepoint_of(resource: Mapping[str, Any]) -> str | None:
    """Savepoint of the last stop in the resource's status."""
    job = resource.get("status", {}).get("jobStatus", {})
    last = job.get("savepointInfo", {}).get("lastSavepoint") or {}
    found = job.get("upgradeSavepointPath") or last.get("location")
    return None if found is None else str(found)


def restored_from(jobmanager: JobManager, job: JobRef) -> str | None:
    """Savepoint from which the JobManager restored a running job; None if it started empty."""

    def all_run() -> bool:
        vertices = jobmanager.call("GET", f"jobs/{job}")["vertices"]
        return bool(vertices) and all(vertex["status"] == "RUNNING" for vertex in vertices)

    wait_for(all_run, f"every task of {job} runs")
    return jobmanager.restored_from(job)
