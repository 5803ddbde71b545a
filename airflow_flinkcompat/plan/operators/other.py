"""Constructs that are kept without a class of their own."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.operators.base import Operator, StatelessSegment
from airflow_flinkcompat.plan.origins import (
    ColumnOutput,
)
from airflow_flinkcompat.plan.types import DataType


class OtherKind(StrEnum):
    """The constructs that rules know by name; any other is compared whole."""

    UNION_ALL = "UNION ALL"
    LIMIT = "LIMIT"
    SORT = "ORDER BY"
    SORT_LIMIT = "ORDER BY with LIMIT"
    TEMPORAL_SORT = "temporal sort"
    MATCH_RECOGNIZE = "MATCH_RECOGNIZE"
    QUERY = "query"
    """A query that could not be taken apart."""


@dataclass(frozen=True)
class OtherOperator(Operator):
    """A construct of any other kind: ``attributes`` holds all it says, resolved, as named parts.

    ``rows`` are the columns of its inputs, ``row_types`` their types, ``input_columns`` all the columns of its inputs,
    also those of a union that nobody reads.
    """

    kind: str
    segments: tuple[StatelessSegment, ...]
    attributes: tuple[tuple[str, Any], ...]
    rows: tuple[tuple[Expression, ...], ...] = ()
    row_types: tuple[tuple[DataType, ...], ...] = field(default=(), compare=False)
    input_columns: tuple[tuple[Expression, ...], ...] = field(default=(), compare=False)

    @property
    def appends(self) -> bool:
        return False

    def prune(self, wanted: Set[object]) -> Self:
        """A union hands on the columns that are read; any other construct reads all its columns."""
        rows, types = self.rows, self.row_types
        if self.kind == OtherKind.UNION_ALL:
            used = sorted({output.index for output in wanted if isinstance(output, ColumnOutput)})
            rows = tuple(tuple(row[i] for i in used) for row in rows)
            types = tuple(tuple(row[i] for i in used) for row in types)
        segments = tuple(segment.prune(row) for segment, row in zip(self.segments, rows, strict=True))
        return replace(self, segments=segments, rows=rows, row_types=types)
