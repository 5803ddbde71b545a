"""The target ``kubernetes``: the Flink Kubernetes Operator suspends and starts custom resources.

The operator's own one-step upgrade is never used, because the operator chooses the state itself and silently falls
back to other state. Each request is recorded in the resource. One patch writes the label, the annotations and the
spec, under the condition that the ``resourceVersion`` is unchanged. So a request is written completely or not at all.

A resource is resumed in place only if the operator would start it from exactly the requested state. Otherwise the
resource is deleted and re-created. Before the deletion, the new spec is stored, so that nothing is lost if the run
dies before the re-creation.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Self

from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused, StopFailed, SubmissionUnknown, TargetError
from airflow_flinkcompat.deploy.flink.access import endpoint, endpoint_from_environment, settings_from_environment
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.rest import ApiError, Endpoint
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused, prepare_job
from airflow_flinkcompat.deploy.target import (
    TERMINAL,
    ChangePlan,
    JobRef,
    Operation,
    Snapshot,
    Start,
    Verb,
    same_snapshot,
)
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import no_connections
from airflow_flinkcompat.deploy.targets.kubernetes.api import Conflict, KubernetesApi, connect
from airflow_flinkcompat.deploy.targets.kubernetes.blue_green import KIND
from airflow_flinkcompat.deploy.targets.kubernetes.documents import (
    DEPLOYMENT,
    SECRET,
    Following,
    ScriptFile,
    asking,
    file_of,
    left_by,
    name_of,
    next_of,
    note_digest,
    patch_of,
    secret_places,
    starting,
)
from airflow_flinkcompat.deploy.targets.kubernetes.jobs import located, resource_of
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest, mounted_file, require_name
from airflow_flinkcompat.deploy.targets.kubernetes.planning import plan_of, require_plannable, upgrading
from airflow_flinkcompat.deploy.targets.kubernetes.resource import (
    FILES,
    KEPT,
    REFUSED,
    REQUEST,
    RUNNING,
    STARTED,
    STOPPED,
    SUSPENDED,
    FlinkResource,
)
from airflow_flinkcompat.deploy.targets.kubernetes.savepoints import KubernetesSavepoints
from airflow_flinkcompat.model import JobSpec, StartMode
from airflow_flinkcompat.model.engine import line_of
from airflow_flinkcompat.secrets import placeholders

_log = logging.getLogger(__name__)
_SETTINGS = ("namespace", "session_cluster", "manifest", "former_manifest", "jobmanager_url")
_ATTEMPTS = 5
_END_SECONDS = 120.0
_SETTLE_SECONDS = 30.0
# Seconds after which an earlier error is attributed to a stop, if the operator still reports the error.
_STALE_SECONDS = 60.0
# Maximum seconds that a start waits until the operator begins.
_SEEN_SECONDS = 5.0
# The request id used in a dry run.
_NO_REQUEST = "0" * 32
_SHARED = "get, patch and create"
_NOT_PLANNED = (
    "the script was checked for statements that cannot be deployed, and the API server validated the resource, but "
    "Flink did not plan the script (flinkcompat check --explain-plan uses a SQL Gateway)"
)


class KubernetesTarget(KubernetesSavepoints):
    """Custom resources of one kind as a target; ``quiet_seconds``: pause after a suspension, by kind."""

    quiet_seconds: Mapping[str, float] = {"FlinkDeployment": 1.0, "FlinkSessionJob": 0.25, KIND: 2.0}

    @classmethod
    def connect(cls, access: Access) -> Self:
        """Open the target from a connection, or from variables such as ``FLINKCOMPAT_NAMESPACE``."""
        settings = access.settings
        if settings is None:
            settings = settings_from_environment(_SETTINGS)
        namespace = str(settings.get("namespace") or "default")
        manifest = Manifest.of(settings, access.place)
        former = Manifest.former(settings, access.place, manifest)
        direct = str(settings.get("jobmanager_url") or "")

        def jobmanager(cluster: str) -> Endpoint:
            url = located(direct, namespace, cluster)
            if access.settings is None:
                return endpoint_from_environment(url, jobmanager=True)
            return endpoint(url, access.settings, access.place, jobmanager=True)

        if former is not None and former.session_cluster and direct and "{cluster}" not in direct:
            raise DeployError(
                f"{access.place}: jobmanager_url {direct!r} is the address of one session cluster, but jobs move "
                "between two. Write {cluster} in place of the cluster's name"
            )
        api = KubernetesApi(connect(access), namespace)
        lookup = access.lookup or no_connections
        return cls(api, manifest, former=former, jobmanager=jobmanager if direct else None, lookup=lookup)

    # ------------------------------------------------------------------------------------------------- validate, start
    def validate(self, job: JobSpec, start: Start) -> str:
        """Check the script, and let the API server validate the resource in a dry run."""
        current, base = self._check_resource(job)
        if current is not None:
            current.require_ours()
        body = self._body(job, base, _NO_REQUEST, start.savepoint)
        self._dry_run(current, body)
        self._try_files(job, body, base)
        return _NOT_PLANNED

    def _try_files(self, job: JobSpec, body: Mapping[str, Any], base: FlinkResource | None) -> None:
        """Check in a dry run that files for a start and a rollback can be written. Raises TargetError."""
        name, file = name_of(job), self._file(job, _NO_REQUEST)
        if self._manifest.mounts:
            with self._try_write(job, "the start stores its script in", file.place):
                self._keep_script(file, name, dry_run=True)
        if base is not None:
            found = secret_places(body)
            place, rights = (f"secrets/{SECRET}", _SHARED) if found else (f"configmaps/{next_of(name)}", "create")
            with self._try_write(job, "a rollback stores the resource's spec in", place, rights, found):
                Following(self._api).keep(name, body, "", dry_run=True)

    @contextmanager
    def _try_write(
        self, job: JobSpec, what: str, place: str, rights: str = "create", found: Sequence[str] = ()
    ) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            if error.unanswered:
                raise
            plural, _, name = place.partition("/")
            places = ", ".join(found)
            otherwise = f". Or remove {places} from the resource, and let Flink read it from a Secret" if found else ""
            raise TargetError(
                f"{job.source}: {error}. Nothing was changed: {what} {plural}/{name} of namespace "
                f"{self._api.namespace}, which requires permission to {rights} {plural} "
                f"(docs/targets/kubernetes-rbac.yaml) and free space in the namespace's quota{otherwise}"
            ) from None

    def plan(self, job: JobSpec, mode: StartMode, request_id: str) -> ChangePlan:
        """Plan the resource for a commit to its repository. The API server validates the plan in a dry run."""
        current, base = self._check_resource(job)
        name = name_of(job)
        if current is None and base is not None:
            raise DeployRefused(
                f"{self._manifest.kind} {name} is being re-created by a redeploy. Run the redeploy again first"
            )
        if current is not None:
            current.require_its_own()
            if current.deleting:
                raise DeployRefused(f"{self._manifest.kind} {name} is being deleted. Plan again after the deletion")
        require_plannable(self._manifest, job)
        body = upgrading(self._manifest, job, current, mode, request_id)
        note_digest(body, self._dry_run(current, body))
        return plan_of(self._manifest, job, current, mode, body, self._api.namespace)

    def _check_resource(self, job: JobSpec) -> tuple[FlinkResource | None, FlinkResource | None]:
        """A job's resource, and the spec on which the next start is based. Raises ScriptRefused, TargetError."""
        self._check(job)
        self._check_driver()
        name = name_of(job)
        current = self._find(name)
        base = current or self._following_spec(name)
        moves = base is not None and self._former is not None and not self._former.differing(base.spec)
        if base is not None and not moves and (differing := self._manifest.differing(base.spec)):
            where = f"{self._manifest.kind} {name}" if current is not None else f"ConfigMap {next_of(name)}"
            raise TargetError(
                f"{where} is the resource that the deployment updates, but it differs from the manifest: {differing}. "
                "The manifest determines the engine. Edit the manifest or the resource so that they agree"
            )
        return current, base

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Let the operator start the script from exactly the requested state, in the deployment's resource."""
        self._check(job)
        name = name_of(job)
        with _unknown_where_unanswered(job):
            current = self._find(name)
            if current is None or current.request != request_id or not current.started or current.deleting:
                self._start(job, start, request_id, current)
        return Operation(Verb.START, request_id, JobRef(f"{name}/{request_id}"))

    def _start(self, job: JobSpec, start: Start, request_id: str, current: FlinkResource | None) -> None:
        name = name_of(job)
        base = current
        if current is not None:
            current.require_ours()
            if current.deleting:
                self._await_gone(current)
                current = None
            elif not current.unaccepted and not self._over(current):
                raise TargetError(
                    f"job {current.ref} of {self._manifest.kind} {name} has not ended. Stop the job first"
                )
        if current is None:
            base = self._following_spec(name) or base
        file = self._file(job, request_id)
        older = self._drop_older(base, request_id, file)
        files = [file.place] if self._manifest.mounts else []
        body = self._body(job, base, request_id, start.savepoint, [*dict.fromkeys([*files, *older])])
        note_digest(body, self._dry_run(current, body))
        if current is not None and current.wants_suspended:
            current = self._await_settled(current)
        try:
            if self._manifest.mounts:
                self._keep_script(file, name)
            self._bring_about(current, start, body)
        except DeployError as error:
            if not error.unanswered:  # an unanswered start may have taken effect, and is repeated with this id
                self._drop_unnamed(file, name)
            raise
        if base is not None:
            self._drop_next(name)

    def _bring_about(self, current: FlinkResource | None, start: Start, body: Mapping[str, Any]) -> None:
        """Change a resource in place to match ``body``, or re-create it."""
        if current is not None and start.savepoint is not None and not _moves_cluster(current, body):
            current = self._resume(current, start.savepoint, body)
            if current is None:
                return
        if current is not None:
            self._remove(current, body)
        self._create(body)

    def _await_settled(self, current: FlinkResource) -> FlinkResource | None:
        """Wait until the operator has recorded a suspension. Return the resource, or None if deleted.

        The operator reports a job as suspended before the suspension is complete. For an application, the operator
        even reports this before the JobManager has ended. If the resource is written before the suspension is
        complete, the operator regards its own status as foreign and forgets the stop. As a result, the operator
        queries an absent JobManager until a timeout, or starts no job (measured on operator 1.7.0 and 1.15.0).
        """
        quiet = self.quiet_seconds[self._manifest.kind]

        def changes(found: FlinkResource | None) -> bool:
            return found is not None and self._unchanged_seconds(found) < quiet

        try:
            return poll(lambda: self._find(current.name), changes, timeout=_SETTLE_SECONDS)
        except Overdue as overdue:
            kind = self._manifest.kind
            _log.warning("%s %s keeps changing, so it is started as it is", kind, current.name)
            return overdue.last if isinstance(overdue.last, FlinkResource) else current

    def _resume(self, current: FlinkResource, savepoint: Snapshot, body: Mapping[str, Any]) -> FlinkResource | None:
        """Resume the resource in place. If the operator would not, return the resource to re-create."""

        def patch(seen: FlinkResource) -> Mapping[str, Any] | None:
            return patch_of(seen.document, body) if seen.resumes_from(savepoint) else None

        if not self._patch(current, patch):
            return current
        return self._forgotten(current) if current.session_job and current.flink_job else None

    def _forgotten(self, suspended: FlinkResource) -> FlinkResource | None:
        """A session job that the operator wrongly regards as started, or None if the job is starting.

        The operator writes a status up to three times. If the resource changes before the last status write, the
        operator still regards the stopped job as running. In this case, the start does nothing (measured on operator
        1.7.0, in 1 of 40 starts).
        """

        def same_job(seen: FlinkResource) -> bool:
            return seen.reconciled and seen.flink_job == suspended.flink_job

        def waits(seen: FlinkResource | None) -> bool:
            return seen is not None and (not seen.noticed or (same_job(seen) and not seen.ended))

        with suppress(Overdue):
            seen = poll(lambda: self._find(suspended.name), waits, timeout=_SEEN_SECONDS)
            if seen is not None and same_job(seen):
                _log.warning(
                    "the operator regarded the start of %s as done, but started no job. The resource is re-created",
                    seen.name,
                )
                return seen
        return None

    # ---------------------------------------------------------------------------------------------------------- stop
    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Let the operator suspend the job with a savepoint in the resource's ``state.savepoints.dir``."""
        operation = Operation(Verb.STOP, request_id, job, directory=directory)
        current = self._of(job)
        if current is None:
            asked = self._find(resource_of(job))
            if asked is not None and asked.note(STOPPED).get("request") == request_id:
                return operation
            raise StopFailed(f"{self} has no job {job}")
        if current.note(STOPPED).get("request") == request_id:
            return operation
        if directory is not None:
            raise DeployRefused(
                "the operator writes savepoints only to 'state.savepoints.dir' of the resource. Set this option in "
                f"{self._manifest.kind} {current.name}, and pass no savepoint directory"
            )
        current.require_ours()
        if current.wants_suspended or current.unaccepted or self._over(current):
            raise StopFailed(f"job {job} does not run{self._why(current)}")

        def patch(seen: FlinkResource) -> Mapping[str, Any]:
            before = seen.upgrade_savepoint
            note: dict[str, Any] = {"request": request_id, "job": job, "flink_job": seen.flink_job, "before": before}
            note |= {"error": seen.error_digest, "at": time.time()}
            job_spec = {"state": SUSPENDED, "upgradeMode": "savepoint"}
            return asking({"job": job_spec, "flinkConfiguration": KEPT}, {STOPPED: note})

        self._patch(current, patch)
        return operation

    def poll(self, operation: Operation) -> Operation:
        if operation.verb is Verb.START:
            made = self._api.all(self._manifest.kind, f"{REQUEST}={operation.request_id}")
            # Ignore copied resources, which have the same labels.
            found = [each for each in made if each["metadata"]["labels"].get(DEPLOYMENT) == _name(each)]
            if not found:
                return replace(operation, job=None)
            self._drop_followed(FlinkResource(found[0]))
            return replace(operation, job=JobRef(f"{_name(found[0])}/{operation.request_id}"))
        assert operation.job is not None
        if operation.verb is Verb.SAVEPOINT:
            return self._poll_savepoint(operation)
        return replace(operation, snapshot=self._savepoint_of_stop(operation.job, operation.request_id))

    def _savepoint_of_stop(self, job: JobRef, request_id: str) -> Snapshot | None:
        """The savepoint with which a job was suspended, or None until the suspension is complete.

        Raises StopFailed.
        """
        name = resource_of(job)
        current = self._find(name)
        described = current or self._following_spec(name)
        note = described.note(STOPPED) if described is not None else {}
        if note.get("request") == request_id and note.get("savepoint"):  # the next job has started since then
            return Snapshot(str(note["savepoint"]))
        if current is None:
            raise StopFailed(f"{self._manifest.kind} {name} was deleted, and its savepoint is unknown")
        if note.get("request") != request_id:
            if current.ref == job and not current.ended:
                return None  # this stop was not requested yet
            raise StopFailed(f"job {job} ended for another reason than this stop")
        if note.get("failed"):
            raise StopFailed(str(note["failed"]))
        if not current.wants_suspended:
            raise StopFailed(
                f"someone set {self._manifest.kind} {name} to {RUNNING} again while it was being suspended"
            )
        if not current.ended:
            self._take_back_failed(current, note)
            return None
        if (found := left_by(current)) is not None:
            return found
        found = current.upgrade_savepoint
        if found is None or same_snapshot(found, note.get("before")):
            raise StopFailed(f"the operator suspended job {job}, but recorded no savepoint{self._why(current)}")
        # The job failed before the stop, or the operator did not notice that the savepoint was complete.
        flink_job = note.get("flink_job")
        final = self._jobs_of(current).final_savepoint(JobRef(flink_job)) if current.session_job and flink_job else None
        if final is None:
            raise StopFailed(
                f"job {job} ended before it could be stopped with a savepoint{self._why(current)}. The operator "
                f"reports its checkpoint {found}, which Flink may delete"
            )
        return final

    def _take_back_failed(self, current: FlinkResource, note: Mapping[str, Any]) -> None:
        """Withdraw a failed stop, which the operator would retry forever. Raises StopFailed if the job runs."""

        def failed(seen: FlinkResource) -> bool:
            lasting = seen.error_digest != note.get("error") or time.time() - float(note.get("at", 0)) > _STALE_SECONDS
            return not seen.ended and seen.reconciled_generation < seen.generation and bool(seen.error) and lasting

        if not failed(current):
            return
        reason = f"the operator could not stop job {note.get('job')} with a savepoint{self._why(current)}"
        body = asking({"job": {"state": RUNNING}}, {STOPPED: {**note, "failed": reason}})
        if self._patch(current, lambda seen: body if failed(seen) else None):
            raise StopFailed(reason)

    def cancel(self, job: JobRef) -> None:
        """Let the operator suspend the job without a savepoint, and wait; delete a job that it never accepted."""
        current = self._of(job)
        if current is None or self._over(current):
            return
        current.require_ours()
        try:
            if current.unaccepted or current.settling:
                self._withdraw(current)
                return
            spec = {"job": {"state": SUSPENDED, "upgradeMode": "stateless"}}
            self._patch(current, lambda _: asking(spec, {}))
            poll(lambda: self._of(job), lambda seen: seen is not None and not self._over(seen), timeout=_END_SECONDS)
        except Overdue:
            raise TargetError(
                f"job {job} has not ended after {_END_SECONDS:.0f} s{self._why(self._of(job))}. Check that the "
                "operator runs"
            ) from None

    # ------------------------------------------------------------------------------------------------------ resources
    def _withdraw(self, current: FlinkResource) -> None:
        """Delete a resource without an accepted job, which the operator would retry even if suspended."""
        following = None
        files: list[str] = list(current.note(FILES).get("names") or ())
        if not current.note(STARTED).get("first"):
            following = current.template
            annotations = following["metadata"]["annotations"]
            if current.in_vain or self._never_ran(current):
                annotations[REFUSED] = json.dumps({"job": current.ref})
            own = mounted_file(current.spec) if self._manifest.mounts else None
            others = [each for each in files if each != own]
            # If there is only one ConfigMap, it also belongs to the former start, because the script is the same.
            dropped = own in files and (bool(others) or str(own).startswith("secrets/"))
            files = [str(own)] if dropped else []
            if dropped:
                # List this file after the former start's file. If this run dies, the next start then deletes it.
                annotations[FILES] = json.dumps({"names": [*others, own]})
        self._remove(current, following)
        for each in files:
            self._drop(each)

    def _never_ran(self, current: FlinkResource) -> bool:
        """True if Flink reports that no task of the refused job ran.

        Only the operator's first error shows if a task ran. All later attempts of the operator are refused because a
        job with this id was already submitted (measured on operator 1.7.0).
        """
        if current.error is None or current.flink_job is None or not current.session_job:
            return False
        return self._jobs_of(current).ever_ran(JobRef(current.flink_job)) is False

    def _remove(self, current: FlinkResource, following: Mapping[str, Any] | None) -> None:
        """Store the next spec (``following``), delete a resource, and wait for its end. Raises Overdue."""
        if following is not None:
            Following(self._api).keep(current.name, following, str(current.metadata["uid"]))

        def delete(seen: FlinkResource) -> bool:
            self._api.delete(self._manifest.kind, seen.name, seen.metadata)
            return True

        seen = self._await_observed(current)
        try:
            self._write(seen, delete)
        except DeployRefused:
            if (other := self._find(current.name)) is not None:
                self._drop_followed(other)
            raise
        self._await_gone(seen)

    def _await_observed(self, current: FlinkResource) -> FlinkResource:
        """Wait until the operator knows that a session job has ended. Raises Overdue.

        Otherwise the operator would try to cancel the job forever and never release the resource (measured on
        operator 1.7.0). A change of the spec makes the operator observe the job. So this method requests a
        suspension, which has no other effect.
        """
        if not current.session_job or current.ended or current.unaccepted or not self._over(current):
            return current
        spec = {"job": {"state": SUSPENDED, "upgradeMode": "savepoint"}}
        self._patch(current, lambda _: asking(spec, {}))
        seen = poll(
            lambda: self._find(current.name),
            lambda seen: seen is not None and seen.job_state not in TERMINAL,
            timeout=_END_SECONDS,
        )
        return seen or current

    def _await_gone(self, current: FlinkResource) -> None:
        """Wait until a resource is deleted and its JobManager reports none of its jobs. Raises Overdue."""
        flink_jobs = {current.flink_job}

        def look() -> FlinkResource | None:
            seen = self._find(current.name)
            if seen is not None:  # Flink may have accepted another job just before the deletion
                flink_jobs.add(seen.flink_job)
            return seen

        poll(look, lambda seen: seen is not None, timeout=_END_SECONDS)
        for each in filter(None, flink_jobs) if current.session_job else ():
            jobs, id_ = self._jobs_of(current), JobRef(each)
            poll(partial(jobs.status, id_), lambda seen: seen is not None and not seen.terminal, timeout=_END_SECONDS)

    def _following_spec(self, name: str) -> FlinkResource | None:
        """The stored spec of a resource to re-create, or None."""
        return Following(self._api).find(name)

    def _drop_followed(self, current: FlinkResource) -> None:
        """Delete the spec that a dead or unanswered start stored, if the resource was already re-created."""
        with suppress(ApiError):  # the spec is no longer required, and the next re-creation replaces it
            follows = Following(self._api).follows(current.name)
            if (
                follows is not None and follows != current.metadata["uid"]
            ):  # with equal uids, the resource is still being deleted
                self._drop_next(current.name)

    def _drop_next(self, name: str) -> None:
        try:
            Following(self._api).drop(name)
        except ApiError as error:
            _log.warning("%s of namespace %s could not be deleted: %s", next_of(name), self._api.namespace, error)

    def _patch(self, read: FlinkResource, patch: Callable[[FlinkResource], Mapping[str, Any] | None]) -> bool:
        """Patch the resource while its spec is the spec in ``read``. False if ``patch`` returns None."""

        def write(seen: FlinkResource) -> bool:
            body = patch(seen)
            if body is not None:
                metadata = {**body.get("metadata", {}), "resourceVersion": seen.metadata["resourceVersion"]}
                self._api.patch(self._manifest.kind, seen.name, {**body, "metadata": metadata})
            return body is not None

        return self._write(read, write)

    def _write(self, read: FlinkResource, write: Callable[[FlinkResource], bool]) -> bool:
        """Write to the spec that was read, and retry after each conflict with a status update."""
        seen = read
        for _ in range(_ATTEMPTS):
            try:
                return write(seen)
            except Conflict as conflict:
                again = self._find(read.name)
                if again is None or again.revision != read.revision:
                    raise DeployRefused(
                        f"someone else changed {self._manifest.kind} {read.name} at the same time "
                        f"({conflict.reason}). The change was not overwritten. Check the change, then deploy again"
                    ) from None
                seen = again
        raise TargetError(f"{self._manifest.kind} {read.name} keeps changing, so it could not be written. Try again")

    def _dry_run(self, current: FlinkResource | None, body: Mapping[str, Any]) -> FlinkResource:
        """The resource as the API server would store it, even if a different run creates it meanwhile."""
        if current is not None and _moves_cluster(current, body):
            # The resource will be re-created, because the operator refuses a changed cluster.
            other = {**body, "metadata": {**body["metadata"], "name": next_of(current.name)}}
            return FlinkResource(self._api.create(other, dry_run=True))
        if current is None:
            try:
                return FlinkResource(self._api.create(body, dry_run=True))
            except Conflict:
                if (current := self._find(str(body["metadata"]["name"]))) is None:
                    raise
        patch = patch_of(current.document, body)
        return FlinkResource(self._api.patch(self._manifest.kind, current.name, patch, dry_run=True))

    def _create(self, body: Mapping[str, Any]) -> None:
        try:
            self._api.create(body)
        except Conflict:
            found = self._find(_name(body))
            if found is None or found.request != body["metadata"]["labels"][REQUEST]:
                raise

    # ------------------------------------------------------------------------------------------------------- scripts
    def _check(self, job: JobSpec) -> None:
        """Raise ScriptRefused if the script cannot be deployed in a resource."""
        prepare_job(job)
        require_name(name_of(job))
        if found := next(iter(placeholders("\n".join(job.settings.values()))), None):
            raise ScriptRefused(
                f"{job.source}: everybody could read {found} of a setting in the resource. Write the setting into the "
                "script as a SET statement"
            )
        if not self._manifest.mounts and (found := next(iter(placeholders(job.script)), None)):
            raise ScriptRefused(
                f"{job.source}: everybody could read {found} in the resource. Pass the script as a file, with "
                "{script_uri} in the manifest of a FlinkDeployment, which stores the script in a Secret"
            )

    def _check_driver(self) -> None:
        """Raise TargetError if the cluster's Flink lacks the ``SqlDriver`` that the manifest uses."""
        if self._manifest.needs_sql_driver and (version := self.engine().version).startswith("1."):
            raise TargetError(
                f"the manifest (or session_cluster alone) uses Flink's SqlDriver to run scripts, but Flink {version} "
                "has no SqlDriver. Write a manifest with entryClass flinkcompat.SqlRunner, the jarURI of "
                'flinkcompat-sql-runner.jar and args ["--statements", "{statements}"]'
            )

    def _text(self, job: JobSpec) -> str:
        return self._runner.script(job) if placeholders(job.script) else job.script

    def _file(self, job: JobSpec, request_id: str) -> ScriptFile:
        return file_of(self._manifest_of(job), job, self._text(job), request_id)

    def _keep_script(self, file: ScriptFile, name: str, *, dry_run: bool = False) -> None:
        self._api.keep(file.name, file.texts, {DEPLOYMENT: name}, secret=file.secret, dry_run=dry_run)

    def _drop_unnamed(self, file: ScriptFile, name: str) -> None:
        """Delete the script file of a refused start, unless a resource refers to it."""
        if not self._manifest.mounts:
            return
        try:
            described = self._find(name) or self._following_spec(name)
        except ApiError as error:
            _log.warning("%s of namespace %s may not have been deleted: %s", file.place, self._api.namespace, error)
            return
        if described is None or file.place not in (described.note(FILES).get("names") or ()):
            self._drop(file.place)

    def _drop_older(self, base: FlinkResource | None, request_id: str, file: ScriptFile) -> list[str]:
        """Delete script files that are older than the former script's file. Return the remaining file names."""
        names: list[str] = list(base.note(FILES).get("names") or ()) if base is not None else []
        if base is not None and base.request == request_id:  # an earlier attempt deleted the older files
            return names
        return names[:1] + [each for each in names[1:] if each == file.place or not self._drop(each)]

    def _drop(self, place: str) -> bool:
        """Delete an unneeded script file. Return False if the deletion fails."""
        try:
            self._api.drop(place)
        except ApiError as error:
            _log.warning("%s of namespace %s could not be deleted: %s", place, self._api.namespace, error)
            return False
        return True

    def _body(
        self,
        job: JobSpec,
        base: FlinkResource | None,
        request_id: str,
        savepoint: Snapshot | None,
        files: Sequence[str] = (),
    ) -> dict[str, Any]:
        return starting(self._manifest_of(job), job, self._text(job), base, request_id, savepoint, files)

    def _manifest_of(self, job: JobSpec) -> Manifest:
        """The manifest of a job's Flink line: while jobs move, a rollback uses the former line's manifest."""
        if self._former is None or not job.engine_version:
            return self._manifest
        lines = [line_of(self._flink_version(each)) for each in (self._former, self._manifest)]
        if lines[0] == lines[1]:
            raise TargetError(
                f"the clusters of manifest and former_manifest both run Flink {job.version}, but jobs move only to "
                "another line. Remove former_manifest from the connection"
            )
        return self._former if job.version == lines[0] else self._manifest


def _moves_cluster(current: FlinkResource, body: Mapping[str, Any]) -> bool:
    """True if a session job moves to another session cluster."""
    return bool(current.spec.get("deploymentName") != body["spec"].get("deploymentName"))


def _name(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["name"])


@contextmanager
def _unknown_where_unanswered(job: JobSpec) -> Iterator[None]:
    """Raise SubmissionUnknown if a start request gets no response."""
    try:
        yield
    except ApiError as error:
        if error.unanswered:
            raise SubmissionUnknown(f"{job.source}: {error}") from None
        raise TargetError(f"{job.source}: {error}") from None
    except Overdue:
        raise SubmissionUnknown(f"{job.source}: the former resource is still being deleted") from None
