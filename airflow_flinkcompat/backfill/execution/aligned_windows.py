"""Rows in aligned windows, and their aggregation by slices, as DataFrames."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.spark_sql.expressions import quoted
from airflow_flinkcompat.backfill.spark_sql.windows import (
    DAY,
    MILLISECOND,
    WindowRange,
    from_micros,
    micros_of,
    timestamp,
)
from airflow_flinkcompat.backfill.steps import Assign, Slices

# Columns on the way, in microseconds of local time: of a row, of the slice it lies in, and of the end of its window.
_TIME, SLICE, _END = "micros", "slice", "window_end"


def in_windows(rows: DataFrame, step: Assign, nulls: Observation | None) -> DataFrame:
    """Each row once per window, with the window's columns; ``nulls``, if any, counts rows without a time."""
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
    """The first half of an aggregation by slices: its partials per slice, keys and values."""
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
    """The second half: an aggregation over windowed rows from the partials of its slices."""
    rows = _each_window(pieces, step, SLICE)
    names = [f"k{position}" for position, _ in slices.keys]
    rows = rows.groupBy(*names, _END).agg(*(F.expr(sql).alias(f"c{i}") for i, sql in slices.aggregates))
    fields = _fields(step)
    outputs = {position: f"k{position}" for position, _ in slices.keys}
    outputs |= {position: fields[field] for position, field in slices.fields}
    outputs |= {position: f"c{position}" for position, _ in slices.aggregates}
    return rows.select(*(F.expr(sql).alias(f"c{position}") for position, sql in sorted(outputs.items())))


def keys_and_times(rows: DataFrame, step: Assign, slices: Slices) -> DataFrame:
    """A hash of the slice's key, the slice and the time of every row, independent of the requested range."""
    rows = _timed(rows, replace(step, window_range=WindowRange()), None).where(slices.condition)
    columns = [sql for _, sql in (*slices.keys, *slices.values)]
    key = f"xxhash64({', '.join(columns)})" if columns else "0L"
    return rows.selectExpr(key, step.windows.slice_of(_TIME), _TIME)


def _window(step: Assign, length: int) -> str:
    """Spark SQL of the window of a time without zone, where windows of this length follow one another.

    Spark alone has the microseconds of such a time for nothing: each cast to a TIMESTAMP_LTZ asks Java's calendar.
    """
    offset = step.windows.offset % length
    return f"window(c{step.time}, '{length} microseconds', '{length} microseconds', '{offset} microseconds')"


def _requested_rows(rows: DataFrame, step: Assign, nulls: Observation | None) -> DataFrame:
    """The rows that some window asked for may hold."""
    column = f"c{step.time}"
    if nulls is not None:
        rows = rows.observe(nulls, nulls_of(step))
    rows = rows.where(f"{column} IS NOT NULL")
    first, last = step.windows.span(step.window_range)
    if not step.zone:
        return _between(rows, column, first, last)
    # Local time is never a day away from UTC: a range a reader can use, before the exact one.
    rows = _between(rows, column, _widened(first, -DAY), _widened(last, DAY), "TIMESTAMP_LTZ")
    return _between(rows, f"CAST({_local(step)} AS TIMESTAMP_NTZ)", first, last)


def nulls_of(step: Assign) -> Column:
    """Number of rows without a time, as the count ``nulls``."""
    return F.count_if(F.expr(f"c{step.time} IS NULL")).alias("nulls")


def _timed(rows: DataFrame, step: Assign, nulls: Observation | None) -> DataFrame:
    """The rows that some window asked for may hold, with their local time in microseconds."""
    return _requested_rows(rows, step, nulls).withColumn(_TIME, F.expr(f"unix_micros({_local(step)})"))


def _local(step: Assign) -> str:
    """Local time as a TIMESTAMP_LTZ: in a UTC session both types have the same count of microseconds."""
    column = f"c{step.time}"
    return f"from_utc_timestamp({column}, {quoted(step.zone)})" if step.zone else f"CAST({column} AS TIMESTAMP_LTZ)"


def _each_window(rows: DataFrame, step: Assign, time: str) -> DataFrame:
    """Each row once per window that is asked for and holds its ``time``, with the end of the window."""
    windows, window_range = step.windows, step.window_range
    rows = rows.withColumn(_END, F.expr(windows.ends(time)))
    if windows.slide > windows.size:
        rows = rows.where(f"{time} < {_END}")
    if windows.overlapping:  # elsewhere, the rows are those of the windows asked for
        if window_range.starts is not None:
            rows = rows.where(f"{windows.start(_END)} >= {window_range.starts}")
        if window_range.ends is not None:
            rows = rows.where(f"{_END} >= {window_range.ends}")
        if window_range.until is not None:
            rows = rows.where(f"{_END} <= {window_range.until}")
    return rows


def _fields(step: Assign) -> tuple[str, str, str]:
    """Start, end and time of a window, from its end in microseconds."""
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
    """Rows with ``first <= time < last``; None is open. A reader can skip data by a bare column."""
    if first is not None:
        rows = rows.where(f"{time} >= {timestamp(from_micros(first), kind)}")
    return rows if last is None else rows.where(f"{time} < {timestamp(from_micros(last), kind)}")
