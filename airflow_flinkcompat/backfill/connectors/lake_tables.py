"""Delta Lake and Iceberg tables at run time: their real schema, and their rows as the declared columns."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from airflow_flinkcompat.backfill.connectors.lakes import cast_type, column_type, compared, identifier, within
from airflow_flinkcompat.backfill.connectors.pins import once
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.values import fill_in
from airflow_flinkcompat.secrets import MASK

if TYPE_CHECKING:
    from airflow_flinkcompat.backfill.connectors.delta import Delta
    from airflow_flinkcompat.backfill.connectors.iceberg import Iceberg, IcebergTable

DELTA_ALSO = {"timestamp_ntz": "timestamp"}
_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


def delta_schema(session: SparkSession, place: str) -> StructType | None:
    """The columns of the Delta table at a place, None where there is none."""
    jvm: Any = session._jvm
    if not jvm.io.delta.tables.DeltaTable.isDeltaTable(session._jsparkSession, place):
        return None
    return session.read.format("delta").load(place).schema


def delta_version(session: SparkSession, place: str) -> tuple[int, str]:
    """The version of a Delta table that this run reads, and when it was committed."""

    def ask() -> tuple[int, str]:
        jvm: Any = session._jvm
        history = DataFrame(jvm.io.delta.tables.DeltaTable.forPath(session._jsparkSession, place).history(1), session)
        (last,) = history.selectExpr("version", "CAST(timestamp AS STRING)").collect()
        return last[0], last[1]

    return once(session, ("delta", place), ask)


def delta_rows(session: SparkSession, source: Delta) -> DataFrame:
    """The rows of a Delta table, ``f0`` … in the declared types."""
    version, _ = delta_version(session, source.place)
    rows = session.read.format("delta").option("versionAsOf", version).load(source.place)
    stored = compared(source.table, source.columns, rows.schema, source.place, DELTA_ALSO)
    return _fields(rows, source, stored)


def configure(session: SparkSession, table: IcebergTable) -> None:
    """Makes the table's catalog known to the session; its secrets are filled in here."""
    if not table.properties:
        if session.conf.get(f"spark.sql.catalog.{table.catalog}", None) is None:
            raise BackfillError(
                f"Spark knows no catalog {table.catalog}; configure spark.sql.catalog.{table.catalog}, as in "
                "spark-defaults.conf, or declare the table with connector iceberg"
            )
        return
    prefix = f"spark.sql.catalog.{table.catalog}"
    session.conf.set(prefix, _CATALOG)
    # A cached table would not show what another process committed a moment ago.
    context: Any = session._jsc.sc()
    for name, given in (*table.properties, ("cache-enabled", "false")):
        # Of a job's properties, the event log hides only those whose names Spark was started with (Spark 4.1).
        context.conf().setIfMissing(f"{prefix}.{name}", MASK)
        session.conf.set(f"{prefix}.{name}", fill_in(given, os.environ))


def iceberg_schema(session: SparkSession, table: IcebergTable) -> StructType | None:
    """The columns of an Iceberg table, None where there is none."""
    configure(session, table)
    try:
        return session.table(table.identifier).schema
    except AnalysisException as error:
        if error.getCondition() in _MISSING:
            return None
        raise


def iceberg_snapshot(session: SparkSession, table: IcebergTable) -> int | None:
    """The snapshot of an Iceberg table that this run reads, None for a table that has none yet."""

    def ask() -> int | None:
        configure(session, table)
        refs = session.table(f"{table.identifier}.refs").where("name = 'main' AND type = 'BRANCH'")
        found = refs.select("snapshot_id").first()
        return None if found is None else found[0]

    return once(session, ("iceberg", table), ask)


def iceberg_rows(session: SparkSession, source: Iceberg) -> DataFrame:
    """The rows of an Iceberg table, ``f0`` … in the declared types."""
    configure(session, source.location)
    name, snapshot = source.location.identifier, iceberg_snapshot(session, source.location)
    if snapshot is None:
        rows = session.table(name).where("FALSE")
    else:
        rows = session.sql(f"SELECT * FROM {name} VERSION AS OF {snapshot}")
    stored = compared(source.table, source.columns, rows.schema, source.place, {})
    return _fields(rows, source, stored)


def _fields(rows: DataFrame, source: Delta | Iceberg, stored: dict[str, str]) -> DataFrame:
    if source.span is not None:
        name = source.columns[source.span.field].name
        rows = within(rows, source.span, name, stored[name])
    return rows.select(
        *(
            (
                F.col(identifier(column.name)).cast(cast_type(kind))
                if (kind := column_type(column.type))
                else F.lit(None)
            ).alias(f"f{i}")
            for i, column in enumerate(source.columns)
        )
    )
