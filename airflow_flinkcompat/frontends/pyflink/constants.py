"""Python's operations on constants, texts, paths, lists and dictionaries, with bounded results.

Each operation returns None if its result is unknown.
"""

from __future__ import annotations

import json
import operator
import re
import string
import textwrap
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow_flinkcompat.frontends.pyflink import inputs
from airflow_flinkcompat.frontends.pyflink.inputs import symbolic
from airflow_flinkcompat.frontends.table_api.values import (
    INPUT_BEGINS,
    TEXT_LIMIT,
    Const,
    Constant,
    Container,
    NotRead,
    Path,
    Ref,
    TooMuch,
    UnknownValue,
    Value,
    bounded,
)

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
_TEXT_METHODS = (
    "strip", "lstrip", "rstrip", "upper", "lower", "replace", "startswith", "endswith", "removeprefix", "removesuffix",
)  # fmt: skip
_KEEPS_PLACES = ("replace", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix")
"""Text methods whose result does not depend on the folder names in the text."""
_FORMAT = re.compile(r"(?:[<>^]?0?[0-9]{0,3})[,_]?(?:\.[0-9]{1,2})?[sdfgeExXob%]?")
_PERCENT = re.compile(r"%(?:\((\w+)\))?([sd%])")
_PATHS = ("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.PurePosixPath")
_LOADS: Mapping[str, Callable[[str], Any]] = {"json.loads": json.loads, "tomllib.loads": tomllib.loads}


def joined(parts: Sequence[str], between: str = "") -> Const:
    """Join the parts into one text. Raises :class:`TooMuch` if the text would be too long."""
    if sum(map(len, parts)) + len(between) * len(parts) > TEXT_LIMIT:
        raise TooMuch(f"a text grows beyond {TEXT_LIMIT} characters")
    return Const(between.join(parts))


def binary(name: str, left: Constant, right: Constant) -> Const | None:
    """The result of ``left OP right``; the operator is the name of an :mod:`ast` node."""
    match left, right:
        case str(), _ if name == "Mod":
            return percent(left, [right])
        case str(), str() if name == "Add":
            return joined([left, right])
        case int() | float(), int() | float():
            function = _ARITHMETIC.get(name)
            try:
                return None if function is None else bounded(function(left, right))
            except (ArithmeticError, TypeError):
                return None
    return None


def compare(name: str, left: Constant, right: Constant) -> Const | None:
    """The result of the comparison ``left OP right``."""
    if symbolic(left) or symbolic(right):
        # A text with an input or an unknown folder has an unknown content, but it is not None.
        plain = None in (left, right) and name in ("Is", "IsNot", "Eq", "NotEq")
        return Const(name in ("IsNot", "NotEq")) if plain else None
    single = (bool, type(None))
    if name in ("Is", "IsNot") and not (isinstance(left, single) or isinstance(right, single)):
        # Two equal numbers or texts may or may not be the same object.
        return None
    function = _COMPARISONS.get(name)
    try:
        return None if function is None else Const(bool(function(left, right)))
    except TypeError:
        return None


def percent(pattern: str, values: Sequence[Constant] | Mapping[Any, Constant]) -> Const | None:
    """``pattern % values`` with plain ``%s``, ``%d`` and ``%(name)s`` only."""
    if INPUT_BEGINS in pattern or "%" in _PERCENT.sub("", pattern):
        return None
    found: list[str] = []
    end = used = 0
    for match in _PERCENT.finditer(pattern):
        name, kind = match.groups()
        found.append(pattern[end : match.start()])
        end = match.end()
        if kind == "%":
            found.append("%")
            continue
        try:
            value = values[name] if isinstance(values, Mapping) else values[used]
        except LookupError:
            return None
        used += 1
        if (name is None) is isinstance(values, Mapping) or (kind == "d" and type(value) is not int):
            return None
        found.append(str(value))
    return joined([*found, pattern[end:]]) if isinstance(values, Mapping) or used == len(values) else None


def formatted(pattern: str, args: Sequence[Constant], names: Mapping[str, Constant]) -> Const | None:
    """``pattern.format(*args, **names)`` with plain fields, without attributes and indexes."""
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
    """The text of ``{value!conversion:spec}``."""
    if conversion not in (None, "s", "r") or not _FORMAT.fullmatch(spec):
        return None
    if symbolic(value) and (spec or conversion == "r"):
        return None
    shown = value if conversion is None else str(value) if conversion == "s" else repr(value)
    try:
        return format(shown, spec) if spec else str(shown)
    except (ValueError, TypeError, OverflowError):
        return None


def text_method(value: str, name: str, args: Sequence[Constant]) -> Value | None:
    """``value.name(*args)`` for a text."""
    if INPUT_BEGINS in value or (symbolic(value) and name not in _KEEPS_PLACES):
        return None
    if name == "split" and all(isinstance(arg, str) and arg for arg in args) and len(args) < 2:
        return Container([Const(part) for part in value.split(str(args[0]) if args else None)])
    if name not in _TEXT_METHODS or not all(isinstance(arg, str) for arg in args):
        return None
    if name == "replace" and (len(args) != 2 or (value.count(str(args[0])) + 1) * len(str(args[1])) > TEXT_LIMIT):
        return None
    try:
        found = getattr(value, name)(*args)
    except TypeError:
        return None
    # Part of the folder's name may have been removed.
    return None if symbolic(value) and not symbolic(found) else bounded(found)


def converted(name: str, value: Constant) -> Const | None:
    """``int(value)``, ``str(value)`` or ``float(value)``."""
    if name == "str":
        return bounded(str(value))
    if value is None or (isinstance(value, str) and (len(value) > 40 or symbolic(value))):
        return None
    try:
        return bounded(int(value) if name == "int" else float(value))
    except (ValueError, OverflowError):
        return None


# ------------------------------------------------------------------------------------------------ lists, dictionaries
def of_dictionary(inner: Mapping[Any, Value], name: str, args: Sequence[Value]) -> Value | None:
    """``inner.name(*args)`` for the methods of a dictionary that change nothing."""
    match name, list(args):
        case "get", [Const(key), *default] if len(default) < 2 and not symbolic(key):
            return inner[key] if key in inner else (default[0] if default else Const(None))
        case "values", []:
            return Container(list(inner.values()), kind="tuple")
        case "keys", []:
            return Container([Const(key) for key in inner], kind="tuple")
        case "items", []:
            pairs = [Container([Const(key), value], kind="tuple") for key, value in inner.items()]
            return Container(list(pairs), kind="tuple")
    return None


def loaded(path: str, text: str) -> Value:
    """The result of ``json.loads`` or ``tomllib.loads``. Raises :class:`NotRead` if the call would fail."""
    try:
        return _data(_LOADS[path](text))
    except (ValueError, RecursionError):
        raise NotRead(f"{path.partition('.')[0]} cannot parse a text") from None


def _data(given: Any) -> Value:
    match given:
        case dict():
            return Container({key: _data(value) for key, value in given.items()}, kind="dict")
        case list():
            return Container([_data(value) for value in given])
        case str() | bool() | int() | float() | None:
            return bounded(given)
    return UnknownValue("a date or time from a file is not supported")


# ------------------------------------------------------------------------------------------------ standard library
def text_of(value: Value) -> str | None:
    """The text of a constant or a path."""
    match value:
        case Const(str(text)) | Path(text):
            return text
    return None


def call(path: str, args: Sequence[Value]) -> Value | None:
    """A call of the standard library on known values."""
    # The path in an input is unknown. If it is absolute, the parts before it have no effect.
    texts = [text for arg in args if (text := text_of(arg)) is not None and INPUT_BEGINS not in text]
    if path.startswith("os.path.") or path in _PATHS:
        return _on_path(path, texts) if len(texts) == len(args) else None
    match path, list(args):
        case "logging.getLogger", _:
            return Ref("logging.Logger")
        case "os.getcwd", []:
            return Const(inputs.STARTED)
        case "textwrap.dedent", [Const(str(text))]:
            return bounded(textwrap.dedent(text))
    return _builtin(path.removeprefix("builtins."), args) if path.startswith("builtins.") else None


def _on_path(path: str, texts: Sequence[str]) -> Value | None:
    if path in _PATHS:
        return Path(inputs.join(*texts) or ".")
    match path, list(texts):
        case "os.path.join", _:
            return bounded(inputs.join(*texts))
        case "os.path.dirname", [text]:
            return Const(inputs.parent(text))
        case "os.path.abspath" | "os.path.realpath", [text]:
            return Const(inputs.absolute(text))
    return None


def _builtin(name: str, args: Sequence[Value]) -> Value | None:
    match name, list(args):
        case "str" | "int" | "float", [Const(given)]:
            return converted(name, given)
        case "str", [Path(text)]:
            return Const(text)
        case "len", [Container(inner, "")]:
            return Const(len(inner))
        case "range", _:
            ends = [part.value for part in args if isinstance(part, Const) and isinstance(part.value, int)]
            if len(ends) == len(args) and len(ends) in (1, 2) and all(abs(end) <= 10_000 for end in ends):
                return Container([Const(number) for number in range(*ends)], kind="tuple")
    return None


def on_path(path: Path, name: str, args: Sequence[Value]) -> Value | None:
    """``path.name(*args)`` of :mod:`pathlib`, for methods that read no file."""
    texts = [text for arg in args if (text := text_of(arg)) is not None and INPUT_BEGINS not in text]
    if len(texts) != len(args) or (INPUT_BEGINS in path.text and name != "joinpath"):
        return None
    match name, texts:
        case "joinpath", _:
            return Path(inputs.join(path.text, *texts))
        case "resolve" | "absolute", []:
            return Path(inputs.absolute(path.text))
        case "as_uri", [] if inputs.absolute(path.text) == path.text:
            return Const(f"file://{path.text}")
    return None


def of_path(path: Path, name: str) -> Value | None:
    """``path.parent`` of :mod:`pathlib`; None for any other name."""
    return Path(inputs.parent(path.text) or ".") if name == "parent" and INPUT_BEGINS not in path.text else None
