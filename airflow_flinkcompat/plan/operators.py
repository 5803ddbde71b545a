"""The stateful operators of a plan: what each keeps, with every expression resolved to its origins.

:func:`airflow_flinkcompat.plan.unfolding.view` makes them. Together they are complete: whatever the plan holds lands in
exactly one field of one operator, region or output, so comparing fields finds every difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

from airflow_flinkcompat.plan.expressions import AggregateCall, Call, Expression
from airflow_flinkcompat.plan.nodes import Frame, Window, WindowField, WindowKind
from airflow_flinkcompat.plan.origins import uses_window_field, window_field
from airflow_flinkcompat.plan.types import DataType, TimeAttribute
from airflow_flinkcompat.sql import Span
from airflow_flinkcompat.sql.normal_form import NormalForm


class TooLarge(ValueError):
    """An expression grew beyond the size limit of the view when unfolded through its views."""


@dataclass(frozen=True)
class Windowing:
    """A window as a region assigns it: definition, time column, clock and notation (``tvf`` or ``group window``).

    ``mismatched`` are the calls of a legacy window's fields that name another window; ``filters_below`` the conjuncts
    on the rows it assigns, which decide where a session ends.
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
    """A table that is read; ``hints`` are its table hints."""

    table: str
    hints: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Rows:
    """Several literal rows (VALUES), resolved."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class Region:
    """The stateless stretch between an operator (or sink) and what it reads.

    ``filters`` are conjuncts on anything but window fields, ``window_filters`` those on window fields,
    ``functions`` the table
    functions applied (call, outer), ``windows`` the windowing functions passed, nearest last.
    """

    origin: Source | Operator | Rows | None
    filters: frozenset[Expression] = frozenset()
    window_filters: frozenset[Expression] = frozenset()
    functions: tuple[tuple[Call, bool], ...] = ()
    windows: tuple[Windowing, ...] = ()
    hints: tuple[tuple[str, str], ...] = ()

    @property
    def filters_above_session(self) -> frozenset[Expression]:
        """Conjuncts on rows that a session window has assigned already; on other windows their place says nothing."""
        sessions = [window for window in self.windows if window.window.kind is WindowKind.SESSION]
        return self.filters - sessions[-1].filters_below if sessions else frozenset()


@dataclass(frozen=True)
class AggregateOperator:
    """A group aggregation, windowed or not.

    ``keys`` are the grouping keys but for bare window fields, in order; ``window_keys`` the bare window fields
    among them;
    ``key_order`` the full order, each key by its position in ``keys`` or its window field; ``aggregates`` the distinct
    calls in order of first use; ``window`` the window the aggregation runs on, None for a plain group aggregation.
    ``windowed`` is True where Flink plans a windowed aggregation (both bounds in every grouping set, or legacy syntax).
    ``repeated_keys`` counts keys that stand for a column another key stands for already: another plan (measured).
    ``repeated_calls`` counts calls over a computed column that say what another call says without it: both are kept.
    ``left_out`` is all that goes in, in order, where metrics nobody reads ask for more than the others do: another plan
    (EXPLAIN). ``arriving`` are all the columns below: SQL leaves out what nobody reads, the Table API does not.
    """

    region: Region
    keys: tuple[Expression, ...]
    window_keys: frozenset[WindowField]
    key_order: tuple[int | WindowField, ...]
    aggregates: tuple[AggregateCall, ...]
    grouping_sets: frozenset[tuple[frozenset[Expression], int]] | None
    window: Windowing | None
    windowed: bool
    repeated_keys: int = 0
    repeated_calls: int = 0
    left_out: tuple[Expression, ...] = ()
    arriving: tuple[Expression, ...] = field(default=(), compare=False)
    key_types: tuple[DataType, ...] = field(default=(), compare=False)
    argument_types: tuple[tuple[DataType, ...], ...] = field(default=(), compare=False)
    key_spans: tuple[Span | None, ...] = field(default=(), compare=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def kind(self) -> str:
        if self.window is None:
            return "group aggregation"
        if self.window.notation == "group window":
            return "group window aggregation"
        return "window aggregation" if self.windowed else "group aggregation over windowed rows"

    @property
    def regions(self) -> tuple[Region, ...]:
        return (self.region,)

    @cached_property
    def window_computations(self) -> tuple[Expression, ...]:
        """Keys computed from window fields, and computations on them inside the aggregates' arguments and filters."""
        read = (part for call in self.aggregates for part in (*call.args, call.filter) if part is not None)
        computed = tuple(part for part in read if uses_window_field(part) and window_field(part) is None)
        return tuple(key for key in self.keys if uses_window_field(key)) + computed

    @cached_property
    def window_aggregates(self) -> tuple[AggregateCall, ...]:
        """Aggregates over window fields."""
        return tuple(call for call in self.aggregates if any(uses_window_field(arg) for arg in call.args))


@dataclass(frozen=True)
class OverOperator:
    """An OVER aggregation: every row goes on, with what its calls make of the rows before it.

    ``aggregates`` are the distinct calls in order of first use, ``order`` the ORDER BY as (expression, ascending, nulls
    first). ``row`` holds the columns somebody reads, ``input_row`` all there are below: which of them are stored
    depends on the planner (measured).
    """

    region: Region
    aggregates: tuple[AggregateCall, ...]
    partition_by: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool | None], ...]
    frame: Frame
    clock: TimeAttribute | None
    row: tuple[Expression, ...]
    input_row: tuple[Expression, ...]
    argument_types: tuple[tuple[DataType, ...], ...] = field(default=(), compare=False)
    span: Span | None = field(default=None, compare=False)

    kind: ClassVar[str] = "OVER aggregation"

    @property
    def regions(self) -> tuple[Region, ...]:
        return (self.region,)


class JoinForm(StrEnum):
    """How a join is planned; ``JOIN`` where the query does not tell."""

    REGULAR = "regular join"
    INTERVAL = "interval join"
    TEMPORAL = "temporal join"
    LOOKUP = "lookup join"
    WINDOW = "window join"
    JOIN = "join"


@dataclass(frozen=True)
class JoinOperator:
    """A join of two inputs.

    ``join`` is INNER, LEFT, RIGHT or FULL; ``keys`` the equated expressions of both sides in order; ``conditions`` what
    else it asks of a pair of rows, each column an ``OperatorColumn`` of its input. Conditions on one input stand in
    that input's region where the planner moves them there. ``bounds`` is how far, in milliseconds and inclusive, the
    left time may lie from the right one; ``times`` are these two time columns, or the one a temporal join looks up by.
    ``rows`` are the columns that are read of each input, in its order, ``row_types`` their types, ``arriving`` all the
    columns of each input.
    """

    form: JoinForm
    join: str
    regions: tuple[Region, ...]
    keys: tuple[tuple[Expression, Expression], ...]
    conditions: frozenset[Expression]
    bounds: tuple[int, int] | None
    times: tuple[Expression, ...]
    clock: TimeAttribute | None
    rows: tuple[tuple[Expression, ...], tuple[Expression, ...]]
    row_types: tuple[tuple[DataType, ...], tuple[DataType, ...]] = field(default=((), ()), compare=False)
    arriving: tuple[tuple[Expression, ...], ...] = field(default=(), compare=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def kind(self) -> str:
        return self.form.value


@dataclass(frozen=True)
class RankOperator:
    """ROW_NUMBER with a constant range of ranks kept right above it: Top-N and deduplication.

    ``partition`` are the distinct PARTITION BY keys in written order, ``order`` the ORDER BY as (expression, ascending,
    nulls first), ``order_clock`` the time attribute it orders by where it orders by nothing else. Ranks ``first`` to
    ``last`` are kept. ``row`` is the stored row in the planner's order (columns read above, partition and order keys,
    keys of an aggregation below), ``number_read`` whether the number goes on into what is above (a range of one rank
    makes it a constant). ``window`` is the window whose both bounds are among the partition keys, assigned below.
    ``selected`` are the columns of the SELECT list beside the number, where the aggregation below has metrics that the
    row does not hold: on that list depends whether the planner leaves such metrics out (EXPLAIN). ``constant_key``: a
    constant stood among the keys of either kind, outside of windows; the planner drops it, and may drop a projection of
    the source with it (EXPLAIN).
    """

    region: Region
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool | None], ...]
    first: int
    last: int
    row: tuple[Expression, ...]
    number_read: bool
    selected: tuple[Expression, ...] = ()
    constant_key: bool = False
    window: Windowing | None = field(default=None, compare=False)
    order_clock: TimeAttribute | None = None
    partition_types: tuple[DataType, ...] = field(default=(), compare=False)
    order_types: tuple[DataType, ...] = field(default=(), compare=False)
    row_types: tuple[DataType, ...] = field(default=(), compare=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def kind(self) -> str:
        """Deduplication keeps one row by time of rows that are never taken back; anything else is a Top-N."""
        once = self.first == self.last == 1 and self.order_clock is not None and appends(self.region)
        name = "deduplication" if once else "Top-N"
        return f"window {name}" if self.window is not None else name

    @property
    def regions(self) -> tuple[Region, ...]:
        return (self.region,)

    @property
    def assigned(self) -> Windowing | None:
        """The window assigned to the ranked rows themselves, where no aggregation stands in between."""
        return self.region.windows[-1] if self.region.windows else None


def appends(region: Region) -> bool:
    """Whether rows that leave a region are never taken back, if its tables only append."""
    origin = region.origin
    if isinstance(origin, AggregateOperator):
        return origin.windowed
    if isinstance(origin, RankOperator):
        return origin.window is not None or (origin.kind == "deduplication" and origin.order[0][1])
    if isinstance(origin, JoinOperator):
        inner = origin.join == "INNER" or origin.form not in (JoinForm.REGULAR, JoinForm.JOIN)
        return inner and all(appends(one) for one in origin.regions)
    return not isinstance(origin, Operator) or (isinstance(origin, OverOperator) and appends(origin.region))


@dataclass(frozen=True)
class OtherOperator:
    """A construct of any other kind: ``detail`` holds all it says, resolved, as named parts.

    ``rows`` are the columns of its inputs, ``row_types`` their types, ``arriving`` all the columns of its inputs, also
    those of a union that nobody reads.
    """

    kind: str
    regions: tuple[Region, ...]
    detail: tuple[tuple[str, Any], ...]
    rows: tuple[tuple[Expression, ...], ...] = ()
    row_types: tuple[tuple[DataType, ...], ...] = field(default=(), compare=False)
    arriving: tuple[tuple[Expression, ...], ...] = field(default=(), compare=False)
    span: Span | None = field(default=None, compare=False)


Operator = AggregateOperator | OverOperator | JoinOperator | RankOperator | OtherOperator


@dataclass(frozen=True)
class Output:
    """What reaches a sink: its columns, resolved, over ``region`` (HAVING and later filters are the region's)."""

    region: Region
    columns: tuple[Expression, ...]
    sink: str
    insert_columns: tuple[str, ...] = ()
    partition: tuple[tuple[str, str], ...] = ()
    overwrite: bool = False
    hints: tuple[tuple[str, str], ...] = ()
    types: tuple[DataType, ...] = field(default=(), compare=False)
    span: Span | None = field(default=None, compare=False)


def operators(output: Output) -> tuple[Operator, ...]:
    """All stateful operators below a sink, nearest the sink first."""

    def below(region: Region) -> tuple[Operator, ...]:
        if not isinstance(region.origin, Operator):
            return ()
        return (region.origin, *(found for inner in region.origin.regions for found in below(inner)))

    return below(output.region)


def sources(output: Output) -> tuple[Source, ...]:
    """The tables a pipeline reads, in order of first use."""
    found: dict[Source, None] = {}

    def below(region: Region) -> None:
        if isinstance(region.origin, Source):
            found[region.origin] = None
        elif isinstance(region.origin, Operator):
            for inner in region.origin.regions:
                below(inner)

    below(output.region)
    return tuple(found)


def regions(output: Output) -> tuple[Region, ...]:
    """All stateless stretches below a sink, nearest the sink first."""
    return (output.region, *(region for operator in operators(output) for region in operator.regions))
