"""A stand-in for AWS Managed Service for Apache Flink: the vendor's envelope, and jobs of ours behind it.

Every request and every answer is held against botocore's own model of ``kinesisanalyticsv2``. What an application does
in between (which statuses it goes through, what a stop leaves, what an update replaces) is as the vendor's documents
say; it was never compared with the service itself. Operations come to their end while they are looked at.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import botocore.session
from botocore.validate import ParamValidator
from werkzeug import Request, Response
from werkzeug.serving import make_server

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.target import JobRef, Operation, Snapshot, Start
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.model import JobSpec

MODEL = botocore.session.get_session().get_service_model("kinesisanalyticsv2")
PAGE = 3
REGION = "eu-central-1"
_SKIP, _CUSTOM = "SKIP_RESTORE_FROM_SNAPSHOT", "RESTORE_FROM_CUSTOM_SNAPSHOT"
# What every service may answer, beside the errors that its model lists for an operation.
_COMMON = {"AccessDeniedException", "ExpiredTokenException", "ServiceUnavailable", "ThrottlingException"}


class Backend(Protocol):
    """Where the jobs of the applications run."""

    def start(self, name: str, script: str, settings: Mapping[str, str], savepoint: str | None) -> str:
        """Start a job; its id. Raises DeployError."""

    def seen(self, job: str) -> tuple[str, str]:
        """``starting``, ``running`` or ``failed``, and why."""

    def stop(self, job: str) -> str:
        """Stop a job with a savepoint. Raises DeployError: it goes on."""

    def savepoint(self, job: str) -> str:
        """A savepoint of a job that goes on."""

    def cancel(self, job: str) -> None:
        """End a job."""


@dataclass
class MemoryJobs:
    """Jobs that are no more than a row. ``refuses``: names whose next start from a savepoint fails over its state."""

    refuses: set[str] = field(default_factory=set)
    jobs: dict[str, str] = field(default_factory=dict)
    started: list[tuple[str, str, str | None]] = field(default_factory=list)
    savepoints: set[str] = field(default_factory=set)
    stop_fails: str = ""

    def start(self, name: str, script: str, settings: Mapping[str, str], savepoint: str | None) -> str:
        assert savepoint is None or savepoint in self.savepoints
        job = f"job-{len(self.started)}"
        self.started.append((name, script, savepoint))
        misfit = name in self.refuses and savepoint is not None
        self.refuses.discard(name) if misfit else None
        self.jobs[job] = "failed" if misfit else "running"
        return job

    def seen(self, job: str) -> tuple[str, str]:
        state = self.jobs[job]
        return state, "Failed to rollback to checkpoint/savepoint" if state == "failed" else ""

    def stop(self, job: str) -> str:
        if self.stop_fails:
            raise DeployError(self.stop_fails)
        self.jobs[job] = "ended"
        return self.savepoint(job)

    def savepoint(self, job: str) -> str:
        self.savepoints.add(made := f"savepoint-{len(self.savepoints)}")
        return made

    def cancel(self, job: str) -> None:
        self.jobs[job] = "ended"


class FlinkJobs:
    """Jobs of a real Flink, which its own driver makes of the script."""

    def __init__(self, jobmanager_url: str) -> None:
        self._target = JobManagerTarget(jobmanager_url)

    def close(self) -> None:
        self._target.close()

    def start(self, name: str, script: str, settings: Mapping[str, str], savepoint: str | None) -> str:
        # A failure is to end the job: the service would restart it until its own patience is over.
        job = JobSpec(script, {"restart-strategy.type": "disable", **settings}, source=name)
        started = self._target.start(job, Start(Snapshot(savepoint) if savepoint else None), new_id())
        return str(started.job)

    def seen(self, job: str) -> tuple[str, str]:
        status = self._target.status(JobRef(job))
        if status is None or status.terminal:
            return "failed", (status and status.failure) or "the job is gone"
        return ("running" if status.tasks_running else "starting"), ""

    def stop(self, job: str) -> str:
        return self._snapshot(self._target.stop(JobRef(job), new_id(), None))

    def savepoint(self, job: str) -> str:
        return self._snapshot(self._target.savepoint(JobRef(job), new_id(), None))

    def cancel(self, job: str) -> None:
        self._target.cancel(JobRef(job))

    def _snapshot(self, asked: Operation) -> str:
        found = poll(lambda: self._target.poll(asked).snapshot, lambda seen: seen is None, timeout=60)
        assert found is not None
        return str(found)


@dataclass
class Snap:
    name: str
    status: str
    version: int
    created: datetime
    savepoint: str = ""


@dataclass
class Op:
    kind: str
    began: datetime
    status: str = "IN_PROGRESS"
    ended: datetime | None = None
    error: str = ""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass
class App:
    """An application. ``work``: what the next looks at it bring about, in order."""

    name: str
    runtime: str
    created: datetime
    configuration: dict[str, Any]
    status: str = "READY"
    version: int = 1
    version_since: datetime | None = None
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    run: dict[str, Any] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    snaps: list[Snap] = field(default_factory=list)
    job: str | None = None
    work: list[Callable[[], bool]] = field(default_factory=list)
    program: dict[str, str] = field(
        default_factory=lambda: {"BucketARNUpdate": "arn:aws:s3:::programs", "FileKeyUpdate": "program-1.jar"}
    )


class Refused(Exception):
    """The answer of the service that is an error."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


@dataclass
class StandIn:
    """The service. ``fails`` gives an error in place of (or, once it is done, after) a call: ``fails(call, after)``.

    ``calls`` counts what was asked for by operation. ``snapshot_fails``: snapshots come to nothing. ``program``: what
    the applications make of their property groups.
    """

    backend: Backend
    fails: Callable[[str, bool], Refused | None] = lambda call, after: None
    calls: Counter[str] = field(default_factory=Counter)
    apps: dict[str, App] = field(default_factory=dict)
    snapshot_fails: bool = False
    program: Callable[[Mapping[str, Mapping[str, str]]], tuple[str, Mapping[str, str]]] = field(
        default=lambda groups: program(groups)
    )
    url: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock)
    _clock: datetime = field(default_factory=lambda: datetime.now(UTC))

    @contextmanager
    def serving(self) -> Iterator[StandIn]:
        """The service on a port of this machine."""
        server = make_server("127.0.0.1", 0, self.answer, threaded=True)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, environ: Any, respond: Any) -> Any:
        """One call, as WSGI."""
        request = Request(environ)
        name = request.headers.get("X-Amz-Target", "").removeprefix(f"{MODEL.metadata['targetPrefix']}.")
        try:
            with self.lock:
                body = self._called(name, json.loads(request.get_data() or b"{}"))
            response = Response(json.dumps(body, default=lambda each: each.timestamp()))
        except Refused as error:
            row = {"__type": error.code, "message": str(error)}
            response = Response(json.dumps(row), status=error.status)
        response.headers["Content-Type"] = "application/x-amz-json-1.1"
        return response(environ, respond)

    def _called(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        operation = MODEL.operation_model(name)
        assert operation.input_shape is not None
        if wrong := envelope_faults(given, operation.input_shape):
            raise Refused("InvalidArgumentException", wrong)
        self.calls[name] += 1
        try:
            if error := self.fails(name, False):
                raise error
            found: dict[str, Any] = getattr(self, re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower())(**given)
            if error := self.fails(name, True):
                raise error
        except Refused as error:
            if error.code not in _COMMON | {shape.name for shape in operation.error_shapes}:
                raise AssertionError(f"{name} has no error {error.code} in the vendor's model") from None
            raise
        wrong = envelope_faults(found, operation.output_shape)
        assert not wrong, f"the stand-in's own answer to {name} is not of the vendor's model: {wrong}"
        return found

    # ------------------------------------------------------------------------------------------------ applications
    def create_application(
        self, ApplicationName: str, RuntimeEnvironment: str, ApplicationConfiguration: Any, **more: Any
    ) -> dict[str, Any]:
        if ApplicationName in self.apps:
            raise Refused("ResourceInUseException", f"application {ApplicationName} exists")
        created = self.now()
        app = App(ApplicationName, RuntimeEnvironment, created, dict(ApplicationConfiguration), version_since=created)
        self.apps[ApplicationName] = app
        return {"ApplicationDetail": detail(app)}

    def delete_application(self, ApplicationName: str, CreateTimestamp: Any) -> dict[str, Any]:
        app = self._app(ApplicationName)
        self._require(app, "READY")
        del self.apps[ApplicationName]
        return {}

    def describe_application(self, ApplicationName: str) -> dict[str, Any]:
        app = self._app(ApplicationName)
        found = {"ApplicationDetail": detail(app)}
        if app.work and app.work[0]():  # what a look brings about, the next one sees
            app.work.pop(0)
        return found

    def list_applications(self, Limit: int, NextToken: str | None = None) -> dict[str, Any]:
        rows = [
            {
                "ApplicationName": app.name,
                "ApplicationARN": arn(app),
                "ApplicationStatus": app.status,
                "ApplicationVersionId": app.version,
                "RuntimeEnvironment": app.runtime,
            }
            for app in self.apps.values()
        ]
        return page(rows, NextToken, "ApplicationSummaries")

    def update_application(
        self,
        ApplicationName: str,
        ApplicationConfigurationUpdate: Any,
        ConditionalToken: str | None = None,
        CurrentApplicationVersionId: int | None = None,
        RuntimeEnvironmentUpdate: str | None = None,
    ) -> dict[str, Any]:
        app = self._app(ApplicationName)
        if (ConditionalToken, CurrentApplicationVersionId) not in ((app.token, None), (None, app.version)):
            raise Refused("ConcurrentModificationException", f"application {app.name} has version {app.version}")
        self._require(app, "READY")
        update = ApplicationConfigurationUpdate["EnvironmentPropertyUpdates"]
        app.configuration["EnvironmentProperties"] = update  # all groups, whatever was there before
        app.runtime = RuntimeEnvironmentUpdate or app.runtime
        if code := ApplicationConfigurationUpdate.get("ApplicationCodeConfigurationUpdate"):
            app.program = code["CodeContentUpdate"]["S3ContentLocationUpdate"]
        app.version += 1
        app.version_since = self.now()
        app.token = uuid.uuid4().hex
        app.run.pop("FlinkRunConfiguration", None)
        app.status = "UPDATING"
        operation = self._begin(app, "UpdateApplication")

        def done() -> bool:
            app.status = "READY"
            return self._end(operation)

        app.work.append(done)
        return {"ApplicationDetail": detail(app), "OperationId": operation.id}

    # -------------------------------------------------------------------------------------------- starts and stops
    def start_application(self, ApplicationName: str, RunConfiguration: Any) -> dict[str, Any]:
        app = self._app(ApplicationName)
        self._require(app, "READY")
        restore = RunConfiguration["ApplicationRestoreConfiguration"]
        savepoint = None
        if restore["ApplicationRestoreType"] == _CUSTOM:
            snap = next((each for each in app.snaps if each.name == restore["SnapshotName"]), None)
            if snap is None or snap.status != "READY":
                raise Refused("ResourceNotFoundException", f"no snapshot {restore['SnapshotName']}")
            savepoint = snap.savepoint
        app.run = RunConfiguration
        app.status = "STARTING"
        operation = self._begin(app, "StartApplication")
        rows = app.configuration["EnvironmentProperties"]["PropertyGroups"]
        script, settings = self.program({row["PropertyGroupId"]: row["PropertyMap"] for row in rows})

        def submitted() -> bool:
            try:
                app.job = self.backend.start(app.name, script, settings, savepoint)
            except DeployError as error:
                self._failed(app, operation, str(error))
                app.work.clear()
                return False
            return True

        def up() -> bool:
            assert app.job is not None
            state, why = self.backend.seen(app.job)
            if state == "failed":
                self._failed(app, operation, why)
            elif state == "running":
                app.status = "RUNNING"
                self._end(operation)
            return state != "starting"

        def _submit_then_wait() -> bool:
            return submitted() and bool(app.work)

        app.work += [_submit_then_wait, up]
        return {"OperationId": operation.id}

    def stop_application(self, ApplicationName: str, Force: bool = False) -> dict[str, Any]:
        app = self._app(ApplicationName)
        if Force:
            self._require(app, "STARTING", "UPDATING", "STOPPING", "AUTOSCALING", "RUNNING")
        else:
            self._require(app, "RUNNING")
        app.work.clear()
        for each in app.ops:
            if each.status == "IN_PROGRESS":
                self._end(each, "CANCELLED")
        app.status = "FORCE_STOPPING" if Force else "STOPPING"
        operation = self._begin(app, "StopApplication")

        def done() -> bool:
            assert app.job is not None or Force
            if Force and app.job is not None:
                self.backend.cancel(app.job)
            elif not Force:
                try:
                    taken = self.backend.stop(str(app.job))
                except DeployError as error:
                    app.status = "RUNNING"
                    operation.error = str(error)
                    return self._end(operation, "FAILED")
                self._snapped(app, f"auto-{uuid.uuid4().hex[:12]}", taken)
            app.job, app.status = None, "READY"
            return self._end(operation)

        app.work.append(done)
        return {"OperationId": operation.id}

    # --------------------------------------------------------------------------------------------------- snapshots
    def create_application_snapshot(self, ApplicationName: str, SnapshotName: str) -> dict[str, Any]:
        app = self._app(ApplicationName)
        self._require(app, "RUNNING")
        if any(each.name == SnapshotName for each in app.snaps):
            raise Refused("InvalidArgumentException", f"snapshot {SnapshotName} exists")
        self._snapped(app, SnapshotName, self.backend.savepoint(str(app.job)))
        return {}

    def describe_application_snapshot(self, ApplicationName: str, SnapshotName: str) -> dict[str, Any]:
        for snap in self._app(ApplicationName).snaps:
            if snap.name == SnapshotName:
                return {"SnapshotDetails": _snap_row(snap)}
        raise Refused("ResourceNotFoundException", f"no snapshot {SnapshotName}")

    def list_application_snapshots(
        self, ApplicationName: str, Limit: int, NextToken: str | None = None
    ) -> dict[str, Any]:
        # In the order of their making, which nothing promises either.
        return page([_snap_row(snap) for snap in self._app(ApplicationName).snaps], NextToken, "SnapshotSummaries")

    # -------------------------------------------------------------------------------------------------- operations
    def list_application_operations(
        self, ApplicationName: str, Limit: int, NextToken: str | None = None
    ) -> dict[str, Any]:
        rows = [_op_row(op, OperationId=op.id) for op in self._app(ApplicationName).ops]
        return page(rows, NextToken, "ApplicationOperationInfoList")

    def describe_application_operation(self, ApplicationName: str, OperationId: str) -> dict[str, Any]:
        op = next((op for op in self._app(ApplicationName).ops if op.id == OperationId), None)
        if op is None:
            raise Refused("ResourceNotFoundException", f"no operation {OperationId}")
        failure = {"OperationFailureDetails": {"ErrorInfo": {"ErrorString": op.error[:512]}}} if op.error else {}
        row = {**_op_row(op), "EndTime": op.ended or op.began, **failure}
        return {"ApplicationOperationInfoDetails": row}

    # ------------------------------------------------------------------------------------------------------ inside
    def now(self) -> datetime:
        """The service's time, which no two events share."""
        self._clock = max(datetime.now(UTC), self._clock + timedelta(milliseconds=1))
        return self._clock

    def _app(self, name: str) -> App:
        if name not in self.apps:
            raise Refused("ResourceNotFoundException", f"application {name} not found")
        return self.apps[name]

    def _require(self, app: App, *statuses: str) -> None:
        if app.status not in statuses:
            raise Refused("ResourceInUseException", f"application {app.name} is {app.status}, not {statuses[0]}")

    def _begin(self, app: App, kind: str) -> Op:
        app.ops.append(Op(kind, self.now()))
        return app.ops[-1]

    def _end(self, operation: Op, status: str = "SUCCESSFUL") -> bool:
        operation.status, operation.ended = status, self.now()
        return True

    def _failed(self, app: App, operation: Op, why: str) -> None:
        operation.error = why
        app.job, app.status = None, "READY"
        self._end(operation, "FAILED")

    def _snapped(self, app: App, name: str, savepoint: str) -> None:
        status = "FAILED" if self.snapshot_fails else "READY"
        app.snaps.append(Snap(name, status, app.version, self.now(), savepoint))


def detail(app: App) -> dict[str, Any]:
    """An application as it is described."""
    run = app.run
    described = {
        "ApplicationCodeConfigurationDescription": {
            "CodeContentType": "ZIPFILE",
            "CodeContentDescription": {
                "S3ApplicationCodeLocationDescription": {
                    key.removesuffix("Update"): value for key, value in app.program.items()
                }
            },
        },
        "EnvironmentPropertyDescriptions": {
            "PropertyGroupDescriptions": app.configuration.get("EnvironmentProperties", {}).get("PropertyGroups", [])
        },
        "ApplicationSnapshotConfigurationDescription": app.configuration["ApplicationSnapshotConfiguration"],
        **(
            {"ApplicationSystemRollbackConfigurationDescription": rollback}
            if (rollback := app.configuration.get("ApplicationSystemRollbackConfiguration"))
            else {}
        ),
        "RunConfigurationDescription": {
            **({"ApplicationRestoreConfigurationDescription": run["ApplicationRestoreConfiguration"]} if run else {}),
            "FlinkRunConfigurationDescription": run.get("FlinkRunConfiguration", {"AllowNonRestoredState": False}),
        },
    }
    return {
        "ApplicationARN": arn(app),
        "ApplicationName": app.name,
        "RuntimeEnvironment": app.runtime,
        "ServiceExecutionRole": "arn:aws:iam::123456789012:role/flink",
        "ApplicationStatus": app.status,
        "ApplicationVersionId": app.version,
        "CreateTimestamp": app.created,
        "LastUpdateTimestamp": app.version_since or app.created,
        "ApplicationVersionCreateTimestamp": app.version_since or app.created,
        "ConditionalToken": app.token,
        "ApplicationMode": "STREAMING",
        "ApplicationConfigurationDescription": described,
    }


def arn(app: App) -> str:
    return f"arn:aws:kinesisanalytics:{REGION}:123456789012:application/{app.name}"


def program(groups: Mapping[str, Mapping[str, str]]) -> tuple[str, Mapping[str, str]]:
    """What the user's program of ``docs/targets/aws.md`` does: read the script and the settings of its properties."""
    row, parts = groups["flinkcompat"], list[str]()
    while (key := f"script.{len(parts) + 1}") in row:
        parts.append(row[key])
    return "".join(parts), groups.get("flinkcompat.settings", {})


def page(rows: list[Any], token: str | None, key: str) -> dict[str, Any]:
    """The part of a list from a token on."""
    begin = int(token or 0)
    more = {"NextToken": str(begin + PAGE)} if begin + PAGE < len(rows) else {}
    return {key: rows[begin : begin + PAGE], **more}


def envelope_faults(value: Any, shape: Any) -> str:
    """In which way a value is not of a shape of the vendor's model; botocore itself looks past enums and patterns."""
    if shape is None:
        return "" if not value else "there is nothing to answer"
    report = ParamValidator().validate(value, shape)
    return str(report.generate_report()) or "; ".join(_faults(value, shape, shape.name))


def _faults(value: Any, shape: Any, place: str) -> Iterator[str]:
    if shape.type_name == "structure":
        for key, each in value.items():
            yield from _faults(each, shape.members[key], f"{place}.{key}")
    elif shape.type_name == "list":
        yield from _beyond(len(value), shape, place)
        for each in value:
            yield from _faults(each, shape.member, f"{place}[]")
    elif shape.type_name == "map":
        yield from _beyond(len(value), shape, place)
        for key, each in value.items():
            yield from _faults(key, shape.key, f"{place} key")
            yield from _faults(each, shape.value, f"{place}[{key}]")
    elif shape.type_name == "string":
        yield from _beyond(len(value), shape, place)
        if shape.enum and value not in shape.enum:
            yield f"{place}: {value!r} is none of {shape.enum}"
        if (pattern := shape.metadata.get("pattern")) and not re.fullmatch(pattern, value):
            yield f"{place}: {value!r} is not of {pattern}"


def _beyond(size: int, shape: Any, place: str) -> Iterator[str]:
    least, most = shape.metadata.get("min", 0), shape.metadata.get("max")
    if size < least or (most is not None and size > most):
        yield f"{place}: {size} is not within {least} and {most}"


def _snap_row(snap: Snap) -> dict[str, Any]:
    return {
        "SnapshotName": snap.name,
        "SnapshotStatus": snap.status,
        "ApplicationVersionId": snap.version,
        "SnapshotCreationTimestamp": snap.created,
    }


def _op_row(op: Op, **more: Any) -> dict[str, Any]:
    ended = {"EndTime": op.ended} if op.ended else {}
    return {"Operation": op.kind, "OperationStatus": op.status, "StartTime": op.began, **ended, **more}
