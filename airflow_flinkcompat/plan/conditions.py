"""Normal form of conditions of WHERE, HAVING and ON, which Flink plans alike (EXPLAIN, 2.3.0).

The order of AND and OR operands and the sides of a comparison have no effect there, and tautologies are dropped.
Elsewhere they have. For an output column, a metric's argument or its FILTER the planner requests columns from the
source in the order of their mention, which may add an operator to the job.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from airflow_flinkcompat.plan.expressions import FLIPPED, Expression, FunctionCall, Leaf, Literal, conjuncts
from airflow_flinkcompat.plan.origins import (
    OperatorColumn,
    PassedOutput,
    SourceColumn,
    describe,
    leaves,
    normalize,
)
from airflow_flinkcompat.plan.passes import Pass

_EXACT = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL"})
_HOLDS = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


def split_conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """The conjuncts of a resolved condition without types, in normal form, without tautologies."""
    found: list[Expression] = []
    for part in conjuncts(condition):
        left: Expression | None = part
        for each in CONDITION_PASSES:
            left = None if left is None else each.apply(left)
        if left is not None:
            found.append(left)
    return tuple(found)


def _unless_always_true(part: Expression) -> Expression | None:
    return None if constant_value(part) is True else part


CONDITION_PASSES: tuple[Pass[Callable[[Expression], Expression | None]], ...] = (
    Pass("always-true", "a condition over constants that always holds is dropped", _unless_always_true),
    Pass(
        "spelling",
        "the order of AND and OR operands and the sides of a comparison say nothing",
        lambda part: normalize_predicate(normalize(part)),
    ),
)
"""Applied to each conjunct of a WHERE or HAVING; None drops it."""


def constant_value(part: Expression) -> bool | None:
    """Value of a condition over constants alone; None if it reads anything, or may be NULL."""
    match part:
        case Literal(value=bool(value)):
            return value
        case FunctionCall(function="NOT", args=(inner,)):
            found = constant_value(inner)
            return None if found is None else not found
        case FunctionCall(function="AND" | "OR" as word, args=args):
            found_of_all = [constant_value(arg) for arg in args]
            return None if None in found_of_all else (all if word == "AND" else any)(map(bool, found_of_all))
        case FunctionCall(function=sign, args=(Literal() as left, Literal() as right)) if sign in _HOLDS:
            order = _order(left, right)
            return None if order is None else _HOLDS[sign](order)
    return None


def _order(left: Literal, right: Literal) -> int | None:
    """Order of two constants, as far as every engine agrees: exact numbers, and equal texts."""
    a, b = left.value, right.value
    if isinstance(a, str) and a == b and left.type == right.type:
        return 0
    if {left.type.name, right.type.name} <= _EXACT and isinstance(a, int | Decimal) and isinstance(b, int | Decimal):
        return (a > b) - (a < b)
    return None


def normalize_predicate(part: Expression) -> Expression:
    """A condition without types in normal form: one order of AND and OR operands and of comparison sides."""
    if not isinstance(part, FunctionCall):
        return part
    if part.function == "NOT":
        return _rebuilt(part, part.function, tuple(map(normalize_predicate, part.args)))
    if part.function in ("AND", "OR"):
        return _rebuilt(part, part.function, tuple(sorted(map(normalize_predicate, part.args), key=_place)))
    if part.function in _HOLDS and len(part.args) == 2 and not isinstance(part.args[1], Literal):
        left, right = part.args
        if _place(right) < _place(left):
            return _rebuilt(part, FLIPPED.get(part.function, part.function), (right, left))
    return part


def _rebuilt(part: FunctionCall, function: str, args: tuple[Expression, ...]) -> FunctionCall:
    return (
        part if (function, args) == (part.function, part.args) else FunctionCall(function, args, part.type, part.span)
    )


def _place(value: Expression) -> tuple[str, tuple[int, ...]]:
    """Text and inputs: two columns of one name differ by their input."""
    return describe(value), tuple(_input(leaf) for leaf in leaves(value) if isinstance(leaf, Leaf))


def _input(leaf: Leaf) -> int:
    match leaf:
        case OperatorColumn(output=PassedOutput(input=place)) | OperatorColumn(operator=place):
            return place
        case SourceColumn(source=place):
            return place
    return 0
