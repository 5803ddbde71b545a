"""Deploying by custom resources of the Flink Kubernetes Operator, in two phases: suspend with savepoint, then start.

The operator's own upgrade in one step is never used: it chooses the state itself, and falls back without a word. What a
request came to stands in the resource: its label and annotations are written in the same patch as its spec, under the
``resourceVersion`` that was read, so a patch has landed whole or not at all.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

from airflow_flinkcompat.deploy.errors import (
    DeployRefused,
    StopFailed,
    SubmissionUnknown,
    TargetError,
    condense,
)
from airflow_flinkcompat.deploy.flink.access import VARIABLE, endpoint, endpoint_from_environment
from airflow_flinkcompat.deploy.flink.execution import ScriptRunner
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.rest import ApiError, Closing, Endpoint
from airflow_flinkcompat.deploy.flink.state_faults import fault_of
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, ScriptRefused, prepare_job
from airflow_flinkcompat.deploy.target import (
    CANNOT_TELL,
    Deployed,
    EngineInfo,
    JobDescription,
    JobHistory,
    JobRef,
    JobStatus,
    Operation,
    Proof,
    Snapshot,
    SnapshotStats,
    Start,
    Verb,
    same_snapshot,
)
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import JobManagerJobs, no_connections
from airflow_flinkcompat.deploy.targets.kubernetes.api import Conflict, KubernetesApi, connect
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import SCRIPT_FILE, Manifest, mounted_file, require_name
from airflow_flinkcompat.deploy.targets.kubernetes.resource import (
    FALLBACK,
    PREFIX,
    REQUEST,
    RUNNING,
    STARTED,
    STOPPED,
    SUSPENDED,
    FlinkResource,
)
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets import Lookup, placeholders

_DEPLOYMENT = f"{PREFIX}deployment"
_SETTINGS = ("namespace", "session_cluster", "manifest", "jobmanager_url")
_ATTEMPTS = 5
_END_SECONDS = 120.0
_NOT_PLANNED = (
    "the script was read for what cannot be deployed and the resource was validated by the API server; Flink did not "
    "plan it (flinkcompat check --explain-plan asks a SQL Gateway)"
)
# What the operator says of a job that Flink itself refused: trying it again, as the operator does, changes nothing.
_REFUSED_BY_FLINK = re.compile(
    r"ProgramInvocationException|ValidationException|SqlParserException|TableException|CalciteContextException|"
    r"Failed to rollback to checkpoint|Cannot map checkpoint|Could not execute application"
)


class KubernetesTarget(Closing):
    """Custom resources of one kind in one namespace.

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

    @classmethod
    def connect(cls, access: Access) -> Self:
        """The target of a connection: ``kubernetes_conn_id``, ``namespace``, ``session_cluster`` or ``manifest``.

        ``jobmanager_url`` is where JobManagers answer directly (``http://{cluster}-rest.{namespace}:8081``). Without a
        connection each of them is a variable of the environment, ``FLINKCOMPAT_NAMESPACE`` say.

        Args:
            access: How it is reached.

        Returns:
            The target.

        Raises:
            DeployError: A setting is missing or wrong.
        """
        settings = access.settings
        if settings is None:
            settings = {key: os.environ.get(f"{VARIABLE}{key.upper()}") for key in _SETTINGS}
        namespace = str(settings.get("namespace") or "default")
        manifest = Manifest.of(settings, access.place)
        direct = str(settings.get("jobmanager_url") or "")

        def jobmanager(cluster: str) -> Endpoint:
            url = direct.replace("{cluster}", cluster).replace("{namespace}", namespace)
            if access.settings is None:
                return endpoint_from_environment(url, jobmanager=True)
            return endpoint(url, access.settings, access.place, jobmanager=True)

        api = KubernetesApi(connect(access), namespace)
        return cls(api, manifest, jobmanager=jobmanager if direct else None, lookup=access.lookup or no_connections)

    def __str__(self) -> str:
        return f"the Flink Kubernetes Operator in namespace {self._api.namespace} at {self._api.place}"

    def close(self) -> None:
        """Close the connections."""
        for each in self._jobmanagers.values():
            each.close()
        self._api.close()

    # ------------------------------------------------------------------------------------------------------ the verbs
    def engine(self) -> EngineInfo:
        """Flink, of the version that the session cluster runs, or the manifest names."""
        cluster = self._manifest.spec.get("deploymentName")
        if cluster is not None:
            found = self._api.find("FlinkDeployment", str(cluster))
            if found is None:
                raise TargetError(f"{self} has no FlinkDeployment {cluster!r}, which is to run the jobs")
            said = ((found.get("status") or {}).get("clusterInfo") or {}).get("flink-version")
            return EngineInfo("flink", str(said) if said else self._jobmanager(str(cluster)).version())
        if self._manifest.flink_version is None:
            raise TargetError("the manifest names no flinkVersion: write the one of its image, v2_0 say")
        return EngineInfo("flink", self._manifest.flink_version)

    def register_secrets(self, job: JobSpec) -> None:
        """Have what the placeholders stand for masked from now on."""
        self._runner.register_placeholders(job)

    def validate(self, job: JobSpec, start: Start) -> str:
        """Read the script for what stands in the way, and have the API server validate the resource (a dry run)."""
        self._check(job)
        name = _name_of(job)
        current = self._find(name)
        body = self._body(job, current, "0" * 32, start.savepoint)
        if current is not None:
            current.require_ours()
        self._dry_run(current, body)
        return _NOT_PLANNED

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Have the operator start the script from exactly this state, in a resource of the deployment's name."""
        self._check(job)
        name = _name_of(job)
        with _unknown_where_unanswered(job):
            current = self._find(name)
            if current is None or current.request != request_id or not current.started:
                self._start(job, start, request_id, current)
        return Operation(Verb.START, request_id, JobRef(f"{name}/{request_id}"))

    def _start(self, job: JobSpec, start: Start, request_id: str, current: FlinkResource | None) -> None:
        name = _name_of(job)
        if current is not None:
            current.require_ours()
            if not current.ended:
                raise TargetError(f"job {current.ref} of {self._manifest.kind} {name} has not ended: stop it first")
        self._keep_script(job, name)
        body = self._body(job, current, request_id, start.savepoint)
        _note_digest(body, self._dry_run(current, body))
        if current is None:
            self._create(body, request_id)
            return
        if not self._goes_on(current, start.savepoint, body):
            # What a resource that exists goes on from is the operator's choice: one that is new is told.
            self._api.delete(self._manifest.kind, name)
            poll(lambda: self._find(name), lambda seen: seen is not None, timeout=_END_SECONDS)
            self._create(body, request_id)
        self._api.drop_scripts(f"{_DEPLOYMENT}={name}", json.dumps([current.document, body]))

    def _goes_on(self, current: FlinkResource, savepoint: Snapshot | None, body: Mapping[str, Any]) -> bool:
        """Have the resource go on as it is; False: the operator would go on from something else."""

        def patch(seen: FlinkResource) -> Mapping[str, Any] | None:
            stays = seen.wants_suspended and same_snapshot(seen.upgrade_savepoint, savepoint)
            return _patch(seen.document, body) if savepoint is None or stays else None

        return self._patched(current, patch)

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Have the operator suspend the job with a savepoint, where the resource's ``state.savepoints.dir`` says."""
        operation = Operation(Verb.STOP, request_id, job, directory=directory)
        current = self._of(job)
        if current is None:
            asked = self._find(_resource_of(job))
            if asked is not None and asked.note(STOPPED).get("request") == request_id:
                return operation
            raise StopFailed(f"{self} knows no job {job}")
        if current.note(STOPPED).get("request") == request_id:
            return operation
        if directory is not None:
            raise DeployRefused(
                f"the operator puts savepoints where the resource's own 'state.savepoints.dir' says: set it in "
                f"{self._manifest.kind} {current.name}, and give no savepoint directory"
            )
        current.require_ours()
        if current.wants_suspended or current.ended:
            raise StopFailed(f"job {job} does not run any more")

        def patch(seen: FlinkResource) -> Mapping[str, Any]:
            before = seen.upgrade_savepoint
            note = {"request": request_id, "job": job, "flink_job": seen.flink_job, "before": before}
            job_spec = {"state": SUSPENDED, "upgradeMode": "savepoint"}
            return _asking({"job": job_spec, "flinkConfiguration": {FALLBACK: "false"}}, {STOPPED: note})

        self._patched(current, patch)
        return operation

    def poll(self, operation: Operation) -> Operation:
        """What the resource says became of it."""
        if operation.verb is Verb.START:
            found = self._api.all(self._manifest.kind, f"{REQUEST}={operation.request_id}")
            return replace(operation, job=JobRef(f"{_name(found[0])}/{operation.request_id}") if found else None)
        assert operation.job is not None
        return replace(operation, snapshot=self._left(operation.job, operation.request_id))

    def _left(self, job: JobRef, request_id: str) -> Snapshot | None:
        """The savepoint by which a job was suspended; None while it is being suspended. Raises StopFailed."""
        current = self._find(_resource_of(job))
        if current is None:
            raise StopFailed(f"{self._manifest.kind} {_resource_of(job)} is gone, and its savepoint is not known")
        note = current.note(STOPPED)
        if note.get("request") != request_id:
            if current.ref == job and not current.ended:
                return None  # nobody has asked for it yet
            raise StopFailed(f"job {job} ended, and not by this stop")
        if note.get("savepoint"):  # its successor was started since
            return Snapshot(str(note["savepoint"]))
        if not current.ended:
            return None
        found = current.upgrade_savepoint
        if found is None or same_snapshot(found, note.get("before")):
            raise StopFailed(f"the operator suspended job {job} and recorded no savepoint of that{_why(current)}")
        return found

    def status(self, job: JobRef) -> JobStatus | None:
        """The job by the operator's word, and by its JobManager's where that answers for it.

        A resource runs one job at a time, so a job that another one has replaced has ended.
        """
        current = self._find(_resource_of(job))
        if current is None:
            return None
        if job not in (current.ref, current.name):
            by_a_stop = current.note(STOPPED).get("job") == job
            state = "FINISHED" if by_a_stop else "CANCELED"
            return JobStatus(job, current.job_name, state, completed_checkpoints=None)
        said = self._said_of(current)
        if current.ended and said is None:
            state = current.job_state or "CANCELED"
            said = JobStatus(job, "", state, completed_checkpoints=None, failure=self._failure(current))
        elif said is None:
            failure = self._failure(current)
            refused = failure is not None and _REFUSED_BY_FLINK.search(str(current.error)) is not None
            state = "FAILED" if refused else "CREATED"
            said = JobStatus(job, "", state, completed_checkpoints=None, failure=failure if refused else None)
        return replace(said, job_id=current.ref, name=current.job_name, fault=said.fault or fault_of(current.error))

    def _said_of(self, current: FlinkResource) -> JobStatus | None:
        """What the JobManager says of a job; None where there is none, or it is gone with its job."""
        if current.flink_job is None or not (current.reconciled or current.wants_suspended):
            return None
        try:
            return self._jobs_of(current).status(JobRef(current.flink_job))
        except ApiError:
            if current.ended:  # and so has the JobManager of an application
                return None
            raise

    def _failure(self, current: FlinkResource) -> str | None:
        return condense(current.error, self._runner.redactor) if current.error else None

    def running(self, name: str) -> tuple[JobRef, ...]:
        """The jobs of this name that have not ended; of somebody else's resource its own name counts, too."""
        return tuple(
            each.ref
            for each in self._resources()
            if not each.ended and (each.job_name == name or (not each.started and each.name == name))
        )

    def cancel(self, job: JobRef) -> None:
        """Have the operator suspend the job without a savepoint, and wait for that."""
        current = self._of(job)
        if current is None or current.ended:
            return
        current.require_ours()
        spec = {"job": {"state": SUSPENDED, "upgradeMode": "stateless"}}
        self._patched(current, lambda _: _asking(spec, {}))
        try:
            poll(lambda: self._of(job), lambda seen: seen is not None and not seen.ended, timeout=_END_SECONDS)
        except Overdue as overdue:
            raise TargetError(
                f"job {job} is not suspended after {_END_SECONDS:.0f} s{_why(overdue.last)}: does the operator run?"
            ) from None

    def restored_from(self, job: JobRef) -> Proof:
        """What Flink's own checkpoint statistics name."""
        jobs, id_ = self._in_flink(job)
        return jobs.restored_from(id_)

    # ------------------------------------------------------------------------------------------------- capabilities
    def deployed(self, name: str) -> Deployed | None:
        """What the resource of this name describes, as long as its job has not ended."""
        for each in self._resources():
            if each.ended or name not in (each.job_name, each.name):
                continue
            script = self._manifest.script_of(each.job.get("args") or ())
            file = mounted_file(each.spec)
            if script is None and file is not None:
                script = self._api.kept_script(file, SCRIPT_FILE)
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
        """How the job went, by its JobManager."""
        jobs, id_ = self._in_flink(job)
        return jobs.job_history(id_)

    def ever_ran(self, job: JobRef) -> bool | None:
        """Whether any task of the job ran."""
        current = self._of(job)
        if current is None or current.flink_job is None:
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
        found = self._find(_resource_of(job))
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
            raise TargetError(f"job {job} {CANNOT_TELL}: the operator names no job of it in Flink{_why(current)}")
        return self._jobs_of(current), JobRef(current.flink_job)

    def _patched(self, read: FlinkResource, patch: Callable[[FlinkResource], Mapping[str, Any] | None]) -> bool:
        """Write a patch to the spec that was read, whatever the operator writes to the status meanwhile.

        ``patch`` is asked of each state that is written to; None: of this one it does not hold, and False is returned.
        """
        seen = read
        for _ in range(_ATTEMPTS):
            body = patch(seen)
            if body is None:
                return False
            metadata = {**body.get("metadata", {}), "resourceVersion": seen.metadata["resourceVersion"]}
            try:
                self._api.patch(self._manifest.kind, read.name, {**body, "metadata": metadata})
                return True
            except Conflict as conflict:
                again = self._find(read.name)
                if again is None or again.revision != read.revision:
                    raise DeployRefused(
                        f"somebody else changed {self._manifest.kind} {read.name} at this moment ({conflict.reason}): "
                        "nothing was written over it"
                    ) from None
                seen = again
        raise TargetError(f"{self._manifest.kind} {read.name} changes too fast to be written to: try again")

    def _dry_run(self, current: FlinkResource | None, body: Mapping[str, Any]) -> FlinkResource:
        """The resource as the API server would keep it."""
        if current is None:
            return FlinkResource(self._api.create(body, dry_run=True))
        patch = _patch(current.document, body)
        return FlinkResource(self._api.patch(self._manifest.kind, current.name, patch, dry_run=True))

    def _create(self, body: Mapping[str, Any], request_id: str) -> None:
        try:
            self._api.create(body)
        except Conflict:
            found = self._find(str(body["metadata"]["name"]))
            if found is None or found.request != request_id:
                raise

    # ------------------------------------------------------------------------------------------------------- scripts
    def _check(self, job: JobSpec) -> None:
        """Raises ScriptRefused: the script, or its way into a resource, is not one that can be taken."""
        prepare_job(job)
        require_name(_name_of(job))
        if found := next(iter(placeholders("\n".join(job.settings.values()))), None):
            raise ScriptRefused(
                f"{job.source}: {found} in a setting would stand in the resource for everybody to read: SET it in the "
                "script"
            )
        if not self._manifest.mounts and (found := next(iter(placeholders(job.script)), None)):
            raise ScriptRefused(
                f"{job.source}: {found} would stand in the resource for everybody to read: let the script travel as a "
                "file, by {script_uri} in the manifest of a FlinkDeployment, which keeps it in a Secret"
            )

    def _text(self, job: JobSpec) -> str:
        return self._runner.script(job) if placeholders(job.script) else job.script

    def _keep_script(self, job: JobSpec, name: str) -> None:
        if self._manifest.mounts:
            text = self._text(job)
            file = self._manifest.file_of(name, text)
            secret = bool(placeholders(job.script))
            self._api.keep_script(file, self._manifest.files(text), {_DEPLOYMENT: name}, secret=secret)

    def _body(
        self, job: JobSpec, current: FlinkResource | None, request_id: str, savepoint: Snapshot | None
    ) -> dict[str, Any]:
        """The whole resource as a start has it, made of what is there or else of the manifest."""
        name = _name_of(job)
        base = current.spec if current is not None else self._manifest.spec
        secret = bool(placeholders(job.script))
        spec = self._manifest.with_script(name, self._text(job), base, secret=secret)
        configuration = dict(spec.get("flinkConfiguration") or {})
        for key in (current.note(STARTED).get("settings") if current is not None else None) or ():
            configuration.pop(key, None)
        own = prepare_job(job).job_name
        spec["flinkConfiguration"] = {**configuration, **job.settings, FALLBACK: "false"}
        spec["job"] |= {
            "state": RUNNING,
            "upgradeMode": "stateless" if savepoint is None else "savepoint",
            "allowNonRestoredState": False,
        }
        spec["job"].pop("initialSavepointPath", None)
        if savepoint is not None:
            spec["job"]["initialSavepointPath"] = savepoint
        stopped = dict(current.note(STOPPED)) if current is not None else {}
        if stopped and current is not None and not stopped.get("savepoint"):
            stopped["savepoint"] = current.upgrade_savepoint if current.ended else None
        metadata = {
            "labels": {REQUEST: request_id, _DEPLOYMENT: name},
            "annotations": {
                STARTED: json.dumps(
                    {
                        "request": request_id,
                        "name": own or job.settings.get(JOB_NAME) or name,
                        "settings": sorted(job.settings),
                    }
                ),
                **({STOPPED: json.dumps(stopped)} if stopped else {}),
            },
        }
        kept = {key: dict(current.metadata.get(key) or {}) for key in ("labels", "annotations")} if current else {}
        metadata = {key: {**kept.get(key, {}), **each} for key, each in metadata.items()}
        return self._manifest.document(name, spec, metadata)


def _name_of(job: JobSpec) -> str:
    """The resource of a job: named as its deployment is."""
    return job.settings.get(JOB_NAME) or prepare_job(job).job_name or ""


def _name(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["name"])


def _resource_of(job: JobRef) -> str:
    return job.partition("/")[0]


def _why(resource: FlinkResource | None) -> str:
    """What the operator says went wrong, to be put after a message."""
    return f" ({condense(resource.error)})" if resource is not None and resource.error else ""


def _asking(spec: Mapping[str, Any], notes: Mapping[str, Any]) -> dict[str, Any]:
    annotations = {key: json.dumps(note) for key, note in notes.items()}
    return {"metadata": {"annotations": annotations} if annotations else {}, "spec": spec}


def _note_digest(body: dict[str, Any], kept: FlinkResource) -> None:
    """Write down by which spec the job is known that is to be started."""
    annotations = body["metadata"]["annotations"]
    annotations[STARTED] = json.dumps({**json.loads(annotations[STARTED]), "spec": kept.digest})


def _patch(document: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch (RFC 7386) that makes the spec that of ``body``, beside its labels and annotations."""
    metadata = {key: body["metadata"][key] for key in ("labels", "annotations")}
    return {"metadata": metadata, "spec": _merge_patch(document.get("spec") or {}, body["spec"])}


def _merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key in old and old[key] == value:
            continue
        both = isinstance(value, Mapping) and isinstance(old.get(key), Mapping)
        patch[key] = _merge_patch(old[key], value) if both else value
    return patch


@contextmanager
def _unknown_where_unanswered(job: JobSpec) -> Iterator[None]:
    """Of a start without an answer nobody knows what became."""
    try:
        yield
    except ApiError as error:
        if error.unanswered:
            raise SubmissionUnknown(f"{job.source}: {error}") from None
        raise TargetError(f"{job.source}: {error}") from None
    except Overdue:
        raise SubmissionUnknown(f"{job.source}: the former resource is still being deleted") from None
