"""A search for rows of boundary values on which two expressions have different results.

The rows contain NULL, the constants of both expressions with their neighbors, and sums, differences and quotients of
two constants. Equal results on all rows do not prove equality. Different results on one row prove a difference.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import product
from math import ceil, floor, prod
from typing import Any

from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, Leaf, Literal, called, walk
from airflow_flinkcompat.plan.types import DataType

WHOLE = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_TEXT = frozenset({"CHAR", "VARCHAR", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"})
"""Types whose values are compared as ISO text."""
TIME_ATTRIBUTES = frozenset({"TIMESTAMP", "TIMESTAMP_LTZ"})
_APPROXIMATE = frozenset({"FLOAT", "DOUBLE"})
_CASTS = ("CAST", "TRY_CAST")
_MOST_ROWS = 2_000
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_TESTS: Mapping[str, Callable[[Any], bool]] = {
    "IS NULL": lambda value: value is None,
    "IS NOT NULL": lambda value: value is not None,
    "IS TRUE": lambda value: value is True,
    "IS NOT TRUE": lambda value: value is not True,
    "IS FALSE": lambda value: value is False,
    "IS NOT FALSE": lambda value: value is not False,
    "IS UNKNOWN": lambda value: value is None,
    "IS NOT UNKNOWN": lambda value: value is not None,
}
_PASS_OVER_NULL = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "STDDEV_POP", "VARIANCE", "VAR_POP"})
_LETTERS = 4 * "abcdefghijklmnopqrstuvwxyz"
_TRUE = Literal(True, DataType("BOOLEAN"))
_STRICT: Mapping[str, Callable[..., Any]] = {
    "NEG": operator.neg, "ABS": abs, "UPPER": str.upper, "LOWER": str.lower, "REVERSE": lambda text: text[::-1],
    "CHAR_LENGTH": len, "CHARACTER_LENGTH": len, "||": operator.add, "CONCAT": lambda *texts: "".join(texts),
}  # fmt: skip
"""Functions that return NULL if any argument is NULL."""


class _NotEvaluable(Exception):
    """Raised for an unknown type or function, or if Flink fails to evaluate the expression on the row."""


@dataclass(frozen=True)
class Variable:
    """A column of the rows: a common name on both sides, and the declared type without NOT NULL."""

    name: Hashable
    type: DataType
    nullable: bool


Resolve = Callable[[Leaf], "Variable | None"]
Side = tuple[Sequence[Expression], Resolve]


def equal_values(old: Side, new: Side) -> bool:
    """True if each row yields equal values for two lists of expressions."""
    if len(old[0]) != len(new[0]) or any(_changes_type(each, side[1]) for side in (old, new) for each in side[0]):
        return False  # a changed type means a changed key or metric, even if the values are equal
    return _equal(old, new, lambda values: [(type(value), value) for value in values])


def equal_contributions(old: AggregateCall, new: AggregateCall, resolves: tuple[Resolve, Resolve]) -> bool:
    """True if each row contributes equal values to two aggregate calls."""
    calls = (old, new)
    kinds = {(each.function, each.distinct, each.language, each.order_by, each.function not in _PASS_OVER_NULL)
             for each in calls}  # fmt: skip
    if len(kinds) > 1 or old.function not in _PASS_OVER_NULL:
        return False
    counts_rows = old.function == "COUNT" and not old.distinct
    sides = []
    for call, resolve in zip(calls, resolves, strict=True):
        if not counts_rows and any(_changes_type(each, resolve) for each in call.args):
            return False
        sides.append((((_TRUE if call.filter is None else call.filter), *call.args), resolve))

    def added(values: list[Any]) -> Any:
        taken = values[0] is True and None not in values[1:]
        return taken if counts_rows or not taken else [(type(value), value) for value in values[1:]]

    return _equal(sides[0], sides[1], added)


def equal_conditions(old: Side, new: Side) -> bool:
    """True if two lists of conditions accept the same rows."""
    return _equal(old, new, lambda values: all(value is True for value in values))


def _equal(old: Side, new: Side, outcome: Callable[[list[Any]], Any]) -> bool:
    old, new = ((expressions, cache(resolve)) for expressions, resolve in (old, new))  # resolve is called on every row
    try:
        variables = {each.name: each for each in (*_variables(old), *_variables(new))}
        constants = [*_constants(old[0]), *_constants(new[0])]
        compared = [*_compared_constants(old), *_compared_constants(new)]
        values = [
            _boundary_values(each, constants, [value for name, value in compared if name == each.name])
            for each in variables.values()
        ]
        for row in _rows(values):
            named = dict(zip(variables, row, strict=True))
            found = [
                outcome([_Evaluation(named, resolve).value(each) for each in expressions])
                for expressions, resolve in (old, new)
            ]
            if found[0] != found[1]:
                return False
    except (_NotEvaluable, TypeError, ArithmeticError):
        return False
    return True


def _variables(side: Side) -> Iterable[Variable]:
    expressions, resolve = side
    for expression in expressions:
        for part in walk(expression):
            if isinstance(part, Leaf):
                yield _variable(part, resolve)


def _variable(leaf: Leaf, resolve: Resolve) -> Variable:
    found = resolve(leaf)
    if found is None:
        raise _NotEvaluable
    return found


def _changes_type(expression: Expression, resolve: Resolve) -> bool:
    return any(
        isinstance(part, FunctionCall) and part.function in _CASTS and not _keeps_type(part, resolve)
        for part in walk(expression)
    )


def _keeps_type(cast: FunctionCall, resolve: Resolve) -> bool:
    """True if a CAST keeps the type of a column. A CAST of a time attribute never keeps the type."""
    value, target = cast.args[0], cast.args[1]
    found = resolve(value) if isinstance(value, Leaf) else None
    if found is None or found.type.name in TIME_ATTRIBUTES or not isinstance(target, Literal):
        return False
    return target.value == str(found.type)


def _constants(expressions: Iterable[Expression]) -> Iterable[Any]:
    for expression in expressions:
        yield from (part.value for part in walk(expression) if isinstance(part, Literal))


def _compared_constants(side: Side) -> Iterable[tuple[Hashable, Any]]:
    """Each constant that is in a call with a column, together with the name of the column."""
    expressions, resolve = side
    for call in called(*expressions):
        constants = [each.value for each in call.args if isinstance(each, Literal)]
        for leaf in (each for each in call.args if isinstance(each, Leaf)):
            yield from ((_variable(leaf, resolve).name, value) for value in constants)


def _boundary_values(variable: Variable, constants: Sequence[Any], compared: Sequence[Any]) -> list[Any]:
    found: list[Any] = [None] if variable.nullable else []
    kind = variable.type.name if variable.type.is_known else _kind_of(compared)
    if kind == "BOOLEAN":
        return [*found, True, False]
    if kind in _TEXT:
        lengths = (each for each in constants if type(each) is int and 0 <= each <= len(_LETTERS))
        texts = {_LETTERS[: each + 1] for each in lengths} | {each for each in constants if isinstance(each, str)}
        return [*found, *_texts(texts)]
    if kind not in {*WHOLE, *_APPROXIMATE, "DECIMAL"}:
        raise _NotEvaluable
    numbers = _numbers(each for each in constants if isinstance(each, int | float | Decimal))
    whole = sorted({end + step for each in numbers for end in (floor(each), ceil(each)) for step in (-1, 0, 1)})
    if kind in WHOLE:
        return [*found, *whole]
    between = sorted({*numbers, *map(Decimal, whole), *(each + Decimal("0.5") for each in whole)})
    return [*found, *(map(float, between) if kind in _APPROXIMATE else between)]


def _kind_of(constants: Sequence[Any]) -> str:
    """Guess the type of an undeclared column from constants in the same calls; "" if the type is unclear."""
    kinds = {type(each) for each in constants} - {bool, type(None)}
    if kinds == {str}:
        return "VARCHAR"
    return "DOUBLE" if kinds and kinds <= {int, float, Decimal} else ""


def _texts(constants: set[str]) -> Iterable[str]:
    """Text constants, also with the wildcards of a pattern replaced, and similar texts."""
    found = constants | {re.sub("[%_]", filler, each) for each in constants for filler in ("", "x")}
    near = {near for each in found for near in (each[:-1], f"{each}a", f"{each} ", each.upper(), each.lower())}
    return sorted({*found, *near, "", "a", " aB9 "})


def _numbers(constants: Iterable[int | float | Decimal]) -> set[Decimal]:
    """Numeric constants, with sums, differences and quotients of two constants, as for computed bounds."""
    found = {Decimal(str(each)) for each in constants if not isinstance(each, bool)} | {Decimal(0), Decimal(1)}
    pairs = [(one, other) for one in found for other in found]
    return found | {value for one, other in pairs for value in (one + other, one - other, _quotient(one, other))}


def _quotient(one: Decimal, other: Decimal) -> Decimal:
    return one / other if other else one


def _rows(values: Sequence[Sequence[Any]]) -> Iterable[tuple[Any, ...]]:
    if prod(map(len, values)) <= _MOST_ROWS:
        return product(*values)
    draw = random.Random(1)
    return (tuple(map(draw.choice, values)) for _ in range(_MOST_ROWS))


@dataclass(frozen=True)
class _Evaluation:
    """Evaluates expressions on one row by three-valued logic."""

    row: Mapping[Hashable, Any]
    resolve: Resolve

    def value(self, expression: Expression) -> Any:
        if isinstance(expression, Literal):
            if expression.type.name not in {*WHOLE, *_TEXT, *_APPROXIMATE, "DECIMAL", "BOOLEAN", "NULL"}:
                raise _NotEvaluable
            return expression.value
        if isinstance(expression, Leaf):
            return self.row[_variable(expression, self.resolve).name]
        if not isinstance(expression, FunctionCall):
            raise _NotEvaluable
        if expression.function in _CASTS:
            if not _keeps_type(expression, self.resolve):
                raise _NotEvaluable
            return self.value(expression.args[0])
        return self._lazy(expression.function, expression.args)

    def _lazy(self, function: str, args: Sequence[Expression]) -> Any:
        if function in ("CASE", "IF"):
            [*cases, default] = args
            for condition, result in zip(cases[::2], cases[1::2], strict=True):
                if self.value(condition) is True:
                    return self.value(result)
            return self.value(default)
        if function in ("COALESCE", "IFNULL") and len(args) > 1:
            return next((value for value in map(self.value, args) if value is not None), None)
        return _call_value(function, [self.value(each) for each in args])


def _call_value(function: str, values: list[Any]) -> Any:
    match function, values:
        case (("AND" | "OR"), _):
            decisive = function == "OR"
            return decisive if decisive in values else None if None in values else not decisive
        case "NOT", [value]:
            return None if value is None else not value
        case (("IS DISTINCT FROM" | "IS NOT DISTINCT FROM"), [one, other]):
            return _not_distinct(one, other) == (function == "IS NOT DISTINCT FROM")
        case "NULLIF", [one, other]:
            return None if one is not None and _comparison("=", one, other) is True else one
        case "IN", [one, *others]:
            return _call_value("OR", [_comparison("=", one, other) for other in others])
        case _, [value] if function in _TESTS:
            return _TESTS[function](value)
        case _, [one, other] if function in _COMPARED:
            return _comparison(function, one, other)
    return None if None in values else _strict_value(function, values)


def _strict_value(function: str, values: list[Any]) -> Any:
    match function, values:
        case _, [one, other] if function in _ARITHMETIC and not isinstance(one, str) and not isinstance(other, str):
            return _ARITHMETIC[function](one, other)
        case (("MOD" | "%"), [int(one), int(other)]) if other:
            return one - other * int(one / other)
        case "LIKE", [str(text), str(pattern)]:
            signs = {"%": ".*", "_": "."}
            return re.fullmatch("".join(signs.get(s, re.escape(s)) for s in pattern), text, re.DOTALL) is not None
        case (("SUBSTRING" | "SUBSTR"), [str(text), int(start), *length]) if start > 0:
            return text[start - 1 :][: length[0] if length else None]
        case "LEFT", [str(text), int(length)] if length >= 0:
            return text[:length]
        case "RIGHT", [str(text), int(length)] if length >= 0:
            return text[max(len(text) - length, 0) :]
    if function not in _STRICT:
        raise _NotEvaluable
    return _STRICT[function](*values)


def _not_distinct(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return _comparison("=", one, other) is True


def _comparison(function: str, one: Any, other: Any) -> bool | None:
    if one is None or other is None:
        return None
    if isinstance(one, str) is not isinstance(other, str) or isinstance(one, bool) is not isinstance(other, bool):
        raise _NotEvaluable
    return _COMPARED[function](one, other)
