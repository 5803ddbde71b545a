"""What Python makes of constants, for the few operations a program needs; every one is bounded.

An operation answers None where it is not known what comes out.
"""

from __future__ import annotations

import operator
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow_flinkcompat.program.values import TEXT_LIMIT, Known, TooMuch

NUMBER_LIMIT = 2**63

Constant = str | int | float | bool | None

_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "FloorDiv": operator.floordiv,
    "Div": operator.truediv,
    "Mod": operator.mod,
}
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
}
_TEXT_METHODS = ("strip", "lstrip", "rstrip", "upper", "lower", "replace", "startswith", "endswith", "title")


def bounded(value: Constant) -> Known:
    """The constant. Raises :class:`TooMuch` for one beyond the limits."""
    if isinstance(value, str) and len(value) > TEXT_LIMIT:
        raise TooMuch(f"a text grows beyond {TEXT_LIMIT} characters")
    if isinstance(value, int) and abs(value) >= NUMBER_LIMIT:
        raise TooMuch("a number grows beyond 64 bits")
    return Known(value)


def binary(name: str, left: Constant, right: Constant) -> Known | None:
    """``left OP right``, OP by the name of its node in :mod:`ast`."""
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if isinstance(left, str) and name == "Mod":
        return _percent(left, (right,))
    if not numbers and not (isinstance(left, str) and isinstance(right, str) and name == "Add"):
        return None
    function = _ARITHMETIC.get(name)
    try:
        return None if function is None else bounded(function(left, right))
    except ArithmeticError:
        return None


def compare(name: str, left: Constant, right: Constant) -> Known | None:
    """``left OP right`` for an operator of comparison."""
    if name in ("In", "NotIn"):
        if not isinstance(left, str) or not isinstance(right, str):
            return None
        return Known((left in right) is (name == "In"))
    if name in ("Is", "IsNot") and left is not None and right is not None:
        return None
    function = _COMPARISONS.get(name)
    try:
        return None if function is None else Known(bool(function(left, right)))
    except TypeError:
        return None


def percent(pattern: str, values: Sequence[Constant]) -> Known | None:
    """``pattern % values``, with ``%s`` and ``%d`` only."""
    return _percent(pattern, tuple(values))


def _percent(pattern: str, values: tuple[Constant, ...]) -> Known | None:
    parts = pattern.replace("%%", "\0").split("%")
    if len(parts) - 1 != len(values) or "\0" in pattern:
        return None
    found = [parts[0]]
    for part, value in zip(parts[1:], values, strict=True):
        if part[:1] == "d" and not (isinstance(value, int) and not isinstance(value, bool)):
            return None
        if part[:1] not in ("s", "d"):
            return None
        found.append(str(value) + part[1:])
    return bounded("".join(found).replace("\0", "%"))


def formatted(pattern: str, args: Sequence[Constant], names: Mapping[str, Constant]) -> Known | None:
    """``pattern.format(*args, **names)``, with plain fields only: no attribute, no index, no width."""
    found: list[str] = []
    counter = 0
    try:
        for text, name, spec, conversion in string.Formatter().parse(pattern):
            found.append(text)
            if name is None:
                continue
            if spec or conversion:
                return None
            if name == "":
                name, counter = str(counter), counter + 1
            value = args[int(name)] if name.isdigit() else names[name]
            found.append(str(value))
            bounded("".join(found[-2:]))
    except (ValueError, LookupError):
        return None
    return bounded("".join(found))


def text_method(value: str, name: str, args: Sequence[Constant]) -> Known | None:
    """``value.name(*args)``."""
    if name not in _TEXT_METHODS or not all(isinstance(arg, str) for arg in args):
        return None
    if name == "replace" and (len(args) != 2 or value.count(str(args[0])) * len(str(args[1])) > TEXT_LIMIT):
        return None
    try:
        return bounded(getattr(value, name)(*args))
    except TypeError:
        return None


def converted(name: str, value: Constant) -> Known | None:
    """``int(value)``, ``str(value)``, ``float(value)`` or ``bool(value)``."""
    if isinstance(value, str) and len(value) > 40 and name in ("int", "float"):
        return None
    try:
        match name:
            case "int" if value is not None:
                return bounded(int(value))
            case "float" if value is not None:
                return bounded(float(value))
            case "str":
                return bounded(str(value))
            case "bool":
                return Known(bool(value))
    except (ValueError, OverflowError):
        return None
    return None
