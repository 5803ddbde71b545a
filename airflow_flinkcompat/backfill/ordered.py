"""Steps that look at rows in an order, as Spark DataFrames; see the steps for what they mean."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.expressions import quoted
from airflow_flinkcompat.backfill.steps import Late, Rank, Sessions
from airflow_flinkcompat.backfill.windows import MILLISECOND

# Columns that go along with a row unseen: the watermark it met, and its place among the rows of its source.
MET, PART, PLACE = "met", "part", "place"
HIDDEN = (MET, PART, PLACE)
_MICROS, _BEGINS, _SESSION = "micros", "begins", "session"
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


def in_sessions(rows: DataFrame, step: Sessions, seen: Observation) -> DataFrame:
    """The rows in their sessions; ``seen`` counts those without an event time (``nulls``), which are dropped."""
    column = f"c{step.time}"
    rows = rows.observe(seen, F.count_if(F.expr(f"{column} IS NULL")).alias("nulls"))
    time = f"from_utc_timestamp({column}, {quoted(step.zone)})" if step.zone else f"CAST({column} AS TIMESTAMP_LTZ)"
    rows = rows.where(f"{column} IS NOT NULL").withColumn(_MICROS, F.expr(f"unix_micros({time})"))
    keys = [F.expr(key) for key in step.partition]
    before = Window.partitionBy(*keys).orderBy(_MICROS)
    apart = F.col(_MICROS) - F.lag(_MICROS).over(before)
    # Sessions that touch are one. Rows of one time are peers: all of them see the same sum.
    rows = rows.withColumn(_BEGINS, F.when(apart > step.gap, 1).otherwise(0))
    rows = rows.withColumn(_SESSION, F.sum(_BEGINS).over(before))
    session = Window.partitionBy(*keys, _SESSION)
    start, end = F.min(_MICROS).over(session), F.max(_MICROS).over(session) + step.gap
    first, last = f"c{step.width}", f"c{step.width + 1}"
    rows = rows.withColumns({first: start, last: end})
    demand = step.demand
    for condition, moment in (
        (f"{first} >=", demand.starts),
        (f"{last} >=", demand.ends),
        (f"{last} <=", demand.until),
    ):
        rows = rows if moment is None else rows.where(f"{condition} {moment}")
    time = f"timestamp_micros({last} - {MILLISECOND})"
    time = f"to_utc_timestamp({time}, {quoted(step.zone)})" if step.zone else f"CAST({time} AS TIMESTAMP_NTZ)"
    rows = rows.withColumn(f"c{step.width + 2}", F.expr(time))
    fields = {name: F.expr(f"CAST(timestamp_micros({name}) AS TIMESTAMP_NTZ)") for name in (first, last)}
    return rows.withColumns(fields).drop(_MICROS, _BEGINS, _SESSION)


def with_watermark(rows: DataFrame, watermark: str) -> DataFrame:
    """The rows with the highest ``watermark`` of all rows that arrived before them, NULL before the first.

    Within a part by the order of its rows; of the parts before it by the highest one of each, which are few. Flink
    counts watermarks up from 1970: an earlier one is none (measured).
    """
    own = F.expr(f"IF(unix_micros(CAST({watermark} AS TIMESTAMP_LTZ)) > 0, {watermark}, NULL)")
    upwards = Window.orderBy(PART).rowsBetween(Window.unboundedPreceding, -1)
    parts = rows.groupBy(PART).agg(F.max(own).alias("highest"))
    parts = parts.select(PART, F.max("highest").over(upwards).alias("before"))
    within = Window.partitionBy(PART).orderBy(PLACE).rowsBetween(Window.unboundedPreceding, -1)
    rows = rows.withColumn("within", F.max(own).over(within)).join(F.broadcast(parts), PART)
    return rows.withColumn(MET, F.greatest("within", "before")).drop(PART, PLACE, "within", "before")


def in_time(rows: DataFrame, step: Late, seen: Observation) -> DataFrame:
    """The rows whose window was not complete when they came; ``seen`` counts the others (``late``)."""
    late = F.expr(f"{MET} IS NOT NULL AND {step.fires} <= {MET}")
    return rows.observe(seen, F.count_if(late & F.expr(step.counted)).alias("late")).where(~late).drop(MET)


def _columns(positions: Iterable[int]) -> list[Column]:
    return [F.col(f"c{i}").asc_nulls_first() for i in positions]


def _sorted(key: Column, ascending: bool, nulls_first: bool) -> Column:
    if ascending:
        return key.asc_nulls_first() if nulls_first else key.asc_nulls_last()
    return key.desc_nulls_first() if nulls_first else key.desc_nulls_last()
