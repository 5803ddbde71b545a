"""Joins of two inputs."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.operators.base import BOUNDS, Operator, StatelessSegment, appends
from airflow_flinkcompat.plan.origins import (
    OperatorColumn,
    PassedOutput,
    WindowColumn,
    leaves,
)
from airflow_flinkcompat.plan.types import DataType, TimeAttribute


class JoinForm(StrEnum):
    """How a join is planned; ``JOIN`` where the query does not tell."""

    REGULAR = "regular join"
    INTERVAL = "interval join"
    TEMPORAL = "temporal join"
    LOOKUP = "lookup join"
    WINDOW = "window join"
    JOIN = "join"


@dataclass(frozen=True)
class JoinOperator(Operator):
    """A join of two inputs.

    ``join`` is INNER, LEFT, RIGHT or FULL; ``keys`` the equated expressions of both sides in order; ``conditions`` what
    else it asks of a pair of rows, each column an ``OperatorColumn`` of its input. Conditions on one input stand in
    that input's segment where the planner moves them there. ``bounds`` is how far, in milliseconds and inclusive, the
    left time may lie from the right one; ``times`` are these two time columns, or the one a temporal join looks up by.
    ``rows`` are the columns that are read of each input, in its order, ``row_types`` their types, ``input_columns`` all
    the columns of each input.
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

    def prune(self, wanted: Set[object]) -> Self:
        asked = (*self.conditions, *self.times, *(side for pair in self.keys for side in pair))
        used = {(output.input, output.column) for output in wanted if isinstance(output, PassedOutput)}
        used |= {
            (leaf.operator, leaf.output) for part in asked for leaf in leaves(part) if isinstance(leaf, OperatorColumn)
        }

        def kept(side: int, column: Expression) -> bool:
            bound = isinstance(column, WindowColumn) and column.field in BOUNDS
            return (side, column) in used or (bound and self.form is JoinForm.WINDOW)

        places = [[i for i, column in enumerate(row) if kept(side, column)] for side, row in enumerate(self.rows)]
        rows = [tuple(row[i] for i in found) for row, found in zip(self.rows, places, strict=True)]
        types = [tuple(row[i] for i in found) for row, found in zip(self.row_types, places, strict=True)]
        segments = tuple(segment.prune(row) for segment, row in zip(self.segments, rows, strict=True))
        return replace(self, rows=(rows[0], rows[1]), row_types=(types[0], types[1]), segments=segments)
