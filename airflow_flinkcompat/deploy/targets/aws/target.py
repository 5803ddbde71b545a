"""The target: verbs over one application per deployment, under the deployment's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Self

from airflow_flinkcompat.deploy.errors import (
    DeployError,
    SavepointFailed,
    StateFault,
    StateRefused,
    StopFailed,
    TargetError,
    fault_of,
    refusal,
)
from airflow_flinkcompat.deploy.flink.gateway import ScriptRunner
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.rest import Closing
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, ScriptRefused, prepare_job
from airflow_flinkcompat.deploy.target import (
    Deployed,
    EngineInfo,
    JobRef,
    JobStatus,
    Operation,
    Proof,
    Snapshot,
    Start,
    Strength,
    Verb,
)
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.aws.looks import ApplicationLook, RunOutcome, job_ref, snapshot_ref, split
from airflow_flinkcompat.deploy.targets.aws.properties import (
    Groups,
    PropertyLayout,
    RunRecord,
    check_settings_fit,
    object_of,
    with_placeholders,
)
from airflow_flinkcompat.deploy.targets.aws.service import (
    ManagedFlink,
    ServiceError,
    ServiceUnanswered,
    opened,
    runtime_of,
    settings_of,
)
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import no_connections
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets import placeholders
from airflow_flinkcompat.secrets.placeholders import Lookup

_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,128}")
# Seconds for an update of an application that is READY, which restarts no job.
_UPDATE_SECONDS = 120.0
_CHANGED = frozenset({"ConcurrentModificationException", "ResourceInUseException", "InvalidRequestException"})


class ManagedFlinkTarget(Closing):
    """A target of AWS Managed Service for Apache Flink. Closing it closes the client.

    Args:
        service: The client of the service.
        runtime: The runtime environment of the applications (``FLINK-1_20``).
        layout: Places of script and settings in an application.
        lookup: Returns the value of a placeholder; it is called only for a start.
    """

    def __init__(
        self,
        service: ManagedFlink,
        runtime: str,
        layout: PropertyLayout | None = None,
        *,
        lookup: Lookup = no_connections,
    ) -> None:
        self._service = service
        self._runtime = runtime
        self._layout = layout or PropertyLayout()
        self._runner = ScriptRunner(lookup, service)
        self._records: dict[str, tuple[int, RunRecord]] = {}

    @classmethod
    def connect(cls, access: Access) -> Self:
        """Open the target by the AWS connection in the settings, else by boto3's search for credentials."""
        settings = settings_of(access)
        try:
            runtime, layout = runtime_of(settings), PropertyLayout.of(settings)
            return cls(opened(settings, access.hook), runtime, layout, lookup=access.lookup or no_connections)
        except DeployError as error:
            raise DeployError(f"{access.place}: {error}") from None

    def __str__(self) -> str:
        return self._service.place

    def close(self) -> None:
        self._service.close()

    def register_secrets(self, job: JobSpec) -> None:
        self._runner.register_placeholders(job)

    def engine(self) -> EngineInfo:
        """Flink, of the version that the connection names; a start compares the application with it."""
        self._service.versions(self._runtime)  # fails here if the connection does not work
        return EngineInfo("flink", self._runtime.removeprefix("FLINK-").replace("_", "."))

    def validate(self, job: JobSpec, start: Start) -> str:
        """Read the script, and check that the application exists and can be redeployed; nothing here plans it.

        A script in S3 is already written here, so that a missing right to write shows before the stop.
        """
        name = self._startable(job).application.name
        if self._layout.s3 is not None:
            self._keep_object(name, job.script)
        return (
            "the script was checked for statements that cannot be deployed, but not planned by Flink: the "
            "service has no EXPLAIN (flinkcompat check --explain-plan uses a SQL Gateway)"
        )

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Write the script into the application while it is READY, then start it from the stated state."""
        look = self._startable(job)
        name = look.application.name
        operation = Operation(Verb.START, request_id, job_ref(name, request_id))
        if look.knows(request_id):
            return operation
        ended = self._outcome(look) if look.job is not None else None
        if look.runs or (ended is not None and ended.state == "CANCELLING"):
            raise TargetError(
                f"{job.source}: application {name} is {look.application.status} and runs {look.job}: stop that first"
            )
        snapshot = self._snapshot_of(name, start, job.source)
        script = self._script_properties(job, name, request_id)
        record = look.next_record(request_id, ended)
        groups = self._layout.groups(look.application.groups, script, job.settings, record)
        self._configure(look, groups, job.source)
        try:
            self._service.start(name, snapshot)
        except ServiceError as error:
            # A client that repeats a call after a lost answer gets the error that the application is in use.
            if error.code not in _CHANGED or not self._look(name).knows(request_id):
                raise refusal(f"{job.source}: {error}", error.reason) from None
        return operation

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Stop the application, which takes a snapshot as part of the stop. The service chooses its place."""
        operation, look = Operation(Verb.STOP, request_id, job, directory=directory), self._look_of(job)
        if look is None or look.job != job or not look.runs or look.stops:
            return operation  # poll returns the outcome
        name = look.application.name
        if not look.application.snapshots_enabled:
            raise StopFailed(
                f"snapshots of application {name} are disabled, so its stop would lose the state: enable them"
            )
        if look.application.status != "RUNNING":
            raise StopFailed(
                f"application {name} is {look.application.status}, and only a RUNNING application can be stopped"
            )
        try:
            self._service.stop(name, force=False)
        except ServiceError as error:
            again = self._look(name)
            if error.code not in _CHANGED or (again.runs and not again.stops):
                raise StopFailed(str(error)) from None
        return operation

    def savepoint(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        operation, look = Operation(Verb.SAVEPOINT, request_id, job, directory=directory), self._look_of(job)
        if look is None:
            raise TargetError(f"{self} has no job {job}")
        name = look.application.name
        if self._service.snapshot(name, request_id) is not None:
            return operation
        if look.job != job or look.application.status != "RUNNING":
            raise TargetError(f"job {job} does not run: application {name} is {look.application.status}")
        try:
            self._service.take_snapshot(name, request_id)
        except ServiceError:
            if self._service.snapshot(name, request_id) is None:
                raise
        return operation

    def poll(self, operation: Operation) -> Operation:
        """The outcome by the application's record, its operations and its snapshots."""
        if operation.verb is Verb.START:
            return replace(operation, job=self._started(operation.request_id))
        taken = self._taken if operation.verb is Verb.SAVEPOINT else self._stopped
        return replace(operation, snapshot=taken(operation))

    def status(self, job: JobRef) -> JobStatus | None:
        look = self._look_of(job)
        if look is None:
            return None
        name = look.application.name
        if look.job == job:
            outcome = self._outcome(look)
            return JobStatus(
                job, name, outcome.state, outcome.tasks_running, None, outcome.failure, fault_of(outcome.failure)
            )
        former = look.record.former.get(split(job)[1])
        return None if former is None else JobStatus(job, name, former.state, completed_checkpoints=None)

    def running(self, name: str) -> tuple[JobRef, ...]:
        look = self._found(name)
        return (look.job,) if look is not None and look.runs and look.job else ()

    def cancel(self, job: JobRef) -> None:
        """Stop the application by force, without a snapshot, and wait until it is READY."""
        look = self._look_of(job)
        if look is None or look.job != job or not look.runs:
            return
        name = look.application.name
        if look.application.status != "FORCE_STOPPING":
            try:
                self._service.stop(name, force=True)
            except ServiceError as error:
                again = self._look(name)
                if error.code not in _CHANGED or (again.runs and again.application.status != "FORCE_STOPPING"):
                    raise
        self._service.await_stopped(name)

    def restored_from(self, job: JobRef) -> Proof:
        """The state that the service declares as requested. Raises TargetError if it may drop state."""
        look = self._look_of(job)
        if look is None or look.job != job:
            return Proof(None, Strength.UNKNOWN)
        application = look.application
        if application.drops_state:
            raise TargetError(
                f"application {application.name} sets AllowNonRestoredState, so state may have been skipped: "
                "somebody else started it, or changed its restore settings"
            )
        if application.restore == "RESTORE_FROM_CUSTOM_SNAPSHOT" and application.snapshot:
            return Proof(snapshot_ref(application.name, application.snapshot), Strength.DECLARED)
        empty = application.restore == "SKIP_RESTORE_FROM_SNAPSHOT"
        return Proof(None, Strength.DECLARED if empty else Strength.UNKNOWN)

    def came_up(self, job: JobRef) -> bool | None:
        look = self._look_of(job)
        if look is None or look.job != job or look.start is None or look.start.in_progress:
            return None
        return not look.start.failed

    def deployed(self, name: str) -> Deployed | None:
        """The script and the settings in the application's properties, or in the object that they name."""
        look = self._found(name)
        if look is None or not look.runs:
            return None
        groups = look.application.groups
        text, uri = self._layout.script(groups)
        return Deployed(look.job, self._object(uri) if uri else text, self._layout.settings(groups))

    # ------------------------------------------------------------------------------------------------------ looking
    def _found(self, name: str) -> ApplicationLook | None:
        """One look at an application; None: there is none of this name."""
        application = self._service.application(name) if _NAME.fullmatch(name) else None
        if application is None:
            return None
        self._records[name] = (application.version, RunRecord.of(application.groups))
        return ApplicationLook(application, self._service.operations(name))

    def _look(self, name: str) -> ApplicationLook:
        """One look at an application. Raises TargetError if there is none."""
        look = self._found(name)
        if look is None:
            raise TargetError(
                f"{self} has no application {name!r}, which has the deployment's name: create it first, for "
                "example with Terraform, with a program that reads its script from the application's "
                "properties"
            )
        return look

    def _look_of(self, job: JobRef | None) -> ApplicationLook | None:
        """One look at the application of a run; None: there is none."""
        name = split(job)[0]
        return self._found(name) if name else None

    def _outcome(self, look: ApplicationLook) -> RunOutcome:
        snapshots = partial(self._service.snapshots, look.application.name)
        return look.outcome(snapshots, partial(self._service.failure, look.application.name))

    def _started(self, request: str) -> JobRef | None:
        """The job of a start, in any application; None if no application made this start.

        A request does not name its application. A start updates its application, so only applications that changed
        since the last look are described.
        """
        for name, version in self._service.versions(self._runtime).items():
            known, record = self._records.get(name, (0, RunRecord()))
            if known != version:
                record = self._record_of(name)
                self._records[name] = (version, record)
            if request == record.request or request in record.former:
                look = self._found(name)
                if look is not None and look.knows(request):
                    return job_ref(name, request)
        return None

    def _record_of(self, name: str) -> RunRecord:
        """The record of an application; an empty one if it is not this target's. Raises ServiceUnanswered."""
        try:
            found = self._service.application(name, at_once=True)
            return RunRecord() if found is None else RunRecord.of(found.groups)
        except DeployError as error:  # a foreign application that the identity may not describe
            if error.unanswered:
                raise
            return RunRecord()

    def _stopped(self, stop: Operation) -> Snapshot | None:
        """The snapshot of a stop once it has ended the job; None while the stop runs. Raises StopFailed."""
        look = self._look_of(stop.job)
        former = look.record.former.get(split(stop.job)[1]) if look is not None else None
        if look is None or (look.job != stop.job and former is None):
            raise StopFailed(f"{self} has no job {stop.job}")
        name = look.application.name
        if look.job != stop.job and former is not None:
            if former.snapshot is None:
                raise StopFailed(f"job {stop.job} ended {former.state}, without a snapshot")
            return snapshot_ref(name, former.snapshot)
        outcome = self._outcome(look)
        if outcome.snapshot is not None:
            return outcome.snapshot
        if look.runs:
            if look.stop is not None and look.stop.failed and not look.stops:
                raise StopFailed(self._service.failure(name, look.stop))
            return None
        if outcome.state == "CANCELLING":
            return None
        raise StopFailed(outcome.failure or f"application {name} was stopped without a snapshot")

    def _taken(self, asked: Operation) -> Snapshot | None:
        """The snapshot of a running job; None while it is being taken. Raises SavepointFailed."""
        name = split(asked.job)[0]
        found = self._service.snapshot(name, asked.request_id) if name else None
        if name is None or found is None or found.status not in ("CREATING", "READY"):
            seen = "does not exist" if found is None else f"is {found.status}"
            raise SavepointFailed(f"snapshot {asked.request_id} of application {name} {seen}")
        return snapshot_ref(name, found.name) if found.status == "READY" else None

    # ----------------------------------------------------------------------------------------------------- starting
    def _startable(self, job: JobSpec) -> ApplicationLook:
        """One look at the application in which a job can be started. Raises ScriptRefused, TargetError."""
        name = prepare_job(job).job_name or job.settings.get(JOB_NAME, "")
        if not _NAME.fullmatch(name):
            raise ScriptRefused(
                f"{job.source}: the job is named {name!r}, and the name of an application has 1 to 128 "
                f"letters, digits and _.-: give the deployment, or {JOB_NAME}, the name of the application"
            )
        check_settings_fit(job.settings)
        if self._layout.s3 is None:
            self._layout.inline(job.script, job.source)
        look = self._look(name)
        found, wrong = look.application, ""
        if found.runtime != self._runtime:
            wrong = (
                f"has runtime environment {found.runtime}, and the connection names {self._runtime}: correct the "
                "connection"
            )
        elif found.mode == "INTERACTIVE":
            wrong = "is a Studio notebook: create one of mode STREAMING"
        elif not found.snapshots_enabled:
            wrong = "has snapshots disabled, so its stop would lose the state: enable them"
        elif found.rolls_back:
            wrong = (
                "has system rollback enabled, which could start an earlier version that the ledger does not "
                "record: disable it"
            )
        if wrong:
            raise TargetError(f"{job.source}: application {name} {wrong}")
        return look

    def _snapshot_of(self, name: str, start: Start, source: str) -> str | None:
        """The snapshot name of a start. Raises TargetError, StateRefused if it is not one of this application."""
        if start.savepoint is None:
            return None
        owner, snapshot = split(start.savepoint)
        if owner != name:
            raise TargetError(
                f"{source}: {start.savepoint} is not a snapshot of application {name}, and the service "
                "restores an application only from its own snapshots"
            )
        found = self._service.snapshot(name, snapshot)
        if found is None or found.status != "READY":
            seen = "does not exist" if found is None else f"is {found.status}"
            raise StateRefused(f"{source}: snapshot {snapshot} of application {name} {seen}", StateFault.GONE)
        return snapshot

    def _script_properties(self, job: JobSpec, name: str, request: str) -> Mapping[str, str]:
        """The properties of a script; a script in S3 is written first."""
        layout = self._layout
        if layout.s3 is None:
            return layout.inline(job.script, job.source)
        bucket, key = layout.s3[0], self._keep_object(name, job.script)
        if placeholders(job.script):
            filled = self._runner.script(job)
            key = layout.object_key(name, job.script, request)
            self._service.put_object(bucket, key, filled)
        return {layout.uri_key: f"s3://{bucket}/{key}"}

    def _keep_object(self, name: str, script: str) -> str:
        """The key of a script's object, which is named by its content and written if it is not there yet."""
        assert self._layout.s3 is not None
        bucket, key = self._layout.s3[0], self._layout.object_key(name, script)
        try:
            there = self._service.get_object(bucket, key)
        except ServiceError:  # it does not exist, or may not be read
            there = None
        if there != script:
            self._service.put_object(bucket, key, script)
        return key

    def _configure(self, look: ApplicationLook, groups: Groups, source: str) -> None:
        """Set an application's properties and check that it stored them. Raises TargetError if it did not."""
        name, version = look.application.name, look.application.version
        wanted = self._layout.own(groups)
        if self._layout.own(look.application.groups) != wanted:
            try:
                self._service.update(look.application, groups)
            except ServiceError as error:
                again = self._look(name).application
                # A client that repeats a call after a lost answer gets the error that the version has changed.
                if error.code not in _CHANGED or self._layout.own(again.groups) != wanted:
                    changed = f" (version {version}, now {again.version}, {again.status})"
                    raise TargetError(
                        f"{source}: {error}. Somebody else may have changed the application{changed}"
                    ) from None
        try:
            seen = poll(
                lambda: self._look(name), lambda seen: seen.application.status == "UPDATING", timeout=_UPDATE_SECONDS
            )
        except Overdue:
            raise ServiceUnanswered(f"{source}: application {name} is UPDATING for {_UPDATE_SECONDS:.0f} s") from None
        if self._layout.own(seen.application.groups) != wanted:
            raise TargetError(
                f"{source}: application {name} (version {seen.application.version}) does not have the "
                "properties that were written: somebody else changed it meanwhile, or the service stores "
                "them in another form"
            )

    def _object(self, uri: str) -> str:
        """The script, with its placeholders, of the object that a property names."""
        bucket, key = object_of(with_placeholders(uri))
        try:
            return self._service.get_object(bucket, key)
        except ServiceError as error:
            raise TargetError(f"{error}. The application reads its script there: put the object back") from None
