"""DataFrames of rows in aligned windows, with or without slices, and in sessions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.execution.ordered import ARRIVAL, HIDDEN, MET
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted
from airflow_flinkcompat.backfill.spark_sql.windows import (
    DAY,
    MILLISECOND,
    WindowRange,
    from_micros,
    micros_of,
    timestamp,
)
from airflow_flinkcompat.backfill.steps import Assign, AssignSessions, Slices, Step

# Temporary columns in microseconds of local time: the time of a row, the start of its slice, and the end of its window.
_TIME, SLICE, _END = "micros", "slice", "window_end"


def in_windows(rows: DataFrame, step: Assign, nulls: Observation | None) -> DataFrame:
    """Repeat each row for each of its windows, and add window columns.

    ``nulls`` counts rows without a time.
    """
    windows = step.windows
    if not step.zone and windows.slide == windows.size:
        rows = _requested_rows(rows, step, nulls).withColumn(_END, F.expr(_window(step, windows.size)))
        last = f"CAST(timestamp_micros({micros_of(f'{_END}.end')} - {MILLISECOND}) AS TIMESTAMP_NTZ)"
        fields = (f"{_END}.start", f"{_END}.end", last)
        return rows.withColumns({f"c{step.width + i}": F.expr(sql) for i, sql in enumerate(fields)}).drop(_END)
    rows = _each_window(_timed(rows, step, nulls), step, _TIME)
    return rows.withColumns({f"c{step.width + i}": F.expr(sql) for i, sql in enumerate(_fields(step))}).drop(
        _TIME, _END
    )


def in_pieces(rows: DataFrame, step: Assign, slices: Slices, nulls: Observation | None) -> DataFrame:
    """First half of an aggregation by slices: compute partials by slice, keys and values."""
    if step.zone:
        rows = _timed(rows, step, nulls).where(slices.condition)
        return _partials(rows.withColumn(SLICE, F.expr(step.windows.slice_of(_TIME))), slices)
    start = f"{_window(step, step.windows.slice)}.start"
    rows = _requested_rows(rows, step, nulls).where(slices.condition).withColumn(SLICE, F.expr(start))
    return _partials(rows, slices).withColumn(SLICE, F.expr(micros_of(SLICE)))


def _partials(rows: DataFrame, slices: Slices) -> DataFrame:
    keys = [F.expr(sql).alias(f"k{position}") for position, sql in slices.keys]
    pieces = [*keys, *(F.expr(sql).alias(f"c{index}") for index, sql in slices.values), F.col(SLICE)]
    if not slices.partials:
        return rows.select(*pieces).distinct()
    partials = (F.expr(sql).alias(f"p{i}") for i, sql in enumerate(slices.partials))
    return rows.groupBy(*pieces).agg(*partials)


def by_slices(pieces: DataFrame, step: Assign, slices: Slices) -> DataFrame:
    """Second half of an aggregation by slices: combine the partials of slices to windows."""
    rows = _each_window(pieces, step, SLICE)
    names = [f"k{position}" for position, _ in slices.keys]
    rows = rows.groupBy(*names, _END).agg(*(F.expr(sql).alias(f"c{i}") for i, sql in slices.aggregates))
    fields = _fields(step)
    outputs = {position: f"k{position}" for position, _ in slices.keys}
    outputs |= {position: fields[field] for position, field in slices.fields}
    outputs |= {position: f"c{position}" for position, _ in slices.aggregates}
    return rows.select(*(F.expr(sql).alias(f"c{position}") for position, sql in sorted(outputs.items())))


def keys_and_times(rows: DataFrame, step: Assign, slices: Slices) -> DataFrame:
    """Hash of the key, slice and time of every row, for any requested range."""
    rows = _timed(rows, replace(step, window_range=WindowRange()), None).where(slices.condition)
    columns = [sql for _, sql in (*slices.keys, *slices.values)]
    key = f"xxhash64({', '.join(columns)})" if columns else "0L"
    return rows.selectExpr(key, step.windows.slice_of(_TIME), _TIME)


def _window(step: Assign, length: int) -> str:
    """Spark SQL for the window of a time without a zone, if windows are consecutive and have this length.

    Spark's function uses the time's microseconds directly. A cast to TIMESTAMP_LTZ would use Java's calendar for each
    row.
    """
    offset = step.windows.offset % length
    return f"window(c{step.time}, '{length} microseconds', '{length} microseconds', '{offset} microseconds')"


def _requested_rows(rows: DataFrame, step: Assign, nulls: Observation | None) -> DataFrame:
    """Keep rows that a requested window may contain."""
    column = f"c{step.time}"
    if nulls is not None:
        rows = rows.observe(nulls, nulls_of(step))
    rows = rows.where(f"{column} IS NOT NULL")
    first, last = step.windows.span(step.window_range)
    if not step.zone:
        return _between(rows, column, first, last)
    # Local time and UTC differ by less than a day. A reader can use this wider range before the exact range applies.
    rows = _between(rows, column, _widened(first, -DAY), _widened(last, DAY), "TIMESTAMP_LTZ")
    return _between(rows, f"CAST({_local(step)} AS TIMESTAMP_NTZ)", first, last)


def nulls_of(step: Assign) -> Column:
    """Number of rows without a time, as the count ``nulls``."""
    return F.count_if(F.expr(f"c{step.time} IS NULL")).alias("nulls")


def _timed(rows: DataFrame, step: Assign, nulls: Observation | None) -> DataFrame:
    """Rows that a requested window may contain, with a column for local time in microseconds."""
    return _requested_rows(rows, step, nulls).withColumn(_TIME, F.expr(f"unix_micros({_local(step)})"))


def _local(step: Assign) -> str:
    """Local time as TIMESTAMP_LTZ. In a UTC session, its microseconds equal those of the TIMESTAMP."""
    column = f"c{step.time}"
    return f"from_utc_timestamp({column}, {quoted(step.zone)})" if step.zone else f"CAST({column} AS TIMESTAMP_LTZ)"


def _each_window(rows: DataFrame, step: Assign, time: str) -> DataFrame:
    """Repeat each row for each requested window that contains its ``time``, and add the window end."""
    windows, window_range = step.windows, step.window_range
    rows = rows.withColumn(_END, F.expr(windows.ends(time)))
    if windows.slide > windows.size:
        rows = rows.where(f"{time} < {_END}")
    if windows.overlapping:  # If windows do not overlap, all rows are in requested windows.
        if window_range.starts is not None:
            rows = rows.where(f"{windows.start(_END)} >= {window_range.starts}")
        if window_range.ends is not None:
            rows = rows.where(f"{_END} >= {window_range.ends}")
        if window_range.until is not None:
            rows = rows.where(f"{_END} <= {window_range.until}")
    return rows


def _fields(step: Assign) -> tuple[str, str, str]:
    """Start, end and time of a window, computed from its end in microseconds."""
    start, end = (f"CAST(timestamp_micros({at}) AS TIMESTAMP_NTZ)" for at in (step.windows.start(_END), _END))
    last = f"timestamp_micros({_END} - {MILLISECOND})"
    return (
        start,
        end,
        f"to_utc_timestamp({last}, {quoted(step.zone)})" if step.zone else f"CAST({last} AS TIMESTAMP_NTZ)",
    )


def _widened(micros: int | None, by: int) -> int | None:
    return None if micros is None else micros + by


def _between(rows: DataFrame, time: str, first: int | None, last: int | None, kind: str = "TIMESTAMP_NTZ") -> DataFrame:
    """Keep rows with ``first <= time < last``; None leaves a side open.

    A reader can skip data if the condition uses a bare column.
    """
    if first is not None:
        rows = rows.where(f"{time} >= {timestamp(from_micros(first), kind)}")
    return rows if last is None else rows.where(f"{time} < {timestamp(from_micros(last), kind)}")


_MICROS, _BEGINS, _SESSION = "micros", "begins", "session"
_NUMBER, _REACHED = "number", "reached"
_LEAST = f"{-(2**63) + 1}L"


def in_sessions(rows: DataFrame, step: AssignSessions, seen: Observation) -> DataFrame:
    """Assign rows to sessions. Rows without an event time are counted by ``seen`` (``nulls``) and dropped."""
    rows = _touching(rows, step, seen)
    session = Window.partitionBy(*_keys(step), _SESSION)
    first, last = _bounds(step)
    rows = rows.withColumns({first: F.min(_MICROS).over(session), last: F.max(_MICROS).over(session) + step.gap})
    return _finished(rows, step)


def in_open_sessions(rows: DataFrame, step: AssignSessions, seen: Observation, late: Observation) -> DataFrame:
    """Assign rows to sessions that were open at their arrival.

    ``late`` counts the rows of windows in ``step.counted`` that arrived too late.

    Rows touch if consecutive rows are at most one gap apart. Touching rows are processed one by one in order of
    arrival. Rows that do not touch never share a session. One task keeps the touching rows of one key in memory.
    """
    rows = _touching(rows, step, seen)
    met = f"from_utc_timestamp({MET}, {quoted(step.zone)})" if step.zone else f"CAST({MET} AS TIMESTAMP_LTZ)"
    number = F.row_number().over(Window.partitionBy(*_keys(step), _SESSION).orderBy(ARRIVAL))
    rows = rows.withColumns({_NUMBER: number, _REACHED: F.expr(f"coalesce(unix_micros({met}), {_LEAST})")})
    columns = [name for name in rows.columns if name not in (*HIDDEN, _BEGINS, _SESSION, _REACHED)]
    touching = rows.groupBy(*_keys(step), _SESSION).agg(
        F.collect_list(F.struct(*columns)).alias("held"), F.expr(_cut_sessions_sql(step.gap)).alias("went")
    )
    touching = touching.select(
        "held",
        "went.late",
        F.expr(f"concat(went.closed, transform(went.open, s -> {_closed('CAST(NULL AS INT)')}))").alias("sessions"),
    )
    # If several sessions contain a row's time, the row belongs to the first session that closed after the row arrived.
    # A session that began later may cover the same time.
    own = (
        f"filter(sessions, s -> s.first <= r.{_MICROS} AND r.{_MICROS} + {step.gap} <= s.last "
        f"AND coalesce(r.{_NUMBER} < s.closed, TRUE))[0]"
    )
    own = f"IF(array_contains(late, r.{_NUMBER}), NULL, {own})"
    rows = touching.select(F.explode(F.expr(f"transform(held, r -> struct(r AS r, {own} AS own))")).alias("row"))
    first, last = _bounds(step)
    rows = rows.select("row.r.*", F.col("row.own.first").alias(first), F.col("row.own.last").alias(last))
    alone = " AND ".join(_inside(_MICROS, f"{_MICROS} + {step.gap}", step.counted or WindowRange())) or "TRUE"
    rows = rows.observe(late, F.count_if(F.col(first).isNull() & F.expr(alone)).alias("late"))
    return _finished(rows.where(F.col(first).isNotNull()).drop(_NUMBER), step)


def _cut_sessions_sql(gap: int) -> str:
    """Spark SQL that divides touching rows into sessions.

    The SQL returns three lists: ``closed`` sessions in order, ``open`` sessions, and numbers of ``late`` rows. Each
    closed session has the number of the first row that arrived after its end.
    """
    is_open = f"s.last - {MILLISECOND} > r.{_REACHED}"
    touches = f"s.first <= r.{_MICROS} + {gap} AND s.last >= r.{_MICROS}"
    met = f"filter(a.open, s -> {is_open} AND {touches})"
    late = f"r.{_MICROS} + {gap - MILLISECOND} <= r.{_REACHED} AND NOT exists(a.open, s -> {is_open} AND {touches})"
    merged = (
        f"struct(least(r.{_MICROS}, array_min({met}.first)) AS first, "
        f"greatest(r.{_MICROS} + {gap}, array_max({met}.last)) AS last)"
    )
    session = "first: BIGINT, last: BIGINT"
    begin = (
        f"struct(CAST(array() AS ARRAY<STRUCT<{session}>>) AS open, "
        f"CAST(array() AS ARRAY<STRUCT<{session}, closed: INT>>) AS closed, CAST(array() AS ARRAY<INT>) AS late)"
    )
    then = (
        f"struct(IF({late}, filter(a.open, s -> {is_open}), concat(filter(a.open, s -> {is_open} AND NOT "
        f"({touches})), array({merged}))) AS open, IF(forall(a.open, s -> {is_open}), a.closed, concat(a.closed, "
        f"transform(filter(a.open, s -> NOT ({is_open})), s -> {_closed(f'r.{_NUMBER}')}))) AS closed, IF({late}, "
        f"concat(a.late, array(r.{_NUMBER})), a.late) AS late)"
    )
    arrived = f"array_sort(collect_list(struct({_NUMBER}, {_MICROS}, {_REACHED})))"
    return f"aggregate({arrived}, {begin}, (a, r) -> {then})"


def _closed(closed: str) -> str:
    """Spark SQL for a closed session ``s``."""
    return f"struct(s.first AS first, s.last AS last, {closed} AS closed)"


def _touching(rows: DataFrame, step: AssignSessions, seen: Observation) -> DataFrame:
    """Add the time to rows, and a number that touching rows of a partition share."""
    column = f"c{step.time}"
    rows = rows.observe(seen, F.count_if(F.expr(f"{column} IS NULL")).alias("nulls"))
    time = f"from_utc_timestamp({column}, {quoted(step.zone)})" if step.zone else f"CAST({column} AS TIMESTAMP_LTZ)"
    rows = rows.where(f"{column} IS NOT NULL").withColumn(_MICROS, F.expr(f"unix_micros({time})"))
    before = Window.partitionBy(*_keys(step)).orderBy(_MICROS)
    apart = F.col(_MICROS) - F.lag(_MICROS).over(before)
    # Sessions that touch are merged into one. Rows with equal times are peers, so all of them get the same sum.
    rows = rows.withColumn(_BEGINS, F.when(apart > step.gap, 1).otherwise(0))
    return rows.withColumn(_SESSION, F.sum(_BEGINS).over(before))


def _finished(rows: DataFrame, step: AssignSessions) -> DataFrame:
    """Keep rows of requested sessions, convert bounds from microseconds, and add window columns."""
    first, last = _bounds(step)
    for condition in _inside(first, last, step.window_range):
        rows = rows.where(condition)
    time = f"timestamp_micros({last} - {MILLISECOND})"
    time = f"to_utc_timestamp({time}, {quoted(step.zone)})" if step.zone else f"CAST({time} AS TIMESTAMP_NTZ)"
    rows = rows.withColumn(f"c{step.width + 2}", F.expr(time))
    fields = {name: F.expr(f"CAST(timestamp_micros({name}) AS TIMESTAMP_NTZ)") for name in (first, last)}
    return rows.withColumns(fields).drop(_MICROS, _BEGINS, _SESSION)


def _inside(first: str, last: str, window_range: WindowRange) -> Iterator[str]:
    """Spark SQL conditions that are true if a session from ``first`` to ``last`` is requested."""
    bounds = ((first, ">=", window_range.starts), (last, ">=", window_range.ends), (last, "<=", window_range.until))
    return (f"{value} {sign} {moment}" for value, sign, moment in bounds if moment is not None)


def _bounds(step: AssignSessions) -> tuple[str, str]:
    return f"c{step.width}", f"c{step.width + 1}"


def _keys(step: AssignSessions) -> list[Column]:
    return [F.expr(key) for key in step.partition]


DENSE = 1.5
"""Minimum number of rows per key and slice at which slices save more work than they cost."""


def density(sample: Sequence[tuple[int, int, int]], piece: int, total: float = math.inf) -> float:
    """Estimate the number of rows per key and slice from (hash of the key, slice, time) of the first rows.

    ``piece``: Length of a slice. ``total``: Approximate number of all rows. Rows in time order show directly how many
    rows a slice contains. If rows are in any other order, the estimate also uses ``total``.
    """
    if not sample:
        return math.inf
    seen = len(sample) / len({(key, slice) for key, slice, _ in sample})
    if seen >= DENSE:
        return seen
    times = [time for _, _, time in sample]
    extent = max(max(times) - min(times), 1)
    half = len(times) // 2
    first, second = times[:half] or times, times[half:]
    common = min(max(first), max(second)) - max(min(first), min(second))
    rows = total if common > extent / 2 else len(sample)
    per_slice = rows * piece / max(extent, piece if rows == total else 1)
    return max(seen, per_slice / _distinct(per_slice, _population(len(sample), len({key for key, _, _ in sample}))))


def _distinct(draws: float, population: float) -> float:
    """Expected number of distinct values among a number of draws from a population."""
    if math.isinf(draws):
        return population
    return max(population * -math.expm1(-draws / population), min(1.0, draws))


def _population(draws: int, distinct: int) -> float:
    """Estimated size of the population from which a sample was drawn, based on repeated values."""
    low, high = float(distinct), float(draws) * draws
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _distinct(draws, middle) < distinct else (low, middle)
    return high


ROWS = 20_000
_BYTES = 8  # Approximate number of stored bytes of a field.


def rows_per_slice(
    frame: Callable[[Step], DataFrame], read: Sequence[DataFrame], step: Assign, slices: Slices
) -> float:
    """Estimated rows per key and slice; 0 if rows cannot be read, because the run reports that error."""
    try:
        rows = keys_and_times(frame(step.input), step, slices)
        total = sum(_total(raw) for raw in read)
        if total == 0:
            return 0.0
        return density([(row[0], row[1], row[2]) for row in rows.collect()], step.windows.slice, total)
    except (PySparkException, Py4JError):
        return 0.0


def _total(raw: DataFrame) -> float:
    """Approximate number of rows of a source, from Spark's statistics; infinite if unknown."""
    plan = raw._jdf.queryExecution().optimizedPlan()
    leaves = plan.collectLeaves()
    total = 0.0
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        statistics = leaf.stats()
        if statistics.rowCount().isDefined():
            total += float(str(statistics.rowCount().get()))
        else:
            size = float(str(statistics.sizeInBytes()))
            total += size / (_BYTES * max(leaf.output().size(), 1)) if size < 2**62 else math.inf
    return total
