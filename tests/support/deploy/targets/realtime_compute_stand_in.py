"""A stand-in for Realtime Compute's OpenAPI: its envelope, with jobs in memory or on a real Flink behind it.

It was written after the vendor's SDK (1.14) and documents alone, and never held beside the service. Whatever comes in
and goes out passes through the SDK's own models, and has to come out of them as it went in; what does not is kept in
``faults``. Requests have to be signed by the right key, as the SDK signs them.
"""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx
from alibabacloud_tea_openapi.utils import Utils
from alibabacloud_ververica20220718 import models
from darabonba.request import DaraRequest
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME
from airflow_flinkcompat.deploy.target import JobRef, Operation, Snapshot, Start, Verb
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.model import JobSpec

KEY_ID, KEY_SECRET, WORKSPACE, NAMESPACE = "stand-in-key", "stand-in-secret", "a14bd5d90a4b", "work-default"
ENGINE_VERSION, NEXT_VERSION = "vvr-8.0.11-flink-1.17", "vvr-11.1-jdk11-flink-1.20"
_ALGORITHM = "ACS3-HMAC-SHA256"
_ACTIVE = ("STARTING", "RUNNING", "CANCELLING")
_JSON = "application/json"


class Refused(Exception):
    """The service refuses a call: an error code and a message, in an answer of status 200."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Seen:
    """A job as its backend sees it: a state of the platform, why it failed, and Flink's own state."""

    state: str
    failure: str = ""
    flink: str = ""


class Backend(Protocol):
    """What runs the jobs. ``job_id``: the platform's."""

    def start(self, job_id: str, name: str, script: str, conf: Mapping[str, str], savepoint: str | None) -> None: ...
    def look(self, job_id: str) -> Seen: ...
    def save(self, job_id: str, stop: bool) -> None: ...
    def saved(self, job_id: str) -> str | Exception | None:
        """The place of the savepoint that was asked for last, why there is none, or None while it is at work."""

    def cancel(self, job_id: str) -> None: ...
    def flink(self, job_id: str, path: str) -> Any:
        """What the JobManager answers. Raises Refused."""


# ----------------------------------------------------------------------------------------------------------- in memory
@dataclass
class _Job:
    name: str
    restored: str | None
    seen: Seen = Seen("RUNNING", flink="RUNNING")
    saved: str | Exception | None = None


@dataclass
class InMemory:
    """Jobs that start, are saved and end at once.

    ``refuses``: names whose next start from a savepoint fails; ``saves``: whether savepoints succeed.
    """

    jobs: dict[str, _Job] = field(default_factory=dict)
    refuses: set[str] = field(default_factory=set)
    saves: bool = True

    def start(self, job_id: str, name: str, script: str, conf: Mapping[str, str], savepoint: str | None) -> None:
        self.jobs[job_id] = _Job(name, savepoint)
        if savepoint is not None and name in self.refuses:
            self.refuses.discard(name)
            self.jobs[job_id].seen = Seen("FAILED", "Failed to rollback to checkpoint/savepoint")

    def look(self, job_id: str) -> Seen:
        return self.jobs[job_id].seen

    def save(self, job_id: str, stop: bool) -> None:
        job = self.jobs[job_id]
        if not self.saves:
            job.saved = RuntimeError("the disk is full")
            return
        job.saved = f"oss://bucket/flink-jobs/deployments/{job.name}/checkpoints/sp-{uuid.uuid4().hex[:4]}"
        if stop:
            job.seen = Seen("FINISHED")

    def saved(self, job_id: str) -> str | Exception | None:
        return self.jobs[job_id].saved

    def cancel(self, job_id: str) -> None:
        self.jobs[job_id].seen = Seen("CANCELLED")

    def flink(self, job_id: str, path: str) -> Any:
        job = self.jobs[job_id]
        if job.seen.state != "RUNNING":
            raise Refused("FlinkProxyFailed", "the job is not running")
        flink_id = uuid.uuid5(uuid.NAMESPACE_URL, job_id).hex
        latest = (
            {"restored": {"external_path": job.restored, "is_savepoint": "chk-" not in job.restored}}
            if job.restored
            else {}
        )
        answers = {
            "/jobs/overview": {"jobs": [{"jid": flink_id, "name": job_id, "state": job.seen.flink}]},
            f"/jobs/{flink_id}/status": {"status": job.seen.flink},
            f"/jobs/{flink_id}": {"name": job_id, "vertices": [{"id": "v", "status": "RUNNING"}]},
            f"/jobs/{flink_id}/exceptions": {"exceptionHistory": {"entries": []}},
            f"/jobs/{flink_id}/checkpoints": {"counts": {"completed": 1, "total": 1}, "latest": latest},
            f"/jobs/{flink_id}/vertices/v": {"subtasks": [{"status-duration": {"RUNNING": 1}}]},
            f"/jobs/{flink_id}/vertices/v/metrics": [],
        }
        if path not in answers:
            raise Refused("FlinkProxyFailed", f"404: {path}")
        return answers[path]


# -------------------------------------------------------------------------------------------------------- a real Flink
class OnFlink:
    """Jobs on the JobManager of a real Flink, which runs scripts by its own driver, with real savepoints."""

    def __init__(self, jobmanager_url: str) -> None:
        self._target = JobManagerTarget(jobmanager_url)
        self._http = httpx.Client(base_url=jobmanager_url, timeout=30)
        self._starting: dict[str, threading.Thread] = {}
        self._refused: dict[str, str] = {}
        self._operations: dict[str, Operation] = {}

    def close(self) -> None:
        for thread in self._starting.values():
            thread.join()
        self._target.close()
        self._http.close()

    def start(self, job_id: str, name: str, script: str, conf: Mapping[str, str], savepoint: str | None) -> None:
        spec = JobSpec(script, {**conf, JOB_NAME: job_id}, source="deployment.sql")
        given = Start(Snapshot(savepoint) if savepoint else None)

        def run() -> None:
            try:
                self._target.start(spec, given, _flink_id(job_id))
            except DeployError as error:
                self._refused[job_id] = str(error)

        self._starting[job_id] = threading.Thread(target=run)
        self._starting[job_id].start()

    def look(self, job_id: str) -> Seen:
        if self._starting[job_id].is_alive():
            return Seen("STARTING")
        if job_id in self._refused:
            return Seen("FAILED", self._refused[job_id])
        status = self._target.status(JobRef(_flink_id(job_id)))
        if status is None:
            return Seen("FAILED", "Flink does not know the job")
        states = {"CANCELED": "CANCELLED", "FAILED": "FAILED", "FINISHED": "FINISHED", "CANCELLING": "CANCELLING"}
        return Seen(states.get(status.state, "RUNNING"), status.failure or "", status.state)

    def save(self, job_id: str, stop: bool) -> None:
        ask = self._target.stop if stop else self._target.savepoint
        self._operations[job_id] = ask(JobRef(_flink_id(job_id)), uuid.uuid4().hex, None)

    def saved(self, job_id: str) -> str | Exception | None:
        operation = self._operations[job_id]
        assert operation.verb in (Verb.STOP, Verb.SAVEPOINT)
        try:
            return self._target.poll(operation).snapshot
        except DeployError as error:
            return error

    def cancel(self, job_id: str) -> None:
        self._starting[job_id].join()
        with suppress(DeployError):
            self._target.cancel(JobRef(_flink_id(job_id)))

    def flink(self, job_id: str, path: str) -> Any:
        answer = self._http.get(path)
        if answer.status_code != httpx.codes.OK:
            raise Refused("FlinkProxyFailed", answer.text)
        found = answer.json()
        if path == "/jobs/overview":  # there every job has a JobManager of its own
            found["jobs"] = [row for row in found["jobs"] if row["jid"] == _flink_id(job_id)]
        return found


def _flink_id(job_id: str) -> str:
    return job_id.replace("-", "")


# ---------------------------------------------------------------------------------------------------------- the service
@dataclass
class Service:
    """The platform itself, which outlives every target.

    ``loses``: how many answers to each action are lost after it was done; ``fails``: the error that the next call of
    an action is answered with; ``asked``: the actions that were called. ``drops``: fields that an update does not keep.
    """

    backend: Backend
    deployments: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    savepoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    loses: Counter[str] = field(default_factory=Counter)
    fails: dict[str, Refused] = field(default_factory=dict)
    denies: set[str] = field(default_factory=set)
    drops: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    # -------------------------------------------------------------------------------------------------- deployments
    def add(self, name: str, **more: Any) -> dict[str, Any]:
        """A deployment, as one that a person made in the console."""
        deployment = {
            "deploymentId": str(uuid.uuid4()),
            "name": name,
            "namespace": NAMESPACE,
            "workspace": WORKSPACE,
            "engineVersion": ENGINE_VERSION,
            "executionMode": "STREAMING",
            "deploymentTarget": {"mode": "PER_JOB", "name": "default-queue"},
            "artifact": {"kind": "SQLSCRIPT", "sqlArtifact": {"sqlScript": "SELECT 1", "additionalDependencies": []}},
            "flinkConf": {"taskmanager.numberOfTaskSlots": 1},
            "labels": {},
            "localVariables": [],
            "streamingResourceSetting": {"resourceSettingMode": "BASIC", "basicResourceSetting": {"parallelism": 1}},
            "createdAt": _seconds(),
            "modifiedAt": _seconds(),
            **more,
        }
        self.deployments[deployment["deploymentId"]] = deployment
        return deployment

    def list_deployments(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        found = list(self.deployments.values())
        if "name" in query:  # it looks for a part, as the console's search does
            found = [each for each in found if query["name"] in each["name"]]
        if "labelKey" in query:
            values = query.get("labelValueArray", "").split(";")
            found = [each for each in found if each["labels"].get(query["labelKey"]) in values]
        return found

    def get_deployment(self, deployment_id: str) -> dict[str, Any]:
        if deployment_id not in self.deployments:
            raise Refused("DeploymentNotFound", f"Deployment {deployment_id} not found")
        return self.deployments[deployment_id]

    def create_deployment(self, body: dict[str, Any]) -> dict[str, Any]:
        if any(each["name"] == body["name"] for each in self.deployments.values()):
            raise Refused("DeploymentExists", f"Deployment {body['name']} already exists")
        return self.add(**body)

    def update_deployment(self, body: dict[str, Any], deployment_id: str) -> dict[str, Any]:
        deployment = self.get_deployment(deployment_id)
        kept = {key: value for key, value in body.items() if key not in self.drops}
        deployment.update(kept, modifiedAt=_seconds())
        return deployment

    def delete_deployment(self, deployment_id: str) -> None:
        del self.deployments[self.get_deployment(deployment_id)["deploymentId"]]

    def validate(self, body: dict[str, Any]) -> dict[str, Any]:
        if "no_such_table" in body["statement"]:
            details = {"message": "Object 'no_such_table' not found", "lineNumber": 2, "columnNumber": 7}
            return {"success": True, "validationResult": "VALIDATION_RESULT_INVALID", "errorDetails": details}
        return {"success": True, "validationResult": "VALIDATION_RESULT_VALID_INSERT_QUERY", "message": ""}

    # ------------------------------------------------------------------------------------------------ job instances
    def start_job(self, body: dict[str, Any]) -> dict[str, Any]:
        deployment = self.get_deployment(body["deploymentId"])
        strategy = body["restoreStrategy"]
        location = None
        if strategy["kind"] == "FROM_SAVEPOINT":
            savepoint = self.savepoints.get(strategy["savepointId"])
            if savepoint is None:
                raise Refused("SavepointNotFound", f"Savepoint {strategy['savepointId']} not found")
            location = self.paths[strategy["savepointId"]]
        job_id, now = str(uuid.uuid4()), int(time.time())
        conf = dict(deployment["flinkConf"])
        self.jobs[job_id] = {
            "jobId": job_id,
            "deploymentId": deployment["deploymentId"],
            "deploymentName": deployment["name"],
            "namespace": NAMESPACE,
            "workspace": WORKSPACE,
            "executionMode": "STREAMING",
            "engineVersion": deployment["engineVersion"],
            "artifact": json.loads(json.dumps(deployment["artifact"])),
            "flinkConf": {"execution.runtime-mode": "STREAMING", **conf},
            "userFlinkConf": conf,
            "localVariables": body.get("localVariables", []),
            "restoreStrategy": strategy,
            "status": {"currentJobStatus": "STARTING"},
            "createdAt": str(now),
            "startTime": now,
        }
        script = deployment["artifact"]["sqlArtifact"]["sqlScript"]
        texts = {key: str(value) for key, value in conf.items()}
        self.backend.start(job_id, deployment["name"], script, texts, location)
        return self.jobs[job_id]

    def get_job(self, job_id: str) -> dict[str, Any]:
        if job_id not in self.jobs:
            raise Refused("JobNotFound", f"Job {job_id} not found")
        job = self.jobs[job_id]
        if job["status"]["currentJobStatus"] in _ACTIVE:
            seen = self.backend.look(job_id)
            job["status"] = {"currentJobStatus": seen.state}
            if seen.state == "FAILED":
                job["status"]["failure"] = {"message": seen.failure, "reason": "", "failedAt": int(time.time())}
            if seen.state == "RUNNING":
                job["status"]["running"] = {"observedFlinkJobStatus": seen.flink, "observedFlinkJobRestarts": 0}
        return job

    def list_jobs(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        found = [each for each in self.jobs.values() if each["deploymentId"] == query["deploymentId"]]
        return [self.get_job(each["jobId"]) for each in reversed(found)]

    def stop_job(self, body: dict[str, Any], job_id: str) -> dict[str, Any]:
        job = self.get_job(job_id)
        if job["status"]["currentJobStatus"] not in _ACTIVE:
            raise Refused("JobNotRunning", f"Job {job_id} is not running")
        if body["stopStrategy"] == "NONE":
            self.backend.cancel(job_id)
        else:
            self._save(job, "STOP_WITH_SAVEPOINT")
        return self.get_job(job_id)

    def flink(self, query: Mapping[str, str]) -> str:
        if query["resourceType"] != "jobs" or query["namespace"] != NAMESPACE:
            raise Refused("ResourceNotFound", "no such resource")
        self.get_job(query["resourceId"])
        return json.dumps(self.backend.flink(query["resourceId"], query["flinkApiPath"]))

    # --------------------------------------------------------------------------------------------------- savepoints
    def create_savepoint(self, body: dict[str, Any]) -> dict[str, Any]:
        active = [
            job
            for job in self.list_jobs({"deploymentId": body["deploymentId"]})
            if job["status"]["currentJobStatus"] in _ACTIVE
        ]
        if not active:
            raise Refused("JobNotRunning", "the deployment has no running job")
        return self._save(active[0], "USER_REQUEST", body.get("description", ""))

    def _save(self, job: dict[str, Any], origin: str, description: str = "") -> dict[str, Any]:
        stops = origin == "STOP_WITH_SAVEPOINT"
        self.backend.save(job["jobId"], stops)
        savepoint = {
            "savepointId": str(uuid.uuid4()),
            "jobId": job["jobId"],
            "deploymentId": job["deploymentId"],
            "namespace": NAMESPACE,
            "savepointOrigin": origin,
            "nativeFormat": False,
            "stopWithDrainEnabled": False,
            "description": description,
            "createdAt": int(time.time()),
            "status": {"state": "STARTED"},
        }
        self.savepoints[savepoint["savepointId"]] = savepoint
        return savepoint

    def get_savepoint(self, savepoint_id: str) -> dict[str, Any]:
        if savepoint_id not in self.savepoints:
            raise Refused("SavepointNotFound", f"Savepoint {savepoint_id} not found")
        savepoint = self.savepoints[savepoint_id]
        if savepoint["status"]["state"] == "STARTED":
            saved = self.backend.saved(savepoint["jobId"])
            if isinstance(saved, Exception):
                savepoint["status"] = {"state": "FAILED", "failure": {"message": str(saved), "reason": ""}}
            elif saved is not None:
                savepoint["status"] = {"state": "COMPLETED"}
                savepoint["savepointLocation"] = saved.replace("oss://", "https://oss/")  # as in the documents
                self.paths[savepoint_id] = saved
        return savepoint

    def list_savepoints(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        of = {key: query[key] for key in ("deploymentId", "jobId") if key in query}
        found = [each for each in self.savepoints.values() if all(each[key] == of[key] for key in of)]
        return [self.get_savepoint(each["savepointId"]) for each in reversed(found)]


def no_address(which: str) -> str:
    """There is none to ask for."""
    raise AssertionError(f"it is not reached by a {which}")


def access(url: str, **more: Any) -> Access:
    """How a connection opens a target of the stand-in."""
    settings = {
        "endpoint": url,
        "workspace": WORKSPACE,
        "namespace": NAMESPACE,
        "access_key_id": KEY_ID,
        "access_key_secret": KEY_SECRET,
        "deployment_target": "default-queue",
        **more,
    }
    return Access(no_address, settings, "connection 'vvr'")


_ID = r"([^/:]+)"
_SPACE = f"/api/v2/namespaces/{NAMESPACE}"
# Action: method, path, and what does it. A list is answered by pages.
ROUTES: Mapping[str, tuple[str, str, Callable[..., Any]]] = {
    "ListDeployments": ("GET", f"{_SPACE}/deployments", Service.list_deployments),
    "GetDeployment": ("GET", f"{_SPACE}/deployments/{_ID}", Service.get_deployment),
    "CreateDeployment": ("POST", f"{_SPACE}/deployments", Service.create_deployment),
    "UpdateDeployment": ("PUT", f"{_SPACE}/deployments/{_ID}", Service.update_deployment),
    "DeleteDeployment": ("DELETE", f"{_SPACE}/deployments/{_ID}", Service.delete_deployment),
    "ValidateSqlStatement": ("POST", f"{_SPACE}/sql-statement/validate", Service.validate),
    "StartJobWithParams": ("POST", f"{_SPACE}/jobs:start", Service.start_job),
    "StopJob": ("POST", f"{_SPACE}/jobs/{_ID}:stop", Service.stop_job),
    "ListJobs": ("GET", f"{_SPACE}/jobs", Service.list_jobs),
    "GetJob": ("GET", f"{_SPACE}/jobs/{_ID}", Service.get_job),
    "CreateSavepoint": ("POST", f"{_SPACE}/savepoints", Service.create_savepoint),
    "ListSavepoints": ("GET", f"{_SPACE}/savepoints", Service.list_savepoints),
    "GetSavepoint": ("GET", f"{_SPACE}/savepoints/{_ID}", Service.get_savepoint),
    "FlinkApiProxy": ("GET", "/flink-ui/v2/proxy", Service.flink),
    "ListEngineVersionMetadata": (
        "GET",
        "/api/v2/engine-version-meta.json",
        lambda _: {
            "defaultEngineVersion": ENGINE_VERSION,
            "engineVersionMetadata": [
                {"engineVersion": each, "status": "STABLE"} for each in (ENGINE_VERSION, NEXT_VERSION)
            ],
        },
    ),
}
# The body of these requests is a model by itself; that of CreateSavepoint is the fields of its request.
_BODIES = {
    "CreateDeployment": models.Deployment,
    "UpdateDeployment": models.Deployment,
    "ValidateSqlStatement": models.SqlStatementWithContext,
    "StartJobWithParams": models.JobStartParameters,
    "StopJob": models.StopJobRequestBody,
    "CreateSavepoint": models.CreateSavepointRequest,
}


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing is written about each request."""


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """A server on a port of this machine; its address."""

    @Request.application
    def answer(request: Request) -> Response:
        with service.lock:
            return _answer(service, request)

    server = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(service: Service, request: Request) -> Response:
    action = request.headers.get("X-Acs-Action", "")
    service.asked.append(action)
    if (wrong := _signed_wrongly(request)) is not None:
        return _gateway_error(*wrong)
    if action in service.denies:
        return _gateway_error(403, "NoPermission", "You are not authorized to do this operation")
    method, path, do = ROUTES[action]
    found = re.fullmatch(path, request.path)
    if request.method != method or found is None or request.headers.get("Workspace") != WORKSPACE:
        service.faults.append(f"{action}: {request.method} {request.path}")
        return _gateway_error(404, "InvalidAction.NotFound", "the specified action is not found")
    extra: dict[str, Any] = {}
    try:
        if action in service.fails:
            raise service.fails.pop(action)
        given = _given(service, action, request)
        data = do(service, *given, *found.groups())
        if isinstance(data, list):
            index, size = (int(request.args[key]) for key in ("pageIndex", "pageSize"))
            extra = {"pageIndex": index, "pageSize": size, "totalSize": len(data)}
            data = data[(index - 1) * size : index * size]
        body = {"success": True, "httpCode": 200, "requestId": uuid.uuid4().hex.upper(), "data": data, **extra}
    except Refused as refused:
        body = {
            "success": False,
            "httpCode": 200,
            "requestId": uuid.uuid4().hex.upper(),
            "errorCode": refused.code,
            "errorMessage": str(refused),
        }
    _same(service, f"the answer to {action}", getattr(models, f"{action}ResponseBody"), body)
    if service.loses[action] > 0:
        service.loses[action] -= 1
        return Response("<html>upstream timed out</html>", 504, mimetype="text/html")
    return Response(json.dumps(body), mimetype=_JSON)


def _given(service: Service, action: str, request: Request) -> list[Any]:
    """What a call is given: its body, or its query where it has one."""
    if request.method in ("POST", "PUT"):
        body = json.loads(request.get_data())
        _same(service, f"the body of {action}", _BODIES[action], body)
        return [body]
    if f"{action}Request" not in vars(models):
        return []
    query = dict(request.args.items())
    typed = {key: int(value) if key.startswith("page") else value for key, value in query.items()}
    _same(service, f"the query of {action}", getattr(models, f"{action}Request"), typed)
    return [query]


def _same(service: Service, what: str, model: Any, given: Mapping[str, Any]) -> None:
    """Keep as a fault what the SDK's model does not take, or gives back otherwise."""
    try:
        read = model().from_map(json.loads(json.dumps(given)))
        read.validate()
        back = read.to_map()
    except Exception as error:
        service.faults.append(f"{what}: {type(error).__name__}: {error}")
        return
    if _filled(back) != _filled(given):
        service.faults.append(f"{what}: {given} is read as {back}")


def _filled(value: Any) -> Any:
    """Values without empty lists and maps: the SDK writes a list that was not given as an empty one."""
    if isinstance(value, Mapping):
        return {key: each for key, row in value.items() if (each := _filled(row)) not in (None, [], {})}
    return [_filled(each) for each in value] if isinstance(value, list) else value


def _signed_wrongly(request: Request) -> tuple[int, str, str] | None:
    """What is wrong with the signature, which is made anew by the SDK's own code."""
    sent = request.headers.get("Authorization", "")
    found = re.fullmatch(rf"{_ALGORITHM} Credential=([^,]+),SignedHeaders=([^,]+),Signature=\w+", sent)
    if found is None or found[1] != KEY_ID:
        return 404, "InvalidAccessKeyId.NotFound", "Specified access key is not found"
    again = DaraRequest()
    again.method = request.method
    again.pathname = request.environ["REQUEST_URI"].partition("?")[0]  # as it was sent, with its escapes
    again.query = dict(request.args.items())
    again.headers = {name: request.headers[name] for name in found[2].split(";")}
    payload = Utils.hash(request.get_data(), _ALGORITHM).hex()
    if Utils.get_authorization(again, _ALGORITHM, payload, KEY_ID, KEY_SECRET) != sent:
        return 400, "SignatureDoesNotMatch", "Specified signature is not matched with our calculation"
    return None


def _gateway_error(status: int, code: str, message: str) -> Response:
    """An error of Alibaba Cloud's own gateway, before the service."""
    body = {"Code": code, "Message": message, "RequestId": uuid.uuid4().hex.upper(), "HostId": "stand-in"}
    return Response(json.dumps(body), status, mimetype=_JSON)


def _seconds() -> str:
    return str(int(time.time()))
