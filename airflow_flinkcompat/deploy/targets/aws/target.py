"""The target ``aws``: each deployment is an application with the deployment's name."""

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
from airflow_flinkcompat.deploy.targets.aws.runtimes import Runtime, runtimes_of
from airflow_flinkcompat.deploy.targets.aws.service import (
    ManagedApplication,
    ManagedFlink,
    ServiceError,
    ServiceUnanswered,
    opened,
    settings_of,
)
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import no_connections
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets import placeholders
from airflow_flinkcompat.secrets.placeholders import Lookup

_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,128}")
# Timeout for an update of a READY application, which restarts no job.
_UPDATE_SECONDS = 120.0
_CHANGED = frozenset({"ConcurrentModificationException", "ResourceInUseException", "InvalidRequestException"})


class ManagedFlinkTarget(Closing):
    """AWS Managed Service for Apache Flink as a target. Closing the target closes the client.

    Args:
        service: The client of the service.
        runtime: The runtime environment of the applications.
        layout: Property groups and keys for script and settings in an application.
        former: The runtime environment from which applications move to ``runtime``, or None.
        lookup: Returns the value of a placeholder. Only a start calls this function.
    """

    def __init__(
        self,
        service: ManagedFlink,
        runtime: Runtime,
        layout: PropertyLayout | None = None,
        *,
        former: Runtime | None = None,
        lookup: Lookup = no_connections,
    ) -> None:
        self._service = service
        self._runtime = runtime
        self._former = former
        self._runtimes = {each.name for each in (runtime, former) if each is not None}
        self._layout = layout or PropertyLayout()
        self._runner = ScriptRunner(lookup, service)
        self._records: dict[str, tuple[int, RunRecord]] = {}

    @classmethod
    def connect(cls, access: Access) -> Self:
        """Open the target with the AWS connection in the settings, or with boto3's search for credentials."""
        settings = settings_of(access)
        try:
            (runtime, former), layout = runtimes_of(settings), PropertyLayout.of(settings)
            service, lookup = opened(settings, access.hook), access.lookup or no_connections
            return cls(service, runtime, layout, former=former, lookup=lookup)
        except DeployError as error:
            raise DeployError(f"{access.place}: {error}") from None

    def __str__(self) -> str:
        return self._service.place

    def close(self) -> None:
        self._service.close()

    def register_secrets(self, job: JobSpec) -> None:
        self._runner.register_placeholders(job)

    def engine(self) -> EngineInfo:
        """Flink in the version that the connection names. A start checks the version of the application."""
        self._service.versions(self._runtimes)  # raises an error if the connection does not work
        return EngineInfo("flink", self._runtime.version)

    def validate(self, job: JobSpec, start: Start) -> str:
        """Check that the script can be deployed to the application. Flink does not plan the script.

        If scripts are stored in S3, the script is already written here, so that a missing permission is detected before
        the stop.
        """
        name = self._startable(job).application.name
        if self._layout.s3 is not None:
            self._keep_object(name, job.script)
        return (
            "the script was checked for statements that cannot be deployed, but not planned by Flink, because the "
            "service has no EXPLAIN (flinkcompat check --explain-plan uses a SQL Gateway)"
        )

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Write the script into the READY application, then start it from the passed state."""
        look = self._startable(job)
        name = look.application.name
        operation = Operation(Verb.START, request_id, job_ref(name, request_id))
        if look.knows(request_id):
            return operation
        ended = self._outcome(look) if look.job is not None else None
        if look.runs or (ended is not None and ended.state == "CANCELLING"):
            raise TargetError(
                f"{job.source}: application {name} is {look.application.status} and runs {look.job}. Stop that job "
                "first"
            )
        snapshot = self._snapshot_of(name, start, job.source)
        script = self._script_properties(job, name, request_id)
        record = look.next_record(request_id, ended)
        groups = self._layout.groups(look.application.groups, script, job.settings, record)
        self._configure(look, groups, self._runtime_of(job), job.source)
        try:
            self._service.start(name, snapshot)
        except ServiceError as error:
            # If the client repeats a call after a lost answer, the service answers that the application is in use.
            if error.code not in _CHANGED or not self._look(name).knows(request_id):
                raise refusal(f"{job.source}: {error}", error.reason) from None
        return operation

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Stop the application with a snapshot. The service chooses the location of the snapshot."""
        operation, look = Operation(Verb.STOP, request_id, job, directory=directory), self._describe_job(job)
        if look is None or look.job != job or not look.runs or look.stops:
            return operation  # poll() returns the outcome of this stop
        name = look.application.name
        if not look.application.snapshots_enabled:
            raise StopFailed(
                f"snapshots of application {name} are disabled, so its stop would lose the state. Enable snapshots"
            )
        if look.application.status != "RUNNING":
            raise StopFailed(
                f"application {name} is {look.application.status}, but only a RUNNING application can be stopped"
            )
        try:
            self._service.stop(name, force=False)
        except ServiceError as error:
            again = self._look(name)
            if error.code not in _CHANGED or (again.runs and not again.stops):
                raise StopFailed(str(error)) from None
        return operation

    def savepoint(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        operation, look = Operation(Verb.SAVEPOINT, request_id, job, directory=directory), self._describe_job(job)
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
        """The outcome, from the application's record, operations and snapshots."""
        if operation.verb is Verb.START:
            return replace(operation, job=self._job_of_request(operation.request_id))
        taken = self._snapshot_of_request if operation.verb is Verb.SAVEPOINT else self._snapshot_of_stop
        return replace(operation, snapshot=taken(operation))

    def status(self, job: JobRef) -> JobStatus | None:
        look = self._describe_job(job)
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
        look = self._describe(name)
        return (look.job,) if look is not None and look.runs and look.job else ()

    def cancel(self, job: JobRef) -> None:
        """Force the application to stop without a snapshot, and wait until it is READY."""
        look = self._describe_job(job)
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
        """The requested state, as the service declares. Raises TargetError if the start may drop state."""
        look = self._describe_job(job)
        if look is None or look.job != job:
            return Proof(None, Strength.UNKNOWN)
        application = look.application
        if application.drops_state:
            raise TargetError(
                f"application {application.name} sets AllowNonRestoredState, so state may have been skipped. Someone "
                "else started the application, or changed its restore settings"
            )
        if application.restore == "RESTORE_FROM_CUSTOM_SNAPSHOT" and application.snapshot:
            return Proof(snapshot_ref(application.name, application.snapshot), Strength.DECLARED)
        empty = application.restore == "SKIP_RESTORE_FROM_SNAPSHOT"
        return Proof(None, Strength.DECLARED if empty else Strength.UNKNOWN)

    def came_up(self, job: JobRef) -> bool | None:
        look = self._describe_job(job)
        if look is None or look.job != job or look.start is None or look.start.in_progress:
            return None
        return not look.start.failed

    def deployed(self, name: str) -> Deployed | None:
        """The script and settings in the application's properties or the script's S3 object."""
        look = self._describe(name)
        if look is None or not look.runs:
            return None
        groups = look.application.groups
        text, uri = self._layout.script(groups)
        return Deployed(look.job, self._object(uri) if uri else text, self._layout.settings(groups))

    # ------------------------------------------------------------------------------------------------------ looking
    def _describe(self, name: str) -> ApplicationLook | None:
        """Describe an application. None if there is no application of this name."""
        application = self._service.application(name) if _NAME.fullmatch(name) else None
        if application is None:
            return None
        self._records[name] = (application.version, RunRecord.of(application.groups))
        return ApplicationLook(application, self._service.operations(name))

    def _look(self, name: str) -> ApplicationLook:
        """Describe an application. Raises TargetError if there is no application of this name."""
        look = self._describe(name)
        if look is None:
            raise TargetError(
                f"{self} has no application {name!r} (the deployment's name). Create the application first, for "
                "example with Terraform. The application's program must read the script from its properties"
            )
        return look

    def _describe_job(self, job: JobRef | None) -> ApplicationLook | None:
        """Describe the application of a run. None if there is no such application."""
        name = split(job)[0]
        return self._describe(name) if name else None

    def _outcome(self, look: ApplicationLook) -> RunOutcome:
        snapshots = partial(self._service.snapshots, look.application.name)
        return look.outcome(snapshots, partial(self._service.failure, look.application.name))

    def _job_of_request(self, request: str) -> JobRef | None:
        """The job that a start request began, searched in all applications, or None if not found.

        A request id does not contain the name of its application. Each start creates a new version of its
        application. So only applications with a new version are described again.
        """
        for name, version in self._service.versions(self._runtimes).items():
            known, record = self._records.get(name, (0, RunRecord()))
            if known != version:
                record = self._record_of(name)
                self._records[name] = (version, record)
            if request == record.request or request in record.former:
                look = self._describe(name)
                if look is not None and look.knows(request):
                    return job_ref(name, request)
        return None

    def _record_of(self, name: str) -> RunRecord:
        """The request record of an application, empty if this target does not manage the application.

        Raises ServiceUnanswered.
        """
        try:
            found = self._service.application(name, at_once=True)
            return RunRecord() if found is None else RunRecord.of(found.groups)
        except DeployError as error:  # the credentials may lack permission to describe someone else's application
            if error.unanswered:
                raise
            return RunRecord()

    def _snapshot_of_stop(self, stop: Operation) -> Snapshot | None:
        """The snapshot of a stop, or None until the job has ended. Raises StopFailed."""
        look = self._describe_job(stop.job)
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

    def _snapshot_of_request(self, asked: Operation) -> Snapshot | None:
        """The snapshot of a running job, or None until it is complete. Raises SavepointFailed."""
        name = split(asked.job)[0]
        found = self._service.snapshot(name, asked.request_id) if name else None
        if name is None or found is None or found.status not in ("CREATING", "READY"):
            seen = "does not exist" if found is None else f"is {found.status}"
            raise SavepointFailed(f"snapshot {asked.request_id} of application {name} {seen}")
        return snapshot_ref(name, found.name) if found.status == "READY" else None

    # ----------------------------------------------------------------------------------------------------- starting
    def _runtime_of(self, job: JobSpec) -> Runtime:
        """The runtime of a job's Flink version: while applications move, a rollback uses the former runtime."""
        former = self._former
        return former if former is not None and job.engine_version and job.version == former.version else self._runtime

    def _startable(self, job: JobSpec) -> ApplicationLook:
        """Describe the job's application, and check that the application can start the job.

        Raises ScriptRefused, TargetError.
        """
        name = prepare_job(job).job_name or job.settings.get(JOB_NAME, "")
        if not _NAME.fullmatch(name):
            raise ScriptRefused(
                f"{job.source}: the job is named {name!r}, but the name of an application has 1 to 128 letters, "
                f"digits and _.- characters. Name the deployment like the application, or set {JOB_NAME} to its name"
            )
        check_settings_fit(job.settings)
        if self._layout.s3 is None:
            self._layout.inline(job.script, job.source)
        look = self._look(name)
        found, wrong, runtime = look.application, "", self._runtime_of(job)
        if found.runtime not in self._runtimes:
            wrong = (
                f"has runtime environment {found.runtime}, but the connection names "
                f"{' and '.join(sorted(self._runtimes))}. Correct the connection"
            )
        elif runtime.name != found.runtime and runtime.name not in (offered := self._service.offered()):
            wrong = (
                f"cannot move from {found.runtime} to {runtime.name}, because the service offers only "
                f"{', '.join(offered)}. Correct runtime_environment in the connection, or upgrade botocore if the "
                "service is newer"
            )
        elif found.mode == "INTERACTIVE":
            wrong = "is a Studio notebook. Create an application of mode STREAMING"
        elif not found.snapshots_enabled:
            wrong = "has snapshots disabled, so its stop would lose the state. Enable snapshots"
        elif found.rolls_back:
            wrong = (
                "has system rollback enabled, which could start an earlier version without a ledger entry. Disable "
                "system rollback"
            )
        if wrong:
            raise TargetError(f"{job.source}: application {name} {wrong}")
        return look

    def _snapshot_of(self, name: str, start: Start, source: str) -> str | None:
        """The name of a start's snapshot.

        Raises TargetError, StateRefused if the application cannot use the snapshot.
        """
        if start.savepoint is None:
            return None
        owner, snapshot = split(start.savepoint)
        if owner != name:
            raise TargetError(
                f"{source}: {start.savepoint} is not a snapshot of application {name}, but the service restores an "
                "application only from its own snapshots"
            )
        found = self._service.snapshot(name, snapshot)
        if found is None or found.status != "READY":
            seen = "does not exist" if found is None else f"is {found.status}"
            raise StateRefused(f"{source}: snapshot {snapshot} of application {name} {seen}", StateFault.GONE)
        return snapshot

    def _script_properties(self, job: JobSpec, name: str, request: str) -> Mapping[str, str]:
        """The application properties that contain a script or the URI of its S3 object.

        If scripts are stored in S3, write the script first.
        """
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
        """Write the script's S3 object if it does not exist yet, and return its key."""
        assert self._layout.s3 is not None
        bucket, key = self._layout.s3[0], self._layout.object_key(name, script)
        try:
            there = self._service.get_object(bucket, key)
        except ServiceError:  # the script's S3 object does not exist or cannot be read
            there = None
        if there != script:
            self._service.put_object(bucket, key, script)
        return key

    def _configure(self, look: ApplicationLook, groups: Groups, runtime: Runtime, source: str) -> None:
        """Set an application's properties and runtime. Raises TargetError if the service then reports others."""
        name, version = look.application.name, look.application.version
        wanted = self._layout.own(groups)

        def differs(seen: ManagedApplication) -> bool:
            return self._layout.own(seen.groups) != wanted or runtime.differs_from(seen.runtime, seen.program)

        if differs(look.application):
            try:
                self._service.update(look.application, groups, runtime)
            except ServiceError as error:
                again = self._look(name).application
                # If the client repeats a call after a lost answer, the service answers that the version has changed.
                if error.code not in _CHANGED or differs(again):
                    changed = f" (version {version}, now {again.version}, {again.status})"
                    raise TargetError(
                        f"{source}: {error}. Someone else may have changed the application{changed}"
                    ) from None
        try:
            seen = poll(
                lambda: self._look(name), lambda seen: seen.application.status == "UPDATING", timeout=_UPDATE_SECONDS
            )
        except Overdue:
            raise ServiceUnanswered(
                f"{source}: application {name} is still UPDATING after {_UPDATE_SECONDS:.0f} s"
            ) from None
        if differs(seen.application):
            raise TargetError(
                f"{source}: application {name} (version {seen.application.version}) does not have the configuration "
                "that was written. Either someone else changed the application meanwhile, or the service "
                "stores properties in a different form"
            )

    def _object(self, uri: str) -> str:
        """The script with unresolved placeholders, from the S3 object that a property names."""
        bucket, key = object_of(with_placeholders(uri))
        try:
            return self._service.get_object(bucket, key)
        except ServiceError as error:
            raise TargetError(
                f"{error}. The application reads its script from this object. Restore the object"
            ) from None
