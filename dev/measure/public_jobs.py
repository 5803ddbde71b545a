"""Public scripts in a form that the bench can run, over its own Kafka and PostgreSQL, and their rows.

Queries, views, settings and the options of Kafka's tables stay. A source of another connector becomes a topic, its
metadata plain columns. A lookup becomes a table of PostgreSQL, another sink one with a key or a ``print``. Secrets and
parallelism go, several INSERTs become one job. Rows are JSON, and their texts come from the script's own literals.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

from sqlglot import exp

from airflow_flinkcompat.deploy.flink.tables import options_of
from airflow_flinkcompat.sql import nodes, parse_script
from airflow_flinkcompat.sql.script import Statement
from airflow_flinkcompat.sql.statement_parser import Flink
from dev.measure.progress import GENERATED
from dev.measure.services import PASSWORD

_ROWS, _LOOKED_UP = 48, 8
"""Rows of a topic before the savepoint, with as many after it, and of a table that is looked up."""
_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}
_FORMATS = ("format", "key.format", "value.format")
_DROPPED = re.compile(
    r"properties\.(?:security|sasl|ssl|enable\.debug)\b.*|source\.parallelism"
    r"|(?:key\.|value\.)?(?:json\.timestamp-format|avro|avro-confluent|csv|raw|canal-json)\b.*"
)
"""Options of Kafka that name secrets, that a patched connector has, or that are of a replaced format."""
_DATABASE = {
    "connector": "jdbc",
    "url": "jdbc:postgresql://127.0.0.1:5432/postgres",
    "username": "postgres",
    "password": PASSWORD,
}
_TEXT = ("STRING", "VARCHAR", "CHAR")
_NESTED = ("ROW", "MAP", "ARRAY", "MULTISET")
_TIME = "%Y-%m-%d %H:%M:%S"
_TIMES = {"DATE": "%Y-%m-%d", "TIME": "%H:%M:%S", "TIMESTAMP": f"{_TIME}.%f", "TIMESTAMP_LTZ": f"{_TIME}.%fZ"}
_SQL_TYPES = dict.fromkeys(_TEXT, "TEXT") | {"DOUBLE": "DOUBLE PRECISION", "TIMESTAMP_LTZ": "TIMESTAMP"}
_LEFT_OUT = re.compile(r"(?:USE|ADD JAR|DROP|CREATE CATALOG|SHOW|DESCRIBE)\b", re.IGNORECASE)
_Columns = dict[str, exp.Expr]


class NotRunnable(ValueError):
    """A script that the bench cannot run faithfully."""


class PublicJob:
    """Both scripts of a change and their tables; ``known`` declares the tables of an external catalog."""

    def __init__(self, name: str, old: str, new: str, known: Mapping[str, nodes.CreateTable]) -> None:
        self._name = name
        self._sides = [parse_script(text, "<public>").statements for text in (old, new)]
        trees = [each.tree for side in self._sides for each in side if each.tree is not None]
        found = [node for tree in trees for node in tree.walk()]
        queries = [tree for tree in trees if not isinstance(tree, nodes.CreateTable | nodes.SetOption | nodes.Drop)]
        tables = [node for tree in queries for node in tree.find_all(exp.Table)]
        self._used = {node.name for node in tables}
        self._written = {node.this.name for node in found if isinstance(node, nodes.InsertInto)}
        self._looked_up = {node.name for node in tables if isinstance(node.args.get("version"), nodes.SystemTime)}
        elsewhere = self._used - {node.this.name for node in found if isinstance(node, nodes.CreateTable)}
        self._added = [known[table] for table in sorted(elsewhere & known.keys())]
        casts = [node for node in found if isinstance(node, exp.Cast) and node.args["to"].name not in _TEXT]
        self._numeric = {column.name for cast in casts for column in cast.find_all(exp.Column, exp.Dot)}
        calls = [node for node in found if isinstance(node, exp.Func) and "TIME" in node.name.upper()]
        self._times = " ".join(call.sql(dialect=Flink) for call in calls)
        literals = {node.name for tree in queries for node in tree.find_all(exp.Literal) if node.is_string}
        words = sorted(text for text in literals if re.fullmatch(r"[\w./ -]{1,20}", text))
        self._words = ["1", "2", "3", "401", "403", *words]
        self._step = min((_seconds(node) for tree in queries for node in tree.find_all(exp.Interval)), default=30) / 3
        clocks = "|".join({node.this.name for node in found if isinstance(node, nodes.ComputedColumn)
                           and node.expression.name.upper() == "PROCTIME"})  # fmt: skip
        window = re.compile(rf"(?:DESCRIPTOR|TUMBLE|HOP|SESSION)\s*\(\s*(?:\w+\.)?(?:{clocks})\b", re.IGNORECASE)
        self.by_clock = bool(clocks and window.search(f"{old}\n{new}"))
        """True if it has windows over processing time, whose rows depend on the start of each run."""
        self._topics: dict[str, _Columns] = {}
        self._tables: dict[str, tuple[_Columns, list[str]]] = {}
        self._changelogs: set[str] = set()
        self.replaced: set[str] = set()

    def scripts(self) -> list[str]:
        """Both scripts as the bench runs them, then the new one read from the earliest offset."""
        old, new = self._sides
        return [self._script(old, True), self._script(new, False), self._script(new, True)]

    def feed(self) -> None:
        """Write the rows of all topics."""
        for topic, columns in self._topics.items():
            folder = GENERATED / topic
            folder.mkdir(parents=True, exist_ok=True)
            for phase, first in (("before", 0), ("after", _ROWS)):
                rows = (self._row(columns, number) for number in range(first, first + _ROWS))
                changes = topic in self._changelogs
                lines = (json.dumps({"after": row, "op": "c"} if changes else row) for row in rows)
                (folder / f"{phase}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def database(self) -> str:
        """The tables of the database, as SQL; those that are looked up have rows."""
        made = []
        for name, (columns, keys) in self._tables.items():
            listed = [f'"{column}" {_SQL_TYPES.get(kind.name, kind.name)}' for column, kind in columns.items()]
            listed += ["PRIMARY KEY ({})".format(", ".join(f'"{key}"' for key in keys))] if keys else []
            made.append(f'CREATE TABLE "{name}" ({", ".join(listed)});')
            for number in range(_LOOKED_UP * (not keys)):
                values = ", ".join(f"'{value}'" for value in self._row(columns, number).values())
                made.append(f'INSERT INTO "{name}" VALUES ({values});')
        return "\n".join(made)

    def _script(self, statements: Sequence[Statement], earliest: bool) -> str:
        lines = [self._table(table, earliest) for table in self._added]
        inserts = [each.text for each in statements if isinstance(each.tree, nodes.InsertInto)]
        for each in statements:
            match each.tree:
                case None if not _LEFT_OUT.match(each.text):
                    raise NotRunnable(each.error or "a statement is not read")
                case nodes.CreateTable() as table:
                    lines += [self._table(table, earliest)] if table.this.name in self._used else []
                case nodes.SetOption() as option if option.this and option.this.name == "parallelism.default":
                    pass
                case nodes.InsertInto() if len(inserts) > 1:
                    pass
                case _ if not _LEFT_OUT.match(each.text):
                    lines.append(each.text)
        if len(inserts) > 1:
            joined = ";\n".join(inserts)
            lines.append(f"EXECUTE STATEMENT SET\nBEGIN\n{joined};\nEND")
        return "".join(f"{line};\n" for line in lines)

    def _table(self, declared: nodes.CreateTable, earliest: bool) -> str:
        tree, name, given = declared.copy(), declared.this.name, options_of(declared)
        connector = given.get("connector") or given.get("connector.type", "")
        if tree.args.get("like") is not None or not connector:
            raise NotRunnable(f"table {name} has no connector of its own")
        keys = [key.name for each in tree.args.get("constraints") or () for key in each.expressions]
        kafka = given.get("connector") in ("kafka", "upsert-kafka")
        flat = not any(kind.name in _NESTED for kind in _physical(tree).values())
        if name in self._looked_up and not kafka and not tree.args.get("watermarks"):
            if not flat:
                raise NotRunnable(f"table {name} has columns that no table of the database has")
            options = self._in_database(tree, given, [])
        elif name in self._written and keys and flat and not kafka and connector != "print":
            options = self._in_database(tree, given, keys)
        elif name in self._written:
            options = self._in_kafka(name, given) if kafka else {"connector": "print"}
        else:
            options = self._source(tree, given if kafka else {}, connector, keys, earliest)
        if options["connector"] != connector:
            self.replaced.add(connector)
        tree.set("this", exp.table_(name))
        tree.set("exists", False)
        tree.set("temporary", False)
        literal = exp.Literal.string
        tree.set("options", [nodes.Option(this=literal(key), expression=literal(options[key])) for key in options])
        return tree.sql(dialect=Flink)

    def _in_kafka(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        options = {key: value for key, value in given.items() if not _DROPPED.fullmatch(key)}
        options |= {key: "json" for key in options if key in _FORMATS and options[key] != "debezium-json"}
        topic = f"{self._name}_{given.get('topic', name)}"
        return options | {"topic": topic, "properties.bootstrap.servers": "127.0.0.1:9092"}

    def _source(
        self, tree: nodes.CreateTable, given: Mapping[str, str], connector: str, keys: list[str], earliest: bool
    ) -> dict[str, str]:
        if not given:
            given = {"connector": "kafka", "format": "debezium-json" if connector.endswith("-cdc") else "json"}
            if keys and given["format"] == "json":
                given = {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
            for column in tree.find_all(nodes.MetadataColumn):
                column.replace(nodes.PhysicalColumn(this=column.this, kind=column.args["kind"]))
        options = self._in_kafka(tree.this.name, given)
        if options["connector"] == "kafka":
            options.setdefault("properties.group.id", self._name)
            if earliest or "scan.startup.mode" not in options:
                options["scan.startup.mode"] = "earliest-offset"
        if options.get("format") == "debezium-json":
            self._changelogs.add(options["topic"])
        columns = _physical(tree)
        known = self._topics.setdefault(options["topic"], {key: columns[key] for key in keys})
        known |= columns
        return options

    def _in_database(self, tree: nodes.CreateTable, given: Mapping[str, str], keys: list[str]) -> dict[str, str]:
        place = re.sub(r".*:|\W", "", given.get("table-name", tree.this.name))
        self._tables.setdefault(place, ({}, keys))[0].update(_physical(tree))
        kept = r"(?:lookup\.(?:cache|max)|sink)\..*" if given.get("connector") == "jdbc" else ""
        own = {key: value for key, value in given.items() if re.fullmatch(kept, key)}
        return _DATABASE | {"table-name": place} | own

    def _row(self, columns: _Columns, number: int) -> dict[str, Any]:
        return {name: self._value(name, kind, number) for name, kind in columns.items()}

    def _value(self, name: str, kind: exp.Expr, number: int) -> Any:
        time = _BEGIN + timedelta(milliseconds=int(number * self._step * 1000))
        drawn = crc32(f"{name} {number}".encode())
        counted = drawn % (4 + number // 6) + 1  # later rows have greater numbers, too
        as_time = re.search(rf"\b{re.escape(name)}\b", self._times)
        if as_time and kind.name == "BIGINT":
            return int(time.timestamp() * (1000 if re.search(r"1000|, 3\)", self._times) else 1))
        if kind.name in _TIMES or (as_time and kind.name in _TEXT):
            return time.strftime(_TIMES.get(kind.name, _TIME))
        match kind.name:
            case "ROW":
                return self._row({each.this.name: each.args["kind"] for each in kind.expressions}, number)
            case "ARRAY" if kind.expressions[0].name not in _TEXT:
                return [self._value(name, kind.expressions[0], number)]
            case "ARRAY" | "MULTISET":
                return [str(drawn % 7 + place) for place in range(10)]
            case "MAP":
                return {"1": str(counted)}
            case "BOOLEAN":
                return bool(drawn % 2)
            case text if text in _TEXT:
                words = [str(counted)] if name in self._numeric else self._words
                return words[drawn % len(words)][: int(kind.expressions[0].name) if kind.expressions else 100]
        return counted + number / 1024 if kind.name in ("DOUBLE", "FLOAT") else counted  # exact sums without ties


def declarations(text: str) -> Iterator[nodes.CreateTable]:
    """The tables that a script declares; one with a version in its name also without it."""
    for each in parse_script(text, "<public>").statements:
        if isinstance(each.tree, nodes.CreateTable):
            yield each.tree
            if unversioned := re.fullmatch(r"(.+)_v\d", each.tree.this.name):
                copy = each.tree.copy()
                copy.set("this", exp.table_(unversioned[1]))
                yield copy


def _physical(declared: nodes.CreateTable) -> _Columns:
    columns = declared.args["columns"]
    return {each.this.name: each.args["kind"] for each in columns if isinstance(each, nodes.PhysicalColumn)}


def _seconds(interval: exp.Expr) -> float:
    unit, number = str(interval.args.get("unit") or ""), getattr(interval.this, "name", "")
    return float(number) * _SECONDS.get(unit.rstrip("S"), 3600) if re.fullmatch(r"\d+(\.\d+)?", number) else 3600.0
