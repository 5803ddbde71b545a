"""Small real servers: one that speaks HTTP or TLS and asks who is there, and a proxy in front of it."""

from __future__ import annotations

import base64
import json
import select
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

ANSWERS = {
    "/v2/info": {"productName": "Apache Flink", "version": "2.3.0"},
    "/config": {"flink-version": "2.3.0"},
    "/jobs/overview": {"jobs": []},
}


@dataclass
class Running:
    """A server on a port of this machine, and the requests it got: ``METHOD path`` with the headers."""

    port: int
    scheme: str
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}"

    @property
    def authorizations(self) -> list[str | None]:
        return [headers.get("authorization") for _, headers in self.seen]


def basic(login: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{login}:{password}".encode()).decode()


@contextmanager
def rest_server(
    *, authorization: str | None = None, tls: ssl.SSLContext | None = None, refuse: int = 401, port: int = 0
) -> Any:
    """A server that answers as Gateway and JobManager do, to whoever sends ``authorization``.

    Who does not is refused with status ``refuse`` and what was sent is echoed, as a chatty server might.
    """

    class Handler(_Quiet):
        def do_GET(self) -> None:
            running.seen.append((f"GET {self.path}", {k.lower(): v for k, v in self.headers.items()}))
            sent = self.headers.get("Authorization")
            if authorization is not None and sent != authorization:
                return self.reply(refuse, {"errors": [f"nobody here knows {sent}"]})
            self.reply(200, ANSWERS[self.path])

    with _serving(Handler, tls, port) as running:
        yield running


@contextmanager
def proxy_server(*, authorization: str | None = None, tls: ssl.SSLContext | None = None) -> Any:
    """A forward proxy: CONNECT for https, whole addresses for http. ``authorization``: what it wants to see."""

    class Handler(_Quiet):
        def allowed(self) -> bool:
            running.seen.append((f"{self.command} {self.path}", {k.lower(): v for k, v in self.headers.items()}))
            sent = self.headers.get("Proxy-Authorization")
            if authorization is None or sent == authorization:
                return True
            self.reply(407, {"errors": [f"proxy: nobody here knows {sent}"]}, f"no, {sent}")
            return False

        def do_CONNECT(self) -> None:
            if self.allowed():
                host, _, port = self.path.rpartition(":")
                try:
                    upstream = socket.create_connection((host, int(port)), timeout=10)
                except OSError:
                    return self.reply(502, {"errors": ["unreachable"]})
                with upstream:
                    self.send_response(200)
                    self.end_headers()
                    _relay(self.connection, upstream)
                self.close_connection = True

        def do_GET(self) -> None:
            if self.allowed():
                asked = urlsplit(self.path)
                with socket.create_connection((asked.hostname or "", asked.port or 80), timeout=10) as upstream:
                    kept = "".join(f"{k}: {v}\r\n" for k, v in self.headers.items() if not k.startswith("Proxy-"))
                    upstream.sendall(f"GET {asked.path} HTTP/1.0\r\n{kept}\r\n".encode())
                    while chunk := upstream.recv(65536):
                        self.wfile.write(chunk)
                self.close_connection = True

    with _serving(Handler, tls) as running:
        yield running


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a test's output is its own."""

    def reply(self, status: int, body: Any, reason: str | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status, reason)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    tls: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        # The handshake belongs into the connection's own thread: a client that breaks off must not stop the server.
        try:
            connection = self.tls.wrap_socket(request, server_side=True) if self.tls else request
            with connection:
                super().finish_request(connection, client_address)
        except OSError:
            return

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: clients that break off are what is tested."""


@contextmanager
def _serving(
    handler: Callable[..., BaseHTTPRequestHandler], tls: ssl.SSLContext | None, port: int = 0
) -> Iterator[Running]:
    server = _Server(("127.0.0.1", port), handler)
    server.tls = tls
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Running(server.server_port, "https" if tls else "http")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _relay(client: socket.socket, upstream: socket.socket) -> None:
    """Bytes both ways until one side ends."""
    ways = {client: upstream, upstream: client}
    while True:
        readable = [client] if isinstance(client, ssl.SSLSocket) and client.pending() else []
        for side in readable or select.select(list(ways), [], [], 10)[0]:
            chunk = side.recv(65536)
            if not chunk:
                return
            ways[side].sendall(chunk)
