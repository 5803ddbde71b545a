"""Rows in their sessions, as Spark DataFrames; see the step for what a session is."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.execution.ordered import ARRIVAL, HIDDEN, MET
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted
from airflow_flinkcompat.backfill.spark_sql.windows import MILLISECOND, WindowRange
from airflow_flinkcompat.backfill.steps import AssignSessions

_MICROS, _BEGINS, _SESSION = "micros", "begins", "session"
_NUMBER, _REACHED = "number", "reached"
_LEAST = f"{-(2**63) + 1}L"


def in_sessions(rows: DataFrame, step: AssignSessions, seen: Observation) -> DataFrame:
    """Rows in their sessions; ``seen`` counts (``nulls``) and drops those without an event time."""
    rows = _touching(rows, step, seen)
    session = Window.partitionBy(*_keys(step), _SESSION)
    first, last = _bounds(step)
    rows = rows.withColumns({first: F.min(_MICROS).over(session), last: F.max(_MICROS).over(session) + step.gap})
    return _finished(rows, step)


def in_open_sessions(rows: DataFrame, step: AssignSessions, seen: Observation, late: Observation) -> DataFrame:
    """The rows in sessions that were open at their arrival; ``late`` counts the others (``late``).

    Rows that touch in the end are gone through one by one, as they arrived: what touches at no time never meets. One
    task holds those of one key in memory.
    """
    rows = _touching(rows, step, seen)
    met = f"from_utc_timestamp({MET}, {quoted(step.zone)})" if step.zone else f"CAST({MET} AS TIMESTAMP_LTZ)"
    number = F.row_number().over(Window.partitionBy(*_keys(step), _SESSION).orderBy(ARRIVAL))
    rows = rows.withColumns({_NUMBER: number, _REACHED: F.expr(f"coalesce(unix_micros({met}), {_LEAST})")})
    columns = [name for name in rows.columns if name not in (*HIDDEN, _BEGINS, _SESSION, _REACHED)]
    touching = rows.groupBy(*_keys(step), _SESSION).agg(
        F.collect_list(F.struct(*columns)).alias("held"),
        F.expr(_went_through(step.gap)).alias("went"),
    )
    touching = touching.select(
        "held",
        "went.late",
        F.expr(f"concat(went.closed, transform(went.open, s -> {_closed('CAST(NULL AS INT)')}))").alias("sessions"),
    )
    # Of several sessions around a row's time, its own is the first to be closed after it came: one that began later
    # lies where this one was.
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


def _went_through(gap: int) -> str:
    """Spark SQL over rows that touch, for their sessions.

    It returns those ``closed`` with the number of the row that found them so (in this order) and those still ``open``,
    and the numbers of ``late`` rows.
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
        f"struct(IF({late}, filter(a.open, s -> {is_open}), "
        f"concat(filter(a.open, s -> {is_open} AND NOT ({touches})), array({merged}))) AS open, "
        f"IF(forall(a.open, s -> {is_open}), a.closed, concat(a.closed, transform("
        f"filter(a.open, s -> NOT ({is_open})), s -> {_closed(f'r.{_NUMBER}')}))) AS closed, "
        f"IF({late}, concat(a.late, array(r.{_NUMBER})), a.late) AS late)"
    )
    arrived = f"array_sort(collect_list(struct({_NUMBER}, {_MICROS}, {_REACHED})))"
    return f"aggregate({arrived}, {begin}, (a, r) -> {then})"


def _closed(closed: str) -> str:
    """Spark SQL of a session ``s`` that was found closed."""
    return f"struct(s.first AS first, s.last AS last, {closed} AS closed)"


def _touching(rows: DataFrame, step: AssignSessions, seen: Observation) -> DataFrame:
    """The rows with their time, and a number that rows of a partition share which touch."""
    column = f"c{step.time}"
    rows = rows.observe(seen, F.count_if(F.expr(f"{column} IS NULL")).alias("nulls"))
    time = f"from_utc_timestamp({column}, {quoted(step.zone)})" if step.zone else f"CAST({column} AS TIMESTAMP_LTZ)"
    rows = rows.where(f"{column} IS NOT NULL").withColumn(_MICROS, F.expr(f"unix_micros({time})"))
    before = Window.partitionBy(*_keys(step)).orderBy(_MICROS)
    apart = F.col(_MICROS) - F.lag(_MICROS).over(before)
    # Sessions that touch are one. Rows of one time are peers: all of them see the same sum.
    rows = rows.withColumn(_BEGINS, F.when(apart > step.gap, 1).otherwise(0))
    return rows.withColumn(_SESSION, F.sum(_BEGINS).over(before))


def _finished(rows: DataFrame, step: AssignSessions) -> DataFrame:
    """The rows whose sessions, so far in microseconds, are asked for, with the columns of windows."""
    first, last = _bounds(step)
    for condition in _inside(first, last, step.window_range):
        rows = rows.where(condition)
    time = f"timestamp_micros({last} - {MILLISECOND})"
    time = f"to_utc_timestamp({time}, {quoted(step.zone)})" if step.zone else f"CAST({time} AS TIMESTAMP_NTZ)"
    rows = rows.withColumn(f"c{step.width + 2}", F.expr(time))
    fields = {name: F.expr(f"CAST(timestamp_micros({name}) AS TIMESTAMP_NTZ)") for name in (first, last)}
    return rows.withColumns(fields).drop(_MICROS, _BEGINS, _SESSION)


def _inside(first: str, last: str, window_range: WindowRange) -> Iterator[str]:
    """Spark SQL: a session from ``first`` to ``last`` is asked for."""
    bounds = ((first, ">=", window_range.starts), (last, ">=", window_range.ends), (last, "<=", window_range.until))
    return (f"{value} {sign} {moment}" for value, sign, moment in bounds if moment is not None)


def _bounds(step: AssignSessions) -> tuple[str, str]:
    return f"c{step.width}", f"c{step.width + 1}"


def _keys(step: AssignSessions) -> list[Column]:
    return [F.expr(key) for key in step.partition]
