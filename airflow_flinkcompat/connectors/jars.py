"""Maven artifacts of connectors and formats that Flink does not include, by version of Flink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
            artifact. None if the artifact has Flink's own version. Empty if no version is known.
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
