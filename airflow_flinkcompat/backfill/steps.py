"""Steps of a backfill: a tree that any Spark session can run without further decisions.

Steps contain only Spark SQL text. The column at index i of a step's rows is named ``c{i}``. Unused columns are omitted.
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

    Rows first have the raw stored fields ``f{i}``, then ``columns`` as (index, SQL over the fields), then ``computed``
    as (index, SQL over the columns). ``fields``: Pairs (index, i) of stored columns.

    ``condition``: SQL over the columns that skips rows of unrequested folders before any count.

    ``watermark``: SQL over the columns. With a watermark, every row has a column ``met`` with the highest watermark of
    earlier rows. ``arrival``: SQL over the columns for the position in the order of arrival. If ``arrival`` is empty,
    the position in the source is used; None if no position is needed.
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
    """Computed columns as (index, SQL). With ``unordered``, rows lose their order of arrival."""

    input: Step
    columns: tuple[tuple[int, str], ...]
    unordered: bool = False


@dataclass(frozen=True)
class Where:
    """Filter that keeps the rows for which the condition is true."""

    input: Step
    condition: str


@dataclass(frozen=True)
class Assign:
    """Assignment of rows to windows.

    Columns ``width``, ``width + 1`` and ``width + 2`` are the start, end and time of the window. A row is repeated for
    each of its windows. ``time``: Index of the event-time column. Rows without an event time are counted and dropped.
    Windows outside ``window_range`` are dropped without a count. ``zone``: Local time zone for windows over a
    TIMESTAMP_LTZ; "" for a TIMESTAMP.
    """

    input: Step
    time: int
    width: int
    windows: Aligned
    window_range: WindowRange
    zone: str = ""
    asked: AskedWindows | None = field(default=None, repr=False, compare=False)
    """Rule that derives ``window_range`` from the published windows; None if there is no rule."""


@dataclass(frozen=True)
class AssignSessions:
    """Assignment of each row to its session, in the same columns as :class:`Assign`.

    A session contains rows of one ``partition`` (SQL) that follow each other within ``gap`` microseconds. A session
    ends one gap after its last row. ``time`` and ``zone``: As in :class:`Assign`. Sessions over a TIMESTAMP_LTZ are cut
    in local time. All rows are read, because rows outside the windows in ``window_range`` affect where the windows
    begin and end. Rows of sessions outside ``window_range`` are then dropped.

    ``counted``: If this range is set, a session closes as soon as a watermark reaches its last millisecond. Rows that
    are too late for every session are dropped. Dropped rows of windows in ``counted`` are counted.
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
    """Rule that derives ``window_range`` from the published windows; None if there is no rule."""


@dataclass(frozen=True)
class Slices:
    """Computation of a Group over windowed rows by slices of the windows.

    First, rows that satisfy ``condition`` are aggregated to ``partials`` (``p0`` …) by slice, ``keys`` and ``values``.
    Then the partials are aggregated to ``aggregates`` by window and keys. ``keys``, ``values`` and ``aggregates`` are
    pairs (index, SQL). ``fields`` are pairs (index, 0 for the window's start, 1 for its end, or 2 for its time). SQL of
    aggregates uses partials and values. All other SQL uses the input rows of the window assignment.
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

    ``fires``: SQL for the time at which the window is complete. A row is late if its watermark has reached this time.
    The watermark of a row is from :class:`Read`. ``counted``: SQL that is true for the windows whose late rows are
    counted.
    """

    input: Step
    fires: str
    counted: str
    ends: tuple[Aligned, str] | None = field(default=None, repr=False, compare=False)
    """Windows, and SQL for their ends, from which ``counted`` is derived; None if it is not derived."""


@dataclass(frozen=True)
class DropOverLate:
    """Removal of rows that an OVER with a bounded frame does not accept, with their count.

    A row is removed if its event time (column ``time``) is not after 1970-01-01 00:00:00. With a ``partition`` (SQL), a
    row is also removed if its event time is not after the last row that its partition had emitted.
    """

    input: Step
    time: int
    partition: tuple[str, ...] | None


@dataclass(frozen=True)
class Merge:
    """Merge of groups over parts of the input of a :class:`Group` into groups over the whole input."""

    keys: tuple[str, ...]
    aggregates: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Group:
    """Grouping by keys, with aggregates. Output columns are the keys, then the aggregates, in order.

    ``slices``: Computation of the same rows by slices of windows; None if unsupported. ``merge``: How groups of parts
    are merged, or None.
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
    """Numbering of the rows in each partition from 1, in all columns of ``numbers``.

    ``order``: Triples (SQL, ascending, NULLs first). Rows that are equal in this order are ordered by all ``columns``,
    so that every run has the same result. ``first`` and ``last``: Range of ranks that a later step keeps.
    ``number_read``: True if the query outputs the number. Windows whose result depends on the order of equal rows are
    counted.
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
    """Computation of ``columns`` (index, SQL) over the ordered rows of each ``partition`` (SQL).

    Rows are ordered by the event-time column ``time`` (None if there is none), in microseconds in the column
    ``micros``. With ``arrival``, rows with equal times are then ordered by arrival. The SQL repeats this order in an
    OVER clause. Rows without an event time are counted and dropped. ``clashing``: Error message if two rows of a
    partition have the same position; "" if equal positions are allowed.
    """

    input: Step
    partition: tuple[str, ...]
    time: int | None
    arrival: bool
    columns: tuple[tuple[int, str], ...]
    clashing: str = ""


@dataclass(frozen=True)
class UnionAll:
    """All rows of all inputs, with the columns at ``positions``."""

    inputs: tuple[Step, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Joined:
    """Pairs of rows from two inputs for which a condition is true. The inputs have no common columns.

    ``kind``: INNER, or LEFT, RIGHT or FULL to include unmatched rows.
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
    """Replace the sources of all reads in a step."""
    if isinstance(step, Read):
        return replace(step, source=source_of(step))
    if isinstance(step, UnionAll | Joined):
        return replace(step, inputs=tuple(with_sources(inner, source_of) for inner in step.inputs))
    return replace(step, input=with_sources(step.input, source_of))


@dataclass(frozen=True)
class Write:
    """Publication of the columns ``c0`` … of all inputs to a sink."""

    rows: PublishedRows
    target: BackfillSink
    inputs: tuple[Step, ...]


@dataclass(frozen=True)
class Work:
    """All steps of a backfill: one write per sink table."""

    writes: tuple[Write, ...]

    @property
    def sources(self) -> tuple[BackfillSource, ...]:
        reads = (read for write in self.writes for step in write.inputs for read in reads_of(step))
        return tuple(dict.fromkeys(read.source for read in reads))

    @property
    def needs(self) -> Needs:
        """Requirements of all sources and sinks for the Spark session."""
        used = (*(source.needs for source in self.sources), *(write.target.needs for write in self.writes))
        return reduce(or_, used, Needs())
