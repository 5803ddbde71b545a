"""Columns that Flink computes for the input of a lookup join, stored with the waiting rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, Leaf, walk
from airflow_flinkcompat.plan.operators import JoinOperator
from airflow_flinkcompat.plan.origins import OperatorColumn, PassedOutput, leaves
from airflow_flinkcompat.plan.types import DataType

COMPUTED = "a value computed from the found row"


def computed_in_front(join: JoinOperator, above: Iterable[Expression] = ()) -> frozenset[tuple[Expression, str]]:
    """The sides of equations that Flink computes from a row before the lookup."""
    equations = list(join.keys)
    for condition in (*join.conditions, *above):
        for part in walk(condition):
            if isinstance(part, FunctionCall) and part.function == "=" and len(part.args) == 2:
                equations.append((part.args[0], part.args[1]))
    types = _types(join)
    both = (sides for equation in equations for sides in (equation, equation[::-1]))
    return frozenset(found for side, other in both for found in _computed(side, other, types))


def _computed(
    side: Expression, other: Expression, types: dict[tuple[int, object], DataType]
) -> Iterator[tuple[Expression, str]]:
    if {place for place, _ in _columns(side)} != {0}:
        return
    if not isinstance(side, Leaf):
        yield side, ""
        return
    if not isinstance(other, Leaf):
        # A key of another type, or none: a lookup with this alone is refused.
        if {place for place, _ in _columns(other)} == {1}:
            yield side, COMPUTED
        return
    own, asked = (types.get(column) for each in (side, other) for column in _columns(each)[:1] or [(-1, None)])
    if own is not None and asked is not None and own != asked:
        yield side, str(asked)


def _columns(expression: Expression) -> list[tuple[int, object]]:
    """The columns that an expression reads, each with the number of its input."""
    return [
        (each.output.input, each.output.column)
        if isinstance(each.output, PassedOutput)
        else (each.operator, each.output)
        for each in leaves(expression)
        if isinstance(each, OperatorColumn)
    ]


def _types(join: JoinOperator) -> dict[tuple[int, object], DataType]:
    return {
        (place, column): replace(kind, nullable=True)
        for place, (row, kinds) in enumerate(zip(join.rows, join.row_types, strict=True))
        for column, kind in zip(row, kinds, strict=False)
    }
