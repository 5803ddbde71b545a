"""A JobManager's REST API with jobs as a test wants them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment


class JobManagerStandIn:
    """``jobs``: what it tells of each, by id; ``asked``: every request."""

    def __init__(self, version: str = "2.3.0") -> None:
        self.url = ""
        self.version = version
        self.jobs: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []

    def job(self, job_id: str, name: str, *vertices: str, state: str = "RUNNING", kind: str = "STREAMING") -> None:
        tasks = [{"name": vertex, "status": state} for vertex in vertices]
        self.jobs[job_id] = {"jid": job_id, "name": name, "state": state, "job-type": kind, "vertices": tasks}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        self.asked.append(f"{environ['REQUEST_METHOD']} {path}")
        status, value = "200 OK", self._answer(path)
        if value is None:
            known = path.startswith("/jobs/")  # as Flink answers for a job it does not know
            words = "org.apache.flink.runtime.messages.FlinkJobNotFoundException: Could not find Flink job"
            status, value = "404 Not Found", {"errors": [words if known else f"nothing at {path}"]}
        body = json.dumps(value).encode()
        start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    def _answer(self, path: str) -> Any:
        if path == "/config":
            return {"flink-version": self.version}
        if path == "/jobmanager/config":
            return []
        if path == "/jobs/overview":
            return {"jobs": list(self.jobs.values())}
        match = re.fullmatch(r"/jobs/([0-9a-f]+)(/\w+)?", path)
        job = self.jobs.get(match.group(1)) if match else None
        if match is None or job is None:
            return None
        return {None: job, "/status": {"status": job["state"]}}.get(match.group(2), {})
