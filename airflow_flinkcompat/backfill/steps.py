"""A backfill as a tree of steps that any Spark session can run without further decisions.

Steps contain Spark SQL text only. The column at position i of a step's rows is called ``c{i}``; unread positions are
left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from airflow_flinkcompat.backfill.protocols import BackfillSink, BackfillSource, Needs, PublishedRows
from airflow_flinkcompat.backfill.spark_sql.windows import Aligned, AskedWindows, WindowRange


@dataclass(frozen=True)
class Read:
    """Read of a table.

    Every stored field is as in the source, ``f{i}``, then ``columns`` as (position, SQL over the fields), then
    ``computed`` as (position, SQL over the columns). ``fields`` are (position, i) of stored columns.

    ``condition`` over the columns leaves out rows of unrequested folders, before anything is counted.

    With a ``watermark``, SQL over the columns, every row carries the highest one of the rows before it (``met``). With
    an ``arrival`` it carries its position in the arrival order: by this SQL over the columns or, if that is empty, by
    its place in the source.
    """

    table: str
    source: BackfillSource
    columns: tuple[tuple[int, str], ...]
    computed: tuple[tuple[int, str], ...] = ()
    fields: tuple[tuple[int, int], ...] = ()
    watermark: str | None = None
    condition: str = ""
    arrival: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Select:
    """Computed columns: (position, SQL). With ``unordered``, rows lose their arrival order."""

    input: Step
    columns: tuple[tuple[int, str], ...]
    unordered: bool = False


@dataclass(frozen=True)
class Where:
    """Filter of rows for which the condition is true."""

    input: Step
    condition: str


@dataclass(frozen=True)
class Assign:
    """Assignment of rows to windows: columns ``width`` (start), ``width + 1`` (end), ``width + 2`` (time).

    A row appears once per window. ``time`` is the position of the event time. Rows without one are counted and dropped;
    windows outside of ``window_range`` are dropped uncounted. ``zone`` is the local time zone in which windows over a
    TIMESTAMP_LTZ are cut, "" for a TIMESTAMP.
    """

    input: Step
    time: int
    width: int
    windows: Aligned
    window_range: WindowRange
    zone: str = ""
    asked: AskedWindows | None = field(default=None, repr=False, compare=False)
    """The rule that derives ``window_range`` from the published windows; None without one."""


@dataclass(frozen=True)
class AssignSessions:
    """Assignment of each row to its session: columns as for :class:`Assign`.

    A session consists of rows of one ``partition`` (SQL) that follow each other ``gap`` microseconds apart or less; it
    ends a gap after its last row. ``time`` and ``zone`` are those of :class:`Assign`: sessions of a TIMESTAMP_LTZ are
    put together in local time. All rows are read, because rows before and after the windows in ``window_range`` decide
    where these begin and end; rows of the others are then left out.

    With ``counted``, sessions are those of a job that closes one as soon as a watermark reaches its last millisecond,
    and rows that come too late for any are left out; those of ``counted`` are counted.
    """

    input: Step
    time: int
    width: int
    gap: int
    partition: tuple[str, ...]
    window_range: WindowRange
    zone: str = ""
    counted: WindowRange | None = None
    asked: AskedWindows | None = field(default=None, repr=False, compare=False)
    """The rule that derives ``window_range`` from the published windows; None without one."""


@dataclass(frozen=True)
class Slices:
    """Computation of a Group over windowed rows by slices of its windows.

    Of the rows for which the ``condition`` is true, ``partials`` (``p0`` …) are computed per slice, ``keys`` and
    ``values``, then the ``aggregates`` over these per window and keys. ``keys``, ``values`` and ``aggregates`` are
    (position, SQL), ``fields`` (position, 0 for the window's start, 1 for its end, 2 for its time). SQL is over the
    rows before windows are assigned; that of aggregates is over partials and values.
    """

    condition: str
    keys: tuple[tuple[int, str], ...]
    fields: tuple[tuple[int, int], ...]
    values: tuple[tuple[int, str], ...]
    partials: tuple[str, ...]
    aggregates: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class DropLate:
    """Removal of rows that arrived too late for their window, with their count.

    ``fires`` (SQL) is the time at which the window is complete: its rows are late once a watermark has reached it.
    The watermark of a row is that of :class:`Read`. Rows are counted for windows for which ``counted`` (SQL) is true.
    """

    input: Step
    fires: str
    counted: str
    ends: tuple[Aligned, str] | None = field(default=None, repr=False, compare=False)
    """Windows, and SQL of their ends, from which ``counted`` is derived; None if it is not."""


@dataclass(frozen=True)
class DropOverLate:
    """Removal of rows that an OVER with a bounded frame does not accept, with their count.

    Their event time, at position ``time``, is not after 1970-01-01 00:00:00, or, with a ``partition`` (SQL), not after
    that of its last emitted row at their arrival.
    """

    input: Step
    time: int
    partition: tuple[str, ...] | None


@dataclass(frozen=True)
class Merge:
    """Merge of groups of a :class:`Group` over parts of its input into those over all of it."""

    keys: tuple[str, ...]
    aggregates: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Group:
    """Groups by the keys and aggregates; output columns are the keys, then the aggregates, in order.

    ``slices`` is another way to compute the same rows, ``merge`` combines rows of parts; None without one.
    """

    input: Step
    keys: tuple[str, ...]
    aggregates: tuple[tuple[int, str], ...]
    slices: Slices | None = None
    merge: Merge | None = None


@dataclass(frozen=True)
class Expand:
    """Repetition of each row ``times`` times, numbered from 0 in the column ``number``."""

    input: Step
    number: int
    times: int


@dataclass(frozen=True)
class Rank:
    """Numbers the rows of each partition from 1 on, into all columns of ``numbers``.

    ``order`` is (SQL, ascending, NULLs first); equal rows are ordered by all their ``columns``, so that every run gives
    the same result. Ranks from ``first`` to ``last`` are kept above; ``number_read``: the number is shown. Windows
    whose result depends on the order of equal rows are counted.
    """

    input: Step
    numbers: tuple[int, ...]
    partition: tuple[str, ...]
    order: tuple[tuple[str, bool, bool], ...]
    columns: tuple[int, ...]
    first: int
    last: int
    number_read: bool


@dataclass(frozen=True)
class OverAggregate:
    """Computation of ``columns`` (position, SQL) along the ordered rows of each ``partition`` (SQL).

    The order is the event time at position ``time``, in microseconds the column ``micros`` (None: no event time), then
    for ``arrival`` the arrival order; the SQL repeats both in an OVER clause. Rows without an event time are counted
    and dropped. With ``clashing``, an error message, no two rows of a partition may share their place.
    """

    input: Step
    partition: tuple[str, ...]
    time: int | None
    arrival: bool
    columns: tuple[tuple[int, str], ...]
    clashing: str = ""


@dataclass(frozen=True)
class UnionAll:
    """All rows of all inputs; each input has the columns at ``positions``."""

    inputs: tuple[Step, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Joined:
    """The pairs of rows of its two inputs for which a condition is true; no column is in both.

    ``kind`` is INNER, or LEFT, RIGHT or FULL, which also include rows without a match.
    """

    inputs: tuple[Step, ...]
    condition: str
    kind: str = "INNER"


Step = (
    Read
    | Select
    | Where
    | Assign
    | AssignSessions
    | DropLate
    | DropOverLate
    | Group
    | Expand
    | Rank
    | OverAggregate
    | UnionAll
    | Joined
)


def inputs_of(step: Step) -> tuple[Step, ...]:
    if isinstance(step, Read):
        return ()
    return step.inputs if isinstance(step, UnionAll | Joined) else (step.input,)


def reads_of(step: Step) -> tuple[Read, ...]:
    if isinstance(step, Read):
        return (step,)
    return tuple(read for inner in inputs_of(step) for read in reads_of(inner))


def with_sources(step: Step, source_of: Callable[[Read], BackfillSource]) -> Step:
    """The same step over other sources."""
    if isinstance(step, Read):
        return replace(step, source=source_of(step))
    if isinstance(step, UnionAll | Joined):
        return replace(step, inputs=tuple(with_sources(inner, source_of) for inner in step.inputs))
    return replace(step, input=with_sources(step.input, source_of))


@dataclass(frozen=True)
class Write:
    """Publication of the columns ``c0`` … of all inputs."""

    rows: PublishedRows
    target: BackfillSink
    inputs: tuple[Step, ...]


@dataclass(frozen=True)
class Work:
    """Everything a backfill does: one write per sink table."""

    writes: tuple[Write, ...]

    @property
    def sources(self) -> tuple[BackfillSource, ...]:
        reads = (read for write in self.writes for step in write.inputs for read in reads_of(step))
        return tuple(dict.fromkeys(read.source for read in reads))

    @property
    def needs(self) -> Needs:
        """Requirements of all sources and targets for the Spark session."""
        used = (*(source.needs for source in self.sources), *(write.target.needs for write in self.writes))
        return reduce(or_, used, Needs())
