"""Steps as Spark DataFrames: built-in functions only, no code of ours on the executors."""

from __future__ import annotations

from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.steps import Assign, Group, Read, Select, Step, Together, Where, Write
from airflow_flinkcompat.backfill.windows import from_micros


class Execution:
    """Turns steps into DataFrames and counts rows on the way; the counts are there once an action has run."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._reads: list[tuple[str, str, Observation]] = []
        self._nulls: list[Observation] = []

    def rows_read(self) -> dict[tuple[str, str], int]:
        """(table, place) → rows in its files; a table that several pipelines read counts once."""
        counts: dict[tuple[str, str], int] = {}
        for table, place, seen in self._reads:
            counts[table, place] = max(counts.get((table, place), 0), counted(seen, "rows"))
        return counts

    def rows_dropped(self) -> int:
        """Rows without an event time, over all windows."""
        return sum(counted(seen, "nulls") for seen in self._nulls)

    def rows(self, write: Write) -> tuple[DataFrame, Observation]:
        """The columns ``c0`` … of a write in the sink's types, and the count of its rows (``rows``)."""
        rows = reduce(DataFrame.union, (self.frame(step) for step in write.inputs))
        seen = Observation()
        return rows.observe(seen, F.count(F.lit(1)).alias("rows")), seen

    def frame(self, step: Step) -> DataFrame:
        """The rows of a step."""
        match step:
            case Read():
                return self._read(step)
            case Select():
                return _select(self.frame(step.input), step.columns)
            case Where():
                return self.frame(step.input).where(F.expr(step.condition))
            case Assign():
                return self._assign(step)
            case Group():
                return _group(self.frame(step.input), step)
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
        column = f"c{step.time}"
        seen = Observation()
        self._nulls.append(seen)
        rows = self.frame(step.input).observe(seen, F.count_if(F.expr(f"{column} IS NULL")).alias("nulls"))
        time = f"CAST({column} AS TIMESTAMP_NTZ)" if step.instant else column
        rows = rows.where(f"{column} IS NOT NULL")
        if step.first is not None:
            rows = rows.where(f"{time} >= {_moment(step.first)}")
        if step.last is not None:
            rows = rows.where(f"{time} < {_moment(step.last)}")
        start, end, rowtime = (f"c{step.width + i}" for i in range(3))
        # The session's zone is UTC, so the two kinds of timestamp stand for the same count of microseconds.
        micros = f"unix_micros(CAST({time} AS TIMESTAMP_LTZ))"
        first = f"CAST(timestamp_micros({micros} - pmod({micros} - {step.offset}, {step.size})) AS TIMESTAMP_NTZ)"
        last = f"{end} - INTERVAL '0.001' SECOND"
        rows = rows.withColumn(start, F.expr(first))
        rows = rows.withColumn(end, F.expr(f"{start} + {_duration(step.size)}"))
        return rows.withColumn(rowtime, F.expr(f"CAST({last} AS TIMESTAMP_LTZ)" if step.instant else last))


def counted(seen: Observation, name: str) -> int:
    """A count once its action has run; 0 when Spark saw beforehand that there is nothing to do, and counted nothing."""
    try:
        return int(seen.get[name])
    except Py4JJavaError:
        return 0


def _select(rows: DataFrame, columns: tuple[tuple[int, str], ...]) -> DataFrame:
    return rows.select(*(F.expr(sql).alias(f"c{i}") for i, sql in columns))


def _group(rows: DataFrame, step: Group) -> DataFrame:
    keys = [F.expr(key).alias(f"c{i}") for i, key in enumerate(step.keys)]
    if not step.aggregates:
        return rows.select(*keys).distinct()
    return rows.groupBy(*keys).agg(*(F.expr(sql).alias(f"c{i}") for i, sql in step.aggregates))


def _moment(micros: int) -> str:
    return f"TIMESTAMP_NTZ '{from_micros(micros).isoformat(' ')}'"


def _duration(micros: int) -> str:
    return f"INTERVAL '{micros // 1_000_000}.{micros % 1_000_000:06d}' SECOND"
