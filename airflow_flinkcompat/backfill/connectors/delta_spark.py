"""Delta Lake tables in Spark: read one version during a run, and replace a range in one commit."""

from __future__ import annotations

from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_flinkcompat.backfill.connectors.delta import DeltaSink, DeltaSource
from airflow_flinkcompat.backfill.connectors.replaced_rows import (
    check_keys,
    declared_columns,
    replaced_condition,
    stored_columns,
)
from airflow_flinkcompat.backfill.formats.columnar import column_type, stored_types
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark import FileSystem, pin

ALSO = {"timestamp_ntz": "timestamp"}
"""Stored types that are also accepted for a declared type."""


class DeltaReader:
    """Reader of the table version that is current at the first access of a run."""

    def __init__(self, session: SparkSession, source: DeltaSource) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        source = self._source
        if delta_schema(self._session, source.place) is None:
            raise BackfillError(f"table {source.table}: {source.place} does not contain a Delta table")
        delta_version(self._session, source.place)

    def version(self) -> str:
        """Version that the run reads, and the time of that version's commit."""
        return "{} of {}".format(*delta_version(self._session, self._source.place))

    def rows(self) -> DataFrame:
        source = self._source
        version, _ = delta_version(self._session, source.place)
        rows = self._session.read.format("delta").option("versionAsOf", version).load(source.place)
        stored = stored_types(source.table, source.columns, rows.schema, source.place, ALSO)
        return declared_columns(rows, source.columns, source.span, stored)


def delta_schema(session: SparkSession, place: str) -> StructType | None:
    """Columns of the Delta table at a location; None if there is no table."""
    jvm: Any = session._jvm
    if not jvm.io.delta.tables.DeltaTable.isDeltaTable(session._jsparkSession, place):
        return None
    return session.read.format("delta").load(place).schema


def delta_version(session: SparkSession, place: str) -> tuple[int, str]:
    """Version of a Delta table that a run reads, and the time of that version's commit."""

    def ask() -> tuple[int, str]:
        jvm: Any = session._jvm
        history = DataFrame(jvm.io.delta.tables.DeltaTable.forPath(session._jsparkSession, place).history(1), session)
        (last,) = history.selectExpr("version", "CAST(timestamp AS STRING)").collect()
        return last[0], last[1]

    return pin(session, ("delta", place), ask)


class DeltaPublication:
    """Publication of rows that Spark stores locally, then commits in one step; see :class:`Publication`."""

    def __init__(self, session: SparkSession, sink: DeltaSink, rows: PublishedRows, bounds: Range) -> None:
        self.session, self.place, self.rows = session, sink.place, rows
        self.replaced = sink.replaced(rows, bounds)
        self._types = {column.name: column_type(column.type) for column in rows.columns}
        self._staged: DataFrame | None = None

    def check(self) -> None:
        schema = delta_schema(self.session, self.place)
        if schema is not None:
            self._types = stored_types(self.rows.name, self.rows.columns, schema, self.place, ALSO, all=True)
            return
        files = FileSystem(self.session, self.place)
        if files.exists(self.place) and (files.is_file(self.place) or files.entries(self.place)):
            raise BackfillError(
                f"sink {self.rows.name}: {self.place} contains files that are not a Delta table. Empty the "
                "folder, or write to a different location"
            )

    def stage(self, rows: DataFrame) -> None:
        staged = stored_columns(rows, self.rows, self._types).persist(StorageLevel.DISK_ONLY)
        self._staged = staged
        staged.count()
        check_keys(staged, self.rows)

    def publish(self) -> tuple[str, ...]:
        assert self._staged is not None
        writer = self._staged.write.format("delta").mode("overwrite")
        if self.replaced:
            writer = writer.option("replaceWhere", replaced_condition(self.replaced, self._types))
        writer.save(self.place)
        return ()

    def discard(self) -> None:
        if self._staged is not None:
            self._staged.unpersist()


reader, publication = DeltaReader, DeltaPublication
