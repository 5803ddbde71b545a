"""Tables of lake formats and of Doris in pairs: filled and read back by batch jobs of the Flink at hand.

Scripts of pairs name a table's place ``file://LAKE/<name>``, which each run has in its own folder; a name of
``dev/measure/data`` is a table of those rows. What a family's ``database`` declares is made first, and what of it is
not filled is read back. Doris is a stand-in, whose tables ``shop.<name>`` are each run's own.
"""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.sql import parse_script
from dev.measure.connectors import jar_file
from dev.measure.progress import DATA, Feed

JARS = (
    "org.apache.doris:flink-doris-connector-1.20:25.0.0",
    "org.apache.iceberg:iceberg-flink-runtime-1.20:1.8.1",
    "org.apache.paimon:paimon-flink-1.20:1.3.1",
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "commons-logging:commons-logging:1.2",
    "org.apache.hudi:hudi-flink1.17-bundle:0.14.0",  # last: it brings classes of Flink's own
)
LINE = "1.20"
DORIS = "127.0.0.1:8030"
"""The address of Doris in scripts of pairs."""
_DORIS_COLUMNS = {"a": "VARCHAR", "b": "BIGINT"}
"""Columns of every table of Doris."""
_LAKE = "file://LAKE"
_BATCH = {"execution.runtime-mode": "batch", "parallelism.default": "1"}
_PLACES = re.compile(r"CREATE TABLE (\w+) (?:(?!CREATE TABLE).)*?file://LAKE/(\w+)", re.DOTALL)


class Lakes:
    """The tables of all runs; a run is known by its folder."""

    partitions = 1

    def __init__(self, gateway: str) -> None:
        self._gateway = SqlGateway(gateway)
        self._doris = DorisStandIn()
        self._tables: dict[Path, str] = {}

    def secret(self, placeholder: object) -> str:
        """What a placeholder stands for; there is none."""
        raise KeyError(str(placeholder))

    def prepare(self, folder: Path, tables: str) -> None:
        """Remember the tables of a run."""
        self._tables[folder] = tables

    def send(self, folder: Path, feed: Feed, phase: str) -> int:
        """Append the rows of a phase to their table; how many there are."""
        lines = feed.lines(phase)
        rows = ", ".join(f"({', '.join(_literal(value) for value in line.split(','))})" for line in lines)
        self._run(folder, f"INSERT INTO {feed.rows} VALUES {rows}")
        return len(lines)

    def bound(self, script: str, folder: Path) -> str:
        """The script with the places of a run."""
        script = script.replace(DORIS, self._doris.address).replace("'shop.", f"'run{folder.name}.")
        return script.replace(_LAKE, f"{folder.as_uri()}/lake")

    def stored(self, folder: Path) -> Iterator[str]:
        """What lies in the tables that are not filled and were written, as ``table +I[…]``."""
        filled = {path.name for path in DATA.iterdir()}
        for table, place in _PLACES.findall(self._tables[folder]):
            if table not in filled and (folder / "lake" / place).exists():
                for row in self._run(folder, f"SELECT * FROM {table}"):
                    yield f"{table} +I[{', '.join(map(str, row))}]"
        for name, rows in list(self._doris.tables.items()):
            if name.startswith(f"run{folder.name}."):
                yield from (f"{name.partition('.')[2]} +I[{row}]" for row in rows)

    def _run(self, folder: Path, statement: str) -> list[tuple[object, ...]]:
        with self._gateway.session(_BATCH) as session:
            for each in parse_script(self.bound(self._tables[folder], folder), "<tables>").statements:
                session.execute(each.text)
            return list(session.execute(f"{statement}", {"table.dml-sync": "true"}, timeout=120).rows)


def jars() -> tuple[Path, ...]:
    """Flink's connectors of the lake formats, fetched on first use."""
    return tuple(map(jar_file, JARS))


def _literal(value: str) -> str:
    if re.fullmatch(r"-?\d+", value):
        return value
    return f"TIMESTAMP '{value}'" if re.match(r"\d{4}-\d\d-\d\d ", value) else f"'{value}'"


class DorisStandIn(ThreadingHTTPServer):
    """A stand-in for Doris: it takes stream loads in two phases, and keeps the rows of committed transactions."""

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
    server: DorisStandIn

    def do_GET(self) -> None:
        """Name the only backend, and the columns of a table."""
        if self.path.split("?")[0].endswith("/_schema"):
            columns = [{"name": name, "type": type, "comment": ""} for name, type in _DORIS_COLUMNS.items()]
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
