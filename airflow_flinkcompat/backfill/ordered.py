"""Steps that look at rows in an order, as Spark DataFrames."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.steps import Rank

_RANK, _DECIDED, _SOME = "rank", "decided", "decided_in_window"


def ranked(rows: DataFrame, step: Rank, seen: Observation) -> DataFrame:
    """The rows with their number in the window; ``seen`` counts the windows (``ties``) in which rows that are equal in
    the order, but differ, could as well have been numbered otherwise, and it shows."""
    partition = [F.expr(key) for key in step.partition]
    order = [_sorted(F.expr(key), ascending, nulls) for key, ascending, nulls in step.order]
    rest = F.struct(*(F.col(f"c{i}") for i in step.columns))
    values = [F.expr(key) for key, _, _ in step.order]
    number = F.row_number().over(Window.partitionBy(*partition).orderBy(*order, *_columns(step.columns)))
    equal = Window.partitionBy(*partition, *values)
    rows = rows.withColumn(_RANK, number)
    low, high = F.min(_RANK).over(equal), F.max(_RANK).over(equal)
    across = (low <= step.last) & (high > step.last) | (low < step.first) & (high >= step.first)
    if step.number_read:
        across = (low <= step.last) & (high >= step.first)
    differs = ~F.min(rest).over(equal).eqNullSafe(F.max(rest).over(equal))
    rows = rows.withColumn(_DECIDED, (low < high) & across & differs)
    rows = rows.withColumn(_SOME, F.bool_or(_DECIDED).over(Window.partitionBy(*partition)))
    rows = rows.observe(seen, F.count_if((F.col(_RANK) == 1) & F.col(_SOME)).alias("ties"))
    rows = rows.withColumns({f"c{i}": F.col(_RANK).cast("bigint") for i in step.numbers})
    return rows.drop(_RANK, _DECIDED, _SOME)


def _columns(positions: Iterable[int]) -> list[Column]:
    return [F.col(f"c{i}").asc_nulls_first() for i in positions]


def _sorted(key: Column, ascending: bool, nulls_first: bool) -> Column:
    if ascending:
        return key.asc_nulls_first() if nulls_first else key.asc_nulls_last()
    return key.desc_nulls_first() if nulls_first else key.desc_nulls_last()
