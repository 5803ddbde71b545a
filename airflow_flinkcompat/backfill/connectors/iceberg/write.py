"""Iceberg: the rows of a range, or of the whole table, replaced in one commit, as in Delta Lake."""

from __future__ import annotations

import uuid
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from airflow_flinkcompat.backfill.connectors.iceberg.read import iceberg_schema
from airflow_flinkcompat.backfill.connectors.iceberg.spec import IcebergSink, IcebergTable
from airflow_flinkcompat.backfill.connectors.lake_rows import check_keys, replaced_condition, stored_columns
from airflow_flinkcompat.backfill.connectors.replaced_rows import Comparison
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.formats.typed_columns import column_type, stored_types
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range

_WEEK = 7 * 24 * 3600 * 1000


def publication(session: SparkSession, sink: IcebergSink, rows: PublishedRows, bounds: Range) -> IcebergPublication:
    """Open a publication into a table of Iceberg."""
    return IcebergPublication(session, sink.location, rows, sink.replaced(rows, bounds))


class IcebergPublication:
    """Rows staged on a branch, whose files become the table's in one commit; see :class:`Publication`.

    A branch that a killed run leaves expires with the table's own expiry of snapshots, after a week.
    """

    def __init__(
        self, session: SparkSession, table: IcebergTable, rows: PublishedRows, replaced: tuple[Comparison, ...]
    ) -> None:
        self.session = session
        self.location = table
        self.rows = rows
        self.replaced = replaced
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
                f"sink {self.rows.name}: there is no table {self.location.place}, and its primary key "
                "must be declared in Iceberg; create it, or let the job start once"
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
                f"sink {self.rows.name}: {self.location.place} uses merge-on-read deletes, but a "
                "backfill needs copy-on-write: ALTER TABLE … SET TBLPROPERTIES ('write.delete.mode' "
                "= 'copy-on-write')"
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
                f"sink {self.rows.name}: {self.location.place} was changed in the range during the "
                f"run ({error.java_exception.getMessage()}); nothing was published, run it again"
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
