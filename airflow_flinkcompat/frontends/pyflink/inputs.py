"""What only the environment of a program knows, by name: the same expression over the same input is the same value.

A value that nobody gave is an :class:`~airflow_flinkcompat.frontends.table_api.values.UnknownValue` with a name, the
expression that gives it. Where it ends in a text the text holds its name between two marks, and the statement made of
it holds ``${name}``. Two inputs of different names may be equal or not: nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from airflow_flinkcompat.frontends.table_api.inputs import MARKED, digest, names
from airflow_flinkcompat.frontends.table_api.values import (
    INPUT_BEGINS,
    Asked,
    Const,
    Container,
    Path,
    Ref,
    UnknownValue,
    Value,
)

_BARE_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_LENGTH = 600
"""Characters of a name: what is longer is known by its digest."""
_PURE = re.compile(
    r"builtins\.(str|int|float|bool|len|repr|min|max|sum|sorted|list|tuple|dict|set|abs|round|any|all)"
    r"|json\.loads?|ast\.literal_eval|os\.path\.\w+|re\.(sub|split|escape)|base64\.\w+|urllib\.parse\.\w+"
    r"|yaml\.(safe_)?load|toml(lib)?\.loads?|pathlib\.\w+|shlex\.\w+|textwrap\.\w+|boto3\.(client|resource)"
)
"""Functions that answer the same to the same, or ask a place that its arguments name."""
_LOADS = ("json.load", "json.loads", "yaml.safe_load", "tomllib.load", "tomllib.loads", "toml.load", "toml.loads")
_METHODS = re.compile(
    r"(get|items|keys|values|copy|split|rsplit|splitlines|strip|[lr]strip|upper|lower|title|replace|startswith"
    r"|endswith|removeprefix|removesuffix|join|format|encode|decode|count|index|isdigit|partition|rpartition|zfill"
    r"|exists|is_file|is_dir|read_text|get_parameter|get_secret_value)"
)
"""Methods that change nothing and answer the same to the same."""


def named(name: str, of: Sequence[Value] = (), reason: str = "") -> UnknownValue:
    """An input, or what is made of inputs; ``of`` are those, whose reason stands for it."""
    why = reason or next((each.reason for each in of if isinstance(each, UnknownValue) and each.name), "")
    if not why:
        found = next((value for each in of if (value := _inside(each)) is not None), "")
        why = f"{found} is not known" if found else Asked("the command line decides", "sys.argv[1]")
    return UnknownValue(why, name=name if len(name) <= _LENGTH else f"{name[:40]}~{digest(name)}")


def placed_beside_text(text: str) -> bool:
    """Whether a text holds more than inputs."""
    return bool(MARKED.sub("", text))


def canonical(value: Value) -> str:
    """How a value is written in the name of what is made of it; empty where it is not known what it is."""
    match value:
        case UnknownValue(name=name):
            return name
        case Const(str(text)):
            parts = MARKED.split(text)
            return " + ".join(_literal(part) if i % 2 == 0 else part for i, part in enumerate(parts) if part) or '""'
        case Const(given):
            return repr(given)
        case Path(text):
            return f"Path({canonical(Const(text))})"
        case Ref(path) if path == "sys.argv" or path.startswith("yaml."):
            return path
        case Container(dict(pairs), "") if all(isinstance(key, str) for key in pairs):
            values = {str(key): canonical(each) for key, each in pairs.items()}
            written = ", ".join(f"{_literal(key)}: {each}" for key, each in values.items())
            return f"{{{written}}}" if all(values.values()) else ""
        case Container(list(inner), "", kind) if kind in ("list", "tuple"):
            listed = [canonical(each) for each in inner]
            return f"{kind}({', '.join(listed)})" if all(listed) else ""
    return ""


def has_input(value: Value) -> bool:
    """Whether a value is made of inputs."""
    match value:
        case UnknownValue(name=name):
            return bool(name)
        case Const(str(text)) | Path(text):
            return INPUT_BEGINS in text
        case Ref(path):
            return path == "sys.argv"
        case Container(list(inner), "", kind) if kind in ("list", "tuple"):
            return any(map(has_input, inner))
    return False


def element(owner: Value, key: Value) -> UnknownValue | None:
    """``owner[key]``, where the owner is an input."""
    where, at = canonical(owner), canonical(key)
    if not (has_input(owner) and where and at):
        return None
    if owner == Ref("sys.argv"):
        return named(f"sys.argv[{at}]", reason=Asked("the command line decides", f"sys.argv[{at}]"))
    if isinstance(key, Const) and isinstance(key.value, str) and _BARE_KEY.fullmatch(key.value):
        at = key.value
    return named(f"{where}[{at}]", (owner, key))


def found_by(condition: str, name: str) -> str:
    """How an element of an input is called that a condition finds, as far as it stands behind the input's name."""
    plain = re.fullmatch(r"\(\[\*\]\[([\w.-]+)\] == \"([\w.:-]+)\"\)", condition.replace(name, ""))
    return f"[{plain[1]}={plain[2]}]" if plain else condition.replace(f"{name}[*]", "")


def operation(left: Value, word: str, right: Value) -> UnknownValue | None:
    """``left OP right``, where an input is in one of them."""
    written = canonical(left), canonical(right)
    if not all(written) or not (has_input(left) or has_input(right)):
        return None
    return named(f"({written[0]} {word} {written[1]})", (left, right))


def called(path: str, args: Sequence[Value], words: Mapping[str, Value]) -> UnknownValue | None:
    """What a function answers that is known to answer the same to the same; None where it is none of these."""
    every = [*args, *words.values()]
    if path in _LOADS and len(args) == 1 and not words:
        match args[0]:
            case UnknownValue(name=name) if name.startswith(("file ", "text of ")):
                return named(name.removeprefix("file ").removeprefix("text of "), args)
    if not _PURE.fullmatch(path) or not (any(map(has_input, every)) or path.startswith("boto3.")):
        return None
    if path == "builtins.str" and len(args) == 1 and isinstance(args[0], UnknownValue) and not words:
        return args[0]
    return _call(path.removeprefix("builtins."), args, words)


def method(owner: Value, name: str, args: Sequence[Value], words: Mapping[str, Value]) -> UnknownValue | None:
    """``owner.name(…)`` of an input, or of a text with one in it."""
    where = canonical(owner)
    if not where or not any(map(has_input, (owner, *args, *words.values()))):
        return None
    if isinstance(owner, UnknownValue) and owner.name.startswith("file ") and name == "read" and not args:
        return named(f"text of {owner.name.removeprefix('file ')}", (owner,))
    if not _METHODS.fullmatch(name):
        return None
    if name == "get" and len(args) == 1 and not words:
        return element(owner, args[0])
    if isinstance(owner, UnknownValue) and owner.name.startswith("text of ") and name == "strip" and not args:
        return named(f"{owner.name}.strip()", (owner,))
    return _call(f"({where}).{name}", args, words, (owner,))


def is_method(name: str) -> bool:
    """Whether methods of this name change nothing, of whatever they are."""
    return _METHODS.fullmatch(name) is not None


def _call(
    function: str, args: Sequence[Value], words: Mapping[str, Value], of: Sequence[Value] = ()
) -> UnknownValue | None:
    listed = [canonical(arg) for arg in args]
    given = {key: canonical(value) for key, value in words.items()}
    if not all(listed) or not all(given.values()):
        return None
    written = ", ".join([*listed, *(f"{key}={value}" for key, value in sorted(given.items()))])
    return named(f"{function}({written})", (*of, *args, *words.values()))


def _literal(text: str) -> str:
    """A text in quotes that no SQL ends at."""
    escaped = text.encode("unicode_escape").decode()
    return '"' + escaped.replace('"', "\\x22").replace("'", "\\x27").replace("`", "\\x60") + '"'


def _inside(value: Value) -> str | None:
    match value:
        case Const(str(text)) | Path(text):
            return next(iter(names(text)), None)
        case Container(list(inner), ""):
            return next((found for each in inner if (found := _inside(each)) is not None), None)
    return None
