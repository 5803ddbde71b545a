"""A small API server with an operator behind it, in memory, for tests below the edge of a real one.

It validates strictly by the operator's own resource definitions, keeps generation, resourceVersion and status apart,
and answers a stale resourceVersion with 409. Its operator (of 1.7 or 1.10) brings resources about each time one is
read; its JobManager is reached through the proxy of a service, as the real one.
"""

from __future__ import annotations

import base64
import copy
import json
import re
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import yaml
from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, prepare
from airflow_flinkcompat.local_flink.jars import fetch

_CUSTOM = re.compile(
    r"/apis/flink\.apache\.org/v1beta1/namespaces/(?P<namespace>[^/]+)/(?P<plural>\w+)(?:/(?P<name>[^/]+))?"
)
_CORE = re.compile(r"/api/v1/namespaces/[^/]+/(?P<plural>configmaps|secrets)(?:/(?P<name>[^/]+))?")
_PROXY = re.compile(r"/api/v1/namespaces/[^/]+/services/(?P<service>[^/:]+)-rest:rest/proxy(?P<path>/.*)")
# What a placeholder of a test stands for; the reader of scripts here takes no secrets in plain text, as Flink does.
PLACEHOLDER, SECRET = "${conn.shop.password}", "s3cr3t-of-the-shop"
_MISFIT = (
    "org.apache.flink.util.FlinkException: JobMaster for job failed.\n\tat org.apache.flink.runtime.A.b(A.java:1)\n"
    "Caused by: java.lang.IllegalStateException: Failed to rollback to checkpoint/savepoint {path}. Cannot map "
    "checkpoint/savepoint state for operator a1 to the new program"
)


def _rights() -> frozenset[tuple[str, ...]]:
    page = Path(__file__).parents[4] / "docs" / "targets" / "kubernetes-rbac.yaml"
    role = next(yaml.safe_load_all(page.read_text("utf-8")))
    return frozenset(
        (resource, verb, *([name] if name else []))
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    )


RIGHTS = _rights()
"""What the Role of the target's page grants, as resource and verb, and the name where it is that one alone."""


@cache
def schemas(version: str) -> Mapping[str, Mapping[str, Any]]:
    """The schema of each kind by its plural, closed where the definition is: a field it lacks is no field."""
    found = {}
    with zipfile.ZipFile(fetch(f"flink-kubernetes-operator-api-{version}")) as jar:
        for plural in ("flinksessionjobs", "flinkdeployments"):
            text = jar.read(f"META-INF/fabric8/{plural}.flink.apache.org-v1.yml")
            definition = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            (served,) = definition["spec"]["versions"]
            properties = served["schema"]["openAPIV3Schema"]["properties"]
            found[plural] = _closed(properties["spec"])
    # The definition is of operator 1.14. Its template has the spec of a FlinkDeployment.
    template = {"properties": {"metadata": {}, "spec": found["flinkdeployments"]}, "additionalProperties": False}
    outer = {"configuration": {}, "ingress": {}, "template": template}
    found["flinkbluegreendeployments"] = {"properties": outer, "additionalProperties": False}
    return found


def _closed(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    found = {key: _closed(value) if key != "properties" else value for key, value in schema.items()}
    if "properties" in schema:
        found["properties"] = {key: _closed(value) for key, value in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            found.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        found.pop("anyOf", None)
        found["type"] = ["integer", "string"]
    return found


class Lost(Exception):
    """A call did not arrive, or its answer did not."""


@dataclass
class FlinkJob:
    """A job of the cluster; ``restored``: the savepoint it began with, or its checkpoint since a failure.

    ``session_cluster``: the only session cluster that knows the job. None: the job has a cluster of its own.
    ``failed_at``: when it failed (seconds). ``checkpoints``: when those that are shown were complete, by their number.
    """

    id: str
    name: str
    state: str = "RUNNING"
    restored: str | None = None
    failure: str = ""
    savepoint: dict[str, Any] | None = None
    failed_at: float = 0.001
    checkpoints: dict[int, float] = field(default_factory=dict)
    session_cluster: str | None = None


@dataclass
class Flink:
    """The cluster behind the operator.

    ``misfits``: names of jobs whose next savepoint does not fit. ``refuses``: what it says to a script, by its text,
    each time. ``no_savepoints``: why it takes none. ``files``: the objects of the API server, of which ConfigMaps and
    Secrets are mounted.
    """

    jobs: dict[str, FlinkJob] = field(default_factory=dict)
    savepoints: list[str] = field(default_factory=list)
    numbered: int = 0
    misfits: set[str] = field(default_factory=set)
    refuses: dict[str, str] = field(default_factory=dict)
    no_savepoints: str = ""
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)

    def submit(self, spec: Mapping[str, Any], savepoint: str | None) -> FlinkJob:
        """Start the script of a resource. Raises DeployError, as Flink does for one it cannot plan."""
        script = self._script(spec)
        prepared = prepare(script)
        if said := self.refuses.get(script):
            raise DeployError(f"org.apache.flink.table.api.ValidationException: {said}")
        name = prepared.job_name or spec.get("flinkConfiguration", {}).get(JOB_NAME, "insert-into")
        savepoint = None if savepoint is None else re.sub("^/", "file:/", savepoint)  # as Flink completes a path
        if savepoint is not None and savepoint not in self.savepoints:
            raise DeployError(f"java.io.FileNotFoundException: no savepoint at {savepoint}")
        job = FlinkJob(uuid.uuid4().hex, name, restored=savepoint, session_cluster=spec.get("deploymentName"))
        if savepoint is not None and name in self.misfits:
            self.misfits.discard(name)
            job.state, job.restored, job.failure = "FAILED", None, _MISFIT.format(path=savepoint)
        self.jobs[job.id] = job
        return job

    def _script(self, spec: Mapping[str, Any]) -> str:
        args = spec["job"]["args"]
        if "--script" in args:
            return str(args[args.index("--script") + 1])
        (volume,) = spec["podTemplate"]["spec"]["volumes"]
        if "configMap" in volume:
            return str(self.files["configmaps", volume["configMap"]["name"]]["data"]["script.sql"])
        encoded = self.files["secrets", volume["secret"]["secretName"]]["data"]["script.sql"]
        return base64.b64decode(encoded).decode().replace(SECRET, PLACEHOLDER)

    def stop(self, job: FlinkJob) -> str:
        """Take a savepoint and end the job. Raises DeployError."""
        if self.no_savepoints:
            raise DeployError(self.no_savepoints)
        self.numbered = max(self.numbered, len(self.savepoints)) + 1  # none has the name of one that was deleted
        self.savepoints.append(f"file:/savepoints/savepoint-{self.numbered}")
        job.state = "FINISHED"
        job.savepoint = {"id": 2, "external_path": self.savepoints[-1], "checkpoint_type": "SYNC_SAVEPOINT"}
        return self.savepoints[-1]

    def asked(self, path: str, body: Mapping[str, Any]) -> str:
        """Take a savepoint of a job that goes on, or delete one, once for each trigger id; that id."""
        trigger = str(body["triggerId"])
        if trigger in self.operations:
            return trigger
        if path == "/savepoint-disposal":
            gone = body["savepoint-path"] not in self.savepoints
            failure = {"class": "FlinkException", "stack-trace": "Caused by: java.io.FileNotFoundException: no such"}
            self.operations[trigger] = {"failure-cause": failure} if gone else {}
            if not gone:
                self.savepoints.remove(body["savepoint-path"])
        elif path.endswith("/savepoints"):
            self.savepoints.append(f"{body.get('target-directory', 'file:/savepoints')}/savepoint-{trigger[:6]}")
            self.operations[trigger] = {"location": self.savepoints[-1]}
        return trigger

    def page(self, path: str, cluster: str) -> Any:
        """A page of a JobManager's REST API; None: it has none such."""
        jobs = {id_: each for id_, each in self.jobs.items() if each.session_cluster in (None, cluster)}
        if operation := re.fullmatch(r"/(?:savepoint-disposal|jobs/\w{32}/savepoints)/(\w+)", path):
            known = self.operations.get(operation[1])
            return None if known is None else {"status": {"id": "COMPLETED"}, "operation": known}
        if path == "/config":
            return {"flink-version": "2.3.0", "refresh-interval": 0}
        if path == "/jobmanager/config":
            return []
        if path == "/jobs/overview":
            return {"jobs": [{"jid": each.id, "name": each.name, "state": each.state} for each in jobs.values()]}
        found = re.fullmatch(r"/jobs/([0-9a-f]{32})(/.*)?", path)
        job = jobs.get(found[1]) if found else None
        if found is None or job is None:
            return None
        entries = [{"timestamp": job.failed_at * 1000, "stacktrace": job.failure}] if job.failure else []
        restored = None
        if job.restored:
            restored = {"external_path": job.restored, "id": int((re.findall(r"/chk-(\d+)$", job.restored) or [1])[0])}
        history = [
            {"id": number, "status": "COMPLETED", "latest_ack_timestamp": at * 1000}
            for number, at in job.checkpoints.items()
        ]
        return {
            None: {
                "jid": job.id,
                "name": job.name,
                "state": job.state,
                "job-type": "STREAMING",
                "vertices": [{"id": "v", "name": "Source", "parallelism": 1, "status": job.state}],
            },
            "/status": {"status": job.state},
            "/exceptions": {"exceptionHistory": {"entries": entries}},
            "/checkpoints": {
                "counts": {
                    "completed": len(history) or 1,
                    "total": max(job.checkpoints, default=1),
                    "restored": int(job.restored is not None),
                },
                "history": history,
                "latest": {"restored": restored, **({"savepoint": job.savepoint} if job.savepoint else {})},
            },
            "/vertices/v": {"subtasks": [{"attempt": 0, "status-duration": {"RUNNING": 1}}]},
            "/vertices/v/metrics": [],
        }.get(found[2])


@dataclass
class KubernetesStandIn:
    """``stopped``: the operator does nothing. ``lags``: it does not look at its jobs.

    ``unready``: how many calls of a JobManager find none. ``forbidden``: the methods that are no right on
    ConfigMaps and Secrets.
    ``refuses``: what an admission webhook says to every write.
    ``refused_files``: why a ConfigMap or Secret is not taken, by a part of its plural and name. ``files_made``: those
    that were.
    ``used``: the rights that were needed; what the Role of the target's page does not grant is forbidden.
    ``calls``: the writes to resources, in order. ``at``: runs before and after each of them, with its number from 0;
    what it raises is a call that was lost, or its answer. ``jobmanager``: address of a real JobManager of the session
    cluster, in place of ``flink``.
    """

    version: str = "1.10"
    flink: Flink = field(default_factory=Flink)
    jobmanager: str = ""
    objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    stopped: bool = False
    lags: bool = False
    unready: int = 0
    forbidden: frozenset[str] = frozenset()
    refuses: str = ""
    refused_files: dict[str, str] = field(default_factory=dict)
    files_made: list[str] = field(default_factory=list)
    at: Callable[[str, int], None] = lambda when, number: None
    calls: list[str] = field(default_factory=list)
    used: set[tuple[str, str]] = field(default_factory=set)
    url: str = ""
    _count: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    # ------------------------------------------------------------------------------------------------- the API server
    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        with self._lock:
            try:
                response = self._answer(request)
            except Lost:
                response = _status(503, "upstream connect error or disconnect before headers")
        return response(environ, start_response)

    def _answer(self, request: Request) -> Response:
        for pattern, answer in ((_CUSTOM, self._custom), (_CORE, self._core), (_PROXY, self._proxy)):
            if found := pattern.fullmatch(request.path):
                at = found.groupdict()
                verb = {"GET": "get" if at.get("name") or "service" in at else "list", "POST": "create"}
                asked = at.get("plural", "services/proxy"), verb.get(request.method, request.method.lower())
                if asked not in RIGHTS and (*asked, at.get("name")) not in RIGHTS:
                    return _status(403, f"cannot {asked[1]} resource {asked[0]!r}: the Role of docs/targets lacks it")
                self.used.add(asked)
                return answer(request, at)
        return _status(404, "the server could not find the requested resource")

    def _custom(self, request: Request, at: Mapping[str, str]) -> Response:
        verb = {"GET": "get" if at["name"] else "list", "POST": "create"}.get(request.method, request.method.lower())
        plural, name = at["plural"], at["name"] or ""
        if request.args.get("dryRun") == "All" or verb in ("get", "list"):
            return self._done(verb, request, plural, name, dry=verb not in ("get", "list"))
        number = len(self.calls)
        self.calls.append(f"{verb} {plural}")
        self.at("before", number)
        answer = self._done(verb, request, plural, name, dry=False)
        self.at("after", number)
        return answer

    def _done(self, verb: str, request: Request, plural: str, name: str, *, dry: bool) -> Response:
        if not self.stopped:
            self.reconcile()
        if verb == "list":
            wanted = dict(part.split("=", 1) for part in request.args.get("labelSelector", "").split(",") if part)
            found = [
                each
                for (kind, _), each in self.objects.items()
                if kind == plural and wanted.items() <= (each["metadata"].get("labels") or {}).items()
            ]
            return _json({"kind": "List", "items": found})
        if verb == "create":
            return self._created(plural, request.get_json(), dry=dry)
        known = self.objects.get((plural, name))
        if known is None:
            return _status(404, f'{plural}.flink.apache.org "{name}" not found')
        if verb == "get":
            return _json(known)
        if verb == "delete":
            wanted = request.get_json()["preconditions"]
            if any(known["metadata"][key] != value for key, value in wanted.items()):
                return _status(409, "the object has been modified; please apply your changes to the latest version")
            known["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            return _json({"kind": "Status", "status": "Success"})
        assert verb == "patch"
        assert request.content_type == "application/merge-patch+json"
        return self._patched(plural, known, request.get_json(), dry=dry)

    def _created(self, plural: str, body: dict[str, Any], *, dry: bool) -> Response:
        name = body["metadata"]["name"]
        if (plural, name) in self.objects:
            return _status(409, f'{plural}.flink.apache.org "{name}" already exists')
        if refused := self._invalid(plural, body):
            return refused
        kept = copy.deepcopy(body)
        kept["metadata"] |= {"uid": str(uuid.uuid4()), "generation": 1, "resourceVersion": self._version()}
        if not dry:
            self.objects[plural, name] = kept
        return _json(kept, 201)

    def _patched(self, plural: str, known: dict[str, Any], patch: dict[str, Any], *, dry: bool) -> Response:
        asked = (patch.get("metadata") or {}).get("resourceVersion")
        if asked is not None and asked != known["metadata"]["resourceVersion"]:
            return _status(409, "the object has been modified; please apply your changes to the latest version")
        kept = _merged(known, {key: value for key, value in patch.items() if key != "status"})
        if refused := self._invalid(plural, kept):
            return refused
        if kept["spec"].get("deploymentName") != known["spec"].get("deploymentName"):  # the operator's own webhook
            return _status(403, "admission webhook denied the request: The deploymentName can't be changed")
        kept["metadata"] |= {"uid": known["metadata"]["uid"], "resourceVersion": self._version()}
        kept["metadata"]["generation"] = known["metadata"]["generation"] + (kept["spec"] != known["spec"])
        if not dry:
            self.objects[plural, kept["metadata"]["name"]] = kept
        return _json(kept)

    def _invalid(self, plural: str, body: Mapping[str, Any]) -> Response | None:
        if self.refuses:
            return _status(403, self.refuses)
        error = jsonschema.Draft7Validator(schemas(self.version)[plural]).iter_errors(body["spec"])
        for each in error:
            path = ".".join(map(str, ("spec", *each.path)))
            if each.validator == "additionalProperties":
                return _status(400, f"strict decoding error: {path}: {each.message}")
            return _status(422, f"{path}: Invalid value: {each.message}")
        return None

    def _core(self, request: Request, at: Mapping[str, str]) -> Response:
        plural, name = at["plural"], at["name"]
        if request.method in self.forbidden:
            return _status(403, f"{plural} is forbidden")
        if request.method == "POST":
            body = request.get_json()
            key = plural, body["metadata"]["name"]
            for refused, said in self.refused_files.items():
                if refused in f"{plural}/{key[1]}":
                    return _status(403, f'{plural} "{key[1]}" is forbidden: {said}')
            if key in self.objects:
                return _status(409, f'{plural} "{key[1]}" already exists')
            if request.args.get("dryRun") != "All":
                self.objects[key] = body
                body.setdefault("data", {})
                self.files_made.append(f"{plural}/{key[1]}")
            return _json(body, 201)
        if name is None:  # nobody needs the right to list them
            return _status(403, f"{plural} is forbidden")
        if (plural, name) not in self.objects:
            return _status(404, f'{plural} "{name}" not found')
        if request.method == "PATCH":
            assert request.content_type in ("application/merge-patch+json", "application/strategic-merge-patch+json")
            merged = _merged(self.objects[plural, name], request.get_json())
            if request.args.get("dryRun") != "All":
                self.objects[plural, name] = merged
            return _json(merged)
        if request.method == "DELETE":
            del self.objects[plural, name]
            return _json({"kind": "Status", "status": "Success"})
        return _json(self.objects[plural, name])

    def _proxy(self, request: Request, at: Mapping[str, str]) -> Response:
        if self.unready > 0:
            self.unready -= 1
            return _status(503, f'no endpoints available for service "{at["service"]}-rest"')
        if self.jobmanager:
            headers = {"content-type": request.content_type} if request.content_type else {}
            url = f"{self.jobmanager}{at['path']}?{request.query_string.decode()}"
            answer = httpx.request(request.method, url, content=request.get_data(), headers=headers, timeout=180)
            return Response(answer.content, answer.status_code, content_type=answer.headers.get("content-type"))
        if request.method == "PATCH":  # a JobManager cancels its jobs so
            return _json({}, 202)
        if request.method == "POST":
            return _json({"request-id": self.flink.asked(at["path"], request.get_json())}, 202)
        page = self.flink.page(at["path"], at["service"])
        unknown = "org.apache.flink.runtime.messages.FlinkJobNotFoundException: Could not find Flink job"
        return _json({"errors": [unknown]}, 404) if page is None else _json(page)

    def _version(self) -> str:
        self._count += 1
        return str(self._count)

    # --------------------------------------------------------------------------------------------------- the operator
    def reconcile(self) -> None:
        """Bring every resource about that differs from what was reconciled last."""
        for (plural, name), document in list(self.objects.items()):
            if plural not in ("flinksessionjobs", "flinkdeployments") or "job" not in document["spec"]:
                continue
            if "deletionTimestamp" in document["metadata"]:
                if job := self._job(document):
                    job.state = "CANCELED" if job.state == "RUNNING" else job.state
                del self.objects[plural, name]
                continue
            before = copy.deepcopy(document.get("status"))
            self._reconcile(document)
            if document.get("status") != before:
                document["metadata"]["resourceVersion"] = self._version()

    def _job(self, document: Mapping[str, Any]) -> FlinkJob | None:
        found = ((document.get("status") or {}).get("jobStatus") or {}).get("jobId")
        return self.flink.jobs.get(found)

    def _reconcile(self, document: dict[str, Any]) -> None:
        status = document.setdefault("status", {})
        said = status.setdefault("jobStatus", {})
        reconciled = status.setdefault("reconciliationStatus", {})
        told = json.loads(reconciled["lastReconciledSpec"]) if "lastReconciledSpec" in reconciled else None
        last = told["spec"] if told else None
        job, spec, generation = self._job(document), document["spec"], document["metadata"]["generation"]
        if job is not None and told is not None and last["job"]["state"] != "suspended" and not self.lags:
            self._look(job, told, status)
        if generation == _generation(reconciled) and reconciled.get("state") == "DEPLOYED":
            return
        wanted, mode = spec["job"].get("state", "running"), spec["job"]["upgradeMode"]
        if wanted == "suspended" and (last is None or last["job"]["state"] == "suspended"):
            return  # of this it takes no notice
        if said.get("state") == "CANCELLING":
            assert job is not None
            job.state = "CANCELED"
            return
        if last is not None and self._settled(document, job, last):
            return
        if last is not None and last["job"]["state"] == "running" and job is not None:
            if said["state"] not in ("FINISHED", "FAILED", "CANCELED") and not self._ended(document, job, last):
                return
            if wanted == "suspended":
                if self.version != "1.7" and "deploymentName" in spec:
                    said.pop("jobId", None)
                status["lifecycleState"] = "SUSPENDED"
                status.pop("error", None)
                self._deployed(status, spec, generation)
                return
        if last is not None and last["job"]["state"] == "suspended" and mode != "stateless":
            mode = last["job"]["upgradeMode"]
        self._submit(document, spec | {"job": spec["job"] | {"upgradeMode": mode}}, first=last is None)

    @staticmethod
    def _look(job: FlinkJob, told: dict[str, Any], status: dict[str, Any]) -> None:
        if status["jobStatus"].get("state") == "CANCELLING" and job.state == "CANCELED":
            told["spec"]["job"]["state"] = "suspended"  # and the generation stays that of before
            status["reconciliationStatus"]["lastReconciledSpec"] = json.dumps(told)
        status["jobStatus"]["state"] = job.state

    def _settled(self, document: dict[str, Any], job: FlinkJob | None, last: Mapping[str, Any]) -> bool:
        """Whether nothing has to be ended first: no news, or a new nonce, which asks for ``initialSavepointPath``."""
        if _as_before(document["spec"], last):
            self._deployed(document["status"], last, document["metadata"]["generation"])
            return True
        asked, nonce = document["spec"]["job"], document["spec"]["job"].get("savepointRedeployNonce")
        if nonce is None or nonce == last["job"].get("savepointRedeployNonce"):
            return False
        if job is not None and job.state == "RUNNING":
            job.state = "CANCELED"
        document["status"]["jobStatus"]["upgradeSavepointPath"] = asked.get("initialSavepointPath")
        self._submit(document, document["spec"] | {"job": asked | {"upgradeMode": "savepoint"}}, first=False)
        return True

    def _ended(self, document: dict[str, Any], job: FlinkJob, last: Mapping[str, Any]) -> bool:
        """End the job of a resource as its spec asks for, if that is done at once."""
        status, spec = document["status"], document["spec"]
        said = status["jobStatus"]
        if spec["job"]["upgradeMode"] == "savepoint":
            try:
                savepoint = self.flink.stop(job)
            except DeployError as error:
                status["error"] = json.dumps({"type": "ReconciliationException", "message": f"{error}"})
                return False
            said.setdefault("savepointInfo", {})["lastSavepoint"] = {"location": savepoint, "timeStamp": 1}
            if self.version != "1.7":
                said["upgradeSavepointPath"] = savepoint
        elif self.version != "1.7" and "deploymentName" in spec:
            said["state"] = job.state = "CANCELLING"
            generation = _generation(status["reconciliationStatus"])
            self._told(status, last | {"job": last["job"] | {"upgradeMode": "stateless"}}, generation, "UPGRADING")
            status["lifecycleState"] = "UPGRADING"
            return False
        else:
            job.state = "CANCELED"
        said["state"] = job.state
        return True

    def _submit(self, document: Mapping[str, Any], spec: Mapping[str, Any], *, first: bool) -> None:
        status, generation = document["status"], document["metadata"]["generation"]
        said = status["jobStatus"]
        savepoint = None
        if first:
            savepoint = spec["job"].get("initialSavepointPath")
            if savepoint is not None and self.version == "1.7":
                said.setdefault("savepointInfo", {})["lastSavepoint"] = {"location": savepoint, "timeStamp": 0}
            elif savepoint is not None:
                said["upgradeSavepointPath"] = savepoint
        elif spec["job"]["upgradeMode"] == "savepoint":
            info = said.get("savepointInfo", {}).get("lastSavepoint", {})
            savepoint = said.get("upgradeSavepointPath") or info.get("location")
        self._told(status, spec | {"job": spec["job"] | {"state": "suspended"}}, generation, "UPGRADING")
        try:
            job = self.flink.submit(spec, savepoint)
        except DeployError as error:
            reason = {"type": "ReconciliationException", "message": f"ProgramInvocationException: {error}"}
            status |= {"error": json.dumps(reason), "lifecycleState": "UPGRADING"}
            return
        said |= {"jobId": job.id, "jobName": job.name, "state": "RECONCILING" if self.lags else job.state}
        if "deploymentName" not in spec:
            status["jobManagerDeploymentStatus"] = "DEPLOYING" if self.unready else "READY"
        status |= {"lifecycleState": "STABLE" if job.state == "RUNNING" else "DEPLOYED"}
        status.pop("error", None)
        self._deployed(status, spec, generation)

    def _deployed(self, status: dict[str, Any], spec: Mapping[str, Any], generation: int) -> None:
        self._told(status, spec, generation, "DEPLOYED")
        if self.version != "1.7":
            status["observedGeneration"] = generation

    def _told(self, status: dict[str, Any], spec: Mapping[str, Any], generation: int, state: str) -> None:
        told = {"spec": spec, "resource_metadata": {"metadata": {"generation": generation}}}
        status["reconciliationStatus"] = {"state": state, "lastReconciledSpec": json.dumps(told)}


def _as_before(spec: Mapping[str, Any], last: Mapping[str, Any]) -> bool:
    """Whether a spec asks for nothing new."""
    kept = [
        each
        | {
            "job": {
                key: value for key, value in each["job"].items() if key not in ("upgradeMode", "initialSavepointPath")
            }
        }
        | {
            "flinkConfiguration": {
                key: value
                for key, value in (each.get("flinkConfiguration") or {}).items()
                if not key.startswith("kubernetes.operator.")
            }
        }
        for each in (spec, last)
    ]
    return bool(kept[0] == kept[1])


def _generation(reconciled: Mapping[str, Any]) -> int:
    if "lastReconciledSpec" not in reconciled:
        return 0
    return int(json.loads(reconciled["lastReconciledSpec"])["resource_metadata"]["metadata"]["generation"])


def _merged(old: Any, patch: Any) -> Any:
    """The merge of RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found


def _json(body: Any, status: int = 200) -> Response:
    return Response(json.dumps(body), status, content_type="application/json")


def _status(code: int, message: str) -> Response:
    return _json({"kind": "Status", "status": "Failure", "message": message, "code": code}, code)


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing: a test's output is its own."""


@contextmanager
def serving(stand_in: KubernetesStandIn) -> Iterator[KubernetesStandIn]:
    """The stand-in on a port of this machine."""
    server = make_server("127.0.0.1", 0, stand_in, threaded=True, request_handler=_Quiet)
    stand_in.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        thread.join()
