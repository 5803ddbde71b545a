"""Savepoints of jobs that are custom resources: taken from running jobs, found, and deleted.

The JobManager takes these savepoints with the caller's trigger id, so that a repeated request refers to the same
savepoint. The operator's own methods are not used. A patch of ``savepointTriggerNonce`` in the spec returns no
request id. ``FlinkStateSnapshot`` (since operator 1.10) requires an additional resource definition and permission.
The operator ignores savepoints that the JobManager took. A later suspension takes and records a separate savepoint
(measured on operator 1.7.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_flinkcompat.deploy.errors import SavepointFailed, TargetError
from airflow_flinkcompat.deploy.target import JobRef, Operation, Snapshot, Verb
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import JobManagerJobs, SavepointPaths, savepoint_directory
from airflow_flinkcompat.deploy.targets.kubernetes.documents import left_by
from airflow_flinkcompat.deploy.targets.kubernetes.jobs import KubernetesJobs, resource_of
from airflow_flinkcompat.deploy.targets.kubernetes.resource import STOPPED, FlinkResource
from airflow_flinkcompat.secrets.spellings import is_secret_key

_MASKED = "******"


class KubernetesSavepoints(SavepointPaths, KubernetesJobs):
    """Part of the target ``kubernetes`` that takes, finds and deletes savepoints."""

    def savepoint(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Request a savepoint, by default in ``state.savepoints.dir`` of the resource or its cluster."""
        current = self._of(job)
        jobs, id_ = self._in_flink_of(job, current)
        own = savepoint_directory(current.configuration) if current is not None else None
        jobs.savepoint(id_, request_id, directory or own)
        return Operation(Verb.SAVEPOINT, request_id, job, directory=directory)

    def _poll_savepoint(self, asked: Operation) -> Operation:
        """Poll a savepoint at the JobManager, even if the job has ended since the request."""
        assert asked.job is not None
        current = self._find(resource_of(asked.job))
        flink_job = self._flink_job(asked.job, current)
        if current is None or flink_job is None:
            raise SavepointFailed(f"{self} has no job {asked.job}, whose savepoint was requested")
        return replace(self._jobs_of(current).poll(replace(asked, job=flink_job)), job=asked.job)

    def _flink_job(self, job: JobRef, current: FlinkResource | None) -> JobRef | None:
        """The Flink job id of a job, even if it was stopped or replaced, or None if unknown."""
        if current is not None and job in (current.ref, current.name) and current.flink_job is not None:
            return JobRef(current.flink_job)
        stopped = current.note(STOPPED) if current is not None else {}
        found = self._seen.get(job) or (stopped.get("flink_job") if stopped.get("job") == job else None)
        return None if found is None else JobRef(found)

    def savepoint_root(self) -> str | None:
        """Always None, because the operator writes a stop's savepoint only into the resource's folder."""
        return None

    def final_savepoint(self, job: JobRef) -> Snapshot | None:
        """The savepoint of a job's stop, from the record or from the JobManager of a session cluster."""
        current = self._find(resource_of(job))
        if current is None:
            return None
        if (note := current.note(STOPPED)).get("job") == job:
            found = note.get("savepoint") or left_by(current)
            if found is not None:
                return Snapshot(str(found))
        flink_job = self._flink_job(job, current)
        return self._jobs_of(current).final_savepoint(flink_job) if flink_job and current.session_job else None

    def dispose(self, snapshot: Snapshot) -> None:
        """Delete a savepoint with the session cluster's JobManager, or an application's with the same folder."""
        self._keeper(snapshot).dispose(snapshot)

    def _keeper(self, snapshot: Snapshot) -> JobManagerJobs:
        """A JobManager that can access a savepoint. Raises TargetError if none runs."""
        if self._manifest.session_cluster is not None:
            return self._jobs_at(self._manifest.session_cluster)
        ready = [each for each in self._resources() if each.status.get("jobManagerDeploymentStatus") == "READY"]
        if not ready:
            raise TargetError(
                f"{snapshot} cannot be deleted, because only a JobManager can delete it, and no JobManager of {self} "
                "is ready. Delete the savepoint manually"
            )

        def shared(resource: FlinkResource) -> int:
            folder = (savepoint_directory(resource.configuration) or "").rstrip("/")
            return len(folder) if folder and snapshot.startswith(f"{folder}/") else 0

        return self._jobs_of(max(ready, key=shared))

    def cluster_options(self, job: JobRef | None = None) -> Mapping[str, str]:
        """Flink's options of the session cluster, overridden by the job's resource or the manifest."""
        current = self._find(resource_of(job)) if job else None
        spec = current.spec if current is not None else self._manifest.spec
        cluster = spec.get("deploymentName")
        found = self._api.find("FlinkDeployment", str(cluster)) if cluster is not None else None
        options = {
            **((found or {}).get("spec", {}).get("flinkConfiguration") or {}),
            **(spec.get("flinkConfiguration") or {}),
            "parallelism.default": (spec.get("job") or {}).get("parallelism") or 1,
        }
        return {key: _MASKED if is_secret_key(key) else str(value) for key, value in options.items()}
