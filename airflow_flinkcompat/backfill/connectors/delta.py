"""The delta connector: Delta Lake tables by path, read at the version they have when the run starts.

Flink's connector keeps TIMESTAMP as Delta's ``timestamp`` in UTC; newer tables have ``timestamp_ntz``. Both are taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from airflow_flinkcompat.backfill.connectors import packages
from airflow_flinkcompat.backfill.connectors.base import Needs, Range, Rows
from airflow_flinkcompat.backfill.connectors.lakes import LakeTarget, Span, value
from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import Column
from airflow_flinkcompat.secrets import mask_secrets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_flinkcompat.backfill.publishing.lakes import LakePublication

NEEDS = Needs(
    (packages.DELTA,),
    (
        ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"),
        ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"),
    ),
)
# How a streaming job follows the table and names its commits: nothing here.
_NEUTRAL = ("updateCheckIntervalMillis", "updateCheckDelayMillis", "mergeSchema", "uid")


@dataclass(frozen=True)
class Delta:
    """A table read from Delta Lake."""

    table: str
    place: str
    columns: tuple[Column, ...]
    span: Span | None = None
    needs: ClassVar[Needs] = NEEDS

    @classmethod
    def of(cls, table: Table, place: str) -> Delta:
        return cls(table.name, place, table.stored)

    def decode(self, column: Column, field: str, table: Table) -> str:
        return value(column, field, table, "Delta Lake")

    def within(self, span: Span) -> Delta:
        return replace(self, span=span)

    def check(self, session: SparkSession) -> None:
        from airflow_flinkcompat.backfill.connectors.lake_tables import delta_schema, delta_version

        if delta_schema(session, self.place) is None:
            raise BackfillError(f"table {self.table}: there is no Delta table at {self.place}")
        delta_version(session, self.place)

    def state(self, session: SparkSession) -> str:
        """The version that is read, and when it was committed."""
        from airflow_flinkcompat.backfill.connectors.lake_tables import delta_version

        return "{} of {}".format(*delta_version(session, self.place))

    def frame(self, session: SparkSession) -> DataFrame:
        from airflow_flinkcompat.backfill.connectors.lake_tables import delta_rows

        return delta_rows(session, self)


@dataclass(frozen=True)
class DeltaTarget(LakeTarget):
    """A sink in Delta Lake."""

    place: str
    needs: ClassVar[Needs] = NEEDS

    def publication(self, session: SparkSession, rows: Rows, bounds: Range) -> LakePublication:
        from airflow_flinkcompat.backfill.publishing.lakes import DeltaPublication

        return DeltaPublication(session, self.place, rows, self.replaced(rows, bounds))


def declared_path(table: Table) -> str:
    """The path a delta table declares. Raises :class:`Untranslatable` for an option that changes what is read."""
    for option, given in table.options:
        if option not in ("connector", "table-path", *_NEUTRAL) and (option, given) != ("mode", "batch"):
            raise Untranslatable(
                f"table {table.name}: option {option} = '{mask_secrets(given)}' is not understood by a backfill, which "
                "reads the table as it is; leave it out",
                table.span,
            )
    path = table.option("table-path")
    if not path:
        raise BackfillError(f"table {table.name} has no option table-path", table.span)
    return path
