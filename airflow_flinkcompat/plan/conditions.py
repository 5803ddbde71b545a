"""Normal form of conditions that Flink plans equally in WHERE, HAVING and ON (EXPLAIN, 2.3.0, 1.20.3).

NOT and IN lists are planned as equivalent comparisons. In WHERE, HAVING and ON, the order of AND and OR operands and
the sides of a comparison have no effect, and tautologies are dropped. In all other clauses, the order of operands has
an effect. For an output column, the argument of a metric or its FILTER, the planner requests source columns in the
order in which the expression mentions them. A different order may add an operator to the job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import chain

from airflow_flinkcompat.plan.expressions import FLIPPED, Expression, FunctionCall, Leaf, Literal, Pass, conjuncts
from airflow_flinkcompat.plan.origins import OperatorColumn, PassedOutput, SourceColumn, describe, leaves, normalize
from airflow_flinkcompat.plan.types import CHARACTERS, INTEGERS

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
    """The conjuncts of a resolved, untyped condition in normal form, without tautologies."""
    found: list[Expression] = []
    for part in conjuncts(simplified(condition)):
        left: Expression | None = part
        for each in CONDITION_PASSES:
            left = None if left is None else each.apply(left)
        if left is not None:
            found.append(left)
    return tuple(found)


def _unless_always_true(part: Expression) -> Expression | None:
    return None if constant_value(part) is True else part


CONDITION_PASSES: tuple[Pass[Callable[[Expression], Expression | None]], ...] = (
    Pass("always-true", "a condition over constants that is always true is dropped", _unless_always_true),
    Pass(
        "spelling",
        "the order of AND and OR operands and the sides of a comparison have no effect",
        lambda part: normalize_predicate(normalize(part)),
    ),
)
"""Passes over each conjunct of a WHERE or HAVING. A conjunct is dropped if a pass returns None."""


_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "IS NULL": "IS NOT NULL"}
_NEGATED |= {after: before for before, after in _NEGATED.items()}


def simplified(condition: Expression) -> Expression:
    """Simplify a condition like the planner: move NOT inwards, and expand IN lists of constants."""
    match condition:
        case FunctionCall(function="AND" | "OR" as word, args=args):
            return _joined(word, map(simplified, args), condition)
        case FunctionCall(function="NOT", args=(inner,)):
            return _negation(simplified(inner), condition)
        case FunctionCall(function="IN", args=(value, *members)):
            return _compared(value, members, condition)
    return condition


def _joined(word: str, parts: Iterable[Expression], of: FunctionCall) -> FunctionCall:
    """An AND or OR call, without nested calls of the same kind."""
    flat = (each.args if isinstance(each, FunctionCall) and each.function == word else (each,) for each in parts)
    return _rebuilt(of, word, tuple(chain.from_iterable(flat)))


def _negation(part: Expression, of: FunctionCall) -> Expression:
    match part:
        case FunctionCall(function="NOT", args=(inner,)):
            return inner
        case FunctionCall(function="AND" | "OR" as word, args=args):
            return _joined("OR" if word == "AND" else "AND", (_negation(arg, of) for arg in args), of)
        case FunctionCall(function=sign, args=args) if sign in _NEGATED:
            return _rebuilt(part, _NEGATED[sign], args)
    return _rebuilt(of, "NOT", (part,))


def _compared(value: Expression, members: Sequence[Expression], of: FunctionCall) -> Expression:
    """Expand an IN list into equalities; return the list unchanged if a member is not a constant."""
    pairs = [_equal(value, member, of) for member in members]
    if None in pairs:
        return of
    found = [each for each in pairs if each is not None]
    return found[0] if len(found) == 1 else _joined("OR", found, of)


def _equal(value: Expression, member: Expression, of: FunctionCall) -> FunctionCall | None:
    match value, member:
        case FunctionCall(function="ROW", args=values), FunctionCall(function="ROW", args=members):
            parts = [_equal(*pair, of) for pair in zip(values, members, strict=False)]
            fields = [each for each in parts if each is not None]
            return _joined("AND", fields, of) if len(fields) == len(values) == len(members) > 1 else None
        case _, Literal(value=constant) if constant is not None:
            # In a list, a constant of a different type family is cast to the common type of the members. In a
            # comparison, it keeps its type.
            alike = any(value.type.name in family and member.type.name in family for family in (INTEGERS, CHARACTERS))
            return FunctionCall("=", (value, member), of.type, of.span) if alike else None
    return None


def constant_value(part: Expression) -> bool | None:
    """The value of a condition over constants; None if it reads a column or may be NULL."""
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
    """The order of two constants (-1, 0 or 1) if all engines agree: exact numbers, or equal strings."""
    a, b = left.value, right.value
    if isinstance(a, str) and a == b and left.type == right.type:
        return 0
    if {left.type.name, right.type.name} <= _EXACT and isinstance(a, int | Decimal) and isinstance(b, int | Decimal):
        return (a > b) - (a < b)
    return None


def normalize_predicate(part: Expression) -> Expression:
    """An untyped condition in normal form: AND and OR operands and comparison sides have a fixed order."""
    if not isinstance(part, FunctionCall):
        return part
    if part.function == "NOT":
        return _rebuilt(part, part.function, tuple(map(normalize_predicate, part.args)))
    if part.function in ("AND", "OR"):
        args = dict.fromkeys(map(normalize_predicate, part.args))
        return _rebuilt(part, part.function, tuple(sorted(args, key=_place)))
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
    """A sort key for an operand: its text, then its inputs, which distinguish columns of one name."""
    return describe(value), tuple(_input(leaf) for leaf in leaves(value) if isinstance(leaf, Leaf))


def _input(leaf: Leaf) -> int:
    match leaf:
        case OperatorColumn(output=PassedOutput(input=place)) | OperatorColumn(operator=place):
            return place
        case SourceColumn(source=place):
            return place
    return 0
