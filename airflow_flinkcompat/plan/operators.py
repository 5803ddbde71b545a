"""The stateful operators of a plan: what each keeps, with every expression resolved to its origins.

:func:`airflow_flinkcompat.plan.unfolding.view` makes them. Together they are complete: whatever the plan holds lands in
exactly one field of one operator, region or output, so comparing fields finds every difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from airflow_flinkcompat.plan.expressions import AggregateCall, Call, Expression
from airflow_flinkcompat.plan.nodes import Window, WindowField, WindowKind
from airflow_flinkcompat.plan.origins import uses_window_field, window_field
from airflow_flinkcompat.plan.types import DataType, TimeAttribute
from airflow_flinkcompat.sql import Span


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
    mismatched: tuple[str, ...] = ()
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

    @property
    def window_computations(self) -> tuple[Expression, ...]:
        """Keys computed from window fields, and computations on window fields inside the aggregates' arguments."""
        in_arguments = (
            arg for call in self.aggregates for arg in call.args if uses_window_field(arg) and window_field(arg) is None
        )
        return tuple(key for key in self.keys if uses_window_field(key)) + tuple(in_arguments)

    @property
    def window_aggregates(self) -> tuple[AggregateCall, ...]:
        """Aggregates over window fields."""
        return tuple(call for call in self.aggregates if any(uses_window_field(arg) for arg in call.args))


@dataclass(frozen=True)
class OtherOperator:
    """A stateful construct without rules of its own: ``detail`` holds all it says, resolved, as named parts."""

    kind: str
    regions: tuple[Region, ...]
    detail: tuple[tuple[str, Any], ...]
    span: Span | None = field(default=None, compare=False)


Operator = AggregateOperator | OtherOperator


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
        if not isinstance(region.origin, AggregateOperator | OtherOperator):
            return ()
        return (region.origin, *(found for inner in region.origin.regions for found in below(inner)))

    return below(output.region)


def sources(output: Output) -> tuple[Source, ...]:
    """The tables a pipeline reads, in order of first use."""
    found: dict[Source, None] = {}

    def below(region: Region) -> None:
        if isinstance(region.origin, Source):
            found[region.origin] = None
        elif isinstance(region.origin, AggregateOperator | OtherOperator):
            for inner in region.origin.regions:
                below(inner)

    below(output.region)
    return tuple(found)


def regions(output: Output) -> tuple[Region, ...]:
    """All stateless stretches below a sink, nearest the sink first."""
    return (output.region, *(region for operator in operators(output) for region in operator.regions))
