"""Execution of steps as Spark DataFrames of built-in functions. Only an accelerator runs other code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.registry import reader
from airflow_flinkcompat.backfill.execution.ordered import (
    ARRIVAL,
    HIDDEN,
    PART,
    PLACE,
    STREAM,
    drop_overtaken,
    in_time,
    over_rows,
    ranked,
    with_arrival,
    with_watermark,
)
from airflow_flinkcompat.backfill.execution.windows import (
    DENSE,
    ROWS,
    SLICE,
    by_slices,
    in_open_sessions,
    in_pieces,
    in_sessions,
    in_windows,
    nulls_of,
    rows_per_slice,
)
from airflow_flinkcompat.backfill.protocols import OrderedReader, PublishedRows
from airflow_flinkcompat.backfill.spark import counted
from airflow_flinkcompat.backfill.steps import (
    Assign,
    AssignSessions,
    DropLate,
    DropOverLate,
    Expand,
    Group,
    Joined,
    OverAggregate,
    Rank,
    Read,
    Select,
    Slices,
    Step,
    UnionAll,
    Where,
    Work,
    Write,
    inputs_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class AcceleratedRead(Protocol):
    """Partial aggregates of one aggregation over one table."""

    @property
    def read(self) -> Read:
        """The table read that supplies the rows."""


_Partials = TypeVar("_Partials", bound=AcceleratedRead)


class Accelerator(Protocol[_Partials]):
    """Accelerator that decides which aggregations it computes, and computes the partials of their slices."""

    def __call__(self, group: Group, session: SparkSession | None = None) -> _Partials | None:
        """Plan an aggregation; return None to leave it to Spark's operators."""

    def pieces(self, session: SparkSession, partials: _Partials) -> DataFrame:
        """Keys, slice and partials, in the columns of :class:`~airflow_flinkcompat.backfill.steps.Slices`.

        Two more columns count the ``rows`` that were read, and the rows without a time (``nulls``). Rows outside every
        slice are only counted.
        """

    def failed(self, partials: _Partials, error: Exception) -> None:
        """Leave a failed aggregation, and later reads of the same table, to Spark."""


class Execution:
    """Execution of steps as DataFrames, which counts rows when an action runs."""

    def __init__(
        self,
        session: SparkSession,
        work: Work | None = None,
        progress: Callable[[str], None] = lambda line: None,
        by_slices: bool | None = None,
        accelerator: Accelerator[Any] | None = None,
    ) -> None:
        """Prepare the execution of the steps of a backfill.

        ``work``: Writes of the backfill. Steps that several writes read are computed once. ``progress``: Receives a
        line for each choice of how an aggregation is computed. ``by_slices``: Forces aggregation with or without
        slices; None decides by a sample. ``accelerator``: May compute the partial aggregates of some aggregations.
        """
        self.session = session
        self._progress, self._by_slices, self._accelerator = progress, by_slices, accelerator
        self._shared = shared_steps(work.writes) if work is not None else frozenset()
        self._frames: dict[Step, DataFrame] = {}
        self._persisted: list[DataFrame] = []
        self._reads: list[tuple[str, str, Observation]] = []
        self._nulls: list[Observation] = []
        self._ties: list[Observation] = []
        self._late: list[Observation] = []

    def rows_read(self) -> dict[tuple[str, str], int]:
        """Number of rows read, by (table, location). A table that several pipelines read counts once."""
        counts: dict[tuple[str, str], int] = {}
        for table, place, seen in self._reads:
            counts[table, place] = max(counts.get((table, place), 0), counted(seen, "rows"))
        return counts

    def rows_dropped(self) -> int:
        """Number of rows without an event time, over all windows."""
        return sum(counted(seen, "nulls") for seen in self._nulls)

    def late(self) -> int:
        """Number of rows that were late for a window, over all windows."""
        return sum(counted(seen, "late") for seen in self._late)

    def ties(self) -> int:
        """Number of Top-N windows in which the published rows were an arbitrary choice among equal rows."""
        return sum(counted(seen, "ties") for seen in self._ties)

    def rows(self, write: Write) -> tuple[DataFrame, Observation]:
        """Rows to write, as columns ``c0`` … in the sink's types, with counts of ``rows`` and ``windows``.

        The number of windows is -1 if unknown.
        """
        rows = reduce(DataFrame.union, (self.frame(step).drop(*HIDDEN) for step in write.inputs))
        bounds = _window_columns(write.rows)
        windows = F.size(F.collect_set(F.struct(*bounds))) if bounds else F.expr("max(-1)")
        seen = Observation()
        return rows.observe(seen, F.expr("count(1)").alias("rows"), windows.alias("windows")), seen

    def __enter__(self) -> Execution:
        return self

    def __exit__(self, *_: object) -> None:
        """Release rows that were stored for several readers. Later actions would compute released rows again."""
        for rows in (*self._frames.values(), *self._persisted):
            rows.unpersist()

    def frame(self, step: Step) -> DataFrame:
        """DataFrame of a step.

        A step that several steps or sinks read is computed once and stored for the block.
        """
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
                return _select(self.frame(step.input), step.columns, step.unordered)
            case Where():
                return self.frame(step.input).where(F.expr(step.condition))
            case Group():
                return self._group(step)
            case Expand():
                number = F.expr(f"explode(sequence(0, {step.times - 1}))")
                return self.frame(step.input).withColumn(f"c{step.number}", number)
            case Joined():
                left, right = map(self.frame, step.inputs)
                return left.join(_own_columns(right), F.expr(step.condition), step.kind.lower())
            case UnionAll():
                inputs = [self.frame(inner) for inner in step.inputs]
                names = [f"c{i}" for i in step.positions]
                names += [ARRIVAL] if all(ARRIVAL in rows.columns for rows in inputs) else []
                first, *more = (rows.select(*names) for rows in inputs)
                return reduce(DataFrame.union, map(_own_columns, more), first)
            case _:
                return self._counted(step)

    def _counted(self, step: Assign | AssignSessions | DropLate | DropOverLate | Rank | OverAggregate) -> DataFrame:
        """DataFrame of a step that depends on time or order. Omitted and ambiguous rows are counted."""
        match step:
            case Assign():
                return in_windows(*self._to_windows(step))
            case AssignSessions(counted=None):
                return in_sessions(self.frame(step.input), step, _seen(self._nulls))
            case AssignSessions():
                return in_open_sessions(self.frame(step.input), step, _seen(self._nulls), _seen(self._late))
            case DropLate():
                return in_time(self.frame(step.input), step, _seen(self._late))
            case DropOverLate():
                return drop_overtaken(self.frame(step.input), step, _seen(self._late))
            case Rank():
                return ranked(self.frame(step.input), step, _seen(self._ties))
            case OverAggregate():
                return over_rows(self.frame(step.input), step, None if step.time is None else _seen(self._nulls))

    def _raw(self, step: Read) -> DataFrame:
        if step.arrival or (step.arrival is None and step.watermark is None):
            return reader(self.session, step.source).rows()
        ordered = reader(self.session, step.source)
        assert isinstance(ordered, OrderedReader)
        if step.watermark is not None:
            ordered.check_sequence()
        return ordered.ordered_rows()

    def _to_windows(self, step: Assign) -> tuple[DataFrame, Assign, Observation | None]:
        """Rows to assign to windows, and the count of rows without a time; None if the table read counts them."""
        read = step.input
        known = dict(read.columns) if isinstance(read, Read) and read not in self._shared else {}
        if isinstance(read, Read) and step.time in known and not read.condition:
            return self._read(read, nulls_of(step)), step, None
        return self.frame(read), step, _seen(self._nulls)

    def _read(self, step: Read, nulls: Column | None = None) -> DataFrame:
        raw = self._raw(step)
        seen = Observation()
        self._reads.append((step.table, step.source.place, seen))
        count = F.expr("count(1)").alias("rows")
        if step.condition:  # The count follows the condition, which would not reach the reader otherwise.
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

    def _group(self, step: Group) -> DataFrame:
        assign, slices = self._windows(step), step.slices
        if assign is not None and slices is not None:
            if (pieces := self._accelerated(step)) is not None:
                return by_slices(pieces, assign, slices)
            if self._sliced(assign, slices):
                rows, _, nulls = self._to_windows(assign)
                return by_slices(in_pieces(rows, assign, slices, nulls), assign, slices)
        rows = self.frame(step.input)
        keys = [F.expr(key).alias(f"c{i}") for i, key in enumerate(step.keys)]
        if not step.aggregates:
            return rows.select(*keys).distinct()
        return rows.groupBy(*keys).agg(*(F.expr(sql).alias(f"c{i}") for i, sql in step.aggregates))

    def _windows(self, step: Group) -> Assign | None:
        """Windows of an aggregation that slices can compute; None if other steps also read the windowed rows."""
        below = step.input
        while isinstance(below, Select | Where) and below not in self._shared:
            below = below.input
        return below if isinstance(below, Assign) and below not in self._shared else None

    def _sliced(self, assign: Assign, slices: Slices) -> bool:
        """True if slices need less work than assigning rows to windows."""
        if self._by_slices is not None or not assign.windows.overlapping:
            return bool(self._by_slices) and assign.windows.overlapping
        sample = Sample(self.session)
        rows = rows_per_slice(sample.frame, sample.raw, assign, slices)
        pays = rows >= DENSE
        self._progress(
            f"{assign.windows.kind}: there are about {rows:.1f} rows per key and slice, so "
            + ("slices are aggregated first" if pays else "rows are assigned to windows one by one")
        )
        return pays

    def _accelerated(self, step: Group) -> DataFrame | None:
        """Partials from an accelerator, with counts of rows; None leaves the aggregation to Spark."""
        accelerator = self._accelerator
        partials = None if accelerator is None else accelerator(step, self.session)
        if accelerator is None or partials is None:
            return None
        read, nulls = Observation(), Observation()
        try:
            rows = accelerator.pieces(self.session, partials).observe(
                read, F.expr("coalesce(sum(rows), 0)").alias("rows")
            )
            rows = rows.observe(nulls, F.expr("coalesce(sum(nulls), 0)").alias("nulls"))
            rows = rows.where(f"{SLICE} IS NOT NULL").drop("rows", "nulls").persist()
            self._persisted.append(rows)
            rows.count()
        except (PySparkException, Py4JError, OSError) as error:
            accelerator.failed(partials, error)
            return None
        self._reads.append((partials.read.table, partials.read.source.place, read))
        self._nulls.append(nulls)
        return rows


class Sample(Execution):
    """Execution over only the first rows of each source."""

    def __init__(self, session: SparkSession) -> None:
        super().__init__(session, by_slices=False)
        self.raw: list[DataFrame] = []

    def _raw(self, step: Read) -> DataFrame:
        raw = super()._raw(step)
        self.raw.append(raw)
        return raw.limit(ROWS)


def _seen(counts: list[Observation]) -> Observation:
    counts.append(Observation())
    return counts[-1]


def _window_columns(rows: PublishedRows) -> tuple[str, ...]:
    """Columns of the window bounds; empty if these columns do not identify a window."""
    windows = rows.windows
    if windows.end is None and windows.size is None:
        return ()
    return tuple(f"c{i}" for i, column in enumerate(rows.columns) if column.name in (windows.start, windows.end))


def _own_columns(rows: DataFrame) -> DataFrame:
    """Alias columns so that Spark distinguishes them from the columns of the other input.

    If two inputs read one table, Spark 4.1 would otherwise remove redundant aliases and fail to resolve columns.
    """
    return rows.select(*(F.col(name).alias(name, metadata={"apart": True}) for name in rows.columns))


def _select(rows: DataFrame, columns: tuple[tuple[int, str], ...], unordered: bool = False) -> DataFrame:
    hidden = [name for name in rows.columns if name in HIDDEN and not unordered]
    return rows.select(*hidden, *(F.expr(sql).alias(f"c{i}") for i, sql in columns))


def shared_steps(writes: Iterable[Write]) -> frozenset[Step]:
    """Outermost steps that several steps or sinks read, and in which each row occurs only once.

    Rows that occur once per window are cheaper to compute again than to store, and an aggregation may not need such
    rows.
    """
    readers: dict[Step, int] = {}
    pending = [step for write in writes for step in write.inputs]
    while pending:
        step = pending.pop()
        readers[step] = readers.get(step, 0) + 1
        if readers[step] == 1 or _spread(step):
            pending += inputs_of(step)
    return frozenset(step for step, count in readers.items() if count > 1 and not _spread(step))


def _spread(step: Step) -> bool:
    """True if each row may occur several times, also after projections and filters."""
    while isinstance(step, Select | Where | DropLate):
        step = step.input
    return isinstance(step, Expand) or (isinstance(step, Assign) and step.windows.overlapping)
