"""The stateful operators of a plan, with every expression resolved to its origins.

:func:`~airflow_flinkcompat.plan.lineage.resolve_operators` creates the operators. The operators are complete: every
part of the plan is in exactly one field of one operator, segment or output. A comparison of all fields therefore
finds every difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

from airflow_flinkcompat.lazy import cached_property, quick_init
from airflow_flinkcompat.model import NormalForm, Span
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall
from airflow_flinkcompat.plan.nodes import Frame, Window, WindowField, WindowKind
from airflow_flinkcompat.plan.origins import (
    ColumnOutput,
    KeyOutput,
    OperatorColumn,
    PassedOutput,
    RankNumber,
    WindowColumn,
    leaves,
    uses_window_field,
    window_field,
)
from airflow_flinkcompat.plan.types import INTEGERS, UNKNOWN, DataType, TimeAttribute

BOUNDS = frozenset({WindowField.START, WindowField.END})
"""The start and the end of a window."""


class TooLarge(ValueError):
    """Raised if an expression exceeds the size limit when its views are expanded."""


@dataclass(frozen=True)
class AssignedWindow:
    """A window of a segment: definition, time column, clock and notation (``tvf`` or ``group window``).

    ``mismatched`` contains calls of a legacy window's fields that name a different window. ``filters_below`` contains
    conjuncts on the rows that the window assigns; they decide where a session ends.
    """

    window: Window
    time: Expression
    time_attribute: TimeAttribute | None
    notation: str
    partition_by: tuple[Expression, ...] = ()
    mismatched: tuple[NormalForm, ...] = ()
    filters_below: frozenset[Expression] = field(default=frozenset(), compare=False)
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Source:
    """A table that is read, with its table hints."""

    table: str
    hints: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Rows:
    """Several resolved literal rows (VALUES)."""

    rows: tuple[tuple[Expression, ...], ...]


@quick_init
@dataclass(frozen=True)
class StatelessSegment:
    """The stateless segment between an operator or sink and its input.

    ``filters`` contains conjuncts without window fields, and ``window_filters`` conjuncts on window fields.
    ``functions`` contains the applied table functions as (call, outer). ``windows`` contains the windowing functions
    from upstream to downstream.
    """

    origin: Source | Operator | Rows | None
    filters: frozenset[Expression] = frozenset()
    window_filters: frozenset[Expression] = frozenset()
    functions: tuple[tuple[FunctionCall, bool], ...] = ()
    windows: tuple[AssignedWindow, ...] = ()
    hints: tuple[tuple[str, str], ...] = ()

    def prune(self, read: Iterable[Expression]) -> StatelessSegment:
        """Remove metrics and columns that nothing reads from all operators upstream of this segment."""
        if not isinstance(self.origin, Operator):
            return self
        above = (*read, *self.filters, *self.window_filters, *(call for call, _ in self.functions))
        windows = (part for window in self.windows for part in (window.time, *window.partition_by))
        every = (leaf for part in (*above, *windows) for leaf in leaves(part))
        origin = self.origin.prune({leaf.output for leaf in every if isinstance(leaf, OperatorColumn)})
        return self if origin is self.origin else replace(self, origin=origin)

    @property
    def filters_above_session(self) -> frozenset[Expression]:
        """Conjuncts downstream of a session window; for other windows, their place has no effect."""
        sessions = [window for window in self.windows if window.window.kind is WindowKind.SESSION]
        return self.filters - sessions[-1].filters_below if sessions else frozenset()


@dataclass(frozen=True)
class Operator(ABC):
    """A stateful operator. Each kind of operator is a subclass."""

    span: Span | None = field(default=None, compare=False, kw_only=True)

    if TYPE_CHECKING:  # some subclasses have these as fields, and a base attribute would become their default

        @property
        def kind(self) -> str:
            """The name of the operator in reports; an enum for a class with several names."""

        @property
        def segments(self) -> tuple[StatelessSegment, ...]:
            """The stateless segments upstream of the operator, one for each input."""

    @property
    @abstractmethod
    def appends(self) -> bool:
        """True if the output rows are never retracted, assuming that the tables only append."""

    @property
    @abstractmethod
    def expressions(self) -> tuple[Expression, ...]:
        """The resolved expressions of the operator, without those of its input segments."""

    @abstractmethod
    def prune(self, wanted: Set[object]) -> Self:
        """The operator without metrics and columns that nothing reads."""


def appends(segment: StatelessSegment) -> bool:
    """True if the rows of a segment are never retracted, assuming that its tables only append."""
    return not isinstance(segment.origin, Operator) or segment.origin.appends


@quick_init
@dataclass(frozen=True)
class Output:
    """The input of a sink: its resolved columns over ``segment``, which contains HAVING and later filters."""

    segment: StatelessSegment
    columns: tuple[Expression, ...]
    sink: str
    insert_columns: tuple[str, ...] = ()
    partition: tuple[tuple[str, str], ...] = ()
    overwrite: bool = False
    hints: tuple[tuple[str, str], ...] = ()
    types: tuple[DataType, ...] = field(default=(), compare=False)
    span: Span | None = field(default=None, compare=False)

    @cached_property
    def _operators(self) -> tuple[Operator, ...]:
        def below(segment: StatelessSegment) -> tuple[Operator, ...]:
            if not isinstance(segment.origin, Operator):
                return ()
            return (segment.origin, *(found for inner in segment.origin.segments for found in below(inner)))

        return below(self.segment)

    @cached_property
    def _sources(self) -> tuple[Source, ...]:
        found: dict[Source, None] = {}

        def below(segment: StatelessSegment) -> None:
            if isinstance(segment.origin, Source):
                found[segment.origin] = None
            elif isinstance(segment.origin, Operator):
                for inner in segment.origin.segments:
                    below(inner)

        below(self.segment)
        return tuple(found)


def operators(output: Output) -> tuple[Operator, ...]:
    """All stateful operators upstream of a sink, nearest to the sink first."""
    return output._operators


def sources(output: Output) -> tuple[Source, ...]:
    """The tables that a pipeline reads, in order of first use."""
    return output._sources


def segments(output: Output) -> tuple[StatelessSegment, ...]:
    """All stateless segments upstream of a sink, nearest to the sink first."""
    return (output.segment, *[segment for operator in operators(output) for segment in operator.segments])


class AggregateKind(StrEnum):
    """Kinds of aggregations that Flink plans."""

    GROUP = "group aggregation"
    GROUP_WINDOW = "group window aggregation"
    WINDOW = "window aggregation"
    OVER_WINDOWED_ROWS = "group aggregation over windowed rows"


@quick_init
@dataclass(frozen=True)
class AggregateOperator(Operator):
    """A group aggregation, with or without a window.

    ``keys`` contains the grouping keys in order, without bare window fields; ``window_keys`` contains these fields.
    ``key_order`` is the full order: each key by its position in ``keys``, or its window field. ``aggregates``
    contains the distinct calls in order of first use. ``window`` is the window of the aggregation; None for a plain
    group aggregation. ``windowed`` is True if Flink plans a windowed aggregation (both bounds in every grouping set,
    or legacy syntax). ``repeated_keys`` is the number of keys that repeat a column of another key, which changes the
    plan (measured). ``repeated_calls`` is the number of calls that equal another call only after columns are
    resolved; Flink keeps both. ``pruned_inputs`` contains all input columns in order, if only unread metrics need
    some of them. Unread metrics change the plan (EXPLAIN). ``input_columns`` contains all columns of the input: SQL
    drops unread columns, the Table API does not.
    """

    segment: StatelessSegment
    keys: tuple[Expression, ...]
    window_keys: frozenset[WindowField]
    key_order: tuple[int | WindowField, ...]
    aggregates: tuple[AggregateCall, ...]
    grouping_sets: frozenset[tuple[frozenset[Expression], int]] | None
    window: AssignedWindow | None
    windowed: bool
    repeated_keys: int = 0
    repeated_calls: int = 0
    pruned_inputs: tuple[Expression, ...] = ()
    input_columns: tuple[Expression, ...] = field(default=(), compare=False)
    key_types: tuple[DataType, ...] = field(default=(), compare=False)
    argument_types: tuple[tuple[DataType, ...], ...] = field(default=(), compare=False)

    @property
    def kind(self) -> AggregateKind:
        if self.window is None:
            return AggregateKind.GROUP
        if self.window.notation == "group window":
            return AggregateKind.GROUP_WINDOW
        return AggregateKind.WINDOW if self.windowed else AggregateKind.OVER_WINDOWED_ROWS

    @property
    def segments(self) -> tuple[StatelessSegment, ...]:
        return (self.segment,)

    @cached_property
    def window_computations(self) -> tuple[Expression, ...]:
        """Grouping keys, and arguments and filters of aggregates, that are computed from window fields."""
        read = [part for call in self.aggregates for part in (*call.args, call.filter) if part is not None]
        computed = [part for part in read if uses_window_field(part) and window_field(part) is None]
        return (*[key for key in self.keys if uses_window_field(key)], *computed)

    @cached_property
    def window_aggregates(self) -> tuple[AggregateCall, ...]:
        """Aggregate calls whose arguments contain window fields."""
        return (*[call for call in self.aggregates if any(map(uses_window_field, call.args))],)

    @property
    def appends(self) -> bool:
        return self.windowed

    @property
    def expressions(self) -> tuple[Expression, ...]:
        read = [part for call in self.aggregates for part in (*call.args, call.filter) if part is not None]
        return (*self.keys, *read, *(() if self.window is None else (self.window.time,)))

    def prune(self, wanted: Set[object]) -> Self:
        places = [i for i, call in enumerate(self.aggregates) if call in wanted]
        kept = tuple(self.aggregates[i] for i in places)
        asked, planned = self._input_columns(kept), self._input_columns(self.aggregates)
        pruned = planned if planned != asked else ()
        segment = self.segment.prune(asked)
        if len(kept) == len(self.aggregates) and segment is self.segment and self.pruned_inputs == pruned:
            return self
        return replace(
            self,
            aggregates=kept,
            pruned_inputs=pruned,
            argument_types=tuple(self.argument_types[i] for i in places),
            segment=segment,
        )

    def _input_columns(self, calls: Iterable[AggregateCall]) -> tuple[Expression, ...]:
        """The input columns of an aggregation with these calls, in order of first use.

        The planner drops an unread metric only after it has planned the input of the aggregation. The metric's
        expression, filter, extra column or column order therefore remains (EXPLAIN).
        """
        arguments = [part for call in calls for part in (*call.args, call.filter) if part is not None]
        return tuple(dict.fromkeys((*self.keys, *arguments)))


class JoinForm(StrEnum):
    """Kinds of joins that Flink plans; ``JOIN`` if the query does not determine the kind."""

    REGULAR = "regular join"
    INTERVAL = "interval join"
    TEMPORAL = "temporal join"
    LOOKUP = "lookup join"
    WINDOW = "window join"
    JOIN = "join"


@dataclass(frozen=True)
class JoinOperator(Operator):
    """A join of two inputs.

    ``join`` is INNER, LEFT, RIGHT or FULL. ``keys`` contains the equated expressions of both sides, in order.
    ``conditions`` contains the other conditions on pairs of rows; each column is an ``OperatorColumn`` of its input.
    Conditions on one input are in the segment of that input if the planner moves them there. ``bounds`` is the
    allowed distance of the left time from the right time, in milliseconds and inclusive. ``times`` contains these two
    time columns, or the time column of a temporal join. ``rows`` contains the columns that are read from each input,
    in input order. ``row_types`` contains their types, and ``input_columns`` all columns of each input.
    """

    form: JoinForm
    join: str
    segments: tuple[StatelessSegment, ...]
    keys: tuple[tuple[Expression, Expression], ...]
    conditions: frozenset[Expression]
    bounds: tuple[int, int] | None
    times: tuple[Expression, ...]
    clock: TimeAttribute | None
    rows: tuple[tuple[Expression, ...], tuple[Expression, ...]]
    row_types: tuple[tuple[DataType, ...], tuple[DataType, ...]] = field(default=((), ()), compare=False)
    input_columns: tuple[tuple[Expression, ...], ...] = field(default=(), compare=False)

    @property
    def kind(self) -> JoinForm:
        return self.form

    @property
    def appends(self) -> bool:
        inner = self.join == "INNER" or self.form not in (JoinForm.REGULAR, JoinForm.JOIN)
        return inner and all(map(appends, self.segments))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(column for row in self.rows for column in row)

    def prune(self, wanted: Set[object]) -> Self:
        asked = (*self.conditions, *self.times, *(side for pair in self.keys for side in pair))
        used = {(output.input, output.column) for output in wanted if isinstance(output, PassedOutput)}
        used |= {
            (leaf.operator, leaf.output) for part in asked for leaf in leaves(part) if isinstance(leaf, OperatorColumn)
        }

        def is_kept(side: int, column: Expression) -> bool:
            bound = isinstance(column, WindowColumn) and column.field in BOUNDS
            return (side, column) in used or (bound and self.form is JoinForm.WINDOW)

        places = [[i for i, column in enumerate(row) if is_kept(side, column)] for side, row in enumerate(self.rows)]
        rows = [tuple(row[i] for i in found) for row, found in zip(self.rows, places, strict=True)]
        types = [tuple(row[i] for i in found) for row, found in zip(self.row_types, places, strict=True)]
        segments = tuple(segment.prune(row) for segment, row in zip(self.segments, rows, strict=True))
        return replace(self, rows=(rows[0], rows[1]), row_types=(types[0], types[1]), segments=segments)


class OtherKind(StrEnum):
    """Constructs with their own rules. Any other construct is compared as a whole."""

    UNION_ALL = "UNION ALL"
    LIMIT = "LIMIT"
    SORT = "ORDER BY"
    SORT_LIMIT = "ORDER BY with LIMIT"
    TEMPORAL_SORT = "temporal sort"
    MATCH_RECOGNIZE = "MATCH_RECOGNIZE"
    PROCESS_TABLE_FUNCTION = "process table function"
    QUERY = "unresolved query"
    """A query that could not be analysed."""


_PASSING = frozenset({OtherKind.UNION_ALL, OtherKind.LIMIT, OtherKind.TEMPORAL_SORT})
"""Constructs that pass rows on; they only emit a retraction if they receive one."""


@dataclass(frozen=True)
class OtherOperator(Operator):
    """A construct of any other kind; ``attributes`` contains its resolved parts by name.

    ``rows`` contains the columns that are read from the inputs, and ``row_types`` their types. ``input_columns``
    contains all columns of the inputs, even columns of a union that nothing reads.
    """

    kind: str
    segments: tuple[StatelessSegment, ...]
    attributes: tuple[tuple[str, Any], ...]
    rows: tuple[tuple[Expression, ...], ...] = ()
    row_types: tuple[tuple[DataType, ...], ...] = field(default=(), compare=False)
    input_columns: tuple[tuple[Expression, ...], ...] = field(default=(), compare=False)

    @property
    def appends(self) -> bool:
        if self.kind == OtherKind.MATCH_RECOGNIZE:
            return True
        return self.kind in _PASSING and all(map(appends, self.segments))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(column for row in self.rows for column in row)

    def prune(self, wanted: Set[object]) -> Self:
        """Remove unread columns of a union. Any construct other than a union reads all its columns."""
        rows, types = self.rows, self.row_types
        if self.kind == OtherKind.UNION_ALL:
            used = sorted({output.index for output in wanted if isinstance(output, ColumnOutput)})
            rows = tuple(tuple(row[i] for i in used) for row in rows)
            types = tuple(tuple(row[i] for i in used) for row in types)
        segments = tuple(segment.prune(row) for segment, row in zip(self.segments, rows, strict=True))
        return replace(self, segments=segments, rows=rows, row_types=types)


@dataclass(frozen=True)
class OverOperator(Operator):
    """An OVER aggregation: every row passes, with the results of calls over the rows in its frame.

    ``aggregates`` contains the distinct calls in order of first use. ``order`` is the ORDER BY as (expression,
    ascending, nulls first). ``row`` contains the columns that are read, and ``all_columns`` all input columns. The
    planner decides which of these columns are stored (measured).
    """

    segment: StatelessSegment
    aggregates: tuple[AggregateCall, ...]
    partition_by: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool | None], ...]
    frame: Frame
    clock: TimeAttribute | None
    row: tuple[Expression, ...]
    all_columns: tuple[Expression, ...]
    argument_types: tuple[tuple[DataType, ...], ...] = field(default=(), compare=False)
    partition_types: tuple[DataType, ...] = field(default=(), compare=False)

    KIND: ClassVar[str] = "OVER aggregation"

    @property
    def kind(self) -> str:
        return self.KIND

    @property
    def segments(self) -> tuple[StatelessSegment, ...]:
        return (self.segment,)

    @property
    def appends(self) -> bool:
        # Without an order by time, a row that sorts between earlier rows changes all results after it.
        return self.clock is not None and appends(self.segment)

    @property
    def planned_calls(self) -> Sequence[tuple[AggregateCall, tuple[DataType, ...]]]:
        """The planned calls with their argument types; SUM and AVG are planned as a count and a sum (EXPLAIN)."""
        found: dict[AggregateCall, tuple[DataType, ...]] = {}
        for call, types in zip(self.aggregates, self.argument_types, strict=True):
            split = call.function in ("SUM", "AVG") and len(types) == 1 and types[0].name in (*INTEGERS, "DOUBLE")
            for function in ("COUNT", "$SUM0") if split else (call.function,):
                found[replace(call, function=function)] = types
        return list(found.items())

    @property
    def as_aggregation(self) -> AggregateOperator:
        """The GROUP BY over the rows in the frame that is equivalent to this OVER."""
        calls = [(replace(call, function=call.function.removeprefix("$")), types) for call, types in self.planned_calls]
        return AggregateOperator(
            segment=self.segment,
            keys=self.partition_by,
            window_keys=frozenset(),
            key_order=tuple(range(len(self.partition_by))),
            aggregates=tuple(call for call, _ in calls),
            grouping_sets=None,
            window=None,
            windowed=False,
            key_types=self.partition_types,
            argument_types=tuple(types for _, types in calls),
        )

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return self.all_columns

    def prune(self, wanted: Set[object]) -> Self:
        places = [i for i, call in enumerate(self.aggregates) if call in wanted]
        kept = tuple(self.aggregates[i] for i in places)
        arguments = (part for call in kept for part in (*call.args, call.filter) if part is not None)
        asked = (*self.partition_by, *(key for key, _, _ in self.order), *arguments)
        used = {output.column for output in wanted if isinstance(output, PassedOutput)} | set(asked)
        return replace(
            self,
            aggregates=kept,
            argument_types=tuple(self.argument_types[i] for i in places),
            row=tuple(column for column in self.all_columns if column in used),
            segment=self.segment.prune(self.all_columns),
        )


class RankKind(StrEnum):
    """Kinds of rankings that Flink plans."""

    TOP_N = "Top-N"
    DEDUPLICATION = "deduplication"
    WINDOW_TOP_N = "window Top-N"
    WINDOW_DEDUPLICATION = "window deduplication"


@dataclass(frozen=True)
class RankOperator(Operator):
    """Top-N or deduplication: ROW_NUMBER with a directly following filter for a constant range of ranks.

    ``partition`` contains the distinct PARTITION BY keys in written order. ``order`` is the ORDER BY as (expression,
    ascending, nulls first), and ``order_clock`` the time attribute if it is the only sort key. Ranks from ``first``
    to ``last`` are kept. ``row`` is the stored row in the planner's order: columns that are read downstream,
    partition and order keys, and keys of an upstream aggregation. ``number_read`` is True if the rank is read
    downstream (the rank is a constant if the range has one rank). ``window`` is the window of the input rows if both
    its bounds are partition keys. ``selected`` contains the other columns of the SELECT list, if an upstream
    aggregation has metrics that the stored row lacks. In this case, the SELECT list decides if the planner drops
    these metrics (EXPLAIN). ``constant_key`` is True if a partition or order key was a constant and ``window`` is
    None. The planner drops a constant key, perhaps together with a projection of the source (EXPLAIN). ``conditions``
    contains the conditions for the range of ranks.
    """

    segment: StatelessSegment
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool | None], ...]
    first: int
    last: int
    row: tuple[Expression, ...]
    number_read: bool
    selected: tuple[Expression, ...] = ()
    constant_key: bool = False
    window: AssignedWindow | None = field(default=None, compare=False)
    order_clock: TimeAttribute | None = None
    partition_types: tuple[DataType, ...] = field(default=(), compare=False)
    order_types: tuple[DataType, ...] = field(default=(), compare=False)
    row_types: tuple[DataType, ...] = field(default=(), compare=False)
    conditions: tuple[Expression, ...] = field(default=(), compare=False)

    @property
    def kind(self) -> RankKind:
        """Deduplication, if one row by time is kept and the input is never retracted; otherwise Top-N."""
        once = self.first == self.last == 1 and self.order_clock is not None and appends(self.segment)
        if self.window is not None:
            return RankKind.WINDOW_DEDUPLICATION if once else RankKind.WINDOW_TOP_N
        return RankKind.DEDUPLICATION if once else RankKind.TOP_N

    @property
    def segments(self) -> tuple[StatelessSegment, ...]:
        return (self.segment,)

    @property
    def assigned(self) -> AssignedWindow | None:
        """The window that is assigned directly to the ranked rows, without an aggregation in between."""
        return self.segment.windows[-1] if self.segment.windows else None

    @property
    def appends(self) -> bool:
        return self.window is not None or (self.kind is RankKind.DEDUPLICATION and self.order[0][1])

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*self.row, *self.partition, *(key for key, _, _ in self.order))

    def prune(self, wanted: Set[object]) -> Self:
        """Keep only the columns that the planner stores in the row.

        The row always keeps partition and order keys, and the keys of an upstream aggregation. The planner keeps the
        metrics of this aggregation even if nothing reads them.
        """
        below = self.segment.origin
        aggregation = below if isinstance(below, AggregateOperator) else None
        asked = (*self.partition, *(key for key, _, _ in self.order))
        used = {output.column for output in wanted if isinstance(output, PassedOutput)} | set(asked)
        if aggregation is not None and aggregation.grouping_sets is None:
            used |= {
                column
                for column in self.row
                if isinstance(column, OperatorColumn) and isinstance(column.output, KeyOutput)
            }
        places = [i for i, column in enumerate(self.row) if column in used]
        row = tuple(self.row[i] for i in places)
        metrics = () if aggregation is None else aggregation.aggregates
        read = (*row, *asked, *self.segment.filters, *self.segment.window_filters)
        stored = {leaf.output for part in read for leaf in leaves(part) if isinstance(leaf, OperatorColumn)}
        return replace(
            self,
            row=row,
            row_types=tuple(self.row_types[i] for i in places),
            number_read=RankNumber() in wanted and self.first != self.last,
            selected=() if stored >= set(metrics) else self.selected,
            segment=self.segment.prune((*self.row, *asked, *(OperatorColumn(0, m, type=UNKNOWN) for m in metrics))),
        )
