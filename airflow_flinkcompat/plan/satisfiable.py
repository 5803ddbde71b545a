"""Whether conditions that are to hold together may be decided by themselves, whatever the rows are.

A planner that simplifies soundly decides no condition that holds for some values and does not for others. Both are
looked for here, by trying values around the constants that are compared. Calls that are not read stand for a value of
their own: nothing is known of them, but that equal calls are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice, product
from typing import Any

from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, Literal, walk

Value = Any
"""A Decimal, a str or a bool; None is NULL, and UNKNOWN of three-valued logic."""
_TRIES = 4096
_WORK = 100_000
"""How many conditions are tried in all: of thousands that stand together few rows of values are."""
_ANY = (Decimal(0), Decimal(1))
_COMPARED: Mapping[str, Callable[[Value, Value], bool]] = {
    "=": lambda a, b: bool(a == b),
    "<>": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}
_TESTS: Mapping[str, Callable[[Value], bool]] = {
    "IS NULL": lambda a: a is None,
    "IS NOT NULL": lambda a: a is not None,
    "IS TRUE": lambda a: a is True,
    "IS NOT TRUE": lambda a: a is not True,
    "IS FALSE": lambda a: a is False,
    "IS NOT FALSE": lambda a: a is not False,
}
_DISTINCT: Mapping[str, bool] = {"IS DISTINCT FROM": False, "IS NOT DISTINCT FROM": True}
_LOGIC = frozenset({"AND", "OR", "NOT"})
_CHOICES = frozenset({"CASE", "IF", "COALESCE", "IFNULL", "NULLIF"})
_CASTS = frozenset({"CAST", "TRY_CAST"})
_READ = _LOGIC | _CHOICES | _CASTS | _COMPARED.keys() | _TESTS.keys() | _DISTINCT.keys() | {"IN"}
_NEVER_NULL = frozenset({
    "+", "-", "*", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_ROW_TIMESTAMP", "LOCALTIME",
    "LOCALTIMESTAMP", "NOW", "PROCTIME", "UNIX_TIMESTAMP", "UPPER", "LOWER", "TRIM", "ABS", "RAND", "UUID", "PI", "E",
})  # fmt: skip
"""Functions that give a value for every value: of constants they are constants, and no NULL."""


class _NotTold(Exception):
    """It cannot be told what a part comes to."""


def may_be_decided(conditions: Iterable[Expression], never_null: Callable[[Expression], bool]) -> bool:
    """Whether conditions that are to hold together may hold of every row or of none.

    Args:
        conditions: The conditions.
        never_null: Whether a column or a call never is NULL.

    Returns:
        False where values were found for which they hold, and others for which they do not; else True.
    """
    try:
        return any(_decided(group, never_null) for group in _apart(conditions))
    except (_NotTold, TypeError):  # values of two types that are compared
        return True


def _apart(conditions: Iterable[Expression]) -> Iterator[list[Expression]]:
    """The conditions in groups that have no value in common: each group may be tried by itself."""
    groups: list[tuple[set[Expression], list[Expression]]] = []
    for condition in conditions:
        values, members = set(_variables(condition)), [condition]
        for group in [group for group in groups if group[0] & values]:
            groups.remove(group)
            values |= group[0]
            members = [*group[1], *members]
        groups.append((values, members))
    return iter(members for _, members in groups)


def _decided(conditions: Sequence[Expression], never_null: Callable[[Expression], bool]) -> bool:
    variables = tuple(dict.fromkeys(each for condition in conditions for each in _variables(condition)))
    own = {each: _tried(each, conditions) for each in variables}
    every = dict.fromkeys(value for values in own.values() for value in values) or dict.fromkeys(_ANY)
    tried = [[*_of_one_kind(own[each], every), *(() if never_null(each) else (None,))] for each in variables]
    found: set[bool] = set()
    for values in islice(product(*tried), min(_TRIES, _WORK // len(conditions))):
        row = dict(zip(variables, values, strict=True))
        found.add(all(_value(condition, row) is True for condition in conditions))
        if len(found) == 2:
            return False
    return True


def _of_one_kind(own: Collection[Value], every: Iterable[Value]) -> list[Value]:
    """What others are compared with too, as far as it is of the kind that a variable has itself."""
    kinds = {type(value) for value in own}
    return [*own, *(value for value in every if value not in own and (not kinds or type(value) in kinds))]


def _variables(part: Expression) -> Iterator[Expression]:
    """Columns, and calls that are not read, in what is computed of them."""
    if isinstance(part, Literal):
        return
    if isinstance(part, FunctionCall) and part.function in _READ:
        for arg in part.args:
            yield from _variables(arg)
        return
    if isinstance(part, FunctionCall):
        _strict(part)
    yield part


def _strict(call: FunctionCall) -> None:
    """Raises where a call that is not read may come to NULL by one of its constants."""
    for part in walk(call):
        if isinstance(part, Literal) and part.value is None:
            raise _NotTold
        if isinstance(part, FunctionCall) and _constant_call(part) and part.function not in _NEVER_NULL | _CASTS:
            raise _NotTold


def _constant_call(call: FunctionCall) -> bool:
    return all(isinstance(each, FunctionCall | Literal) for each in walk(call))


def _tried(variable: Expression, conditions: Sequence[Expression]) -> list[Value]:
    """Values on either side of what a variable is compared with."""
    found: dict[Value, None] = {}
    for condition in conditions:
        for part in walk(condition):
            if isinstance(part, FunctionCall) and part.function in _READ and variable in _variables(part):
                found.update(dict.fromkeys(_around(part)))
                if part.function in _LOGIC and variable in part.args:
                    found.update(dict.fromkeys((True, False)))
    if variable in conditions:
        found.update(dict.fromkeys((True, False)))
    return list(found)


def _around(part: FunctionCall) -> Iterator[Value]:
    for each in part.args:
        if not isinstance(each, Literal) or each.type.name == "SYMBOL":
            continue
        value = _constant(each)
        if isinstance(value, Decimal):
            yield from (value + 1, value - 1, value)
        elif isinstance(value, str):
            yield from (f"{value}~", "", value)
        elif isinstance(value, bool):
            yield from (True, False)


def _constant(literal: Literal) -> Value:
    value = literal.value
    if isinstance(value, bool | str) or value is None:
        return value
    return Decimal(str(value))


def _value(part: Expression, row: Mapping[Expression, Value]) -> Value:
    if isinstance(part, Literal):
        return _constant(part)
    if not isinstance(part, FunctionCall) or part.function not in _READ:
        return row[part]
    function, args = part.function, part.args
    if function in _CASTS:
        return _value(args[0], row)
    if function in _CHOICES:
        return _chosen(function, args, row)
    values = [_value(arg, row) for arg in args]
    if function in _LOGIC:
        return _logic(function, values)
    if function in _TESTS:
        return _TESTS[function](values[0])
    if function in _DISTINCT:
        return (values[0] == values[1]) is _DISTINCT[function]
    if function == "IN":
        return _logic("OR", [None if None in (values[0], each) else values[0] == each for each in values[1:]])
    return None if None in values else _COMPARED[function](values[0], values[1])


def _logic(function: str, values: Sequence[Value]) -> Value:
    if function == "NOT":
        return None if values[0] is None else not values[0]
    ends = function == "OR"
    if any(value is ends for value in values):
        return ends
    return None if None in values else not ends


def _chosen(function: str, args: Sequence[Expression], row: Mapping[Expression, Value]) -> Value:
    if function in ("COALESCE", "IFNULL"):
        return next((value for arg in args if (value := _value(arg, row)) is not None), None)
    if function == "NULLIF":
        first = _value(args[0], row)
        return None if first == _value(args[1], row) else first
    for condition, result in zip(args[:-1:2], args[1::2], strict=False):
        if _value(condition, row) is True:
            return _value(result, row)
    return _value(args[-1], row)
