"""Delta Lake and Iceberg: the rows of a range, or of the whole table, replaced in one commit.

Readers see the table before or after. Nothing else is needed for a run that is killed and repeated: without the commit
the table is as it was, after it the repeated run replaces the same range. What other ranges get meanwhile stays.
"""

from __future__ import annotations

import uuid
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.base import Publication, Rows
from airflow_flinkcompat.backfill.connectors.iceberg import IcebergTable
from airflow_flinkcompat.backfill.connectors.lake_tables import DELTA_ALSO, delta_schema, iceberg_schema
from airflow_flinkcompat.backfill.connectors.lakes import cast_type, column_type, compared, identifier
from airflow_flinkcompat.backfill.connectors.ranges import Comparison
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.filesystem import FileSystem

_WEEK = 7 * 24 * 3600 * 1000
_KINDS = {"timestamp": "TIMESTAMP_LTZ", "timestamp_ntz": "TIMESTAMP_NTZ"}


class LakePublication(Publication, Protocol):
    """A publication into a table of a lake."""


class DeltaPublication:
    """Rows computed and kept by Spark, then written and committed at once; see :class:`Publication`."""

    def __init__(self, session: SparkSession, place: str, rows: Rows, replaced: tuple[Comparison, ...]) -> None:
        self.session = session
        self.place = place
        self.rows = rows
        self.replaced = replaced
        self._types = {column.name: column_type(column.type) for column in rows.columns}
        self._staged: DataFrame | None = None

    def check(self) -> None:
        schema = delta_schema(self.session, self.place)
        if schema is not None:
            self._types = compared(self.rows.name, self.rows.columns, schema, self.place, DELTA_ALSO, all=True)
            return
        files = FileSystem(self.session, self.place)
        if files.exists(self.place) and (files.is_file(self.place) or files.entries(self.place)):
            raise BackfillError(
                f"sink {self.rows.name}: {self.place} holds something that is no Delta table; "
                "empty it or write to another place"
            )

    def stage(self, rows: DataFrame) -> None:
        staged = _named(rows, self.rows, self._types).persist(StorageLevel.DISK_ONLY)
        self._staged = staged
        staged.count()
        _check_keys(staged, self.rows)

    def publish(self) -> tuple[str, ...]:
        assert self._staged is not None
        writer = self._staged.write.format("delta").mode("overwrite")
        if self.replaced:
            writer = writer.option("replaceWhere", _condition(self.replaced, self._types))
        writer.save(self.place)
        return ()

    def discard(self) -> None:
        if self._staged is not None:
            self._staged.unpersist()


class IcebergPublication:
    """Rows staged on a branch of their own, whose files become the table's in one commit; see :class:`Publication`.

    A branch that a killed run leaves goes with the table's own expiry of snapshots, after a week.
    """

    def __init__(
        self, session: SparkSession, table: IcebergTable, rows: Rows, replaced: tuple[Comparison, ...]
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
            compared(self.rows.name, self.rows.columns, schema, self.location.place, {}, all=True)
        elif self.rows.table.primary_key:
            raise BackfillError(
                f"sink {self.rows.name}: there is no table {self.location.place}, and its primary key has to be "
                "declared in Iceberg; create it, or let the job start once"
            )

    def stage(self, rows: DataFrame) -> None:
        named = _named(rows, self.rows, self._types)
        if iceberg_schema(self.session, self.location) is None:
            namespace = self.location.identifier.rpartition(".")[0]
            self.session.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
            self.session.createDataFrame([], named.schema).writeTo(self.location.identifier).using("iceberg").create()
        self._table = table = self._load()
        if table.properties().get("write.delete.mode") == "merge-on-read":
            raise BackfillError(
                f"sink {self.rows.name}: {self.location.place} deletes merge-on-read, a backfill copy-on-write: "
                "ALTER TABLE … SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')"
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
            self.session.sql(f"DELETE FROM {branch} WHERE {_condition(self.replaced, self._types)}")
        named.writeTo(branch).option("check-nullability", "false").append()
        _check_keys(self.session.table(branch).where(_condition(self.replaced, self._types)), self.rows)

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
                f"sink {self.rows.name}: {self.location.place} was changed in the range meanwhile "
                f"({error.java_exception.getMessage()}); nothing was published, repeat the run"
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


def _check_keys(staged: DataFrame, rows: Rows) -> None:
    """Raises :class:`BackfillError` where several rows have one primary key: Flink's upsert would leave the last."""
    key = rows.table.primary_key
    if key and (twice := staged.groupBy(*map(identifier, key)).count().where("count > 1").take(1)):
        values = ", ".join(map(str, twice[0][: len(key)]))
        raise BackfillError(
            f"sink {rows.name}: the query gives {twice[0][len(key)]} rows for the primary key ({', '.join(key)}) = "
            f"({values}), and Flink would leave one; put window_end, and what else tells the rows of the query apart, "
            "into the key"
        )


def _named(frame: DataFrame, rows: Rows, types: dict[str, str]) -> DataFrame:
    return frame.select(
        *(F.col(f"c{i}").cast(cast_type(types[c.name])).alias(c.name) for i, c in enumerate(rows.columns))
    )


def _condition(replaced: tuple[Comparison, ...], types: dict[str, str]) -> str:
    compare = (c.sql(identifier(c.column), _KINDS[types[c.column]]) for c in replaced)
    return " AND ".join(compare) or "true"
