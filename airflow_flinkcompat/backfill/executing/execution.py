"""Steps as Spark DataFrames: built-in functions only, no code of ours on the executors but native partials."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.compiling.sharing import shared
from airflow_flinkcompat.backfill.compiling.slices import DENSE
from airflow_flinkcompat.backfill.compiling.steps import (
    Along,
    Assign,
    Group,
    Late,
    Overtaken,
    Rank,
    Read,
    Repeat,
    Select,
    Sessions,
    Slices,
    Step,
    Together,
    Where,
    Work,
    Write,
)
from airflow_flinkcompat.backfill.connectors.base import Arrival, Rows
from airflow_flinkcompat.backfill.executing.aligned import SLICE, by_slices, in_pieces, in_windows, nulls_of
from airflow_flinkcompat.backfill.executing.merging import in_open_sessions, in_sessions
from airflow_flinkcompat.backfill.executing.ordered import (
    ARRIVAL,
    HIDDEN,
    PART,
    PLACE,
    STREAM,
    along,
    in_time,
    not_overtaken,
    ranked,
    with_arrival,
    with_watermark,
)
from airflow_flinkcompat.backfill.executing.sampling import ROWS, rows_per_slice
from airflow_flinkcompat.backfill.native import Natives, pieces, reason


class Execution:
    """Turns steps into DataFrames and counts rows on the way; the counts are there once an action has run."""

    def __init__(
        self,
        session: SparkSession,
        work: Work | None = None,
        progress: Callable[[str], None] = lambda line: None,
        by_slices: bool | None = None,
        native: Natives | None = None,
    ) -> None:
        """``progress`` gets a line for every choice; ``by_slices`` takes one of them: None leaves it to a sample.

        ``native`` says which aggregations get their partials from DuckDB.
        """
        self.session = session
        self._progress, self._by_slices, self._native = progress, by_slices, native or Natives(False)
        self._shared = shared(work.writes) if work is not None else frozenset()
        self._frames: dict[Step, DataFrame] = {}
        self._kept: list[DataFrame] = []
        self._reads: list[tuple[str, str, Observation]] = []
        self._nulls: list[Observation] = []
        self._ties: list[Observation] = []
        self._late: list[Observation] = []

    def rows_read(self) -> dict[tuple[str, str], int]:
        """(table, place) → rows in its files; a table that several pipelines read counts once."""
        counts: dict[tuple[str, str], int] = {}
        for table, place, seen in self._reads:
            counts[table, place] = max(counts.get((table, place), 0), counted(seen, "rows"))
        return counts

    def rows_dropped(self) -> int:
        """Rows without an event time, over all windows."""
        return sum(counted(seen, "nulls") for seen in self._nulls)

    def late(self) -> int:
        """Rows that came too late for their window, over all windows they were too late for."""
        return sum(counted(seen, "late") for seen in self._late)

    def ties(self) -> int:
        """Windows of a Top-N whose published rows were chosen among equal ones."""
        return sum(counted(seen, "ties") for seen in self._ties)

    def rows(self, write: Write) -> tuple[DataFrame, Observation]:
        """The columns ``c0`` … of a write in the sink's types, and the counts of its ``rows`` and ``windows``, the
        latter -1 where the sink does not hold what tells them apart."""
        rows = reduce(DataFrame.union, (self.frame(step).drop(*HIDDEN) for step in write.inputs))
        bounds = _window_columns(write.rows)
        windows = F.size(F.collect_set(F.struct(*bounds))) if bounds else F.expr("max(-1)")
        seen = Observation()
        return rows.observe(seen, F.expr("count(1)").alias("rows"), windows.alias("windows")), seen

    def __enter__(self) -> Execution:
        return self

    def __exit__(self, *_: object) -> None:
        """Forgets the rows kept for several readers; an action later on would compute them again."""
        for rows in (*self._frames.values(), *self._kept):
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
                return in_windows(*self._to_windows(step))
            case Sessions():
                if step.counted is not None:
                    self._late.append(Observation())
                    return in_open_sessions(self.frame(step.input), step, self._nulls_seen(), self._late[-1])
                return in_sessions(self.frame(step.input), step, self._nulls_seen())
            case Late():
                self._late.append(Observation())
                return in_time(self.frame(step.input), step, self._late[-1])
            case Overtaken():
                self._late.append(Observation())
                return not_overtaken(self.frame(step.input), step, self._late[-1])
            case Group():
                return self._group(step)
            case Repeat():
                number = F.expr(f"explode(sequence(0, {step.times - 1}))")
                return self.frame(step.input).withColumn(f"c{step.number}", number)
            case Rank():
                seen = Observation()
                self._ties.append(seen)
                return ranked(self.frame(step.input), step, seen)
            case Along():
                return along(self.frame(step.input), step, None if step.time is None else self._nulls_seen())
            case Together():
                inputs = [self.frame(inner) for inner in step.inputs]
                names = [f"c{i}" for i in step.positions]
                names += [ARRIVAL] if all(ARRIVAL in rows.columns for rows in inputs) else []
                return reduce(DataFrame.union, (rows.select(*names) for rows in inputs))

    def _raw(self, step: Read) -> DataFrame:
        if step.arrival or (step.arrival is None and step.watermark is None):
            return step.source.frame(self.session)
        assert isinstance(step.source, Arrival)
        if step.watermark is not None:
            step.source.check_sequence(self.session)
        return step.source.arriving(self.session)

    def _to_windows(self, step: Assign) -> tuple[DataFrame, Assign, Observation | None]:
        """The rows that go into windows, and what counts those without a time: None where their reader does, because
        a second look at each row is dear."""
        read = step.input
        known = dict(read.columns) if isinstance(read, Read) and read not in self._shared else {}
        if isinstance(read, Read) and step.time in known and not read.condition:
            return self._read(read, nulls_of(step)), step, None
        return self.frame(read), step, self._nulls_seen()

    def _read(self, step: Read, nulls: Column | None = None) -> DataFrame:
        raw = self._raw(step)
        seen = Observation()
        self._reads.append((step.table, step.source.place, seen))
        count = F.expr("count(1)").alias("rows")
        if step.condition:  # below the count, which keeps conditions from the reader
            rows = _select(raw, step.columns).where(F.expr(step.condition)).observe(seen, count)
        elif nulls is not None:
            rows = _select(raw, step.columns).observe(seen, count, nulls)
            self._nulls.append(seen)
        else:
            rows = _select(raw.observe(seen, count), step.columns)
        if step.computed:
            rows = rows.select("*", *(F.expr(sql).alias(f"c{i}") for i, sql in step.computed))
        if step.arrival is not None:
            rows = with_arrival(rows, step)
        if step.watermark is not None:
            return with_watermark(rows, step.watermark)
        return rows.drop(PART, PLACE, STREAM)

    def _nulls_seen(self) -> Observation:
        self._nulls.append(Observation())
        return self._nulls[-1]

    def _group(self, step: Group) -> DataFrame:
        assign, slices = self._windows(step), step.slices
        if assign is not None and slices is not None:
            if (native := self._native_pieces(step)) is not None:
                return by_slices(native, assign, slices)
            if self._sliced(assign, slices):
                rows, _, nulls = self._to_windows(assign)
                return by_slices(in_pieces(rows, assign, slices, nulls), assign, slices)
        rows = self.frame(step.input)
        keys = [F.expr(key).alias(f"c{i}") for i, key in enumerate(step.keys)]
        if not step.aggregates:
            return rows.select(*keys).distinct()
        return rows.groupBy(*keys).agg(*(F.expr(sql).alias(f"c{i}") for i, sql in step.aggregates))

    def _windows(self, step: Group) -> Assign | None:
        """The windows of an aggregation that slices may compute; rows in windows that others read are there anyway."""
        below = step.input
        while isinstance(below, Select | Where) and below not in self._shared:
            below = below.input
        return below if isinstance(below, Assign) and below not in self._shared else None

    def _sliced(self, assign: Assign, slices: Slices) -> bool:
        """Whether slices are less work than rows put into windows."""
        if self._by_slices is not None or not assign.windows.overlapping:
            return bool(self._by_slices) and assign.windows.overlapping
        rows = rows_per_slice(Sample(self.session), assign, slices)
        pays = rows >= DENSE
        self._progress(
            f"{assign.windows.kind}: about {rows:.1f} rows per key and slice, so "
            + ("slices are aggregated first" if pays else "rows are put into windows one by one")
        )
        return pays

    def _native_pieces(self, step: Group) -> DataFrame | None:
        """What DuckDB computed of files, counted as rows read by Spark are; None where Spark's operators have to.

        It is computed here and kept, so that a failure costs this and nothing else.
        """
        partials = self._native(step, self.session)
        if partials is None:
            return None
        read, nulls = Observation(), Observation()
        try:
            rows = pieces(self.session, partials).observe(read, F.expr("coalesce(sum(rows), 0)").alias("rows"))
            rows = rows.observe(nulls, F.expr("coalesce(sum(nulls), 0)").alias("nulls"))
            rows = rows.where(f"{SLICE} IS NOT NULL").drop("rows", "nulls").persist()
            self._kept.append(rows)
            rows.count()
        except (PySparkException, Py4JError, OSError) as error:
            self._native.failed(partials, reason(error))
            return None
        self._reads.append((partials.read.table, partials.read.source.place, read))
        self._nulls.append(nulls)
        return rows


class Sample(Execution):
    """Steps over the first rows of each source only."""

    def __init__(self, session: SparkSession) -> None:
        super().__init__(session, by_slices=False)
        self.raw: list[DataFrame] = []

    def _raw(self, step: Read) -> DataFrame:
        raw = super()._raw(step)
        self.raw.append(raw)
        return raw.limit(ROWS)


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
    hidden = [name for name in rows.columns if name in HIDDEN]
    return rows.select(*hidden, *(F.expr(sql).alias(f"c{i}") for i, sql in columns))
