"""Looking at jobs that are custom resources: by the operator's word, and by the word of their JobManager.

The operator looks at its jobs once a minute, and tries for ever what Flink refused; the JobManager of an application is
there after its job is, and goes with it. So neither is asked alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from airflow_flinkcompat.deploy.errors import DeployRefused, TargetError
from airflow_flinkcompat.deploy.flink.execution import ScriptRunner
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.rest import ApiError, Closing, Endpoint
from airflow_flinkcompat.deploy.flink.state_faults import fault_of
from airflow_flinkcompat.deploy.target import (
    CANNOT_TELL,
    Deployed,
    EngineInfo,
    JobDescription,
    JobHistory,
    JobRef,
    JobStatus,
    Proof,
    SnapshotStats,
)
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import JobManagerJobs, no_connections
from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import SCRIPT_FILE, Manifest, mounted_file
from airflow_flinkcompat.deploy.targets.kubernetes.resource import REFUSED, STOPPED, FlinkResource
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets import Lookup


class KubernetesJobs(Closing):
    """The jobs of custom resources of one kind in one namespace.

    Args:
        api: The API server.
        manifest: What a resource is made of, and where its script stands.
        jobmanager: Gives where the JobManager of a cluster (the name of its ``FlinkDeployment``) answers; None: through
            the API server's proxy of its service.
        lookup: Gives the value of a placeholder.
    """

    def __init__(
        self,
        api: KubernetesApi,
        manifest: Manifest,
        *,
        jobmanager: Callable[[str], Endpoint] | None = None,
        lookup: Lookup = no_connections,
    ) -> None:
        self._api = api
        self._manifest = manifest
        self._endpoint = jobmanager or (lambda cluster: api.service(f"{cluster}-rest", "rest"))
        self._jobmanagers: dict[str, JobManagerJobs] = {}
        self._runner = ScriptRunner(lookup)
        # Which job of Flink was last seen as which job here.
        self._seen: dict[JobRef, str] = {}

    def __str__(self) -> str:
        return f"the Flink Kubernetes Operator in namespace {self._api.namespace} at {self._api.place}"

    def close(self) -> None:
        """Close the connections."""
        for each in self._jobmanagers.values():
            each.close()
        self._api.close()

    def register_secrets(self, job: JobSpec) -> None:
        """Have what the placeholders stand for masked from now on."""
        self._runner.register_placeholders(job)

    def engine(self) -> EngineInfo:
        """Flink, of the version that the session cluster runs, or the manifest names."""
        cluster = self._manifest.spec.get("deploymentName")
        if cluster is not None:
            found = self._api.find("FlinkDeployment", str(cluster))
            if found is None:
                raise TargetError(f"{self} has no FlinkDeployment {cluster!r}, which is to run the jobs")
            said = ((found.get("status") or {}).get("clusterInfo") or {}).get("flink-version")
            if said:
                return EngineInfo("flink", str(said))
            with self._jobmanager(str(cluster)) as jobmanager:
                return EngineInfo("flink", jobmanager.version())
        if self._manifest.flink_version is None:
            raise TargetError("the manifest names no flinkVersion: write the one of its image, v2_0 say")
        return EngineInfo("flink", self._manifest.flink_version)

    def status(self, job: JobRef) -> JobStatus | None:
        """The job by its JobManager's word, and by the operator's where that one does not answer for it.

        A resource runs one job at a time, so a job that another one has replaced has ended. What is refused for good
        is ``FAILING``: as long as its resource is there the operator tries it again.

        Raises:
            DeployRefused: Somebody edited the resource since this target saw the job.
        """
        current = self._find(resource_of(job))
        if current is None:
            return None
        if job not in (current.ref, current.name):
            edited = job == f"{current.name}/{current.request}" and not current.ended
            if edited and current.flink_job is not None and self._seen.get(job) == current.flink_job:
                raise DeployRefused(
                    f"somebody edited {self._manifest.kind} {current.name} while job {job} was verified: what runs is "
                    "not what was deployed, and was left as it is. Record it (`flinkcompat ledger adopt`), or undo the "
                    "edit, then deploy again"
                )
            state = "FINISHED" if current.note(STOPPED).get("job") == job else "CANCELED"
            return JobStatus(job, current.job_name, state, completed_checkpoints=None)
        if current.reconciled and current.flink_job is not None:
            self._seen[job] = current.flink_job
        said = self._said_of(current)
        if said is None:
            state = current.final_state if current.ended else "FAILING" if current.in_vain else "CREATED"
            failure = current.why(self._runner.redactor) if current.ended or current.in_vain else None
            said = JobStatus(job, "", state, completed_checkpoints=None, failure=failure)
        return replace(said, job_id=current.ref, name=current.job_name, fault=said.fault or fault_of(current.error))

    def _said_of(self, current: FlinkResource) -> JobStatus | None:
        """What the JobManager says of a job; None where there is none, or the JobManager is not there (any more)."""
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
        """Whether no job of it runs: by the operator's word, and by the JobManager's where that knows more."""
        if current.ended and current.reconciled:
            return True
        if not current.ended and not (current.reconciled and not current.wants_suspended):
            return False
        try:
            said = self._said_of(current)
        except ApiError:
            if current.ended:
                raise
            return False
        return current.ended if said is None else said.terminal

    def running(self, name: str) -> tuple[JobRef, ...]:
        """The jobs of this name that have not ended; of somebody else's resource its own name counts, too."""
        return tuple(
            each.ref
            for each in self._resources()
            if (each.job_name == name or (not each.started and each.name == name)) and not self._over(each)
        )

    def restored_from(self, job: JobRef) -> Proof:
        """What Flink's own checkpoint statistics name."""
        jobs, id_ = self._in_flink(job)
        return jobs.restored_from(id_)

    # ------------------------------------------------------------------------------------------------- capabilities
    def deployed(self, name: str) -> Deployed | None:
        """What the resource of this name describes, as long as its job has not ended."""
        for each in self._resources():
            if name not in (each.job_name, each.name) or self._over(each):
                continue
            script = self._manifest.script_of(each.job.get("args") or ())
            file = mounted_file(each.spec)
            if script is None and file is not None:
                script = self._api.kept(file, SCRIPT_FILE)
            keys = each.started.get("settings")
            settings = None if keys is None else {key: each.configuration.get(key, "") for key in keys}
            return Deployed(each.ref, script, settings)
        return None

    def describe(self, job: JobRef) -> JobDescription | None:
        """The job's page at its JobManager."""
        current = self._of(job)
        if current is None or current.flink_job is None:
            return None
        return self._jobs_of(current).describe(JobRef(current.flink_job))

    def jobs(self) -> tuple[JobStatus, ...]:
        """The job of every resource, by the operator's word."""
        return tuple(
            JobStatus(each.ref, each.job_name, each.job_state or "CREATED", completed_checkpoints=None)
            for each in self._resources()
        )

    def job_history(self, job: JobRef) -> JobHistory:
        """How the job went, by its JobManager; nothing of one that was never accepted."""
        current = self._of(job)
        if current is not None and current.unaccepted:
            return JobHistory()
        jobs, id_ = self._in_flink(job)
        return jobs.job_history(id_)

    def ever_ran(self, job: JobRef) -> bool | None:
        """Whether any task of the job ran."""
        current = self._find(resource_of(job))
        if current is None or job not in (current.ref, current.name):
            return False if current is not None and current.note(REFUSED).get("job") == job else None
        if current.flink_job is None:
            return None
        return self._jobs_of(current).ever_ran(JobRef(current.flink_job))

    def snapshot_stats(self, job: JobRef, kind: str) -> SnapshotStats | None:
        """The latest ``completed`` checkpoint or ``savepoint`` of a job that runs, by its JobManager."""
        current = self._of(job)
        if current is None or current.flink_job is None or current.ended:
            return None
        return self._jobs_of(current).snapshot_stats(JobRef(current.flink_job), kind)

    def request_checkpoint(self, job: JobRef) -> None:
        """Ask the JobManager for a checkpoint beside the job's own interval."""
        jobs, id_ = self._in_flink(job)
        jobs.request_checkpoint(id_)

    def source_offsets(self, job: JobRef) -> Mapping[str, int]:
        """Next offset by source partition, by the JobManager."""
        jobs, id_ = self._in_flink(job)
        return jobs.source_offsets(id_)

    # ------------------------------------------------------------------------------------------------------ resources
    def _resources(self) -> list[FlinkResource]:
        found = map(FlinkResource, self._api.all(self._manifest.kind))
        return [each for each in found if each.job]

    def _find(self, name: str) -> FlinkResource | None:
        found = self._api.find(self._manifest.kind, name)
        return None if found is None else FlinkResource(found)

    def _of(self, job: JobRef) -> FlinkResource | None:
        """The resource that describes this very job; a name without a request is whatever job that resource has now."""
        found = self._find(resource_of(job))
        return found if found is not None and job in (found.ref, found.name) else None

    def _jobmanager(self, cluster: str) -> JobManager:
        return JobManager(self._endpoint(cluster))

    def _jobs_of(self, resource: FlinkResource) -> JobManagerJobs:
        cluster = str(resource.spec.get("deploymentName") or resource.name)
        if cluster not in self._jobmanagers:
            client = self._jobmanager(cluster)
            self._runner.add_client(client)
            self._jobmanagers[cluster] = JobManagerJobs(client)
        return self._jobmanagers[cluster]

    def _in_flink(self, job: JobRef) -> tuple[JobManagerJobs, JobRef]:
        current = self._of(job)
        if current is None or current.flink_job is None:
            raise TargetError(f"job {job} {CANNOT_TELL}: the operator names no job of it in Flink{self._why(current)}")
        return self._jobs_of(current), JobRef(current.flink_job)

    def _why(self, resource: FlinkResource | None) -> str:
        """What the operator says went wrong, to be put after a message."""
        why = resource.why(self._runner.redactor) if resource is not None else None
        return f" ({why})" if why else ""


def resource_of(job: JobRef) -> str:
    """The resource whose job it is."""
    return job.partition("/")[0]
