"""A Kafka broker and a PostgreSQL of the harness's own; every run has topics and tables that no other one sees.

Scripts of pairs name both as an engineer would: a broker ``127.0.0.1:9092``, a database
``jdbc:postgresql://127.0.0.1:5432/postgres``, topics and tables without a prefix. What a run really uses is written in
when it starts: :meth:`Services.bound`. The password of the database is a placeholder, :meth:`Services.secret`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow_flinkcompat.local_flink.jars import fetch
from dev.measure.progress import DATA, Feed, epoch_millis
from dev.services.kafka import Broker, kafka_broker
from dev.services.kafka_client import kafka_client
from dev.services.postgres import Postgres, postgres

JARS = {
    "2.3": ("flink-sql-connector-kafka", "flink-connector-jdbc-core", "flink-connector-jdbc-postgres", "postgresql"),
    "1.20": ("flink-sql-connector-kafka-1.19", "flink-connector-jdbc-1.20", "postgresql"),
}
"""Flink's connectors of both servers, by line."""
COLUMNS = ("a", "b", "c", "d", "ts")
"""What the values of a row in ``dev/measure/data`` are called in a record."""
SIDES = {
    "lefts": ("id", "k", "lv", "lc", "ts"),
    "rights": ("id", "k", "rv", "rc", "ts"),
    "thirds": ("id", "k", "tv", "tc", "ts"),
}
"""The same of the rows of the sides of joins, which need not have a time."""
_NUMBERS = frozenset({"b", "d", "lv", "rv", "tv"})
_BROKER = re.compile(r"\b(127\.0\.0\.1|localhost):9092\b")
_TOPICS = re.compile(r"(?P<option>'topic' = ')(?P<names>[^']*)'")
_NAMED = re.compile(r"('topic-pattern' = '|'properties\.group\.id' = '|'sink\.transactional-id-prefix' = ')")
_DATABASE = re.compile(r"(jdbc:postgresql://)(127\.0\.0\.1|localhost):5432/postgres(\?)?")
_FILLED_PARTITIONS = 2
_BEGIN = "2024-01-01 00:00:00.000"
"""When records were made whose rows have no time."""
PASSWORD = "${conn.postgres.password}"


class Services:
    """Both servers, and what runs have put there. A run is known by its folder.

    ``partitions`` is how many a topic has that is not filled; to be changed between runs only.
    """

    def __init__(self, broker: Broker, jvm: Any, database: Postgres) -> None:
        self.partitions = 1
        self._broker, self._jvm, self._database = broker, jvm, database
        self._topics: dict[str, set[str]] = {}

    def secret(self, placeholder: object) -> str:
        """What a placeholder stands for, of which there is one."""
        if str(placeholder) != PASSWORD:
            raise KeyError(str(placeholder))
        return self._database.password

    def prepare(self, folder: Path, tables: str) -> None:
        """Makes the tables of a run; ``tables`` is the database's own SQL."""
        schema = _prefix(folder)
        self._database.run(f"CREATE SCHEMA {schema}; SET search_path = {schema}; {tables}")

    def send(self, folder: Path, feed: Feed, phase: str) -> int:
        """Sends the rows of a phase in their order, to partitions in turn, fillers to each; how many were sent."""
        topic = self._topic(folder, feed.rows)
        partitions = _FILLED_PARTITIONS if feed.filled else self.partitions
        lines = feed.lines(phase)
        each_has_all = phase.endswith(".filler")
        for partition in range(partitions):
            rows = [_row(line, feed.rows) for line in (lines if each_has_all else lines[partition::partitions])]
            if not rows:
                continue
            records = [(json.dumps(dict([*row.items()][:1])), json.dumps(row)) for row in rows]
            self._broker.send(self._jvm, topic, records, partition, epoch_millis(str(rows[0].get("ts", _BEGIN))))
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
        """Deletes the records of a topic's partitions below an offset, as retention does."""
        self._broker.delete_below(self._jvm, topic, offsets)

    def stored(self, folder: Path) -> Iterator[str]:
        """What lies in the topics that a run writes and in its tables, as ``place +I[…]``."""
        for name in sorted(self._topics.get(_prefix(folder), set()) - {path.name for path in DATA.iterdir()}):
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
            filled = (DATA / name).is_dir() and Feed(name).filled
            self._broker.topic(self._jvm, _FILLED_PARTITIONS if filled else self.partitions, topic)
        return topic


def _row(line: str, rows: str) -> dict[str, str | int]:
    values = line.split(",")
    columns = SIDES.get(rows.removeprefix("untimed_"), COLUMNS)[: len(values)]
    return {key: int(value) if key in _NUMBERS else value for key, value in zip(columns, values, strict=True)}


def _prefix(folder: Path) -> str:
    return f"run{folder.name}"


@contextmanager
def services(folder: Path) -> Iterator[Services]:
    """Both servers, for as long as the block lasts."""
    folder.mkdir(parents=True, exist_ok=True)
    with kafka_broker(folder) as broker, kafka_client() as jvm, postgres() as database:
        yield Services(broker, jvm, database)


def jars(line: str = "2.3") -> tuple[Path, ...]:
    """Flink's connectors of both, fetched on first use."""
    return tuple(map(fetch, JARS[line]))
