"""Servers and lakes next to Flink; every run has topics and tables that no other one sees.

Scripts of pairs name a Kafka and a PostgreSQL as an engineer would: a broker ``127.0.0.1:9092``, a database
``jdbc:postgresql://127.0.0.1:5432/postgres``, topics and tables without a prefix. :meth:`Services.bound` replaces them
when a run starts. The password of the database is a placeholder, :meth:`Services.secret`.

A table of a lake format has the place ``file://LAKE/<name>``, which each run has in its own folder; a name of
``dev/measure/data`` is a table of those rows. Batch jobs of the same Flink make the tables that a family's ``database``
declares, fill them, and read the others back. Doris is a stand-in, whose tables ``shop.<name>`` belong to one run each.
"""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.local_flink.jars import fetch
from airflow_flinkcompat.sql import parse_script
from dev.measure.connectors import jar_file
from dev.measure.progress import Feed, epoch_millis, known_rows
from dev.services.kafka import Broker, kafka_broker, kafka_client
from dev.services.postgres import Postgres, postgres

JARS = {
    "2.3": ("flink-sql-connector-kafka", "flink-connector-jdbc-core", "flink-connector-jdbc-postgres", "postgresql"),
    "1.20": ("flink-sql-connector-kafka-1.19", "flink-connector-jdbc-1.20", "postgresql"),
}
"""Flink's connectors of both servers, by line; 1.19 has those of 1.20, and 2.0 to 2.2 those of 2.3."""
COLUMNS = ("a", "b", "c", "d", "ts")
"""Field names of a record for the values of a row in ``dev/measure/data``."""
SIDES = {
    "lefts": ("id", "k", "lv", "lc", "ts"),
    "rights": ("id", "k", "rv", "rc", "ts"),
    "thirds": ("id", "k", "tv", "tc", "ts"),
}
"""Fields of rows for the sides of joins, which need no time."""
_NUMBERS = frozenset({"b", "d", "lv", "rv", "tv"})
_BROKER = re.compile(r"\b(127\.0\.0\.1|localhost):9092\b")
_TOPICS = re.compile(r"(?P<option>'topic' = ')(?P<names>[^']*)'")
_NAMED = re.compile(r"('topic-pattern' = '|'properties\.group\.id' = '|'sink\.transactional-id-prefix' = ')")
_DATABASE = re.compile(r"(jdbc:postgresql://)(127\.0\.0\.1|localhost):5432/postgres(\?)?")
_FILLED_PARTITIONS = 2
_BEGIN = "2024-01-01 00:00:00.000"
"""Timestamp of records whose rows have no time."""
PASSWORD = "${conn.postgres.password}"
LAKE_JARS = (
    "org.apache.doris:flink-doris-connector-1.20:25.0.0",
    "org.apache.iceberg:iceberg-flink-runtime-1.20:1.8.1",
    "org.apache.paimon:paimon-flink-1.20:1.3.1",
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "commons-logging:commons-logging:1.2",
    "org.apache.hudi:hudi-flink1.17-bundle:0.14.0",  # last: it brings classes of Flink's own
)
LAKE_LINE = "1.20"
"""The line of Flink for which these connectors are built."""
DORIS = "127.0.0.1:8030"
"""The address of Doris in scripts of pairs."""
_DORIS_COLUMNS = {"a": "VARCHAR", "b": "BIGINT"}
"""Columns of every table of Doris."""
_LAKE = "file://LAKE"
_BATCH = {"execution.runtime-mode": "batch", "parallelism.default": "1"}
_PLACES = re.compile(r"CREATE TABLE (\w+) (?:(?!CREATE TABLE).)*?file://LAKE/(\w+)", re.DOTALL)


class Services:
    """Both servers, and what runs have put there. A run is known by its folder.

    A run is identified by its folder. ``partitions`` is the number of partitions of a topic that is not filled;
    change it only between runs.
    """

    def __init__(self, broker: Broker, jvm: Any, database: Postgres) -> None:
        self.partitions = 1
        self._broker, self._jvm, self._database = broker, jvm, database
        self._topics: dict[str, set[str]] = {}

    def secret(self, placeholder: object) -> str:
        """Value of a placeholder; only one placeholder exists."""
        if str(placeholder) != PASSWORD:
            raise KeyError(str(placeholder))
        return self._database.password

    def prepare(self, folder: Path, tables: str) -> None:
        """Makes the tables of a run; ``tables`` is the database's own SQL."""
        schema = _prefix(folder)
        self._database.run(f"CREATE SCHEMA {schema}; SET search_path = {schema}; {tables}")

    def send(self, folder: Path, feed: Feed, phase: str) -> int:
        """Send the rows of a phase in order to partitions in turn, fillers to each; returns their number."""
        topic = self._topic(folder, feed.rows)
        partitions = _FILLED_PARTITIONS if feed.filled else self.partitions
        lines = feed.lines(phase)
        each_has_all = phase.endswith(".filler")
        for partition in range(partitions):
            rows = [_row(line, feed.rows) for line in (lines if each_has_all else lines[partition::partitions])]
            if not rows:
                continue
            records = [(json.dumps(dict([*row.items()][:1])), json.dumps(row)) for row in rows]
            time = str(rows[0].get("ts", ""))
            begin = epoch_millis(time if ":" in time else _BEGIN)
            self._broker.send(self._jvm, topic, records, partition, begin)
        return len(lines) * (partitions if each_has_all else 1)

    def bound(self, script: str, folder: Path) -> str:
        """The script with the places of a run; topics that it writes are made."""

        def topics(match: re.Match[str]) -> str:
            return f"{match['option']}{';'.join(self._topic(folder, name) for name in match['names'].split(';'))}'"

        port = self._broker.servers.rpartition(":")[2]
        script = _TOPICS.sub(topics, _BROKER.sub(rf"\1:{port}", script))
        script = _NAMED.sub(rf"\1{_prefix(folder)}-", script)
        return _DATABASE.sub(
            lambda match: (
                f"{match[1]}{match[2]}:{self._database.port}/postgres?currentSchema={_prefix(folder)}"
                + ("&" if match[3] else "")
            ),
            script,
        )

    def delete_below(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Delete the records of a topic's partitions below an offset, like retention."""
        self._broker.delete_below(self._jvm, topic, offsets)

    def stored(self, folder: Path) -> Iterator[str]:
        """Rows in the topics and tables that a run writes, as ``place +I[…]``."""
        for name in sorted(self._topics.get(_prefix(folder), set()) - known_rows()):
            for key, value in self._broker.received(self._jvm, self._topic(folder, name)):
                yield f"{name} +I[{value if key is None else f'{key}: {value}'}]"
        schema = _prefix(folder)
        for table in self._database.run(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' ORDER BY 1"):
            yield from (f"{table} +I[{row}]" for row in self._database.run(f"SELECT t::text FROM {schema}.{table} t"))

    def _topic(self, folder: Path, name: str) -> str:
        """The run's topic of that name, made on first use."""
        known = self._topics.setdefault(_prefix(folder), set())
        topic = f"{_prefix(folder)}-{name}"
        if name not in known:
            known.add(name)
            filled = Feed(name).filled
            self._broker.topic(self._jvm, _FILLED_PARTITIONS if filled else self.partitions, topic)
        return topic


def _row(line: str, rows: str) -> dict[str, Any]:
    if line.startswith("{"):
        return dict(json.loads(line))
    values = line.split(",")
    columns = SIDES.get(rows.removeprefix("untimed_"), COLUMNS)[: len(values)]
    return {key: int(value) if key in _NUMBERS else value for key, value in zip(columns, values, strict=True)}


def _prefix(folder: Path) -> str:
    return f"run{folder.name}"


@contextmanager
def services(folder: Path) -> Iterator[Services]:
    """Start both servers for the block."""
    folder.mkdir(parents=True, exist_ok=True)
    with kafka_broker(folder) as broker, kafka_client() as jvm, postgres() as database:
        yield Services(broker, jvm, database)


def jars(line: str = "2.3") -> tuple[Path, ...]:
    """Flink's connectors of both, fetched on first use."""
    return tuple(map(fetch, JARS["1.20" if line.startswith("1.") else "2.3"]))


class Lakes:
    """The tables of all runs; a run is known by its folder."""

    partitions = 1

    def __init__(self, gateway: str) -> None:
        self._gateway = SqlGateway(gateway)
        self._doris = DorisStandIn()
        self._tables: dict[Path, str] = {}

    def secret(self, placeholder: object) -> str:
        """Value of a placeholder; none exists."""
        raise KeyError(str(placeholder))

    def prepare(self, folder: Path, tables: str) -> None:
        """Remember the tables of a run."""
        self._tables[folder] = tables

    def send(self, folder: Path, feed: Feed, phase: str) -> int:
        """Append the rows of a phase to their table; returns their number."""
        lines = feed.lines(phase)
        rows = ", ".join(f"({', '.join(_literal(value) for value in line.split(','))})" for line in lines)
        self._run(folder, f"INSERT INTO {feed.rows} VALUES {rows}")
        return len(lines)

    def bound(self, script: str, folder: Path) -> str:
        """The script with the places of a run."""
        script = script.replace(DORIS, self._doris.address).replace("'shop.", f"'run{folder.name}.")
        return script.replace(_LAKE, f"{folder.as_uri()}/lake")

    def stored(self, folder: Path) -> Iterator[str]:
        """Rows in the tables that were written and have no input rows, as ``table +I[…]``."""
        filled = known_rows()
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


def lake_jars() -> tuple[Path, ...]:
    """Flink's connectors of the lake formats, fetched on first use."""
    return tuple(map(jar_file, LAKE_JARS))


def _literal(value: str) -> str:
    if re.fullmatch(r"-?\d+", value):
        return value
    return f"TIMESTAMP '{value}'" if re.match(r"\d{4}-\d\d-\d\d ", value) else f"'{value}'"


class DorisStandIn(ThreadingHTTPServer):
    """A stand-in for Doris that accepts two-phase stream loads and stores rows of committed transactions."""

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
