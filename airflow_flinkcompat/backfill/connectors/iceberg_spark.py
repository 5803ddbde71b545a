"""Iceberg tables in Spark: catalogs, the snapshot that a run reads, and replacement in one commit."""

from __future__ import annotations

import os
import uuid
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_flinkcompat.backfill.connectors.iceberg import IcebergSink, IcebergSource, IcebergTable
from airflow_flinkcompat.backfill.connectors.replaced_rows import (
    check_keys,
    declared_columns,
    replaced_condition,
    stored_columns,
)
from airflow_flinkcompat.backfill.formats.columnar import column_type, stored_types
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark import fill_in, pin
from airflow_flinkcompat.secrets.redact import MASK

_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


class IcebergReader:
    """Reader of the table snapshot that is current at the first access of a run."""

    def __init__(self, session: SparkSession, source: IcebergSource) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        source = self._source
        if iceberg_schema(self._session, source.location) is None:
            raise BackfillError(
                f"table {source.table}: there is no table {source.place}. Create the table, or correct its name"
            )
        iceberg_snapshot(self._session, source.location)

    def version(self) -> str:
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


def configure(session: SparkSession, table: IcebergTable) -> None:
    """Add the table's catalog to the Spark session, with its secrets filled in."""
    if not table.properties:
        if session.conf.get(f"spark.sql.catalog.{table.catalog}", None) is None:
            raise BackfillError(
                f"Spark has no catalog {table.catalog}. Configure spark.sql.catalog.{table.catalog}, for example "
                "in spark-defaults.conf, or declare the table with the connector iceberg"
            )
        return
    prefix = f"spark.sql.catalog.{table.catalog}"
    session.conf.set(prefix, _CATALOG)
    # A cached table would hide a recent commit of a different process.
    context: Any = session._jsc.sc()
    for name, value in (*table.properties, ("cache-enabled", "false")):
        # Spark 4.1 masks job properties in its event log only if properties of the same names existed at its start.
        context.conf().setIfMissing(f"{prefix}.{name}", MASK)
        session.conf.set(f"{prefix}.{name}", fill_in(value, os.environ))


def iceberg_schema(session: SparkSession, table: IcebergTable) -> StructType | None:
    """Columns of an Iceberg table; None if there is no table."""
    configure(session, table)
    try:
        return session.table(table.identifier).schema
    except AnalysisException as error:
        if error.getCondition() in _MISSING:
            return None
        raise


def iceberg_snapshot(session: SparkSession, table: IcebergTable) -> int | None:
    """Snapshot of an Iceberg table that this run reads; None if the table has no snapshot."""

    def ask() -> int | None:
        configure(session, table)
        refs = session.table(f"{table.identifier}.refs").where("name = 'main' AND type = 'BRANCH'")
        found = refs.select("snapshot_id").first()
        return None if found is None else found[0]

    return pin(session, ("iceberg", table), ask)


_WEEK = 7 * 24 * 3600 * 1000


class IcebergPublication:
    """Publication of rows from a staging branch in a single commit; see :class:`Publication`.

    If a run is killed, its branch expires after a week with the table's usual expiry of snapshots.
    """

    def __init__(self, session: SparkSession, sink: IcebergSink, rows: PublishedRows, bounds: Range) -> None:
        self.session, self.location, self.rows = session, sink.location, rows
        self.replaced = sink.replaced(rows, bounds)
        self._types = {column.name: column_type(column.type) for column in rows.columns}
        self._branch = f"flinkcompat_{uuid.uuid4().hex[:12]}"
        self._base: int | None = None
        self._table: Any = None

    def check(self) -> None:
        schema = iceberg_schema(self.session, self.location)
        if schema is not None:
            stored_types(self.rows.name, self.rows.columns, schema, self.location.place, {}, all=True)
        elif self.rows.table.primary_key:
            raise BackfillError(
                f"sink {self.rows.name}: the table {self.location.place} does not exist, and its primary key must "
                "be declared in Iceberg. Create the table, or start the job once"
            )

    def stage(self, rows: DataFrame) -> None:
        named = stored_columns(rows, self.rows, self._types)
        if iceberg_schema(self.session, self.location) is None:
            namespace = self.location.identifier.rpartition(".")[0]
            self.session.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
            self.session.createDataFrame([], named.schema).writeTo(self.location.identifier).using("iceberg").create()
        self._table = table = self._load()
        if table.properties().get("write.delete.mode") == "merge-on-read":
            raise BackfillError(
                f"sink {self.rows.name}: {self.location.place} uses merge-on-read deletes, but a backfill "
                "requires copy-on-write. ALTER TABLE … SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')"
            )
        current = table.currentSnapshot()
        snapshots = table.manageSnapshots()
        if current is None:
            snapshots = snapshots.createBranch(self._branch)
        else:
            self._base = current.snapshotId()
            snapshots = snapshots.createBranch(self._branch, self._base)
        snapshots.setMaxRefAgeMs(self._branch, _WEEK).commit()
        branch = f"{self.location.identifier}.branch_{self._branch}"
        if current is not None:
            self.session.sql(f"DELETE FROM {branch} WHERE {replaced_condition(self.replaced, self._types)}")
        named.writeTo(branch).option("check-nullability", "false").append()
        check_keys(self.session.table(branch).where(replaced_condition(self.replaced, self._types)), self.rows)

    def publish(self) -> tuple[str, ...]:
        table = self._table
        table.refresh()
        overwrite, changes = table.newOverwrite(), 0
        snapshot = table.snapshot(self._branch)
        while snapshot is not None and snapshot.snapshotId() != self._base:
            for file in snapshot.addedDataFiles(table.io()):
                overwrite.addFile(file)
                changes += 1
            for file in snapshot.removedDataFiles(table.io()):
                overwrite.deleteFile(file)
                changes += 1
            parent = snapshot.parentId()
            snapshot = None if parent is None else table.snapshot(parent)
        if not changes:
            return ()
        if self._base is not None:
            overwrite.validateFromSnapshot(self._base)
        overwrite.conflictDetectionFilter(self._filter()).validateNoConflictingData().validateNoConflictingDeletes()
        try:
            overwrite.commit()
        except Py4JJavaError as error:
            raise BackfillError(
                f"sink {self.rows.name}: {self.location.place} was changed in the range during the run "
                f"({error.java_exception.getMessage()}). Nothing was published. Run the backfill again"
            ) from None
        return ()

    def discard(self) -> None:
        if self._table is None:
            return
        self._table.refresh()
        if self._table.refs().get(self._branch) is not None:
            self._table.manageSnapshots().removeBranch(self._branch).commit()

    def _load(self) -> Any:
        jvm: Any = self.session._jvm
        spark = self.session._jsparkSession
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark, self.location.identifier)

    def _filter(self) -> Any:
        jvm: Any = self.session._jvm
        expressions = jvm.org.apache.iceberg.expressions.Expressions
        result = expressions.alwaysTrue()
        for comparison in self.replaced:
            compare = getattr(expressions, {">=": "greaterThanOrEqual", "<=": "lessThanOrEqual"}[comparison.operator])
            moment = comparison.moment.isoformat(timespec="microseconds")
            result = getattr(expressions, "and")(result, compare(comparison.column, moment))
        return result


reader, publication = IcebergReader, IcebergPublication
