"""Status of jobs that are custom resources, from the operator and from their JobManagers.

The operator observes its jobs only once a minute, and retries a refused job forever. The JobManager of an application
starts after the job's resource is created, and ends with the resource. Therefore both the operator and the JobManager
are queried.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.deploy.errors import DeployRefused, TargetError, fault_of
from airflow_flinkcompat.deploy.flink.gateway import ScriptRunner
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.rest import ApiError, Closing, Endpoint
from airflow_flinkcompat.deploy.target import (
    CANNOT_TELL,
    Deployed,
    EngineInfo,
    JobDescription,
    JobHistory,
    JobRef,
    JobStatus,
    Proof,
    Snapshot,
    SnapshotStats,
)
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import JobManagerJobs, no_connections
from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import SCRIPT_FILE, Manifest, mounted_file
from airflow_flinkcompat.deploy.targets.kubernetes.resource import REFUSED, STARTED, STOPPED, FlinkResource
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets.placeholders import Lookup

_DROPS_STATE = "spec.job.allowNonRestoredState is true, so state may have been skipped"


class KubernetesJobs(Closing):
    """The jobs of custom resources of one kind in a namespace.

    ``jobmanager`` returns the endpoint of a cluster's JobManager, by the name of its ``FlinkDeployment``. If
    ``jobmanager`` is None, the API server's proxy for the JobManager's service is used. ``lookup`` returns the value
    of a placeholder.
    """

    def __init__(
        self,
        api: KubernetesApi,
        manifest: Manifest,
        *,
        former: Manifest | None = None,
        jobmanager: Callable[[str], Endpoint] | None = None,
        lookup: Lookup = no_connections,
    ) -> None:
        self._api = api
        self._manifest = manifest
        self._former = former
        self._endpoint = jobmanager or (lambda cluster: api.service(f"{cluster}-rest", "rest"))
        self._jobmanagers: dict[str, JobManagerTarget] = {}
        self._lookup = lookup
        self._runner = ScriptRunner(lookup)
        # The last Flink job id of each job.
        self._seen: dict[JobRef, str] = {}
        # Version of each resource by name, and the time at which this version was first seen.
        self._first_seen: dict[str, tuple[Any, float]] = {}

    def __str__(self) -> str:
        return f"the Flink Kubernetes Operator in namespace {self._api.namespace} at {self._api.place}"

    def close(self) -> None:
        for each in self._jobmanagers.values():
            each.close()
        self._api.close()

    def register_secrets(self, job: JobSpec) -> None:
        self._runner.register_placeholders(job)

    def engine(self) -> EngineInfo:
        """Flink in the version of the session cluster or the manifest."""
        return EngineInfo("flink", self._flink_version(self._manifest))

    def _flink_version(self, manifest: Manifest) -> str:
        cluster = manifest.session_cluster
        if cluster is None:
            if manifest.flink_version is None:
                raise TargetError("the manifest sets no flinkVersion. Set the version of its image, for example v2_0")
            return manifest.flink_version
        found = self._api.find("FlinkDeployment", cluster)
        if found is None:
            raise TargetError(f"{self} has no FlinkDeployment {cluster!r}, which must run the jobs")
        version = ((found.get("status") or {}).get("clusterInfo") or {}).get("flink-version")
        if version:
            return str(version)
        with self._jobmanager(cluster) as jobmanager:
            return jobmanager.version()

    def status(self, job: JobRef) -> JobStatus | None:
        """The job's status from its JobManager, or else from the operator.

        A resource runs one job at a time, so a replaced job has ended. A permanently refused job is ``FAILING``,
        because the operator retries it as long as its resource exists. Raises DeployRefused if someone edited the
        resource after this target first read the job.
        """
        current = self._find(resource_of(job))
        if current is None:
            return None
        if job not in (current.ref, current.name):
            edited = job == f"{current.name}/{current.request}" and not current.ended
            if edited and current.flink_job is not None and self._seen.get(job) == current.flink_job:
                raise DeployRefused(
                    f"someone edited {self._manifest.kind} {current.name} while job {job} was verified, so the "
                    "running version differs from the deployed version. Nothing was changed. Record the running "
                    "version (`flinkcompat ledger adopt`), or undo the edit. Then deploy again"
                )
            state = "FINISHED" if current.note(STOPPED).get("job") == job else "CANCELED"
            return JobStatus(job, current.job_name, state, completed_checkpoints=None)
        if current.reconciled and current.flink_job is not None:
            self._seen[job] = current.flink_job
        status = self._flink_status(current)
        if status is None:
            state = current.final_state if current.ended else "FAILING" if current.in_vain else "CREATED"
            failure = current.why(self._runner.redactor) if current.ended or current.in_vain else None
            status = JobStatus(job, "", state, completed_checkpoints=None, failure=failure)
        return replace(status, job_id=current.ref, name=current.job_name, fault=status.fault or fault_of(current.error))

    def _flink_status(self, current: FlinkResource) -> JobStatus | None:
        """The job's status at its JobManager, or None if the job or its JobManager does not exist."""
        if current.flink_job is None or not (current.reconciled or current.wants_suspended):
            return None
        try:
            return self._jobs_of(current).status(JobRef(current.flink_job))
        except ApiError as error:
            gone = current.ended and (current.reconciled or not current.session_job)
            early = current.coming_up and (error.unanswered or not current.session_job)
            if gone or early:
                return None
            raise

    def _over(self, current: FlinkResource) -> bool:
        """True if no job of the resource runs, according to the operator or its JobManager."""
        if current.ended and current.reconciled:
            return True
        if not current.ended and not (current.reconciled and not current.wants_suspended):
            return False
        try:
            status = self._flink_status(current)
        except ApiError:
            if current.ended:
                raise
            return False
        return current.ended if status is None else status.terminal

    def running(self, name: str) -> tuple[JobRef, ...]:
        """The jobs with this name that have not ended.

        Resources that this target did not write are also found, by resource name.
        """
        return tuple(
            each.ref
            for each in self._resources()
            if (each.job_name == name or (not each.started and each.name == name)) and not self._over(each)
        )

    def restored_from(self, job: JobRef) -> Proof:
        current = self._of(job)
        jobs, id_ = self._in_flink_of(job, current)
        proof = jobs.restored_from(id_)
        if proof.snapshot is not None and current is not None and current.drops_state:
            raise TargetError(
                f"{self._manifest.kind} {current.name}: {_DROPS_STATE}. Someone else changed the restore settings. "
                "Set the field to false in the resource, and check the job's rows before you record the job "
                "(`flinkcompat ledger adopt`)"
            )
        return proof

    # ------------------------------------------------------------------------------------------------- capabilities
    def deployed(self, name: str) -> Deployed | None:
        """The job of the resource with this name, or None if it has ended.

        Raises TargetError if the operator has aborted a change of color.
        """
        for each in self._resources():
            if name not in (each.job_name, each.name) or self._over(each):
                continue
            if each.aborted:
                raise TargetError(
                    f"the operator aborted the change of {self._manifest.kind} {each.name}{self._why(each)}. The "
                    "former job keeps running. Restore the former spec.template of the resource, and try again"
                )
            manifests = filter(None, (self._manifest, self._former))
            read = (manifest.script_of(each.job.get("args") or ()) for manifest in manifests)
            script = next((text for text in read if text is not None), None)
            plural, _, file = (mounted_file(each.spec) or "").partition("/")
            if script is None and plural == "configmaps":
                script = self._api.file(file, SCRIPT_FILE)
            # Read the settings whose keys the last start recorded. Later edits of these settings then show as
            # differences.
            keys = each.note(STARTED).get("settings")
            settings = (
                None if keys is None else {key: each.configuration[key] for key in keys if key in each.configuration}
            )
            return Deployed(each.ref, script, settings)
        return None

    def carried_over(self, job: JobRef) -> Snapshot | None:
        """The savepoint that the operator recorded when it upgraded the resource.

        In the same status field, the operator also records the ``initialSavepointPath`` of a re-created resource and
        of ``savepointRedeployNonce``. The method does not return an ``initialSavepointPath``.
        """
        current = self._of(job)
        if current is None or current.began_with(current.upgrade_savepoint):
            return None
        return current.upgrade_savepoint

    def edits(self, job: JobRef) -> str | None:
        """Differences between the job's resource and the manifest, and settings that let a restore drop state."""
        current = self._of(job)
        if current is None:
            return None
        found = [self._manifest.differing(current.spec, of_job=True), _DROPS_STATE if current.drops_state else ""]
        return ", ".join(filter(None, found))

    def describe(self, job: JobRef) -> JobDescription | None:
        current = self._of(job)
        if current is None or current.flink_job is None:
            return None
        return self._jobs_of(current).describe(JobRef(current.flink_job))

    def jobs(self) -> tuple[JobStatus, ...]:
        return tuple(
            JobStatus(each.ref, each.job_name, each.job_state or "CREATED", completed_checkpoints=None)
            for each in self._resources()
        )

    def job_history(self, job: JobRef) -> JobHistory:
        """The history of a job, read from its JobManager; empty for a job that Flink never accepted."""
        current = self._of(job)
        refused = current is not None and current.in_vain and not (current.reconciled and current.flink_job)
        if current is not None and (refused or current.unaccepted):
            return JobHistory()
        jobs, id_ = self._in_flink_of(job, current)
        return jobs.job_history(id_)

    def ever_ran(self, job: JobRef) -> bool | None:
        current = self._find(resource_of(job))
        if current is None or job not in (current.ref, current.name):
            return False if current is not None and current.note(REFUSED).get("job") == job else None
        if current.flink_job is None:
            return None
        return self._jobs_of(current).ever_ran(JobRef(current.flink_job))

    def snapshot_stats(self, job: JobRef, kind: str) -> SnapshotStats | None:
        current = self._find(resource_of(job))
        if current is None:
            return None
        ended = current.ended or job not in (current.ref, current.name)
        stopped = current.note(STOPPED)
        flink_job = stopped.get("flink_job") if stopped.get("job") == job else current.flink_job
        if flink_job is None or (ended and not (current.session_job and stopped.get("job") == job)):
            return None
        try:
            return self._jobs_of(current).snapshot_stats(JobRef(str(flink_job)), kind)
        except ApiError:
            if ended:  # the session cluster may have forgotten the job
                return None
            raise

    def request_checkpoint(self, job: JobRef) -> None:
        jobs, id_ = self._in_flink(job)
        jobs.request_checkpoint(id_)

    def source_offsets(self, job: JobRef) -> Mapping[str, int]:
        jobs, id_ = self._in_flink(job)
        return jobs.source_offsets(id_)

    def highest_metric(self, job: JobRef, name: str) -> float | None:
        jobs, id_ = self._in_flink(job)
        return jobs.highest_metric(id_, name)

    def page_of(self, job: JobRef, ui_url: str) -> str | None:
        """The job's page under ``ui_url``. ``{namespace}`` and ``{cluster}`` in the address are replaced."""
        current = self._of(job)
        if current is None:
            return None
        url = located(ui_url, self._api.namespace, current.cluster)
        return f"{url}/#/job/running/{current.flink_job}/overview" if current.flink_job else url

    def shared_cluster(self) -> JobManagerTarget:
        """The session cluster, to which the operator itself submits session jobs by the same REST calls.

        The operator neither observes nor deletes jobs that others submit. Raises DeployRefused for an application.
        """
        cluster = self._manifest.session_cluster
        if cluster is None:
            raise DeployRefused(
                f"{self} runs each job as an application, whose JobManager accepts no second job. For a shadow run, "
                "submit the script to a session cluster of the same version (target sql-gateway or jobmanager)"
            )
        return self._jobs_at(cluster)

    def shared_job(self, job: JobRef) -> JobRef:
        current = self._of(job)
        cluster = self._manifest.session_cluster
        if current is None or current.flink_job is None or current.cluster != cluster:
            known = ", ".join(each.job_id for each in self.jobs()) or "none"
            raise DeployRefused(f"{self} has no job {job} on session cluster {cluster}. Known jobs: {known}")
        return JobRef(current.flink_job)

    # ------------------------------------------------------------------------------------------------------ resources
    def _resources(self) -> list[FlinkResource]:
        found = map(FlinkResource, self._api.all(self._manifest.kind))
        return [each for each in found if each.job]

    def _find(self, name: str) -> FlinkResource | None:
        found = self._api.find(self._manifest.kind, name)
        if found is None:
            return None
        version = found["metadata"]["resourceVersion"], found.get("status")
        if self._first_seen.get(name, (None, 0.0))[0] != version:
            self._first_seen[name] = version, time.monotonic()
        return FlinkResource(found)

    def _unchanged_seconds(self, resource: FlinkResource) -> float:
        """Seconds for which a resource has been unchanged at its latest read."""
        return time.monotonic() - self._first_seen[resource.name][1]

    def _of(self, job: JobRef) -> FlinkResource | None:
        """The resource that describes this job, or None. A reference without request id means the current job."""
        found = self._find(resource_of(job))
        return found if found is not None and job in (found.ref, found.name) else None

    def _jobmanager(self, cluster: str) -> JobManager:
        return JobManager(self._endpoint(cluster))

    def _jobs_of(self, resource: FlinkResource) -> JobManagerJobs:
        return self._jobs_at(resource.cluster)

    def _jobs_at(self, cluster: str) -> JobManagerTarget:
        if cluster not in self._jobmanagers:
            client = self._jobmanager(cluster)
            self._runner.add_client(client)
            self._jobmanagers[cluster] = JobManagerTarget(client, lookup=self._lookup)
        return self._jobmanagers[cluster]

    def _in_flink(self, job: JobRef) -> tuple[JobManagerJobs, JobRef]:
        return self._in_flink_of(job, self._of(job))

    def _in_flink_of(self, job: JobRef, current: FlinkResource | None) -> tuple[JobManagerJobs, JobRef]:
        """The JobManager and the Flink job id of a job. Raises TargetError."""
        if current is None or current.flink_job is None:
            raise TargetError(f"job {job} {CANNOT_TELL}: the operator reports no Flink job for it{self._why(current)}")
        return self._jobs_of(current), JobRef(current.flink_job)

    def _why(self, resource: FlinkResource | None) -> str:
        """The operator's error in parentheses, as a part of messages, or "" without an error."""
        why = resource.why(self._runner.redactor) if resource is not None else None
        return f" ({why})" if why else ""


def resource_of(job: JobRef) -> str:
    """The name of the resource that runs a job."""
    return job.partition("/")[0]


def located(url: str, namespace: str, cluster: str) -> str:
    """Replace ``{namespace}`` and ``{cluster}`` in an address."""
    return url.replace("{cluster}", cluster).replace("{namespace}", namespace)
