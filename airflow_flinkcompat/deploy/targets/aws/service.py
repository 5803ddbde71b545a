"""Client of the API ``kinesisanalyticsv2``, with credentials, and errors with remedies."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    WaiterError,
)

from airflow_flinkcompat.deploy.errors import DeployError, SubmissionUnknown, TargetError, condense
from airflow_flinkcompat.deploy.flink.access import settings_from_environment
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.aws.properties import Groups, groups_of
from airflow_flinkcompat.deploy.targets.aws.runtimes import Runtime, program_of
from airflow_flinkcompat.secrets.redact import Redactor

# Timeout of a stop, which may take minutes for its snapshot. The value is the default of the provider's waiter.
_STOP_SECONDS = 75 * 120.0
_WAITER_SECONDS = 5
_PAGE = 50
_THROTTLED = frozenset({"ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequestsException"})
_POLICY = "see docs/targets/aws-iam-policy.json for the required permissions"
_REMEDIES = {
    "AccessDeniedException": _POLICY,
    "AccessDenied": _POLICY,
    "UnrecognizedClientException": "the credentials of the AWS connection are not valid",
    "InvalidClientTokenId": "the credentials of the AWS connection are not valid",
    "ExpiredTokenException": "the credentials of the AWS connection have expired. Renew them",
    "ExpiredToken": "the credentials of the AWS connection have expired. Renew them",
    "LimitExceededException": "delete old snapshots of the application (the service never deletes snapshots)",
    "NoSuchBucket": "check script_s3 of the connection",
}


class ServiceUnanswered(SubmissionUnknown):
    """The service did not answer a call, which may have taken effect."""


class ServiceError(TargetError):
    """The service refused a call; ``code`` is the exception's name, ``reason`` the service's message."""

    def __init__(self, message: str, code: str, reason: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


@dataclass(frozen=True)
class ManagedApplication:
    """The service's description of an application.

    ``version_since`` is the creation time of the application's current version. ``restore`` and ``snapshot`` describe
    the state that the latest start had to restore. ``drops_state`` is True if the start may ignore state.
    ``rolled_back_to`` is the version to which the service rolled back, if any. ``program`` is the program's URI in S3.
    """

    name: str
    status: str
    version: int
    token: str | None = None
    runtime: str = ""
    mode: str | None = None
    groups: Groups = field(default_factory=dict)
    version_since: datetime | None = None
    restore: str | None = None
    snapshot: str | None = None
    drops_state: bool = False
    snapshots_enabled: bool = False
    rolls_back: bool = False
    rolled_back_to: int | None = None
    program: str | None = None
    partition: str = "aws"

    @classmethod
    def of(cls, detail: Mapping[str, Any]) -> ManagedApplication:
        configuration = detail.get("ApplicationConfigurationDescription", {})
        run = configuration.get("RunConfigurationDescription", {})
        restore = run.get("ApplicationRestoreConfigurationDescription", {})
        properties = configuration.get("EnvironmentPropertyDescriptions", {})
        return cls(
            detail["ApplicationName"],
            detail["ApplicationStatus"],
            detail["ApplicationVersionId"],
            detail.get("ConditionalToken"),
            detail["RuntimeEnvironment"],
            detail.get("ApplicationMode"),
            groups_of(properties.get("PropertyGroupDescriptions", ())),
            detail.get("ApplicationVersionCreateTimestamp"),
            restore.get("ApplicationRestoreType"),
            restore.get("SnapshotName"),
            run.get("FlinkRunConfigurationDescription", {}).get("AllowNonRestoredState", False),
            configuration.get("ApplicationSnapshotConfigurationDescription", {}).get("SnapshotsEnabled", False),
            configuration.get("ApplicationSystemRollbackConfigurationDescription", {}).get("RollbackEnabled", False),
            detail.get("ApplicationVersionRolledBackTo"),
            program_of(configuration),
            detail["ApplicationARN"].split(":")[1],
        )


@dataclass(frozen=True)
class ServiceOperation:
    """A start, a stop or an update of an application, as the service records it."""

    id: str
    kind: str
    status: str
    began: datetime

    @property
    def in_progress(self) -> bool:
        return self.status == "IN_PROGRESS"

    @property
    def failed(self) -> bool:
        return self.status in ("FAILED", "CANCELLED")


@dataclass(frozen=True)
class ServiceSnapshot:
    """A snapshot of an application; ``version`` is the application's version when the snapshot was taken."""

    name: str
    status: str
    version: int
    created: datetime


class ManagedFlink:
    """A client of the service.

    ``waiter`` returns a waiter of the Amazon provider by name, and is None outside Airflow. ``poll_interval`` is the
    minimum time in seconds between two descriptions of an application, because the account's request rate is limited.
    """

    def __init__(
        self,
        client: Any,
        *,
        s3: Callable[[], Any],
        waiter: Callable[..., Any] | None = None,
        poll_interval: float = 1.0,
    ) -> None:
        self._client = client
        self._s3 = s3
        self._waiter = waiter
        self._interval = poll_interval
        self._looked = 0.0
        self.redactor = Redactor()

    @property
    def place(self) -> str:
        meta = self._client.meta
        own = "" if ".amazonaws.com" in meta.endpoint_url else f", {meta.endpoint_url}"
        return f"AWS Managed Service for Apache Flink ({meta.region_name}{own})"

    def close(self) -> None:
        self._client.close()

    def application(self, name: str, *, at_once: bool = False) -> ManagedApplication | None:
        """Describe an application. By default, wait so that calls are at least ``poll_interval`` apart."""
        if not at_once:
            time.sleep(max(0.0, self._looked + self._interval - time.monotonic()))
        try:
            return ManagedApplication.of(self._call("describe_application", ApplicationName=name)["ApplicationDetail"])
        except ServiceError as error:
            if error.code == "ResourceNotFoundException":
                return None
            raise
        finally:
            self._looked = time.monotonic()

    def versions(self, runtimes: Collection[str]) -> Mapping[str, int]:
        """The version of every application with one of these runtime environments, by name."""
        rows = self._pages("list_applications", "ApplicationSummaries")
        return {
            row["ApplicationName"]: row["ApplicationVersionId"] for row in rows if row["RuntimeEnvironment"] in runtimes
        }

    def offered(self) -> list[str]:
        """Flink's runtime environments in the service's API model of the installed botocore."""
        found = self._client.meta.service_model.shape_for("RuntimeEnvironment").enum
        return [each for each in found if each.startswith("FLINK-")]

    def operations(self, name: str) -> tuple[ServiceOperation, ...]:
        """All operations of an application that the service remembers, latest first."""
        rows = self._pages("list_application_operations", "ApplicationOperationInfoList", ApplicationName=name)
        found = (
            ServiceOperation(row["OperationId"], row["Operation"], row["OperationStatus"], _in_utc(row["StartTime"]))
            for row in rows
        )
        return tuple(sorted(found, key=lambda each: each.began, reverse=True))

    def failure(self, name: str, operation: ServiceOperation) -> str:
        """The reason of an operation's failure, as one line with secrets masked."""
        row = self._call("describe_application_operation", ApplicationName=name, OperationId=operation.id)
        info = row.get("ApplicationOperationInfoDetails", {}).get("OperationFailureDetails", {}).get("ErrorInfo", {})
        what = condense(info.get("ErrorString", ""), self.redactor)
        return f"{operation.kind} {operation.status}: {what or 'the service reports no reason'}"

    def snapshots(self, name: str) -> tuple[ServiceSnapshot, ...]:
        found = map(_snapshot, self._pages("list_application_snapshots", "SnapshotSummaries", ApplicationName=name))
        return tuple(sorted(found, key=lambda each: each.created, reverse=True))

    def snapshot(self, name: str, snapshot: str) -> ServiceSnapshot | None:
        try:
            row = self._call("describe_application_snapshot", ApplicationName=name, SnapshotName=snapshot)
        except ServiceError as error:
            if error.code == "ResourceNotFoundException":
                return None
            raise
        return _snapshot(row["SnapshotDetails"])

    def take_snapshot(self, name: str, snapshot: str) -> None:
        self._call("create_application_snapshot", ApplicationName=name, SnapshotName=snapshot)

    def update(self, application: ManagedApplication, groups: Groups, runtime: Runtime) -> None:
        """Set property groups and runtime of an application that has not changed since it was read."""
        if application.token is None:
            version: dict[str, Any] = {"CurrentApplicationVersionId": application.version}
        else:
            version = {"ConditionalToken": application.token}
        rows = [{"PropertyGroupId": group, "PropertyMap": dict(row)} for group, row in sorted(groups.items())]
        configuration: dict[str, Any] = {"EnvironmentPropertyUpdates": {"PropertyGroups": rows}}
        if runtime.differs_from(application.runtime, application.program):
            more, code = runtime.update_of(application.partition)
            version, configuration = version | more, configuration | code
        self._call(
            "update_application",
            ApplicationName=application.name,
            ApplicationConfigurationUpdate=configuration,
            **version,
        )

    def start(self, name: str, snapshot: str | None) -> None:
        """Start an application from an explicit snapshot or without state, regardless of earlier settings."""
        if snapshot is None:
            restore = {"ApplicationRestoreType": "SKIP_RESTORE_FROM_SNAPSHOT"}
        else:
            restore = {"ApplicationRestoreType": "RESTORE_FROM_CUSTOM_SNAPSHOT", "SnapshotName": snapshot}
        run = {
            "ApplicationRestoreConfiguration": restore,
            "FlinkRunConfiguration": {"AllowNonRestoredState": False},
        }
        self._call("start_application", ApplicationName=name, RunConfiguration=run)

    def stop(self, name: str, *, force: bool) -> None:
        self._call("stop_application", ApplicationName=name, Force=force)

    def await_stopped(self, name: str) -> None:
        """Wait until an application is READY, with the Amazon provider's waiter if available."""
        if self._waiter is None:
            try:
                poll(lambda: self._status(name), lambda seen: seen not in (None, "READY"), timeout=_STOP_SECONDS)
            except Overdue as overdue:
                raise TargetError(
                    f"application {name} is still {overdue.last} {_STOP_SECONDS:.0f} s after its stop. Check the "
                    "application in the AWS console"
                ) from None
            return
        delay = _WAITER_SECONDS if self._interval >= 1 else self._interval
        pauses = {"delay": delay, "maxAttempts": int(_STOP_SECONDS / _WAITER_SECONDS)}
        waiter = self._waiter("application_stop_complete", client=self._client, config_overrides=pauses)
        try:
            waiter.wait(ApplicationName=name)
        except WaiterError as error:
            raise TargetError(f"application {name} did not stop: {self.redactor(str(error))}") from None

    def _status(self, name: str) -> str | None:
        found = self.application(name)
        return None if found is None else found.status

    def put_object(self, bucket: str, key: str, text: str) -> None:
        content = {"Body": text.encode(), "ContentType": "application/sql; charset=utf-8"}
        self._call("put_object", client=self._s3(), Bucket=bucket, Key=key, **content)

    def get_object(self, bucket: str, key: str) -> str:
        found = self._call("get_object", client=self._s3(), Bucket=bucket, Key=key)
        return str(found["Body"].read().decode())

    def _pages(self, operation: str, rows: str, **parameters: Any) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        token: dict[str, Any] = {}
        while True:
            page = self._call(operation, Limit=_PAGE, **parameters, **token)
            found += page.get(rows, ())
            if not page.get("NextToken"):
                return found
            token = {"NextToken": page["NextToken"]}

    def _call(self, operation: str, *, client: Any = None, **parameters: Any) -> Mapping[str, Any]:
        """Call the service. Raises ServiceUnanswered, ServiceError, TargetError."""
        where = parameters.get("ApplicationName") or parameters.get("Bucket")
        what = f"{operation} of {where}" if where else operation
        try:
            answer: Mapping[str, Any] = getattr(client or self._client, operation)(**parameters)
            return answer
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            reason = self.redactor(str(error.response.get("Error", {}).get("Message", "")))
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
            message = f"{what} failed ({code}): {reason}"
            if code in _THROTTLED or status >= 500:
                raise ServiceUnanswered(message) from None
            remedy = f". {_REMEDIES[code][0].upper()}{_REMEDIES[code][1:]}" if code in _REMEDIES else ""
            raise ServiceError(f"{message.rstrip('.')}{remedy}", code, reason) from None
        except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, NoRegionError) as error:
            raise TargetError(f"{what}: {error}. Set the AWS connection that aws_conn_id names") from None
        except ParamValidationError as error:
            raise TargetError(f"{what} cannot be sent: {self.redactor(str(error))}") from None
        except BotoCoreError as error:
            raise ServiceUnanswered(f"{what} was not answered: {self.redactor(str(error))}") from None


def _snapshot(row: Mapping[str, Any]) -> ServiceSnapshot:
    created = row.get("SnapshotCreationTimestamp") or datetime.fromtimestamp(0, UTC)
    return ServiceSnapshot(row["SnapshotName"], row["SnapshotStatus"], row["ApplicationVersionId"], _in_utc(created))


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


_SERVICE = "kinesisanalyticsv2"
_VARIABLE = "FLINKCOMPAT_AWS_"
_SETTINGS = (
    "runtime_environment",
    "program",
    "former_runtime_environment",
    "former_program",
    "region_name",
    "endpoint_url",
    "script_property",
    "script_s3",
    "settings_property_group",
    "poll_interval",
)


def settings_of(access: Access) -> Mapping[str, Any]:
    """Settings of a connection, or of environment variables such as ``FLINKCOMPAT_AWS_REGION_NAME``."""
    if access.settings is not None:
        return access.settings
    return settings_from_environment(_SETTINGS, _VARIABLE)


def opened(settings: Mapping[str, Any], hook: Callable[[str], Any] | None) -> ManagedFlink:
    """A client of the service, with credentials from an Airflow connection or from boto3's search."""
    region, interval = settings.get("region_name") or None, settings.get("poll_interval")
    try:
        poll_interval = 1.0 if interval in (None, "") else float(str(interval))
    except ValueError:
        raise DeployError(f"poll_interval {interval!r} is not a number of seconds") from None
    if conn_id := settings.get("aws_conn_id"):
        if hook is None:
            raise DeployError(
                f"aws_conn_id {conn_id!r} names an Airflow connection, but this process has no connections"
            )
        if settings.get("endpoint_url"):
            raise DeployError(
                f"endpoint_url must be set in the extra of connection {str(conn_id)!r}, because aws_conn_id is set"
            )
        service, s3 = (_amazon(hook(str(conn_id)), kind) for kind in (_SERVICE, "s3"))
        client = service.get_client_type(region_name=region)
        return ManagedFlink(
            client,
            s3=lambda: s3.get_client_type(region_name=region),
            waiter=service.get_waiter,
            poll_interval=poll_interval,
        )
    import boto3  # type: ignore[import-untyped]

    try:
        client = boto3.client(_SERVICE, region_name=region, endpoint_url=settings.get("endpoint_url") or None)
    except NoRegionError as error:
        raise DeployError(f"{error} Set region_name") from None
    return ManagedFlink(client, s3=lambda: boto3.client("s3", region_name=region), poll_interval=poll_interval)


def _amazon(hook: Any, kind: str) -> Any:
    """The Amazon provider's hook of a connection, set to one service."""
    if not hasattr(hook, "get_client_type"):
        raise DeployError(f"{type(hook).__name__} is not the hook of an aws connection. Check aws_conn_id")
    hook.client_type = kind
    return hook
