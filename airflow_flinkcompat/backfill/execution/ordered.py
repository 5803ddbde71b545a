"""DataFrames of steps that process rows in an order."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Observation, Window, WindowSpec
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.spark_sql.expressions import quoted
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.backfill.spark_sql.windows import MILLISECOND, micros_of
from airflow_flinkcompat.backfill.steps import DropLate, DropOverLate, OverAggregate, Rank, Read

# Hidden columns of a row: the watermark at its arrival, its part, its place in the part, its stream, and its position
# in the order of arrival.
MET, PART, PLACE, STREAM, ARRIVAL = "met", "part", "place", "stream", "arrival"
HIDDEN = (MET, PART, PLACE, STREAM, ARRIVAL)
_MICROS, _CLASH = "micros", "clash"
_RANK, _DECIDED, _SOME = "rank", "decided", "decided_in_window"


def ranked(rows: DataFrame, step: Rank, seen: Observation) -> DataFrame:
    """Number the rows of each window. ``seen`` counts windows whose result depends on a tie (``ties``)."""
    partition = [F.expr(key) for key in step.partition]
    order = [_sorted(F.expr(key), ascending, nulls) for key, ascending, nulls in step.order]
    rest = F.struct(*(F.col(f"c{i}") for i in step.columns))
    values = [F.expr(key) for key, _, _ in step.order]
    others = (F.col(f"c{i}").asc_nulls_first() for i in step.columns)
    number = F.row_number().over(Window.partitionBy(*partition).orderBy(*order, *others))
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


def over_rows(rows: DataFrame, step: OverAggregate, seen: Observation | None) -> DataFrame:
    """Add results of OVER calls to the rows. ``seen`` counts rows without an event time (``nulls``)."""
    if step.time is not None and seen is not None:
        column = f"c{step.time}"
        rows = rows.observe(seen, F.count_if(F.expr(f"{column} IS NULL")).alias("nulls"))
        micros = F.expr(micros_of(column))
        rows = rows.where(f"{column} IS NOT NULL").withColumn(_MICROS, micros)
    if step.clashing:
        order = [*([_MICROS] if step.time is not None else []), *([ARRIVAL] if step.arrival else [])]
        before = Window.partitionBy(*(F.expr(key) for key in step.partition)).orderBy(*order)
        rows = _checked(rows, order, before, step.clashing)
    return rows.withColumns({f"c{i}": F.expr(sql) for i, sql in step.columns}).drop(_MICROS)


def _checked(rows: DataFrame, order: Sequence[str], before: WindowSpec, message: str) -> DataFrame:
    """Check that rows have a unique order; fail if two are equal or a job may interleave their streams."""
    last = F.lag(F.struct(*order)).over(before)
    clash = last == F.struct(*order)
    if ARRIVAL in order:
        apart = last[ARRIVAL]["stream"] != F.col(ARRIVAL)["stream"]
        clash = clash | (apart & (last[_MICROS] == F.col(_MICROS)) if _MICROS in order else apart)
    rows = rows.withColumn(_CLASH, F.coalesce(clash, F.lit(False)))
    refused = f"CAST(raise_error({quoted(ERROR + message)}) AS BOOLEAN)"
    return rows.where(F.expr(f"IF({_CLASH}, {refused}, TRUE)")).drop(_CLASH)


def with_arrival(rows: DataFrame, step: Read) -> DataFrame:
    """Add the position in the order of arrival to rows, and the columns for a watermark if needed."""
    if not step.arrival:
        return rows.withColumn(ARRIVAL, F.struct(PART, PLACE, STREAM))
    message = (
        f"{ERROR}table {step.table}: a row has NULL in the columns of --order-by, which define the order of "
        "arrival. Specify columns without NULL"
    )
    unknown = " OR ".join(f"{column} IS NULL" for column in step.arrival)
    place = f"struct({', '.join(step.arrival)})"
    stream = "CAST(NULL AS STRING) AS stream"
    found = F.expr(f"struct(IF({unknown}, raise_error({quoted(message)}), {place}) AS place, {stream})")
    rows = rows.withColumn(ARRIVAL, found)
    if step.watermark is None:
        return rows
    message = f"several rows of table {step.table} have equal values in the columns of --order-by, so it is unknown "
    message += "which of them are late: add a column that distinguishes them"
    rows = _checked(rows, [ARRIVAL], Window.partitionBy().orderBy(ARRIVAL), message)
    return rows.withColumns({PART: F.lit(0), PLACE: F.col(ARRIVAL), STREAM: F.lit("")})


def with_watermark(rows: DataFrame, watermark: str) -> DataFrame:
    """Add the highest ``watermark`` of all rows that arrived earlier; NULL for the first row.

    Within a part, the watermarks of all preceding rows are used. From each earlier part, only its highest watermark is
    used. Flink ignores watermarks before 1970 (measured).
    """
    own = F.expr(f"IF({micros_of(watermark)} > 0, {watermark}, NULL)")
    upwards = Window.orderBy(PART).rowsBetween(Window.unboundedPreceding, -1)
    parts = rows.groupBy(PART).agg(F.max(own).alias("highest"))
    parts = parts.select(PART, F.max("highest").over(upwards).alias("before"))
    within = Window.partitionBy(PART).orderBy(PLACE).rowsBetween(Window.unboundedPreceding, -1)
    rows = rows.withColumn("within", F.max(own).over(within)).join(F.broadcast(parts), PART)
    return rows.withColumn(MET, F.greatest("within", "before")).drop(PART, PLACE, STREAM, "within", "before")


def in_time(rows: DataFrame, step: DropLate, seen: Observation) -> DataFrame:
    """Keep rows whose window was open at their arrival.

    ``seen`` counts the removed rows of windows that satisfy ``step.counted`` (``late``).
    """
    late = F.expr(f"{MET} IS NOT NULL AND {step.fires} <= {MET}")
    return rows.observe(seen, F.count_if(late & F.expr(step.counted)).alias("late")).where(~late).drop(MET)


def drop_overtaken(rows: DataFrame, step: DropOverLate, seen: Observation) -> DataFrame:
    """Keep rows that are later than all emitted rows of their partition at their arrival.

    ``seen`` counts all other rows (``late``).

    A row is emitted as soon as a watermark reaches its time. A row that arrives after this watermark is emitted with
    the next watermark. Each row therefore has two times on the clock of watermarks: its arrival and its emission.
    """
    time = micros_of(f"c{step.time}")
    not_late = F.expr(f"c{step.time} IS NULL OR {time} > 0")
    if step.partition is None:
        return rows.observe(seen, F.count_if(~not_late).alias("late")).where(not_late)
    met = micros_of(MET)
    arrived = f"struct(coalesce({met}, {-(2**63) + 1}L) AS at, CAST(NULL AS BIGINT) AS time)"
    leaves = f"struct(IF({met} IS NULL OR {time} > {met}, {time}, {met} + {MILLISECOND}) AS at, {time} AS time)"
    rows = rows.withColumn("event", F.expr(f"explode(IF({time} > 0, array({arrived}, {leaves}), array({arrived})))"))
    upwards = Window.partitionBy(*(F.expr(key) for key in step.partition)).orderBy("event.at")
    rows = rows.withColumn("emitted", F.max("event.time").over(upwards)).where("event.time IS NULL")
    late = f"coalesce({time} <= greatest(coalesce(emitted, 0), 0), FALSE)"
    rows = rows.observe(seen, F.count_if(F.expr(late)).alias("late"))
    return rows.where(f"NOT {late}").drop("event", "emitted", MET)


def _sorted(key: Column, ascending: bool, nulls_first: bool) -> Column:
    if ascending:
        return key.asc_nulls_first() if nulls_first else key.asc_nulls_last()
    return key.desc_nulls_first() if nulls_first else key.desc_nulls_last()
