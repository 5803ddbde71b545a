"""Stand-ins for object stores: moto's S3 behind a proxy that can inject faults, and a small GCS."""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote
from wsgiref.types import StartResponse, WSGIEnvironment

from werkzeug.serving import WSGIRequestHandler, make_server

App = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]
CREDENTIALS = {"key": "stand-in", "secret": "stand-in"}


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        """Nothing: pytest's output is for failures."""


class S3StandIn:
    """moto's S3. Writes go one at a time: S3 decides a condition and writes as one step, moto as two.

    ``manner``: ``honours`` the condition as Amazon does; ``terse``: refuses without naming the condition; ``overlooks``
    it; ``refuses`` requests that carry it (501); ``conflict``: answers the next conditional put by 409; ``loses`` the
    next answer to a conditional put.
    """

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        self._app: App = DomainDispatcherApplication(create_backend_app)
        self._writing = threading.Lock()
        self._counting = threading.Lock()
        self.manner = "honours"
        self.url = ""
        # Method, path and True if the request had a condition, in the order of arrival.
        self.requests: list[tuple[str, str, bool]] = []
        # Barrier at which readers of objects wait for each other; None if they do not wait.
        self.together: threading.Barrier | None = None

    def bucket(self) -> str:
        """A new, empty bucket."""
        from moto.core import DEFAULT_ACCOUNT_ID  # type: ignore[attr-defined]
        from moto.s3.models import s3_backends

        name = f"ledger-{uuid.uuid4().hex}"
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket(name, "us-east-1")
        return name

    def put(self, bucket: str, key: str, content: bytes) -> None:
        """An object, past the gate."""
        from moto.core import DEFAULT_ACCOUNT_ID  # type: ignore[attr-defined]
        from moto.s3.models import s3_backends

        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(bucket, key, content)

    @property
    def options(self) -> dict[str, Any]:
        """For ``Ledger`` and ``S3FileSystem``."""
        return {**CREDENTIALS, "endpoint_url": self.url}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        method, conditional = environ["REQUEST_METHOD"], environ.get("HTTP_IF_NONE_MATCH") == "*"
        with self._counting:
            self.requests.append((method, environ["PATH_INFO"], conditional))
        if conditional:
            if self.manner == "refuses":
                return _error(start_response, "501 Not Implemented", "NotImplemented")
            if self.manner == "conflict":
                self.manner = "honours"
                return _error(start_response, "409 Conflict", "ConditionalRequestConflict")
            if self.manner == "overlooks":
                del environ["HTTP_IF_NONE_MATCH"]
        if method == "GET":
            if self.together and environ["PATH_INFO"].endswith(".json"):
                self.together.wait(30)
            return self._app(environ, start_response)
        with self._writing:
            status, body = _answered(self._app, environ, start_response, self.manner == "terse")
        if conditional and self.manner == "loses" and status.startswith("200"):
            self.manner = "honours"
            return _error(start_response, "503 Slow Down", "SlowDown")
        return body


class GcsStandIn:
    """The calls of Google's JSON API that a ledger makes, with ``ifGenerationMatch=0``."""

    def __init__(self) -> None:
        self._writing = threading.Lock()
        self.objects: dict[str, bytes] = {}
        self.url = ""
        # Query of every upload, and its purpose.
        self.uploads: list[dict[str, list[str]]] = []
        self.uploaded: list[str] = []

    @property
    def options(self) -> dict[str, Any]:
        """For ``Ledger`` and ``GCSFileSystem``."""
        return {"token": "anon", "endpoint_url": self.url}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        query = parse_qs(environ.get("QUERY_STRING", ""))
        # The path as sent, because object names contain encoded slashes.
        path = environ["RAW_URI"].partition("?")[0]
        if environ["REQUEST_METHOD"] == "POST" and path.startswith("/upload/"):
            return self._upload(environ, query, start_response)
        if match := re.fullmatch(r"(?:/download)?/storage/v1/b/([^/]+)/o/(.+)", path):
            return self._object(f"{match.group(1)}/{unquote(match.group(2))}", query, environ, start_response)
        if match := re.fullmatch(r"/storage/v1/b/([^/]+)/o/?", path):
            return self._list(match.group(1), query, start_response)
        return _json(start_response, "404 Not Found", {"error": {"message": f"no such call: {path}"}})

    def _upload(self, environ: WSGIEnvironment, query: dict[str, list[str]], respond: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        boundary = environ["CONTENT_TYPE"].partition('boundary="')[2].rstrip('"').encode()
        _, described, content = body.split(b"--" + boundary, 2)
        name = json.loads(described.split(b"\n\n", 1)[1])["name"]
        content = content.split(b"\n\n", 1)[1].rsplit(b"\n--" + boundary + b"--", 1)[0]
        key = f"{environ['PATH_INFO'].split('/')[5]}/{name}"
        with self._writing:
            self.uploads.append(query)
            self.uploaded.append(key)
            if query.get("ifGenerationMatch") == ["0"] and key in self.objects:
                return _json(respond, "412 Precondition Failed", {"error": {"message": "conditionNotMet"}})
            self.objects[key] = content
        return _json(respond, "200 OK", self._described(key))

    def _object(
        self, key: str, query: dict[str, list[str]], environ: WSGIEnvironment, respond: StartResponse
    ) -> Iterable[bytes]:
        if key not in self.objects:
            return _json(respond, "404 Not Found", {"error": {"message": "no such object"}})
        if environ["REQUEST_METHOD"] == "DELETE":
            del self.objects[key]
            return _json(respond, "204 No Content", None)
        if query.get("alt") == ["media"]:
            respond("200 OK", [("Content-Length", str(len(self.objects[key])))])
            return [self.objects[key]]
        return _json(respond, "200 OK", self._described(key))

    def _list(self, bucket: str, query: dict[str, list[str]], respond: StartResponse) -> Iterable[bytes]:
        prefix = f"{bucket}/{query.get('prefix', [''])[0]}"
        found = [key for key in sorted(self.objects) if key.startswith(prefix)]
        deeper = {key[: key.index("/", len(prefix)) + 1] for key in found if "/" in key[len(prefix) :]}
        items = [self._described(key) for key in found if "/" not in key[len(prefix) :]]
        return _json(respond, "200 OK", {"items": items, "prefixes": [d.partition("/")[2] for d in sorted(deeper)]})

    def _described(self, key: str) -> dict[str, Any]:
        bucket, _, name = key.partition("/")
        size = str(len(self.objects[key]))
        return {"kind": "storage#object", "bucket": bucket, "name": name, "size": size, "generation": "1"}


@contextmanager
def serving(stand_in: S3StandIn | GcsStandIn) -> Iterator[None]:
    """Answers at ``stand_in.url`` meanwhile."""
    server = make_server("127.0.0.1", 0, stand_in, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    stand_in.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answered(app: App, environ: WSGIEnvironment, respond: StartResponse, terse: bool) -> tuple[str, Iterable[bytes]]:
    """Status and body from the app, passed to ``respond`` unless ``terse`` hides a failed condition."""
    seen: list[Any] = []

    def start(*answer: Any) -> Callable[[bytes], object]:
        seen.append(answer)
        return lambda _: None

    body = b"".join(app(environ, start))
    status, headers = seen[0][:2]
    if status.startswith("412") and terse:
        return status, _error(respond, status, "PreconditionFailed")
    return status, _Answer(respond, status, headers, body)


class _Answer:
    """An answer that is given when it is read."""

    def __init__(self, respond: StartResponse, status: str, headers: Any, body: bytes) -> None:
        self._given = (respond, status, headers, body)

    def __iter__(self) -> Iterator[bytes]:
        respond, status, headers, body = self._given
        respond(status, headers)
        yield body


def _error(respond: StartResponse, status: str, code: str) -> Iterable[bytes]:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    respond(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def _json(respond: StartResponse, status: str, value: Any) -> Iterable[bytes]:
    body = b"" if value is None else json.dumps(value).encode()
    respond(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
