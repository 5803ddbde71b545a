"""Rows of Delta Lake and Iceberg tables in Spark: read as declared, written as stored."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.replaced_rows import Comparison
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.formats.typed_columns import cast_type, column_type, identifier, rows_within
from airflow_flinkcompat.backfill.protocols import PublishedRows, TimeSpan
from airflow_flinkcompat.plan.types import Column

_KINDS = {"timestamp": "TIMESTAMP_LTZ", "timestamp_ntz": "TIMESTAMP_NTZ"}


def declared_columns(
    rows: DataFrame, columns: tuple[Column, ...], span: TimeSpan | None, stored: Mapping[str, str]
) -> DataFrame:
    """Rows that may be in a span, as ``f0`` … in the declared types; ``stored`` has the table's types."""
    if span is not None:
        name = columns[span.field].name
        rows = rows_within(rows, span, name, stored[name])
    return rows.select(
        *(
            (
                F.col(identifier(column.name)).cast(cast_type(kind))
                if (kind := column_type(column.type))
                else F.lit(None)
            ).alias(f"f{i}")
            for i, column in enumerate(columns)
        )
    )


def check_keys(staged: DataFrame, rows: PublishedRows) -> None:
    """Raise :class:`BackfillError` if rows share a primary key, of which Flink's upsert keeps the last."""
    key = rows.table.primary_key
    if key and (twice := staged.groupBy(*map(identifier, key)).count().where("count > 1").take(1)):
        values = ", ".join(map(str, twice[0][: len(key)]))
        raise BackfillError(
            f"sink {rows.name}: the query returns {twice[0][len(key)]} rows for the primary key ({', '.join(key)}) "
            f"= ({values}), of which Flink would keep one; add window_end, and other columns that "
            "distinguish the rows, to the key"
        )


def stored_columns(frame: DataFrame, rows: PublishedRows, types: Mapping[str, str]) -> DataFrame:
    """The published rows under their names, in the stored types."""
    return frame.select(
        *(F.col(f"c{i}").cast(cast_type(types[c.name])).alias(c.name) for i, c in enumerate(rows.columns))
    )


def replaced_condition(replaced: tuple[Comparison, ...], types: Mapping[str, str]) -> str:
    """Spark SQL of the rows that are replaced, by columns of the stored types."""
    compare = (c.sql(identifier(c.column), _KINDS[types[c.column]]) for c in replaced)
    return " AND ".join(compare) or "true"
