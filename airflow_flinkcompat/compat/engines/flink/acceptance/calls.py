"""Whether Flink's validator takes the arguments of conditions and calls, as far as their types are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_flinkcompat.compat.engines.flink.acceptance.fault import Fault
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, walk
from airflow_flinkcompat.plan.nodes import Filter, Node, Project, walk_nodes
from airflow_flinkcompat.plan.types import APPROXIMATE, CHARACTERS, INTEGERS, TIMESTAMPS, DataType

_LOGIC = frozenset({"AND", "OR", "NOT"})
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
_OF_TEXT = frozenset({"UPPER", "LOWER", "SUBSTRING", "CHAR_LENGTH", "CONCAT", "||"})
"""Functions whose first argument is a text; of two of them every argument is."""
_TEXTS_ONLY = frozenset({"CONCAT", "||"})

_NUMBERS = frozenset({*INTEGERS, *APPROXIMATE, "DECIMAL"})
_MOMENTS = frozenset({*TIMESTAMPS, "DATE", "TIME"})


def faults(root: Node) -> Iterator[Fault]:
    """What Flink refuses of the conditions and expressions of a query; each kind was asked of a 2.3.0 planner.

    Args:
        root: The query.

    Yields:
        The faults.
    """
    for node in walk_nodes(root):
        if isinstance(node, Filter):
            if node.condition.type.is_known and node.condition.type.name not in ("BOOLEAN", "NULL"):
                yield Fault("condition", f"a condition is a {_shown(node.condition.type)}; compare it with something")
            yield from _calls((node.condition,))
        elif isinstance(node, Project):
            yield from _calls(node.expressions)


def _calls(expressions: Iterable[Expression]) -> Iterator[Fault]:
    for part in (each for whole in expressions for each in walk(whole)):
        if isinstance(part, FunctionCall) and (wrong := _wrong(part.function, [arg.type for arg in part.args])):
            yield Fault(f"arguments of {part.function}", f"{part.function} takes no {wrong}; CAST it")


def _wrong(function: str, types: list[DataType]) -> str:
    """What a function does not take, in words; "" where it takes everything, or that is not known."""
    if not all(type.is_known for type in types):
        return ""
    names = {type.name for type in types}
    if function in _LOGIC:
        return _first(types, {"BOOLEAN", "NULL"})
    if function in _OF_TEXT:
        return _first(types if function in _TEXTS_ONLY else types[:1], {*CHARACTERS, "BINARY", "VARBINARY", "NULL"})
    if function in _ARITHMETIC:
        return next((_shown(type) for type in types if type.name in CHARACTERS), "")
    mixed = function in _COMPARISONS and names & _NUMBERS and names & _MOMENTS
    return " and ".join(_shown(type) for type in types) if mixed else ""


def _first(types: list[DataType], taken: set[str]) -> str:
    return next((_shown(type) for type in types if type.name not in taken), "")


def _shown(type: DataType) -> str:
    return str(type.with_nullability(True))
