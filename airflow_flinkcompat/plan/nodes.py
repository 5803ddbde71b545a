"""The logical DAG of a program, as frozen nodes that can be compared and executed.

Every node has ``inputs`` and a ``schema`` (columns with Flink types, in order). Expressions refer to input columns by
position (:class:`InputRef`). In a join and a correlate, they refer to the concatenated row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from airflow_flinkcompat.lazy import cached_property, quick_init
from airflow_flinkcompat.model import NormalForm, Span
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, InputRef, Literal
from airflow_flinkcompat.plan.types import Column, TimeAttribute


class WindowKind(StrEnum):
    """Kinds of windowing table functions. Legacy group windows only have TUMBLE, HOP and SESSION."""

    TUMBLE = "TUMBLE"
    HOP = "HOP"
    CUMULATE = "CUMULATE"
    SESSION = "SESSION"


class Measure(StrEnum):
    """Unit of a window: milliseconds, or rows of a key in arrival order."""

    TIME = "TIME"
    ROWS = "ROWS"


@quick_init
@dataclass(frozen=True)
class Window:
    """A window definition. Lengths are in milliseconds, or in rows if ``measure`` is ``ROWS``.

    ``size`` is the length (the maximum for CUMULATE). ``slide`` is the slide of HOP or the step of CUMULATE. ``gap`` is
    the gap of SESSION, and ``offset`` shifts all windows. Fields that do not apply to a kind are None.
    ``normalised_offset`` is the effective offset: modulo slide for HOP, modulo size for TUMBLE and CUMULATE. Only
    TUMBLE and HOP of the Table API can be measured in rows. A window that is measured in rows closes when it is full.
    """

    kind: WindowKind
    size: int | None = None
    slide: int | None = None
    gap: int | None = None
    offset: int = 0
    measure: Measure = Measure.TIME

    @property
    def normalised_offset(self) -> int:
        period = self.slide if self.kind is WindowKind.HOP else self.size
        return self.offset % period if period else self.offset


class WindowField(StrEnum):
    """The columns that a windowing table function adds, and the fields of a legacy group window."""

    START = "window_start"
    END = "window_end"
    TIME = "window_time"
    PROCTIME = "proctime"


@dataclass(frozen=True)
class WatermarkStrategy:
    """``WATERMARK FOR column AS expression``. The expression refers to the row of the table."""

    column: str
    expression: Expression


DISTRIBUTION = "DISTRIBUTED"
"""Key of the DISTRIBUTED BY clause in the options of a table."""


def dotted(path: tuple[str, str, str]) -> str:
    """A path as text, without empty leading parts. Different paths have different texts."""
    parts = [f"`{part}`" if "." in part or "/" in part else part for part in path]
    return ".".join(parts).lstrip(".")


@quick_init
@dataclass(frozen=True)
class Table:
    """A table as declared: its full name, columns, options, keys and partitions.

    ``path`` is (catalog, database, name), with "" for parts that the script does not state. ``physical`` contains the
    stored columns. ``metadata`` maps a metadata column to (key, virtual). ``computed`` maps a computed column to its
    expression over the physical and metadata columns. ``columns`` contains all columns in declared order.
    ``declared`` is False if neither the script nor the catalog declares the table; its columns are then unknown.
    """

    path: tuple[str, str, str]
    columns: tuple[Column, ...]
    physical: tuple[str, ...]
    metadata: tuple[tuple[str, str, bool], ...] = ()
    computed: tuple[tuple[str, Expression], ...] = ()
    watermark: WatermarkStrategy | None = None
    primary_key: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    declared: bool = True
    span: Span | None = field(default=None, compare=False)

    @property
    def stored(self) -> tuple[Column, ...]:
        """The physical columns with their types, in declared order."""
        return tuple(column for column in self.columns if column.name in self.physical)

    @property
    def written(self) -> tuple[Column, ...]:
        """The columns that an INSERT fills, in declared order: no computed columns, and no virtual metadata."""
        apart = {*dict(self.computed), *(name for name, _, virtual in self.metadata if virtual)}
        return tuple(column for column in self.columns if column.name not in apart)

    @cached_property
    def name(self) -> str:
        """The name as a user writes it, without empty leading parts.

        ``lake..orders`` is a table in the default database of the catalog ``lake``, which is not a database.
        """
        return dotted(self.path)

    def option(self, key: str, default: str | None = None) -> str | None:
        """The value of a WITH option, or the default."""
        return dict(self.options).get(key, default)

    @property
    def watermark_delay(self) -> int | None:
        """The watermark delay in milliseconds: 0 for the column itself, n for ``column - INTERVAL n``.

        None without a watermark, or if the watermark has a different form.
        """
        if self.watermark is None:
            return None
        names = [column.name for column in self.columns]
        match self.watermark.expression:
            case InputRef(index) if names[index] == self.watermark.column:
                return 0
            case FunctionCall("-", (InputRef(index), Literal(int(delay), type))) if (
                names[index] == self.watermark.column and type.name == "INTERVAL_DAY_TIME" and delay >= 0
            ):
                return delay
        return None


@dataclass(frozen=True)
class Scan:
    """A scan of a table: all columns in declared order, with computed columns and the watermark.

    ``hints`` are the table's hints as (name, text), such as OPTIONS. A scan reads the physical columns, adds metadata
    and computed columns, and uses ``table.watermark`` as the event time.
    """

    stateful: ClassVar[bool] = False
    table: Table
    hints: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def schema(self) -> tuple[Column, ...]:
        return self.table.columns


@dataclass(frozen=True)
class Values:
    """A relation of literal rows: VALUES, or one row without columns for a SELECT without FROM."""

    stateful: ClassVar[bool] = False
    rows: tuple[tuple[Expression, ...], ...]
    schema: tuple[Column, ...]
    span: Span | None = field(default=None, compare=False)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True)
class Single:
    """Base of nodes with one input."""

    input: Node
    span: Span | None = field(default=None, compare=False, kw_only=True)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Project(Single):
    """A projection, with one expression per column; ``hints`` are those of its SELECT (STATE_TTL)."""

    stateful: ClassVar[bool] = False
    expressions: tuple[Expression, ...]
    schema: tuple[Column, ...]
    hints: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Filter(Single):
    """A filter that keeps the rows for which ``condition`` is true."""

    stateful: ClassVar[bool] = False
    condition: Expression

    @property
    def schema(self) -> tuple[Column, ...]:
        return self.input.schema


@dataclass(frozen=True)
class WindowAssign(Single):
    """A windowing table function: input columns, window_start, window_end and window_time.

    ``time`` is the time attribute, and ``partition_by`` contains the keys of SESSION. ``time_attribute`` is the clock
    of ``time``; None if ``time`` is no time attribute (Flink refuses this at submit). ``data_first`` is False if
    another argument precedes DATA, which open-source Flink refuses; it does not affect the result.
    """

    stateful: ClassVar[bool] = False
    window: Window
    time: InputRef
    schema: tuple[Column, ...]
    partition_by: tuple[Expression, ...] = ()
    data_first: bool = field(default=True, compare=False)

    @property
    def time_attribute(self) -> TimeAttribute | None:
        return self.input.schema[self.time.index].time_attribute


@dataclass(frozen=True)
class Correlate(Single):
    """A table function that is applied to every row: input columns, then the function's columns.

    ``outer`` is True for LEFT JOIN … ON TRUE.
    """

    stateful: ClassVar[bool] = False
    function: str
    args: tuple[Expression, ...]
    outer: bool
    schema: tuple[Column, ...]


@dataclass(frozen=True)
class Aggregate(Single):
    """A group aggregation without a window. Its columns are the keys, then the aggregates.

    An aggregation over windowed rows is also a group aggregation, unless both window bounds are keys. For GROUPING
    SETS, CUBE and ROLLUP, ``grouping_sets`` contains the positions of the keys in each set; None for a plain GROUP BY.
    SELECT DISTINCT is an Aggregate without aggregates.
    """

    stateful: ClassVar[bool] = True
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    schema: tuple[Column, ...]
    grouping_sets: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True)
class WindowAggregate(Aggregate):
    """A windowed aggregation over the rows of a :class:`WindowAssign`.

    Both window_start and window_end are keys in every grouping set. The columns are those of :class:`Aggregate`.
    ``window`` repeats the definition of the windowing function.
    """

    window: Window = field(kw_only=True)


@dataclass(frozen=True)
class GroupWindowAggregate(Single):
    """A legacy TUMBLE, HOP or SESSION in GROUP BY. Its columns are keys, aggregates, then ``properties``.

    ``window_position`` is the position of the window call among the GROUP BY items. ``mismatched`` contains the calls
    of ``TUMBLE_START`` and similar functions that name a different window, as written.
    """

    stateful: ClassVar[bool] = True
    window: Window
    time: Expression
    time_attribute: TimeAttribute | None
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    properties: tuple[WindowField, ...]
    schema: tuple[Column, ...]
    window_position: int = 0
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    mismatched: tuple[NormalForm, ...] = ()


@dataclass(frozen=True)
class Frame:
    """The frame of an OVER call; ``unit`` is RANGE or ROWS.

    ``preceding`` is the extent backwards and ``following`` the extent forwards, in rows or milliseconds; None for
    unbounded. ``window`` restricts the frame to the window of the current row (FLIP-11's TumbleRows, SessionRows).
    ``other`` is a frame of any other form.
    """

    unit: str = "RANGE"
    preceding: int | None = None
    other: NormalForm | str = ""
    following: int | None = 0
    window: Window | None = None


@dataclass(frozen=True)
class OverCall:
    """One function call with OVER: partition keys, order (expression, ascending, nulls first) and frame."""

    call: AggregateCall
    partition_by: tuple[Expression, ...]
    order_by: tuple[tuple[Expression, bool, bool | None], ...]
    frame: Frame


@dataclass(frozen=True)
class Over(Single):
    """OVER aggregations and ranking functions: input columns, then one column per call."""

    stateful: ClassVar[bool] = True
    calls: tuple[OverCall, ...]
    schema: tuple[Column, ...]


@dataclass(frozen=True)
class Sort(Single):
    """ORDER BY with optional LIMIT and OFFSET. A LIMIT without ORDER BY has no keys."""

    stateful: ClassVar[bool] = True
    keys: tuple[tuple[Expression, bool, bool | None], ...]
    limit: int | None = None
    offset: int | None = None

    @property
    def schema(self) -> tuple[Column, ...]:
        return self.input.schema


@dataclass(frozen=True)
class Join:
    """A join of two relations.

    ``kind`` is INNER, LEFT, RIGHT, FULL, CROSS, SEMI or ANTI; ``temporal`` is the expression of FOR SYSTEM_TIME AS OF
    on the right side.
    """

    stateful: ClassVar[bool] = True
    left: Node
    right: Node
    kind: str
    condition: Expression | None
    temporal: Expression | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def schema(self) -> tuple[Column, ...]:
        return self.left.schema if self.kind in ("SEMI", "ANTI") else self.left.schema + self.right.schema


@dataclass(frozen=True)
class Union:
    """UNION ALL: the rows of all inputs, with columns by position and names of the first input."""

    stateful: ClassVar[bool] = False
    branches: tuple[Node, ...]
    schema: tuple[Column, ...]
    span: Span | None = field(default=None, compare=False)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.branches


@dataclass(frozen=True)
class Clause:
    """A clause that is compared as a whole: a normal form in which ``columns`` of ``input`` are numbered."""

    form: NormalForm
    columns: tuple[Expression, ...]
    input: int = 0

    def __str__(self) -> str:
        return str(self.form)


@dataclass(frozen=True)
class Opaque:
    """A construct that is compared as a whole: kind (such as MATCH_RECOGNIZE), normal form and inputs.

    An unchanged construct is compatible, and a change of its form is ``unknown``. A backfill cannot compute such a
    construct. ``clauses`` are compared separately, by name. ``keys`` contains the partition keys of each input by
    number. ``error`` is the reason code if the construct could not be bound.
    """

    stateful: ClassVar[bool] = True
    kind: str
    text: NormalForm | Clause | str
    inputs: tuple[Node, ...]
    schema: tuple[Column, ...]
    reason: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)
    clauses: tuple[tuple[str, Clause | str], ...] = ()
    keys: tuple[tuple[int, tuple[Expression, ...]], ...] = ()
    error: str = field(default="", compare=False)


@dataclass(frozen=True)
class Sink(Single):
    """An INSERT into a table, with its column list ``columns`` and its PARTITION clause ``partition``."""

    stateful: ClassVar[bool] = False
    table: Table | None
    columns: tuple[str, ...] = ()
    partition: tuple[tuple[str, str], ...] = ()
    overwrite: bool = False
    hints: tuple[tuple[str, str], ...] = ()

    @property
    def schema(self) -> tuple[Column, ...]:
        return self.input.schema

    @property
    def name(self) -> str:
        """The name of the sink table; "" for a SELECT without INSERT."""
        return self.table.name if self.table else ""

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The sink and every node below it, outermost first."""
        return walk_nodes(self)


Node = (
    Scan
    | Values
    | Project
    | Filter
    | WindowAssign
    | Correlate
    | Aggregate
    | WindowAggregate
    | GroupWindowAggregate
    | Over
    | Sort
    | Join
    | Union
    | Opaque
    | Sink
)


def outermost_windows(node: Node) -> tuple[WindowAssign | GroupWindowAggregate | None, ...]:
    """The uppermost windowing node for a node's rows, one per branch of a union.

    None represents a branch whose rows have no window. Windows that are measured in rows are ignored, because no point
    in time is their boundary.
    """
    if isinstance(node, WindowAssign | GroupWindowAggregate):
        return (node if node.window.measure is Measure.TIME else None,)
    return tuple(found for below in node.inputs for found in outermost_windows(below)) or (None,)


def walk_nodes(root: Node) -> tuple[Node, ...]:
    """The node and all nodes below it, outermost first. A node with several readers occurs once."""
    found: dict[int, Node] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) not in found:
            found[id(node)] = node
            pending.extend(reversed(node.inputs))
    return tuple(found.values())
