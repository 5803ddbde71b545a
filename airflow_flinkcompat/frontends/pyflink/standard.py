"""What the standard library makes of constants: texts, paths, files and containers."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping, Sequence

from airflow_flinkcompat.frontends.pyflink import constants, paths
from airflow_flinkcompat.frontends.pyflink.objects import Template
from airflow_flinkcompat.frontends.table_api.values import (
    INPUT_BEGINS,
    TEXT_LIMIT,
    Const,
    Container,
    Path,
    Ref,
    Value,
    bounded,
)

_PATHS = ("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.PurePosixPath")
_CONVERSIONS = ("str", "int", "float", "bool")
_ABSOLUTE = ("os.path.abspath", "os.path.realpath")


def text_of(value: Value) -> str | None:
    match value:
        case Const(str(text)) | Path(text):
            return text
    return None


def call(path: str, args: Sequence[Value], names: Mapping[str, Value]) -> Value | None:
    """A call of a function of the standard library on what is known; None where it is not one of these."""
    # Where an input leads is not known: what it is joined with may not count.
    texts = [text for arg in args if (text := text_of(arg)) is not None and INPUT_BEGINS not in text]
    if path in _PATHS and len(texts) == len(args) and not names:
        return Path(paths.join(*texts) or ".")
    match path, list(args):
        case "logging.getLogger", _:
            return Ref("logging.Logger")
        case "builtins.print", _:
            return Const(None)
        case "os.getcwd" | "pathlib.Path.cwd", []:
            return Const(paths.STARTED) if path == "os.getcwd" else Path(paths.STARTED)
    if names or not args:
        return None
    if path.startswith("os.path.") or path in ("os.fspath", "os.sep.join"):
        return _on_path(path, texts) if len(texts) == len(args) else None
    match path, list(args):
        case "textwrap.dedent", [Const(str(text))]:
            return bounded(textwrap.dedent(text))
        case "textwrap.indent", [Const(str(text)), Const(str(prefix))]:
            if len(text) + (text.count("\n") + 1) * len(prefix) <= TEXT_LIMIT:
                return Const(textwrap.indent(text, prefix))
        case "inspect.cleandoc", [Const(str(text))]:
            return bounded(inspect.cleandoc(text))
        case "string.Template", [Const(str(text))]:
            return Template(text)
    return _builtin(path.removeprefix("builtins."), args) if path.startswith("builtins.") else None


def _on_path(path: str, texts: Sequence[str]) -> Value | None:
    match path, list(texts):
        case "os.path.join", _:
            return bounded(paths.join(*texts))
        case "os.path.dirname", [text]:
            return Const(paths.parent(text))
        case "os.path.basename", [text] if text not in (paths.PROGRAM, paths.STARTED):
            return Const(text.rpartition("/")[2])
        case "os.path.normpath", [text]:
            return Const(paths.normal(text))
        case absolute, [text] if absolute in _ABSOLUTE:
            return Const(paths.absolute(text))
        case "os.fspath", [text]:
            return Const(text)
    return None


def _builtin(name: str, args: Sequence[Value]) -> Value | None:
    match name, list(args):
        case conversion, [Const(given)] if conversion in _CONVERSIONS:
            return constants.converted(conversion, given)
        case "str", [Path(text)]:
            return Const(text)
        case "repr", [Const(given)] if not paths.symbolic(given):
            return bounded(repr(given))
        case "len", [Const(str(text))] if not paths.symbolic(text):
            return Const(len(text))
        case "len", [Container(inner, "", kind)] if kind != "iterator":
            return Const(len(inner))
        case "abs", [Const(int() | float() as number)]:
            return bounded(abs(number))
        case "round", [Const(int() | float() as number), *rest]:
            digits = [part.value for part in rest if isinstance(part, Const)]
            if len(digits) == len(rest) and all(isinstance(digit, int) and abs(digit) < 20 for digit in digits):
                return bounded(round(number, *digits))  # type: ignore[arg-type]
        case "range", _:
            return _range(args)
        case "min" | "max" | "sum", [Container(list(inner), "")]:
            return _of_numbers(name, inner)
        case "min" | "max", [_, _, *_]:
            return _of_numbers(name, args)
    return None


def _range(args: Sequence[Value]) -> Container | None:
    ends = [part.value for part in args if isinstance(part, Const) and isinstance(part.value, int)]
    if len(ends) != len(args) or len(ends) > 3 or (len(ends) == 3 and not ends[2]):
        return None
    numbers = range(*ends)
    try:
        return Container([Const(number) for number in numbers], kind="tuple") if len(numbers) <= 10_000 else None
    except OverflowError:
        return None


def _of_numbers(name: str, values: Sequence[Value]) -> Value | None:
    numbers = [value.value for value in values if isinstance(value, Const) and isinstance(value.value, int | float)]
    if len(numbers) != len(values) or not (numbers or name == "sum"):
        return None
    return bounded(min(numbers) if name == "min" else max(numbers) if name == "max" else sum(numbers))


def on_path(path: Path, name: str, args: Sequence[Value]) -> Value | None:
    """``path.name(*args)``, for what needs no file."""
    texts = [text for arg in args if (text := text_of(arg)) is not None and INPUT_BEGINS not in text]
    if INPUT_BEGINS in path.text and name not in ("joinpath", "as_posix", "__str__"):
        return None
    match name, texts:
        case _ if len(texts) != len(args):
            return None
        case "joinpath", _:
            return Path(paths.join(path.text, *texts))
        case "resolve" | "absolute", []:
            return Path(paths.absolute(path.text))
        case "as_posix" | "__str__", []:
            return Const(path.text)
        case "as_uri", [] if paths.absolute(path.text) == path.text:
            return Const(f"file://{path.text}")
        case "with_name", [text]:
            return Path(paths.join(paths.parent(path.text), text))
        case "with_suffix", [text] if "." in path.text.rpartition("/")[2]:
            return Path(path.text.rpartition(".")[0] + text)
    return None


def of_path(path: Path, name: str) -> Value | None:
    """``path.name``."""
    last = path.text.rpartition("/")[2]
    if INPUT_BEGINS in path.text:
        return None
    match name:
        case "parent":
            return Path(paths.parent(path.text) or ".")
        case "parents":
            above = [Path(paths.parent(path.text) or ".")]
            for _ in range(9):
                above.append(Path(paths.parent(above[-1].text) or "."))
            return Container(list(above), kind="tuple")
        case "name" if not paths.symbolic(last):
            return Const(last)
        case "stem" if not paths.symbolic(last):
            return Const(last.rpartition(".")[0] or last)
        case "suffix" if not paths.symbolic(last):
            return Const("." + last.rpartition(".")[2] if "." in last[1:] else "")
    return None
