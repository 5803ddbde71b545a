"""Whether a value, or a piece of source, may have to do with tables at all."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable

from airflow_flinkcompat.program.values import (
    Arguments,
    Described,
    Frame,
    Function,
    Items,
    Known,
    Namespace,
    Ref,
    Unknown,
    Value,
)

Spend = Callable[[int], None]
_CODE = ("exec", "eval", "compile", "__import__", "globals", "locals", "vars", "getattr", "setattr", "delattr")


def touches(value: Value, spend: Spend) -> bool:
    """Whether a value is, holds or does something with tables, or may; ``spend`` is told how much work that is."""
    return _touches(value, set(), spend)


def mentions(node: ast.AST, frame: Frame, spend: Spend) -> bool:
    """Whether a name in this piece of source, or in a function that it names, touches tables."""
    return _mentions(node, frame, set(), spend)


def _touches(value: Value, seen: set[int], spend: Spend) -> bool:
    if id(value) in seen:
        return False
    spend(1)
    if isinstance(value, Described):
        return True
    match value:
        case Known() | Arguments():
            return False
        case Unknown():
            return value.tables
        case Ref():
            if value.module == "builtins":
                return value.name in _CODE
            return value.module == "pyflink" or value.module not in sys.stdlib_module_names
        case Items():
            seen.add(id(value))
            inner = value.value.values() if isinstance(value.value, dict) else value.value
            return any(_touches(part, seen, spend) for part in inner)
        case Namespace():
            seen.add(id(value))
            return any(_touches(part, seen, spend) for part in value.names.values())
        case Function():
            seen.add(id(value))
            return _mentions(value.node, value.frame, seen, spend)


def _mentions(node: ast.AST, frame: Frame, seen: set[int], spend: Spend) -> bool:
    for part in ast.walk(node):
        spend(1)
        if isinstance(part, ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom | ast.Yield | ast.YieldFrom):
            return True
        if isinstance(part, ast.Name) and _touches(frame.find(part.id) or Ref(f"builtins.{part.id}"), seen, spend):
            return True
    return False
