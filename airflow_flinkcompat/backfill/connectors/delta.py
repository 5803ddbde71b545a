"""Connector for Delta Lake tables by path. A run reads the version that is current at its start.

Flink's connector stores TIMESTAMP as Delta's ``timestamp`` in UTC. Newer tables use ``timestamp_ntz``. Both are
supported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airflow_flinkcompat.backfill.connectors.registry import Connector
from airflow_flinkcompat.backfill.connectors.replaced_rows import LakeSink, LakeSource
from airflow_flinkcompat.backfill.protocols import Needs
from airflow_flinkcompat.backfill.request import normalised
from airflow_flinkcompat.backfill.result import BackfillError, Untranslatable
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.secrets import mask_secrets

NEEDS = Needs(
    ("io.delta:delta-spark_4.1_2.13:4.4.0",),
    (
        ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"),
        ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"),
    ),
)
# Options for the reads and commits of a streaming job, which have no effect on a backfill.
_NEUTRAL = ("updateCheckIntervalMillis", "updateCheckDelayMillis", "mergeSchema", "uid")


@dataclass(frozen=True)
class DeltaSource(LakeSource):
    """A table read from Delta Lake."""

    place: str
    needs: ClassVar[Needs] = NEEDS
    system: ClassVar[str] = "Delta Lake"


@dataclass(frozen=True)
class DeltaSink(LakeSink):
    """A sink in Delta Lake."""

    place: str
    needs: ClassVar[Needs] = NEEDS


def _declared_path(table: Table) -> str:
    """Path of a Delta table; raises :class:`Untranslatable` for an option that affects the rows read."""
    for option, value in table.options:
        if option not in ("connector", "table-path", *_NEUTRAL) and (option, value) != ("mode", "batch"):
            raise Untranslatable(
                f"table {table.name}: a backfill does not support the option {option} = '{mask_secrets(value)}', "
                "because it reads the current table. Remove the option",
                table.span,
            )
    path = table.option("table-path")
    if not path:
        raise BackfillError(f"table {table.name} has no option table-path: add it", table.span)
    return path


def _place(table: Table) -> str:
    return normalised(_declared_path(table), f"table {table.name}, option table-path")


CONNECTOR = Connector(
    sources={"delta": lambda table: DeltaSource(table.name, table.stored, _place(table))},
    sinks={"delta": lambda table: DeltaSink(exclusive=False, place=_place(table))},
    named_sources={"delta": lambda table, place, what: DeltaSource(table.name, table.stored, normalised(place, what))},
    named_sinks={"delta": lambda table, place, what: DeltaSink(exclusive=True, place=normalised(place, what))},
    listed=2,
)
