"""OVER aggregations."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from airflow_flinkcompat.plan.expressions import AggregateCall, Expression
from airflow_flinkcompat.plan.nodes import Frame
from airflow_flinkcompat.plan.operators.base import Operator, StatelessSegment, appends
from airflow_flinkcompat.plan.origins import (
    PassedOutput,
)
from airflow_flinkcompat.plan.types import DataType, TimeAttribute


@dataclass(frozen=True)
class OverOperator(Operator):
    """An OVER aggregation: every row goes on, with what its calls make of the rows before it.

    ``aggregates`` are the distinct calls in order of first use, ``order`` the ORDER BY as (expression, ascending, nulls
    first). ``row`` holds the columns somebody reads, ``all_columns`` all there are below: which of them are stored
    depends on the planner (measured).
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

    KIND: ClassVar[str] = "OVER aggregation"

    @property
    def kind(self) -> str:
        return self.KIND

    @property
    def segments(self) -> tuple[StatelessSegment, ...]:
        return (self.segment,)

    @property
    def appends(self) -> bool:
        return appends(self.segment)

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
