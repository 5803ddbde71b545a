"""Delta Lake tables at run time: their schema, the version a run reads, and its rows."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_flinkcompat.backfill.connectors.delta.spec import DeltaSource
from airflow_flinkcompat.backfill.connectors.lake_rows import declared_columns
from airflow_flinkcompat.backfill.connectors.snapshot_pinning import pin
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.formats.typed_columns import stored_types

ALSO = {"timestamp_ntz": "timestamp"}
"""Stored types that are accepted for a declared one."""


class DeltaReader:
    """Reader of the version that the table has when the run first looks at it."""

    def __init__(self, session: SparkSession, source: DeltaSource) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        source = self._source
        if delta_schema(self._session, source.place) is None:
            raise BackfillError(f"table {source.table}: there is no Delta table at {source.place}")
        delta_version(self._session, source.place)

    def version(self) -> str:
        """The version that is read, and when it was committed."""
        return "{} of {}".format(*delta_version(self._session, self._source.place))

    def rows(self) -> DataFrame:
        source = self._source
        version, _ = delta_version(self._session, source.place)
        rows = self._session.read.format("delta").option("versionAsOf", version).load(source.place)
        stored = stored_types(source.table, source.columns, rows.schema, source.place, ALSO)
        return declared_columns(rows, source.columns, source.span, stored)


reader = DeltaReader


def delta_schema(session: SparkSession, place: str) -> StructType | None:
    """The columns of the Delta table at a place, None if there is none."""
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

    return pin(session, ("delta", place), ask)
