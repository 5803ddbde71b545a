"""Steps as Spark DataFrames: built-in functions only, no code of ours on the executors."""

from __future__ import annotations

from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.base import Rows
from airflow_flinkcompat.backfill.expressions import quoted
from airflow_flinkcompat.backfill.ordered import in_sessions, ranked
from airflow_flinkcompat.backfill.sharing import shared
from airflow_flinkcompat.backfill.steps import (
    Assign,
    Group,
    Rank,
    Read,
    Repeat,
    Select,
    Sessions,
    Step,
    Together,
    Where,
    Work,
    Write,
)
from airflow_flinkcompat.backfill.windows import DAY, MILLISECOND, from_micros

# Columns on the way, in microseconds: a row's local time, and the end of its window.
_MICROS, _END = "micros", "window_end"


class Execution:
    """Turns steps into DataFrames and counts rows on the way; the counts are there once an action has run."""

    def __init__(self, session: SparkSession, work: Work | None = None) -> None:
        self.session = session
        self._shared = shared(work.writes) if work is not None else frozenset()
        self._frames: dict[Step, DataFrame] = {}
        self._reads: list[tuple[str, str, Observation]] = []
        self._nulls: list[Observation] = []
        self._ties: list[Observation] = []

    def rows_read(self) -> dict[tuple[str, str], int]:
        """(table, place) → rows in its files; a table that several pipelines read counts once."""
        counts: dict[tuple[str, str], int] = {}
        for table, place, seen in self._reads:
            counts[table, place] = max(counts.get((table, place), 0), counted(seen, "rows"))
        return counts

    def rows_dropped(self) -> int:
        """Rows without an event time, over all windows."""
        return sum(counted(seen, "nulls") for seen in self._nulls)

    def ties(self) -> int:
        """Windows of a Top-N whose published rows were chosen among equal ones."""
        return sum(counted(seen, "ties") for seen in self._ties)

    def rows(self, write: Write) -> tuple[DataFrame, Observation]:
        """The columns ``c0`` … of a write in the sink's types, and the counts of its ``rows`` and ``windows``, the
        latter -1 where the sink does not hold what tells them apart."""
        rows = reduce(DataFrame.union, (self.frame(step) for step in write.inputs))
        bounds = _window_columns(write.rows)
        windows = F.size(F.collect_set(F.struct(*bounds))) if bounds else F.max(F.lit(-1))
        seen = Observation()
        return rows.observe(seen, F.count(F.lit(1)).alias("rows"), windows.alias("windows")), seen

    def __enter__(self) -> Execution:
        return self

    def __exit__(self, *_: object) -> None:
        """Forgets the rows kept for several readers; an action later on would compute them again."""
        for rows in self._frames.values():
            rows.unpersist()

    def frame(self, step: Step) -> DataFrame:
        """The rows of a step. What several steps or sinks read is computed once and kept until the block ends."""
        if step not in self._shared:
            return self._frame(step)
        if step not in self._frames:
            self._frames[step] = self._frame(step).persist()
        return self._frames[step]

    def _frame(self, step: Step) -> DataFrame:
        match step:
            case Read():
                return self._read(step)
            case Select():
                return _select(self.frame(step.input), step.columns)
            case Where():
                return self.frame(step.input).where(F.expr(step.condition))
            case Assign():
                return self._assign(step)
            case Sessions():
                seen = Observation()
                self._nulls.append(seen)
                return in_sessions(self.frame(step.input), step, seen)
            case Group():
                return _group(self.frame(step.input), step)
            case Repeat():
                number = F.explode(F.sequence(F.lit(0), F.lit(step.times - 1)))
                return self.frame(step.input).withColumn(f"c{step.number}", number)
            case Rank():
                seen = Observation()
                self._ties.append(seen)
                return ranked(self.frame(step.input), step, seen)
            case Together():
                names = [f"c{i}" for i in step.positions]
                return reduce(DataFrame.union, (self.frame(inner).select(*names) for inner in step.inputs))

    def _read(self, step: Read) -> DataFrame:
        raw = step.source.frame(self.session)
        seen = Observation()
        self._reads.append((step.table, step.source.place, seen))
        raw = raw.observe(seen, F.count(F.lit(1)).alias("rows"))
        rows = _select(raw, step.columns)
        if not step.computed:
            return rows
        return rows.select("*", *(F.expr(sql).alias(f"c{i}") for i, sql in step.computed))

    def _assign(self, step: Assign) -> DataFrame:
        rows = self._timed(step)
        return self._windowed(rows, step).drop(_MICROS, _END)

    def _timed(self, step: Assign) -> DataFrame:
        """The rows that some window in demand may hold, with their local time in microseconds."""
        column = f"c{step.time}"
        seen = Observation()
        self._nulls.append(seen)
        rows = self.frame(step.input).observe(seen, F.count_if(F.expr(f"{column} IS NULL")).alias("nulls"))
        rows = rows.where(f"{column} IS NOT NULL")
        first, last = step.windows.span(step.demand)
        # The session's zone is UTC, so the two kinds of timestamp stand for the same count of microseconds.
        time = f"CAST({column} AS TIMESTAMP_LTZ)"
        if step.zone:
            time = f"from_utc_timestamp({column}, {quoted(step.zone)})"
            # Local time is never a day away from UTC: a range a reader can use, before the exact one.
            rows = _between(rows, column, _widened(first, -DAY), _widened(last, DAY), "TIMESTAMP_LTZ")
        local = f"CAST({time} AS TIMESTAMP_NTZ)" if step.zone else column
        return _between(rows, local, first, last).withColumn(_MICROS, F.expr(f"unix_micros({time})"))

    def _windowed(self, rows: DataFrame, step: Assign, time: str = _MICROS) -> DataFrame:
        """Each row once per window of its ``time``, in microseconds, with the window's columns."""
        windows, demand = step.windows, step.demand
        rows = rows.withColumn(_END, F.expr(windows.ends(time)))
        if windows.slide > windows.size:
            rows = rows.where(f"{time} < {_END}")
        start = windows.start(_END)
        if windows.overlapping:
            if demand.starts is not None:
                rows = rows.where(f"{start} >= {demand.starts}")
            if demand.ends is not None:
                rows = rows.where(f"{_END} >= {demand.ends}")
            if demand.until is not None:
                rows = rows.where(f"{_END} <= {demand.until}")
        last = f"timestamp_micros({_END} - {MILLISECOND})"
        last = f"to_utc_timestamp({last}, {quoted(step.zone)})" if step.zone else f"CAST({last} AS TIMESTAMP_NTZ)"
        values = (f"CAST(timestamp_micros({value}) AS TIMESTAMP_NTZ)" for value in (start, _END))
        fields = {f"c{step.width + i}": F.expr(sql) for i, sql in enumerate((*values, last))}
        return rows.withColumns(fields)


def counted(seen: Observation, name: str) -> int:
    """A count once its action has run; 0 when Spark saw beforehand that there is nothing to do, and counted nothing."""
    try:
        return int(seen.get[name])
    except Py4JJavaError:
        return 0


def _window_columns(rows: Rows) -> tuple[str, ...]:
    """The columns of a frame that tell windows apart: an end does, a start only where all windows are of one length."""
    windows = rows.windows
    if windows.end is None and windows.size is None:
        return ()
    return tuple(f"c{i}" for i, column in enumerate(rows.columns) if column.name in (windows.start, windows.end))


def _select(rows: DataFrame, columns: tuple[tuple[int, str], ...]) -> DataFrame:
    return rows.select(*(F.expr(sql).alias(f"c{i}") for i, sql in columns))


def _group(rows: DataFrame, step: Group) -> DataFrame:
    keys = [F.expr(key).alias(f"c{i}") for i, key in enumerate(step.keys)]
    if not step.aggregates:
        return rows.select(*keys).distinct()
    return rows.groupBy(*keys).agg(*(F.expr(sql).alias(f"c{i}") for i, sql in step.aggregates))


def _widened(micros: int | None, by: int) -> int | None:
    return None if micros is None else micros + by


def _between(rows: DataFrame, time: str, first: int | None, last: int | None, kind: str = "TIMESTAMP_NTZ") -> DataFrame:
    """Rows with ``first <= time < last``; None where open. A bare column is something a reader can skip data by."""
    if first is not None:
        rows = rows.where(f"{time} >= {kind} '{from_micros(first).isoformat(' ')}'")
    return rows if last is None else rows.where(f"{time} < {kind} '{from_micros(last).isoformat(' ')}'")
