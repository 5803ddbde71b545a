"""ROW_NUMBER with its ranks: Top-N and deduplication."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.operators.aggregate import AggregateOperator
from airflow_flinkcompat.plan.operators.base import AssignedWindow, Operator, StatelessSegment, appends
from airflow_flinkcompat.plan.origins import (
    KeyOutput,
    OperatorColumn,
    PassedOutput,
    RankNumber,
    leaves,
)
from airflow_flinkcompat.plan.types import UNKNOWN, DataType, TimeAttribute


class RankKind(StrEnum):
    """How Flink plans a ranking."""

    TOP_N = "Top-N"
    DEDUPLICATION = "deduplication"
    WINDOW_TOP_N = "window Top-N"
    WINDOW_DEDUPLICATION = "window deduplication"


@dataclass(frozen=True)
class RankOperator(Operator):
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

    @property
    def kind(self) -> RankKind:
        """Deduplication keeps one row by time of rows that are never taken back; anything else is a Top-N."""
        once = self.first == self.last == 1 and self.order_clock is not None and appends(self.segment)
        if self.window is not None:
            return RankKind.WINDOW_DEDUPLICATION if once else RankKind.WINDOW_TOP_N
        return RankKind.DEDUPLICATION if once else RankKind.TOP_N

    @property
    def segments(self) -> tuple[StatelessSegment, ...]:
        return (self.segment,)

    @property
    def assigned(self) -> AssignedWindow | None:
        """The window assigned to the ranked rows themselves, where no aggregation stands in between."""
        return self.segment.windows[-1] if self.segment.windows else None

    @property
    def appends(self) -> bool:
        return self.window is not None or (self.kind is RankKind.DEDUPLICATION and self.order[0][1])

    def prune(self, wanted: Set[object]) -> Self:
        """The operator with those columns of its row that are planned.

        Partition and order keys stay in the row, and so do the keys of an aggregation below, whoever reads them; its
        metrics are taken to be planned whether they are read or not.
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
