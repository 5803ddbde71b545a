"""Delta Lake: the rows of a range, or of the whole table, replaced in one commit.

Readers see the table before or after. Nothing else is needed for a run that is killed and repeated: without the commit
the table is unchanged, after it the repeated run replaces the same range. Rows that other ranges get meanwhile stay.
"""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from airflow_flinkcompat.backfill.connectors.delta.read import ALSO, delta_schema
from airflow_flinkcompat.backfill.connectors.delta.spec import DeltaSink
from airflow_flinkcompat.backfill.connectors.lake_rows import check_keys, replaced_condition, stored_columns
from airflow_flinkcompat.backfill.connectors.replaced_rows import Comparison
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.formats.typed_columns import column_type, stored_types
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range
from airflow_flinkcompat.backfill.spark.filesystem import FileSystem


def publication(session: SparkSession, sink: DeltaSink, rows: PublishedRows, bounds: Range) -> DeltaPublication:
    """Open a publication into a table of Delta Lake."""
    return DeltaPublication(session, sink.place, rows, sink.replaced(rows, bounds))


class DeltaPublication:
    """Rows computed and kept by Spark, then written and committed at once; see :class:`Publication`."""

    def __init__(
        self, session: SparkSession, place: str, rows: PublishedRows, replaced: tuple[Comparison, ...]
    ) -> None:
        self.session = session
        self.place = place
        self.rows = rows
        self.replaced = replaced
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
                f"sink {self.rows.name}: {self.place} holds something other than a Delta table; empty "
                "it or write to another place"
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
