"""Logical operators of a script as Flink's exec nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_flinkcompat.exec_graph.columns import stored_as
from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.layout import CannotLower
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall
from airflow_flinkcompat.plan.operators import StatelessSegment
from airflow_flinkcompat.plan.origins import SourceColumn, describe, window_field
from airflow_flinkcompat.plan.types import DataType, TimeAttribute

_TIMES = {"TIMESTAMP": "TIMESTAMP_WITHOUT_TIME_ZONE", "TIMESTAMP_LTZ": "TIMESTAMP_WITH_LOCAL_TIME_ZONE"}


LEAVES_COLUMNS = frozenset({"<", "<=", ">", ">=", "<>", "IS NOT NULL"})
"""Conditions after which no column of a row is known to be one constant, which would stand elsewhere (measured)."""


LIVES = {True: {"ttl": "1 ms"}, False: {"ttl": "0 ms"}}


@dataclass(frozen=True)
class Lowered:
    """A logical operator as the exec node that Flink plans for it.

    Attributes:
        node: The node.
        inputs: The columns that it reads, in the order in which they are stored.
    """

    node: ExecNode
    inputs: tuple[ColumnMeanings, ...]


def require_certain_columns(segments: Iterable[StatelessSegment]) -> None:
    for condition in (condition for segment in segments for condition in segment.filters):
        if not isinstance(condition, FunctionCall) or condition.function not in LEAVES_COLUMNS:
            raise CannotLower("a condition below may make a column of the stored rows a constant")


def stored_columns(
    row: Sequence[Expression],
    types: Sequence[DataType],
    symbols: Symbols,
    times: Mapping[Any, TimeAttribute],
    side: int = 0,
) -> ColumnMeanings:
    """The columns of a stored row; a computed one may stand anywhere among them."""
    bounds = {place for place, column in enumerate(row) if window_field(column)}
    if any(not isinstance(column, SourceColumn) and place not in bounds for place, column in enumerate(row)):
        raise CannotLower("the position of a computed column in a stored row is not known")
    return ColumnMeanings(
        tuple(symbols.of("column", side, column) for column in row),
        tuple(map(describe, row)),
        tuple(
            _time_attribute(type, times[column])
            if column in times and type.name in _TIMES
            else stored_as(type.with_nullability(type.nullable and place not in bounds))
            for place, (column, type) in enumerate(zip(row, types, strict=True))
        ),
        symbols.of("rows", side),
    )


def _time_attribute(type: DataType, clock: TimeAttribute) -> str:
    """A time attribute as compiled plans write it."""
    by_event = clock is TimeAttribute.ROWTIME
    return json.dumps({"type": _TIMES[type.name], "nullable": by_event, "precision": 3, "kind": clock.name})
