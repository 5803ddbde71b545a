"""Group aggregations, windowed or not."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Self

from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression
from airflow_flinkcompat.plan.nodes import WindowField
from airflow_flinkcompat.plan.operators.base import AssignedWindow, Operator, StatelessSegment
from airflow_flinkcompat.plan.origins import (
    uses_window_field,
    window_field,
)
from airflow_flinkcompat.plan.types import DataType


class AggregateKind(StrEnum):
    """How Flink plans an aggregation."""

    GROUP = "group aggregation"
    GROUP_WINDOW = "group window aggregation"
    WINDOW = "window aggregation"
    OVER_WINDOWED_ROWS = "group aggregation over windowed rows"


@dataclass(frozen=True)
class AggregateOperator(Operator):
    """A group aggregation, windowed or not.

    ``keys`` are the grouping keys but for bare window fields, in order; ``window_keys`` the bare window fields
    among them;
    ``key_order`` the full order, each key by its position in ``keys`` or its window field; ``aggregates`` the distinct
    calls in order of first use; ``window`` the window the aggregation runs on, None for a plain group aggregation.
    ``windowed`` is True where Flink plans a windowed aggregation (both bounds in every grouping set, or legacy syntax).
    ``repeated_keys`` counts keys that stand for a column another key stands for already: another plan (measured).
    ``repeated_calls`` counts calls over a computed column that say what another call says without it: both are kept.
    ``pruned_inputs`` is all that goes in, in order, where metrics nobody reads ask for more than the others do: another
    plan (EXPLAIN). ``input_columns`` are all the columns below: SQL leaves out what nobody reads, the Table API does
    not.
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
    key_spans: tuple[Span | None, ...] = field(default=(), compare=False)

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
        """Keys computed from window fields, and computations on them inside the aggregates' arguments and filters."""
        read = (part for call in self.aggregates for part in (*call.args, call.filter) if part is not None)
        computed = tuple(part for part in read if uses_window_field(part) and window_field(part) is None)
        return tuple(key for key in self.keys if uses_window_field(key)) + computed

    @cached_property
    def window_aggregates(self) -> tuple[AggregateCall, ...]:
        """Aggregates over window fields."""
        return tuple(call for call in self.aggregates if any(uses_window_field(arg) for arg in call.args))

    @property
    def appends(self) -> bool:
        return self.windowed

    def prune(self, wanted: Set[object]) -> Self:
        places = [i for i, call in enumerate(self.aggregates) if call in wanted]
        kept = tuple(self.aggregates[i] for i in places)
        asked, planned = self._asked(kept), self._asked(self.aggregates)
        return replace(
            self,
            aggregates=kept,
            pruned_inputs=planned if planned != asked else (),
            argument_types=tuple(self.argument_types[i] for i in places),
            segment=self.segment.prune(asked),
        )

    def _asked(self, calls: Iterable[AggregateCall]) -> tuple[Expression, ...]:
        """What an aggregation with these calls wants of its input, in order of first mention.

        The planner drops a metric nobody reads after it has planned what goes in: an expression, a filter, a further
        column or another order of columns stays (EXPLAIN).
        """
        arguments = (part for call in calls for part in (*call.args, call.filter) if part is not None)
        return tuple(dict.fromkeys((*self.keys, *arguments)))
