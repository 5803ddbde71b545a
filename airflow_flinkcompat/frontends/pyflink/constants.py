"""What Python makes of constants, for the few operations a program needs; every one is bounded.

An operation answers None where it is not known what comes out.
"""

from __future__ import annotations

import operator
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow_flinkcompat.frontends.pyflink.paths import symbolic
from airflow_flinkcompat.frontends.table_api.values import (
    INPUT_BEGINS,
    INPUT_ENDS,
    TEXT_LIMIT,
    Const,
    Constant,
    TooMuch,
    bounded,
)

_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "FloorDiv": operator.floordiv,
    "Div": operator.truediv,
    "Mod": operator.mod,
    "BitOr": operator.or_,
    "BitAnd": operator.and_,
    "LShift": operator.lshift,
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
_TEXT_METHODS = (
    "strip",
    "lstrip",
    "rstrip",
    "upper",
    "lower",
    "replace",
    "startswith",
    "endswith",
    "title",
    "capitalize",
    "removeprefix",
    "removesuffix",
    "isdigit",
    "isupper",
    "islower",
    "isidentifier",
    "find",
    "count",
    "swapcase",
    "casefold",
)
_KEEPS_PLACES = ("replace", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix")
"""Methods that say the same of a text whose folder is only known to the environment."""
_TEMPLATE_MARKS = re.compile(r"[{}<>$%@#]")
"""What a place in a template is written with: no input is taken to hold one of these places."""
_PADDED = ("zfill", "ljust", "rjust", "center")
_FORMAT = re.compile(r"(?:[<>^]?0?[0-9]{0,3})[,_]?(?:\.[0-9]{1,2})?[sdfgeExXob%]?")
_PERCENT = re.compile(r"%(?:\((\w+)\))?(0?[0-9]{0,3}(?:\.[0-9]{1,2})?)([sdfi%])")


def joined(parts: Sequence[str], between: str = "") -> Const:
    """The parts as one text. Raises :class:`TooMuch` before one is made that is too long."""
    if sum(map(len, parts)) + len(between) * len(parts) > TEXT_LIMIT:
        raise TooMuch(f"a text grows beyond {TEXT_LIMIT} characters")
    return Const(between.join(parts))


def binary(name: str, left: Constant, right: Constant) -> Const | None:
    """``left OP right``, OP by the name of its node in :mod:`ast`."""
    if isinstance(left, str) and name == "Mod":
        return percent(left, [right])
    match left, right:
        case str(), str() if name == "Add":
            return joined([left, right])
        case (str() as text, int(count)) | (int(count), str() as text) if name == "Mult":
            return Const(text * count) if len(text) * count <= TEXT_LIMIT else None
        case int() | float(), int() | float():
            function = _ARITHMETIC.get(name)
            if name == "LShift" and not (isinstance(right, int) and 0 <= right < 63):
                return None
            try:
                return None if function is None else bounded(function(left, right))
            except (ArithmeticError, TypeError):
                return None
    return None


def compare(name: str, left: Constant, right: Constant) -> Const | None:
    """``left OP right`` for an operator of comparison."""
    if symbolic(left) or symbolic(right):
        # That it is no None is all that is known of such a text.
        plain = None in (left, right) and name in ("Is", "IsNot", "Eq", "NotEq")
        return Const(name in ("IsNot", "NotEq")) if plain else None
    if name in ("In", "NotIn"):
        if not isinstance(left, str) or not isinstance(right, str):
            return None
        return Const((left in right) is (name == "In"))
    single = (bool, type(None))
    if name in ("Is", "IsNot") and not (isinstance(left, single) or isinstance(right, single)):
        # Whether two equal numbers or texts are one object is up to Python.
        return None
    function = _COMPARISONS.get(name)
    try:
        return None if function is None else Const(bool(function(left, right)))
    except TypeError:
        return None


def percent(pattern: str, values: Sequence[Constant] | Mapping[Any, Constant]) -> Const | None:
    """``pattern % values``, values one after the other or by name, as texts and plain numbers."""
    if INPUT_BEGINS in pattern:
        return None
    found: list[str] = []
    end = used = 0
    for match in _PERCENT.finditer(pattern):
        name, width, kind = match.groups()
        found.append(piece := pattern[end : match.start()])
        end = match.end()
        if "%" in piece:
            return None
        if kind == "%":
            if match.group() != "%%":
                return None
            found.append("%")
            continue
        if (name is None) is isinstance(values, Mapping):
            return None
        try:
            value = values[name] if isinstance(values, Mapping) else values[used]
        except LookupError:
            return None
        used += 1
        if kind != "s" and (isinstance(value, bool) or not isinstance(value, int | float)):
            return None
        if kind in "di" and not isinstance(value, int):
            return None
        found.append(str(value) if kind == "s" and not width else f"%{width}{kind}" % value)
    rest = pattern[end:]
    if "%" in rest or not (isinstance(values, Mapping) or used == len(values)):
        return None
    return joined([*found, rest])


def formatted(pattern: str, args: Sequence[Constant], names: Mapping[str, Constant]) -> Const | None:
    """``pattern.format(*args, **names)``, with plain fields only: no attribute and no index."""
    if INPUT_BEGINS in pattern:
        return None
    found: list[str] = []
    counter = size = 0
    try:
        for text, name, spec, conversion in string.Formatter().parse(pattern):
            found.append(text)
            if name is None:
                continue
            if name == "":
                name, counter = str(counter), counter + 1
            shown = shaped(args[int(name)] if name.isdigit() else names[name], spec or "", conversion)
            if shown is None:
                return None
            found.append(shown)
            size += len(shown)
            if size > TEXT_LIMIT:
                raise TooMuch(f"a text grows beyond {TEXT_LIMIT} characters")
    except (ValueError, LookupError):
        return None
    return joined(found)


def shaped(value: Constant, spec: str, conversion: str | None) -> str | None:
    """A value as ``{value!conversion:spec}`` shows it; None where that is not known."""
    if conversion not in (None, "s", "r") or not _FORMAT.fullmatch(spec):
        return None
    if symbolic(value) and (spec or conversion == "r"):
        return None
    shown = value if conversion is None else str(value) if conversion == "s" else repr(value)
    if not spec:
        return str(shown)
    try:
        return format(shown, spec)
    except (ValueError, TypeError, OverflowError):
        return None


def text_method(value: str, name: str, args: Sequence[Constant]) -> Const | None:
    """``value.name(*args)``."""
    if INPUT_BEGINS in value:
        return _around_inputs(value, name, args)
    if symbolic(value) and name not in _KEEPS_PLACES:
        return None
    if name in _PADDED and args and isinstance(args[0], int) and args[0] <= TEXT_LIMIT:
        pass
    elif name not in _TEXT_METHODS or not all(isinstance(arg, str) for arg in args):
        return None
    if name == "replace" and (len(args) != 2 or (value.count(str(args[0])) + 1) * len(str(args[1])) > TEXT_LIMIT):
        return None
    try:
        found = getattr(value, name)(*args)
    except TypeError:
        return None
    # Part of the folder's name may be gone, or have been asked for.
    return None if symbolic(value) and not symbolic(found) else bounded(found)


def _around_inputs(value: str, name: str, args: Sequence[Constant]) -> Const | None:
    """A method that only changes the text around the inputs in it, whatever these are."""
    match name, list(args):
        case "replace", [str(old), str(new)] if _TEMPLATE_MARKS.search(old):
            parts = re.split(f"({INPUT_BEGINS}[^{INPUT_ENDS}]*{INPUT_ENDS})", value)
            return joined([part if part.startswith(INPUT_BEGINS) else part.replace(old, new) for part in parts])
        case "strip" | "lstrip" | "rstrip", []:
            found: str = getattr(value, name)()
            left, right = name != "rstrip", name != "lstrip"
            if not (left and found.startswith(INPUT_BEGINS)) and not (right and found.endswith(INPUT_ENDS)):
                return Const(found)
    return None


def split(value: str, name: str, args: Sequence[Constant]) -> list[str] | None:
    """``value.split(…)``, ``rsplit``, ``splitlines``, ``partition`` or ``rpartition``."""
    if symbolic(value) or name not in ("split", "rsplit", "splitlines", "partition", "rpartition"):
        return None
    try:
        found = getattr(value, name)(*args)
    except (TypeError, ValueError):
        return None
    return list(found)


def substituted(pattern: str, names: Mapping[str, Constant], safe: bool) -> Const | None:
    """``string.Template(pattern).substitute(names)``."""
    if INPUT_BEGINS in pattern:
        return None
    longest = max((len(str(value)) for value in names.values()), default=0)
    if len(pattern) + pattern.count("$") * longest > TEXT_LIMIT:
        return None
    template = string.Template(pattern)
    try:
        return Const(template.safe_substitute(names) if safe else template.substitute(names))
    except (LookupError, ValueError):
        return None


def converted(name: str, value: Constant) -> Const | None:
    """``int(value)``, ``str(value)``, ``float(value)`` or ``bool(value)``."""
    if isinstance(value, str) and (len(value) > 40 or symbolic(value)) and name in ("int", "float"):
        return None
    if isinstance(value, str) and name == "bool" and value.startswith(INPUT_BEGINS):
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
                return Const(bool(value))
    except (ValueError, OverflowError):
        return None
    return None
