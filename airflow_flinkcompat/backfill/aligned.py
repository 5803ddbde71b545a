"""Rows in aligned windows, and their aggregation by slices, as DataFrames."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.expressions import quoted
from airflow_flinkcompat.backfill.steps import Assign, Slices
from airflow_flinkcompat.backfill.windows import DAY, MILLISECOND, Demand, from_micros, timestamp

# Columns on the way, in microseconds of local time: of a row, of the slice it lies in, and of the end of its window.
_TIME, SLICE, _END = "micros", "slice", "window_end"


def in_windows(rows: DataFrame, step: Assign, nulls: Observation) -> DataFrame:
    """Each row once per window, with the window's columns."""
    rows = _each_window(_timed(rows, step, nulls), step, _TIME)
    return rows.withColumns({f"c{step.width + i}": F.expr(sql) for i, sql in enumerate(_fields(step))}).drop(
        _TIME, _END
    )


def in_pieces(rows: DataFrame, step: Assign, slices: Slices, nulls: Observation) -> DataFrame:
    """The first half of an aggregation by slices: its partials per slice, keys and values."""
    rows = _timed(rows, step, nulls).where(slices.condition)
    rows = rows.withColumn(SLICE, F.expr(step.windows.slice_of(_TIME)))
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
    """Of every row, whatever is asked for: a hash of what slices are aggregated by, the slice, and the time."""
    rows = _timed(rows, replace(step, demand=Demand()), Observation()).where(slices.condition)
    columns = [sql for _, sql in (*slices.keys, *slices.values)]
    key = f"xxhash64({', '.join(columns)})" if columns else "0L"
    return rows.selectExpr(key, step.windows.slice_of(_TIME), _TIME)


def _timed(rows: DataFrame, step: Assign, nulls: Observation) -> DataFrame:
    """The rows that some window asked for may hold, with their local time in microseconds."""
    column = f"c{step.time}"
    rows = rows.observe(nulls, F.count_if(F.expr(f"{column} IS NULL")).alias("nulls"))
    rows = rows.where(f"{column} IS NOT NULL")
    first, last = step.windows.span(step.demand)
    # The session's zone is UTC, so the two kinds of timestamp stand for the same count of microseconds.
    time = f"CAST({column} AS TIMESTAMP_LTZ)"
    if step.zone:
        time = f"from_utc_timestamp({column}, {quoted(step.zone)})"
        # Local time is never a day away from UTC: a range a reader can use, before the exact one.
        rows = _between(rows, column, _widened(first, -DAY), _widened(last, DAY), "TIMESTAMP_LTZ")
    local = f"CAST({time} AS TIMESTAMP_NTZ)" if step.zone else column
    return _between(rows, local, first, last).withColumn(_TIME, F.expr(f"unix_micros({time})"))


def _each_window(rows: DataFrame, step: Assign, time: str) -> DataFrame:
    """Each row once per window that is asked for and holds its ``time``, with the end of the window."""
    windows, demand = step.windows, step.demand
    rows = rows.withColumn(_END, F.expr(windows.ends(time)))
    if windows.slide > windows.size:
        rows = rows.where(f"{time} < {_END}")
    if windows.overlapping:  # elsewhere, the rows are those of the windows asked for
        if demand.starts is not None:
            rows = rows.where(f"{windows.start(_END)} >= {demand.starts}")
        if demand.ends is not None:
            rows = rows.where(f"{_END} >= {demand.ends}")
        if demand.until is not None:
            rows = rows.where(f"{_END} <= {demand.until}")
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
    """Rows with ``first <= time < last``; None where open. A bare column is something a reader can skip data by."""
    if first is not None:
        rows = rows.where(f"{time} >= {timestamp(from_micros(first), kind)}")
    return rows if last is None else rows.where(f"{time} < {timestamp(from_micros(last), kind)}")
