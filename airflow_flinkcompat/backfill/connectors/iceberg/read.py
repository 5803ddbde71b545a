"""Iceberg tables at run time: catalog, schema, a run's snapshot and its rows, with secrets filled in."""

from __future__ import annotations

import os
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_flinkcompat.backfill.connectors.iceberg.spec import IcebergSource, IcebergTable
from airflow_flinkcompat.backfill.connectors.lake_rows import declared_columns
from airflow_flinkcompat.backfill.connectors.snapshot_pinning import pin
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.formats.typed_columns import stored_types
from airflow_flinkcompat.backfill.placeholder_values import fill_in
from airflow_flinkcompat.secrets import MASK

_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


class IcebergReader:
    """Reader of the snapshot that the table has when the run first looks at it."""

    def __init__(self, session: SparkSession, source: IcebergSource) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        source = self._source
        if iceberg_schema(self._session, source.location) is None:
            raise BackfillError(f"table {source.table}: there is no table {source.place}")
        iceberg_snapshot(self._session, source.location)

    def version(self) -> str:
        """The snapshot that is read."""
        return str(iceberg_snapshot(self._session, self._source.location))

    def rows(self) -> DataFrame:
        session, source = self._session, self._source
        configure(session, source.location)
        name, snapshot = source.location.identifier, iceberg_snapshot(session, source.location)
        if snapshot is None:
            rows = session.table(name).where("FALSE")
        else:
            rows = session.sql(f"SELECT * FROM {name} VERSION AS OF {snapshot}")
        stored = stored_types(source.table, source.columns, rows.schema, source.place, {})
        return declared_columns(rows, source.columns, source.span, stored)


reader = IcebergReader


def configure(session: SparkSession, table: IcebergTable) -> None:
    """Make the table's catalog known to the session, with its secrets filled in."""
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
    """The columns of an Iceberg table, None if there is none."""
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

    return pin(session, ("iceberg", table), ask)
