"""Artifacts of connectors: Maven coordinates by Flink version, and the options that they declare.

``python -m dev.measure connectors`` writes the data: each option with the parts of Flink's plan that it changes. An
option that never changes a plan may still change the rows that are read or written. The module
:mod:`~airflow_flinkcompat.connectors.definitions` describes options that change rows.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from airflow_flinkcompat.connectors.facts import BEGINNINGS, OptionEffect, OptionFact, TableUse

DATA = Path(__file__).with_name("connector_options.json.gz")
"""Options by artifact and connector, with the effect of each option on ids and state in Flink's plan."""
_USES: Mapping[TableUse, str] = {TableUse.SOURCE: "source", TableUse.SINK: "sink", TableUse.LOOKUP: "lookup"}
_OF_EVERY_SOURCE = frozenset(
    f"scan.watermark.{name}"
    for name in ("alignment.group", "alignment.max-drift", "alignment.update-interval", "emit.strategy", "idle-timeout")
)
"""Options that Flink's FactoryUtil accepts for every source."""
_WORDS = {
    "ids": "the ids of operators",
    "state": "the state of operators",
    "serializers": "the state of sources or sinks",
}


@dataclass(frozen=True)
class DeclaredOption:
    """An option as declared by one connector artifact.

    Attributes:
        artifact: The name and version of the artifact.
        key: The current name of the option.
        default: The connector's default value; "" if there is none, or if it is not a string.
        moves: The parts of the plan (ids, state, serializers) that change with the value; None if no plans were
            compared.
    """

    artifact: str
    key: str
    type: str
    default: str = ""
    older: tuple[str, ...] = ()
    moves: tuple[str, ...] | None = None


def declared(connector: str | None, use: TableUse, key: str) -> tuple[DeclaredOption, ...]:
    """The declarations of an option in all artifacts of a connector."""
    return tuple(
        each for each in _by_connector().get(connector or "", {}).get(use, ()) if key in (each.key, *each.older)
    )


def undeclared(connector: str | None, key: str) -> bool:
    """True if artifacts of a connector are known, but none of them declares the option.

    False for options that Flink or another library declares for every connector.
    """
    known = _by_connector().get(connector or "", {})
    of_others = key.startswith("properties.") or key in _OF_EVERY_SOURCE
    return bool(known) and not of_others and not any(declared(connector or "", use, key) for use in known)


def fact(connector: str | None, use: TableUse, key: str, *, in_table: bool) -> OptionFact | None:
    """Derive facts about an option without a definition from the connector's artifacts."""
    found = declared(connector, use, key)
    if not found:
        return None
    document = f"code of {found[0].artifact}"
    if moved := next((each for each in found if each.moves), None):
        what = " and ".join(_WORDS[each] for each in moved.moves or ())
        return OptionFact(
            key,
            OptionEffect.STATE,
            document=f"code of {moved.artifact}",
            note=f"a different value changes {what} in Flink's plan (code of {moved.artifact})",
        )
    if use is TableUse.LOOKUP:
        return None
    if any(each.moves is None for each in found):
        note = (
            f"the connector declares this option ({document}), but the effect of a different "
            "value on a restored job is unknown"
        )
        return OptionFact(key, OptionEffect.NOT_KNOWN, document=document, note=note)
    if not in_table and any(key.startswith(begins) for other, begins in BEGINNINGS.items() if other is not use):
        return OptionFact(key, OptionEffect.IGNORED, document=document)
    defaults = {each.default for each in found}
    return OptionFact(
        key,
        OptionEffect.NOT_KNOWN,
        document=document,
        note=f"a different value changes no id and no state in Flink's plan ({document}), but "
        "the meaning of the option is unknown",
        default=defaults.pop() or None if len(found) > 1 == len(defaults) and not in_table else None,
    )


@dataclass(frozen=True)
class OptionCounts:
    """Numbers of known options of a connector.

    Attributes:
        planned: The number of options whose values were compared in plans, for at least one use of a table.
        moving: The number of options that change ids, state or serializers.
    """

    declared: int
    planned: int
    moving: int


def counts() -> Mapping[str, Mapping[str, OptionCounts]]:
    """The numbers of known options, by artifact and connector."""
    return {
        artifact: {name: _counts(table) for name, table in row["connectors"].items()}
        for artifact, row in stored()["artifacts"].items()
    }


def _counts(table: Mapping[str, Any]) -> OptionCounts:
    shown = [pair for use in _USES.values() for pair in table[use].get("moves", {}).items()]
    planned = {key for key, each in shown if each == "=" or "moves" in each}
    return OptionCounts(len(table["options"]), len(planned), len({key for key, each in shown if "moves" in each}))


@lru_cache
def stored() -> Mapping[str, Any]:
    """Read the data that ``python -m dev.measure connectors`` wrote."""
    found: dict[str, Any] = json.loads(gzip.decompress(DATA.read_bytes()))
    return found


@lru_cache
def _by_connector() -> Mapping[str, Mapping[TableUse, tuple[DeclaredOption, ...]]]:
    found: dict[str, dict[TableUse, tuple[DeclaredOption, ...]]] = {}
    for artifact, row in stored()["artifacts"].items():
        for connector, table in row["connectors"].items():
            by_use = found.setdefault(connector, {})
            for use, name in _USES.items():
                by_use[use] = (*by_use.get(use, ()), *_declared(artifact, table, name))
    return found


def _declared(artifact: str, table: Mapping[str, Any], use: str) -> Iterator[DeclaredOption]:
    moves = table[use].get("moves", {})
    for key, row in table["options"].items():
        shown = moves.get(key, {})
        moved = () if shown == "=" else tuple(shown["moves"]) if "moves" in shown else None
        yield DeclaredOption(artifact, key, row["type"], row.get("default", ""), tuple(row.get("older", ())), moved)


_FLINK = "org.apache.flink"
_KAFKA = {"1.19": "3.3.0-1.19", "1.20": "3.4.0-1.20", "2.0": "4.0.1-2.0", "2.1": "5.0.0-2.1", "2.2": "5.0.0-2.2",
          "2.3": "5.0.0-2.2"}  # fmt: skip
_JDBC_OF_1 = {"1.19": "3.2.0-1.19", "1.20": "3.3.0-1.20"}
_JDBC_OF_2 = dict.fromkeys(("2.0", "2.1", "2.2", "2.3"), "4.0.0-2.0")


@dataclass(frozen=True)
class MavenArtifact:
    """A Maven artifact.

    Attributes:
        name: The name of the artifact; ``{line}`` is replaced by the Flink version, such as 1.20.
        versions: The version of the artifact by version of Flink. A Flink version without an entry has no such
            artifact. None if the artifact has Flink's own version; an empty mapping if no version is known.
    """

    group: str
    name: str
    versions: Mapping[str, str] | None

    def coordinates(self, line: str) -> str:
        """The coordinates as ``group:name:version``."""
        found = f"{self.group}:{self.name.format(line=line)}"
        if self.versions is None:
            return f"{found}:{line}.x"
        return f"{found}:{self.versions[line]}" if line in self.versions else found


def _of_flink(name: str) -> tuple[MavenArtifact, ...]:
    return (MavenArtifact(_FLINK, name, None),)


def _other(name: str, group: str = _FLINK) -> tuple[MavenArtifact, ...]:
    return (MavenArtifact(group, name, {}),)


_KAFKA_JAR = (MavenArtifact(_FLINK, "flink-sql-connector-kafka", _KAFKA),)
ARTIFACTS: Mapping[str, tuple[MavenArtifact, ...]] = {
    "kafka": _KAFKA_JAR,
    "upsert-kafka": _KAFKA_JAR,
    "jdbc": (
        MavenArtifact(_FLINK, "flink-connector-jdbc", _JDBC_OF_1),
        MavenArtifact(_FLINK, "flink-connector-jdbc-core", _JDBC_OF_2),
    ),
    "jdbc:postgresql": (
        MavenArtifact(_FLINK, "flink-connector-jdbc-postgres", _JDBC_OF_2),
        MavenArtifact("org.postgresql", "postgresql", {}),
    ),
    "jdbc:mysql": (
        MavenArtifact(_FLINK, "flink-connector-jdbc-mysql", _JDBC_OF_2),
        MavenArtifact("com.mysql", "mysql-connector-j", {}),
    ),
    "elasticsearch-7": _other("flink-sql-connector-elasticsearch7"),
    "opensearch": _other("flink-sql-connector-opensearch"),
    "mongodb": _other("flink-sql-connector-mongodb"),
    "kinesis": _other("flink-sql-connector-aws-kinesis-streams"),
    "pulsar": _other("flink-sql-connector-pulsar"),
    "mysql-cdc": _other("flink-sql-connector-mysql-cdc"),
    "postgres-cdc": _other("flink-sql-connector-postgres-cdc"),
    "oracle-cdc": _other("flink-sql-connector-oracle-cdc"),
    "sqlserver-cdc": _other("flink-sql-connector-sqlserver-cdc"),
    "mongodb-cdc": _other("flink-sql-connector-mongodb-cdc"),
    "iceberg": _other("iceberg-flink-runtime-{line}", "org.apache.iceberg"),
    "paimon": _other("paimon-flink-{line}", "org.apache.paimon"),
    "hudi": _other("hudi-flink{line}-bundle", "org.apache.hudi"),
    "avro": _of_flink("flink-sql-avro"),
    "avro-confluent": _of_flink("flink-sql-avro-confluent-registry"),
    "debezium-avro-confluent": _of_flink("flink-sql-avro-confluent-registry"),
    "orc": _of_flink("flink-sql-orc"),
    "parquet": _of_flink("flink-sql-parquet"),
    "protobuf": _of_flink("flink-sql-protobuf"),
}
"""Artifacts by the value of the option ``connector`` or ``format``, or by prefix of a database URL.

A connector or format without an entry is part of Flink, or is unknown.
"""
LINES = tuple(_KAFKA)
"""The versions of Flink that the table contains."""


def artifacts(identifier: str, line: str) -> tuple[str, ...]:
    """The coordinates of the jars that Flink's planner needs for a connector or format."""
    found = ARTIFACTS.get(identifier, ())
    return tuple(each.coordinates(line) for each in found if not each.versions or line in each.versions)
