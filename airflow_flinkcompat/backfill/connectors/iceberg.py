"""Connector for Iceberg tables of a hadoop, hive or rest catalog.

A run reads the snapshot at its start.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import ClassVar

from airflow_flinkcompat.backfill.connectors.registry import Connector
from airflow_flinkcompat.backfill.connectors.replaced_rows import LakeSink, LakeSource
from airflow_flinkcompat.backfill.formats.columnar import identifier
from airflow_flinkcompat.backfill.protocols import REDACTION, Needs, PublishedRows, Range
from airflow_flinkcompat.backfill.result import BackfillError, Untranslatable
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.secrets import mask_secrets

NEEDS = Needs(("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",), REDACTION)
_TYPES = ("hadoop", "hive", "rest")
_NAMES = ("catalog-name", "catalog-type", "catalog-database", "catalog-table", "connector", "clients")
# Catalog and storage properties that both Flink and Spark pass on to Iceberg.
_CATALOG = re.compile(
    r"uri|warehouse|io-impl|credential|token|scope|oauth2-server-uri|header\..+|rest\..+|s3\..+|client\..+|gcs\..+|"
    r"adls\..+|prefix|view-endpoints-supported"
)
# Options for the writer and reader of a streaming job, which have no effect on a backfill.
_NEUTRAL = re.compile(
    r"write\..+|read\.split\..+|format-version|property-version|monitor-interval|max-planning-snapshot-count|"
    r"cache-enabled|cache\.expiration-interval-ms|distribution-mode|target-file-size-bytes|compression-.+|commit\..+|history\..+"
)


@dataclass(frozen=True)
class IcebergTable:
    """A table of an Iceberg catalog.

    ``catalog``: Spark's name for the catalog. ``properties``: Settings of the catalog; empty if Spark's configuration
    defines the catalog. The settings are applied, with placeholders filled in, before the catalog is first used.
    """

    catalog: str
    database: str
    name: str
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    label: str = ""

    @property
    def identifier(self) -> str:
        """Name of the table in Spark SQL."""
        parts = (self.catalog, *self.database.split("."), self.name)
        return ".".join(identifier(part) for part in parts)

    @property
    def place(self) -> str:
        """Location without secrets, for messages."""
        return f"iceberg:{self.label or self.catalog}.{self.database}.{self.name}"

    @classmethod
    def declared(cls, table: Table) -> IcebergTable:
        """Find the table that a script's options declare.

        Raises :class:`BackfillError` for an unsupported option.
        """
        properties: dict[str, str] = {}
        for option, value in table.options:
            if _CATALOG.fullmatch(option):
                properties[option] = value
            elif option not in _NAMES and not _NEUTRAL.fullmatch(option):
                raise Untranslatable(
                    f"table {table.name}: a backfill does not support the option {option} = "
                    f"'{mask_secrets(value)}'. Remove the option, or specify a catalog of Spark with --table or "
                    f"--sink {table.path[2]}=iceberg:CATALOG.DATABASE.TABLE",
                    table.span,
                )
        kind = table.option("catalog-type", "hive") or ""
        if kind not in _TYPES:
            raise Untranslatable(
                f"table {table.name}: a backfill does not support catalog-type '{kind}', only "
                f"{', '.join(_TYPES)}. Specify a catalog of Spark with --table or --sink "
                f"{table.path[2]}=iceberg:CATALOG.DATABASE.TABLE",
                table.span,
            )
        properties["type"] = kind
        missing = {"hadoop": "warehouse", "hive": "uri", "rest": "uri"}[kind]
        if missing not in properties:
            raise BackfillError(f"table {table.name} has no option {missing}: add it", table.span)
        name = table.option("catalog-name")
        if not name:
            raise BackfillError(f"table {table.name} has no option catalog-name: add it", table.span)
        stored = tuple(sorted(properties.items()))
        digest = hashlib.sha256(repr(stored).encode()).hexdigest()[:12]
        database = table.option("catalog-database") or table.path[1] or "default_database"
        place = mask_secrets(properties.get("warehouse") or properties["uri"])
        label = f"{name}@{place}"
        return cls(f"flinkcompat_{digest}", database, table.option("catalog-table") or table.path[2], stored, label)

    @classmethod
    def parse(cls, name: str, what: str) -> IcebergTable:
        """Parse the location ``catalog.database.table``; raises :class:`BackfillError` if it is invalid."""
        parts = name.split(".")
        if len(parts) < 3 or not all(part.strip() for part in parts):
            raise BackfillError(f"{what}: iceberg:{name} is not an Iceberg table. Write iceberg:CATALOG.DATABASE.TABLE")
        return cls(parts[0], ".".join(parts[1:-1]), parts[-1])


@dataclass(frozen=True)
class IcebergSource(LakeSource):
    """A table read from Iceberg."""

    location: IcebergTable
    needs: ClassVar[Needs] = NEEDS
    system: ClassVar[str] = "Iceberg"

    @property
    def place(self) -> str:
        return self.location.place


@dataclass(frozen=True)
class IcebergSink(LakeSink):
    """A sink in Iceberg."""

    location: IcebergTable
    needs: ClassVar[Needs] = NEEDS

    @property
    def place(self) -> str:
        return self.location.place

    def check(self, rows: PublishedRows, bounds: Range) -> None:
        for column in rows.columns:
            if column.type.name in ("TINYINT", "SMALLINT"):
                raise Untranslatable(
                    f"sink {rows.name}: Iceberg has no type for column {column.name} of type {column.type}. "
                    "Declare the column as INT",
                    rows.table.span,
                )
        super().check(rows, bounds)


CONNECTOR = Connector(
    sources={"iceberg": lambda table: IcebergSource(table.name, table.stored, IcebergTable.declared(table))},
    sinks={"iceberg": lambda table: IcebergSink(exclusive=False, location=IcebergTable.declared(table))},
    named_sources={
        "iceberg": lambda table, name, what: IcebergSource(table.name, table.stored, IcebergTable.parse(name, what))
    },
    named_sinks={"iceberg": lambda table, name, what: IcebergSink(True, IcebergTable.parse(name, what))},
    listed=3,
)
