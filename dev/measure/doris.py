"""A stand-in for Doris: it takes stream loads in two phases, as its frontend and backend do, and keeps the rows."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

ADDRESS = "127.0.0.1:8030"
"""Stands in scripts of pairs for the server's own."""
COLUMNS = {"a": "VARCHAR", "b": "BIGINT"}
"""Those of every table."""


class StandIn(ThreadingHTTPServer):
    """The server; rows count once their transaction is committed."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.numbers = count(1)
        self.loaded: dict[str, tuple[str, list[str]]] = {}
        self.tables: dict[str, list[str]] = defaultdict(list)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_port}"

    def finish(self, transaction: str, operation: str) -> None:
        """Commit a transaction, or abort it."""
        table, rows = self.loaded.pop(transaction, ("", []))
        if operation == "commit":
            self.tables[table] += rows


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def do_GET(self) -> None:
        """Name the only backend, and the columns of a table."""
        if self.path.split("?")[0].endswith("/_schema"):
            columns = [{"name": name, "type": type, "comment": ""} for name, type in COLUMNS.items()]
            schema = {"status": 200, "keysType": "DUP_KEYS", "properties": columns}
            self._answer({"msg": "success", "code": 0, "data": schema, **schema})
            return
        ip, port = self.server.address.split(":")
        backends = [{"ip": ip, "http_port": int(port), "httpPort": int(port), "is_alive": True, "isAlive": True}]
        self._answer({"msg": "success", "code": 0, "data": {"backends": backends}, "backends": backends})

    def do_PUT(self) -> None:
        """Take a load, or finish one."""
        rows = self._body().decode().splitlines()
        _, _, database, *rest = self.path.split("/")
        if rest == ["_stream_load_2pc"]:
            self.server.finish(self.headers["txn_id"], self.headers["txn_operation"])
            self._answer({"status": "Success", "msg": "ok"})
            return
        transaction = str(next(self.server.numbers))
        self.server.loaded[transaction] = (f"{database}.{rest[0]}", [row for row in rows if row])
        if self.headers.get("two_phase_commit") != "true":
            self.server.finish(transaction, "commit")
        self._answer({
            "TxnId": int(transaction), "Label": self.headers.get("label"), "Status": "Success", "Message": "OK",
            "TwoPhaseCommit": self.headers.get("two_phase_commit", "false"), "NumberTotalRows": len(rows),
            "NumberLoadedRows": len(rows),
        })  # fmt: skip

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        found = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _answer(self, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Write nothing."""
