"""What Flink's planner may simplify away, so that no Calc, or no source, is planned for it."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, Literal, walk
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.origins import OperatorColumn, PassedOutput, SourceColumn, leaves

_TESTS = frozenset({"IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE"})
_MAY_BE_THE_COLUMN = frozenset({
    "CAST", "TRY_CAST", "COALESCE", "IFNULL", "CASE", "IF", "NULLIF", "+", "-", "*", "/", "AND", "OR", "NOT",
})  # fmt: skip
"""Calls that come to one of their columns where types or constants are such: ``CAST(b AS BIGINT)``, ``b + 0``."""


def decided(condition: Expression, *tables: Table) -> bool:
    """Whether a condition may hold of every row or of none, whatever they are.

    Args:
        condition: A condition on rows of the tables.
        tables: What is read.

    Returns:
        True where it is not known.
    """
    if not any(isinstance(_passed(leaf), SourceColumn) for leaf in leaves(condition)):
        return True
    never_null = {column.name for table in tables for column in table.columns if not column.type.nullable}
    return any(_decided(part, never_null) for part in walk(condition) if isinstance(part, FunctionCall))


def _decided(call: FunctionCall, never_null: set[str]) -> bool:
    tested = map(_passed, call.args) if call.function in _TESTS else ()
    if any(isinstance(part, SourceColumn) and part.column in never_null for part in tested):
        return True
    if any(isinstance(part, Literal) and (part.value is None or part.value == "%") for part in call.args):
        return True
    return len(call.args) > 1 and len(set(call.args)) < len(call.args) and call.function != "CASE"


def _passed(part: Expression) -> Expression:
    """The column of a table that an operator below hands on as it is."""
    while isinstance(part, OperatorColumn) and isinstance(part.output, PassedOutput):
        part = part.output.column
    return part


def contradictory(conditions: Iterable[Expression]) -> bool:
    """Whether one of several conditions may be the opposite of another.

    Args:
        conditions: All of which are to hold.

    Returns:
        True where a condition is negated that is there as well.
    """
    every = set(conditions)
    return any(isinstance(part, FunctionCall) and part.function == "NOT" and part.args[0] in every for part in every)


def at_least(wanted: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """What is wanted of an input, after all that the planner may simplify.

    Args:
        wanted: What an operator takes.

    Returns:
        The column in place of a call that may come to it.
    """
    return tuple(_column(part) for part in wanted)


def _column(part: Expression) -> Expression:
    if not isinstance(part, FunctionCall) or part.function not in _MAY_BE_THE_COLUMN:
        return part
    columns = [leaf for leaf in leaves(part) if isinstance(leaf, SourceColumn)]
    return columns[0] if columns else part
