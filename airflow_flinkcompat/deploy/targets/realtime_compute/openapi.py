"""Calls of Realtime Compute's OpenAPI (version 2022-07-18) through the vendor's SDK.

Almost every answer has HTTP status 200 and contains a success flag. Values are models of the SDK, which have no type
annotations.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from airflow_flinkcompat.deploy.errors import DeployError, condense
from airflow_flinkcompat.deploy.flink.rest import ApiError, Closing
from airflow_flinkcompat.deploy.targets.realtime_compute.settings import WorkspaceSettings
from airflow_flinkcompat.model import install_command
from airflow_flinkcompat.secrets.redact import Redactor

_SDK = "alibabacloud_ververica20220718"
_OK, _UNAUTHORIZED, _FORBIDDEN = 200, 401, 403
_PAGE = 100
_ATTEMPTS = 4
_THROTTLED = "Throttling"
# Error codes of Alibaba Cloud's API gateway, which is common to all services.
_WRONG_KEY = re.compile("InvalidAccessKey|SignatureDoesNotMatch|IncompleteSignature|InvalidSecurityToken|MissingAccess")
_NO_RIGHT = re.compile("Forbidden|NoPermission|AccessDenied|Unauthorized", re.IGNORECASE)
# The service's own error codes are undocumented, so a missing object is recognized by the message.
_ABSENT = re.compile(r"not[\s_-]?(?:be[\s_-]?)?(?:found|exist)|no such|不存在", re.IGNORECASE)


class RealtimeComputeError(ApiError):
    """A call failed; ``code`` is the service's error code, or "" without an answer."""

    def __init__(self, message: str, status: int | None = None, reason: str = "", code: str = "") -> None:
        super().__init__(message, status, reason)
        self.code = code

    @property
    def unanswered(self) -> bool:
        """True if the outcome of the call is unknown, for example after a server error."""
        return self.status is None or self.status >= 500

    @property
    def throttled(self) -> bool:
        """True if the call exceeded the rate limit, so that it had no effect."""
        return self.code.startswith(_THROTTLED)

    @property
    def denied(self) -> bool:
        return self.status == _FORBIDDEN or bool(_NO_RIGHT.search(self.code))

    @property
    def absent(self) -> bool:
        """True if the service answered that the object does not exist."""
        return not self.unanswered and not self.denied and bool(_ABSENT.search(f"{self.code} {self.reason}"))


class OpenApi(Closing):
    """Calls for a namespace of a workspace. Raises DeployError if the SDK is not installed."""

    def __init__(self, settings: WorkspaceSettings) -> None:
        self.settings = settings
        try:
            self.models: Any = importlib.import_module(f"{_SDK}.models")
            client = importlib.import_module(f"{_SDK}.client").Client
            config = importlib.import_module("alibabacloud_tea_openapi.utils_models").Config
            self._runtime: Any = importlib.import_module("darabonba.runtime").RuntimeOptions
        except ImportError as error:
            raise DeployError(
                f"the SDK of Realtime Compute cannot be imported ({error}): {install_command('vvr')}"
            ) from None
        credential, milliseconds = settings.credential, int(settings.timeout * 1000)
        self._client: Any = client(
            config(
                access_key_id=credential.key_id,
                access_key_secret=credential.key_secret,
                security_token=credential.token,
                endpoint=settings.host,
                protocol=settings.scheme.upper(),
                connect_timeout=milliseconds,
                read_timeout=milliseconds,
            )
        )
        secrets = filter(None, (credential.key_secret, credential.token))
        self.redactor = Redactor.of(("a credential of the connection", each) for each in secrets)

    @property
    def place(self) -> str:
        return f"Realtime Compute at {self.settings.host}, namespace {self.settings.namespace}"

    # ------------------------------------------------------------------------------------------------- deployments
    def deployments(self, **filters: str) -> list[Any]:
        """Deployments that match the service's filters (``name``, ``label_key``, ``label_value_array``)."""
        return self._pages("ListDeployments", **filters)

    def deployment(self, deployment_id: str) -> Any:
        return self.call("GetDeployment", deployment_id).data

    def create(self, deployment: Any) -> Any:
        request = self.models.CreateDeploymentRequest(body=deployment)
        return self.call("CreateDeployment", request=request, repeat=False).data

    def update(self, deployment_id: str, deployment: Any) -> None:
        request = self.models.UpdateDeploymentRequest(body=deployment)
        self.call("UpdateDeployment", deployment_id, request=request, repeat=False)

    def default_engine_version(self) -> str:
        return str(self.call("ListEngineVersionMetadata", namespace=False).data.default_engine_version)

    def offered_engine_versions(self) -> list[str]:
        """The platform's names of the engine versions that it offers."""
        found = self.call("ListEngineVersionMetadata", namespace=False).data.engine_version_metadata or ()
        return [str(each.engine_version) for each in found]

    def validate(self, statement: Any) -> Any:
        return self.call("ValidateSqlStatement", request=self.models.ValidateSqlStatementRequest(body=statement)).data

    # ------------------------------------------------------------------------------------------------ job instances
    def jobs(self, deployment_id: str) -> list[Any]:
        return self._pages("ListJobs", deployment_id=deployment_id)

    def job(self, job_id: str) -> Any | None:
        return self._get("GetJob", job_id)

    def start(self, parameters: Any) -> Any:
        """Start a job instance and return it."""
        request = self.models.StartJobWithParamsRequest(body=parameters)
        return self.call("StartJobWithParams", request=request, repeat=False).data

    def stop(self, job_id: str, strategy: str) -> None:
        """Request a stop of a job instance, with the strategy ``NONE`` or ``STOP_WITH_SAVEPOINT``."""
        body = self.models.StopJobRequestBody(stop_strategy=strategy)
        self.call("StopJob", job_id, request=self.models.StopJobRequest(body=body), repeat=False)

    def flink(self, job_id: str, path: str) -> str:
        """The answer of a JobManager's REST API to a GET request."""
        request = self.models.FlinkApiProxyRequest(
            flink_api_path=path, namespace=self.settings.namespace, resource_id=job_id, resource_type="jobs"
        )
        return str(self.call("FlinkApiProxy", request=request, namespace=False, repeat=False).data or "")

    # --------------------------------------------------------------------------------------------------- savepoints
    def savepoints(self, **filters: str) -> list[Any]:
        """Savepoints of a deployment (``deployment_id``) or of a job instance (``job_id``)."""
        return self._pages("ListSavepoints", **filters)

    def savepoint(self, savepoint_id: str) -> Any | None:
        return self._get("GetSavepoint", savepoint_id)

    def create_savepoint(self, deployment_id: str, description: str) -> None:
        """Request a savepoint in canonical format of the job instance that a deployment runs."""
        request = self.models.CreateSavepointRequest(
            deployment_id=deployment_id, description=description, native_format=False
        )
        self.call("CreateSavepoint", request=request, repeat=False)

    # --------------------------------------------------------------------------------------------------------- calls
    def _get(self, action: str, name: str) -> Any | None:
        """An object, or None if the service reports that it does not exist."""
        try:
            found = self.call(action, name).data
        except RealtimeComputeError as error:
            if error.absent:
                return None
            raise
        return (
            found if found is not None and any(found.to_map().values()) else None
        )  # an empty model means that the object does not exist

    def _pages(self, action: str, **filters: str) -> list[Any]:
        found: list[Any] = []
        while True:
            index = len(found) // _PAGE + 1
            request = getattr(self.models, f"{action}Request")(page_index=index, page_size=_PAGE, **filters)
            rows = self.call(action, request=request).data or []
            found += rows
            if len(rows) < _PAGE:
                return found

    def call(self, action: str, *path: str, request: Any = None, namespace: bool = True, repeat: bool = True) -> Any:
        """Call an action of the SDK by name."""
        method = getattr(self._client, re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower() + "_with_options")
        arguments = [self.settings.namespace] * namespace + [*path] + [request] * (request is not None)

        def ask() -> Any:
            headers = getattr(self.models, f"{action}Headers")(workspace=self.settings.workspace)
            try:
                body = method(*arguments, headers, self._runtime()).body
            except Exception as error:  # the SDK has several error hierarchies, and wraps errors of its HTTP client
                raise self._error(action, error) from None
            if body is None or body.success is not True:
                raise self._refused(action, body)
            return body

        def again(error: BaseException) -> bool:
            return isinstance(error, RealtimeComputeError) and (error.throttled or (repeat and error.unanswered))

        repeating = Retrying(
            retry=retry_if_exception(again),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.25, max=2.0),
            reraise=True,
        )
        return repeating(ask)

    def _refused(self, action: str, body: Any) -> RealtimeComputeError:
        """The error for an answer without success."""
        if body is None or body.success is None:
            return RealtimeComputeError(f"{self.place} answered {action} without a success flag")
        code, reason = str(body.error_code or ""), self._masked(str(body.error_message or "no reason reported"))
        words = ": ".join(filter(None, (code, reason)))
        message = f"{self.place} refused {action}: {words}{self._remedy(_OK, code)}"
        return RealtimeComputeError(message, _OK, reason, code)

    def _error(self, action: str, error: Exception) -> RealtimeComputeError:
        status, code = getattr(error, "status_code", None), str(getattr(error, "code", None) or "")
        if not isinstance(status, int):
            why = self._masked(str(error)) or type(error).__name__
            return RealtimeComputeError(
                f"{self.place} does not answer {action} ({why}). Check endpoint or region of {self.settings.place}"
            )
        reason = self._masked(str(getattr(error, "message", None) or error))
        message = f"{self.place} answered {action} with {status} {code}: {reason}{self._remedy(status, code)}"
        return RealtimeComputeError(message, status, reason, code)

    def _remedy(self, status: int, code: str) -> str:
        if status == _UNAUTHORIZED or _WRONG_KEY.search(code):
            return f". Check the access key of {self.settings.place}"
        if status == _FORBIDDEN or _NO_RIGHT.search(code):
            return (
                ". Attach the RAM policy of docs/targets/realtime-compute.md to the user of the access key, and make "
                f"the user a member of namespace {self.settings.namespace}"
            )
        return ""

    def _masked(self, text: str) -> str:
        return condense(text, self.redactor)
