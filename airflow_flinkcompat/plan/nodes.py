"""The logical DAG of a program, as frozen nodes that can be compared and executed.

Every node has ``inputs`` and a ``schema`` (columns with Flink types, in order). Expressions in a node refer to the
columns of its input by position (:class:`InputRef`); in a join and a correlate, to the concatenated row.
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
    """The window table-valued functions of Flink; legacy group windows use the first, second and last."""

    TUMBLE = "TUMBLE"
    HOP = "HOP"
    CUMULATE = "CUMULATE"
    SESSION = "SESSION"


class Measure(StrEnum):
    """Unit of a window: milliseconds, or rows of its key in arrival order."""

    TIME = "TIME"
    ROWS = "ROWS"


@quick_init
@dataclass(frozen=True)
class Window:
    """A window definition; all lengths in milliseconds, or in rows if ``measure`` is rows.

    ``size`` is the length (the maximum for CUMULATE), ``slide`` the slide of HOP or the step of CUMULATE, ``gap`` the
    gap of SESSION, ``offset`` the shift of the assignment. Fields that do not apply to a kind are None.
    ``normalised_offset`` is the effective assignment: modulo slide for HOP, modulo size for TUMBLE and CUMULATE. Only
    TUMBLE and HOP of the Table API are measured in rows: they close when they are full.
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
    """The columns a windowing table-valued function adds, and the fields of a legacy group window."""

    START = "window_start"
    END = "window_end"
    TIME = "window_time"
    PROCTIME = "proctime"


@dataclass(frozen=True)
class WatermarkStrategy:
    """``WATERMARK FOR column AS expression``; the expression refers to the table's row."""

    column: str
    expression: Expression


DISTRIBUTION = "DISTRIBUTED"
"""Key of the DISTRIBUTED BY clause among the options of a table."""


def dotted(path: tuple[str, str, str]) -> str:
    """A path as a user would write it, without open leading parts; different paths have different texts."""
    parts = [f"`{part}`" if "." in part or "/" in part else part for part in path]
    return ".".join(parts).lstrip(".")


@quick_init
@dataclass(frozen=True)
class Table:
    """A table as declared: fully qualified name, columns, options, keys and partitioning.

    ``path`` is (catalog, database, name), with "" for parts that the script leaves open. ``physical`` are the stored
    columns, ``metadata`` maps a metadata column to (key, virtual), ``computed`` a computed column to its expression
    over the physical and metadata columns. ``columns`` are all of them in declared order. ``declared`` is False for a
    table that neither the script nor the side's catalog declares: its columns are unknown.
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
        """The columns that an INSERT fills, in declared order: all but computed ones and virtual metadata."""
        apart = {*dict(self.computed), *(name for name, _, virtual in self.metadata if virtual)}
        return tuple(column for column in self.columns if column.name not in apart)

    @cached_property
    def name(self) -> str:
        """The name as a user would write it, without open leading parts.

        ``lake..orders`` is a table in the current database of catalog lake; lake is not a database.
        """
        return dotted(self.path)

    def option(self, key: str, default: str | None = None) -> str | None:
        """The value of a WITH option."""
        return dict(self.options).get(key, default)

    @property
    def watermark_delay(self) -> int | None:
        """Delay of the watermark in milliseconds: 0 for the column itself, n for ``column - INTERVAL n``.

        None without a watermark, or with one of another form.
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
    """Scan of a table: its columns in declared order, computed ones included, with the watermark assigned.

    ``hints`` are the table's hints as (name, text), for instance OPTIONS. Executing a scan means: read the
    physical columns,
    add metadata and computed columns, and treat ``table.watermark`` as the event-time column.
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
    """A literal relation (VALUES, or a SELECT without FROM: one row without columns)."""

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
    """Projection of each column of ``schema`` from the input row; ``hints`` (STATE_TTL) of its SELECT."""

    stateful: ClassVar[bool] = False
    expressions: tuple[Expression, ...]
    schema: tuple[Column, ...]
    hints: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Filter(Single):
    """Filter of the rows for which ``condition`` is true."""

    stateful: ClassVar[bool] = False
    condition: Expression

    @property
    def schema(self) -> tuple[Column, ...]:
        return self.input.schema


@dataclass(frozen=True)
class WindowAssign(Single):
    """A windowing table-valued function: the input's columns, window_start, window_end and window_time.

    ``time`` is the time attribute; ``partition_by`` the keys of SESSION. ``time_attribute`` is its clock, None if
    ``time`` is no time attribute (Flink refuses that at submit). ``data_first`` is False if another argument is named
    before DATA, which open-source Flink refuses; it has no effect on the result.
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
    """A table function applied to every row: the input's columns plus the function's.

    ``outer``: LEFT JOIN … ON TRUE.
    """

    stateful: ClassVar[bool] = False
    function: str
    args: tuple[Expression, ...]
    outer: bool
    schema: tuple[Column, ...]


@dataclass(frozen=True)
class Aggregate(Single):
    """A group aggregation without a window of its own, whose columns are the keys, then the aggregates.

    This includes one over windowed rows unless both window bounds are keys. ``grouping_sets`` lists, for GROUPING SETS,
    CUBE and ROLLUP, the positions of the keys in each set; None for a plain GROUP BY. SELECT DISTINCT is an Aggregate
    without aggregates.
    """

    stateful: ClassVar[bool] = True
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    schema: tuple[Column, ...]
    grouping_sets: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True)
class WindowAggregate(Aggregate):
    """Windowed aggregation over rows of a :class:`WindowAssign`.

    Both window_start and window_end are among the keys of every grouping set. Same columns as :class:`Aggregate`;
    ``window`` repeats the definition found below it.
    """

    window: Window = field(kw_only=True)


@dataclass(frozen=True)
class GroupWindowAggregate(Single):
    """The legacy TUMBLE/HOP/SESSION in GROUP BY, with columns: keys, aggregates, then ``properties``.

    ``window_position`` is the position of the window call among the GROUP BY items. ``mismatched`` are the calls of
    ``_START`` and its kin that name another window than this one, as written.
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
    """The rows in the frame of an OVER call: ``unit`` is RANGE or ROWS.

    ``preceding`` is the extent backwards, in rows or milliseconds, None for all, and ``following`` the extent forwards,
    None for all. ``window``: only rows of the current row's own window (FLIP-11's TumbleRows, SessionRows). ``other``
    is a frame of any other form.
    """

    unit: str = "RANGE"
    preceding: int | None = None
    other: NormalForm | str = ""
    following: int | None = 0
    window: Window | None = None


@dataclass(frozen=True)
class OverCall:
    """One function over a window: partition keys, order (expression, ascending, nulls first) and frame."""

    call: AggregateCall
    partition_by: tuple[Expression, ...]
    order_by: tuple[tuple[Expression, bool, bool | None], ...]
    frame: Frame


@dataclass(frozen=True)
class Over(Single):
    """OVER aggregation and ranking functions: the input's columns plus one per call."""

    stateful: ClassVar[bool] = True
    calls: tuple[OverCall, ...]
    schema: tuple[Column, ...]


@dataclass(frozen=True)
class Sort(Single):
    """ORDER BY with optional LIMIT and OFFSET (a LIMIT alone has no keys)."""

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
    """UNION ALL: rows of all inputs, columns by position, names of the first."""

    stateful: ClassVar[bool] = False
    branches: tuple[Node, ...]
    schema: tuple[Column, ...]
    span: Span | None = field(default=None, compare=False)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.branches


@dataclass(frozen=True)
class Clause:
    """A clause that is kept whole: its normal form, in which ``columns`` of ``input`` are numbered."""

    form: NormalForm
    columns: tuple[Expression, ...]
    input: int = 0

    def __str__(self) -> str:
        return str(self.form)


@dataclass(frozen=True)
class Opaque:
    """A construct that the plan keeps whole: kind (MATCH_RECOGNIZE, INTERSECT), normal form, inputs.

    An unchanged one is compatible; a change of its form is ``unknown``; it cannot be backfilled. ``clauses``
    are those that are compared separately, by name, and ``keys`` the partition keys of each input by its number.
    ``error`` is the code of the reason if it could not be bound.
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
    """Output of rows to a table; ``columns`` is the INSERT's list, ``partition`` its PARTITION clause."""

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
        """The sink table's name; a bare SELECT writes into a nameless sink."""
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
    """The windowing nodes of a node's rows, one per branch of a union: the uppermost of each.

    None represents a branch whose rows have no window; a row-count window does not count, because no moment divides it.
    """
    if isinstance(node, WindowAssign | GroupWindowAggregate):
        return (node if node.window.measure is Measure.TIME else None,)
    return tuple(found for below in node.inputs for found in outermost_windows(below)) or (None,)


def walk_nodes(root: Node) -> tuple[Node, ...]:
    """The node and everything below it, outermost first; a node with several readers occurs once."""
    found: dict[int, Node] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) not in found:
            found[id(node)] = node
            pending.extend(reversed(node.inputs))
    return tuple(found.values())
