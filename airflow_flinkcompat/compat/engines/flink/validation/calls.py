"""Whether Flink's validator takes the arguments of conditions and calls, as far as their types are known."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from airflow_flinkcompat.compat.engines.flink.validation.fault import Fault
from airflow_flinkcompat.compat.engines.flink.validation.signatures import is_refused_late, mixed, refused
from airflow_flinkcompat.plan.expressions import ACCESSES, AggregateCall, Expression, FunctionCall, Literal, walk
from airflow_flinkcompat.plan.functions import is_built_in
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Correlate,
    Filter,
    GroupWindowAggregate,
    Join,
    Node,
    Opaque,
    Over,
    Project,
    Union,
    Values,
    walk_nodes,
)

_BUILT_IN = "builtin"


def faults(root: Node, declared: Collection[str]) -> Iterator[Fault]:
    """What Flink refuses of the conditions and expressions of a query.

    Args:
        root: The query.
        declared: Functions that the script declares, in capitals; they may hide one of Flink's.

    Yields:
        The faults.
    """
    for node in walk_nodes(root):
        yield from _rows(node)
        for condition in _conditions(node):
            if condition.type.is_known and condition.type.name not in ("BOOLEAN", "NULL"):
                kind = condition.type.with_nullability(True)
                yield Fault("condition", f"a condition is a {kind}; compare it with something")
        for call in _aggregates(node):
            if call.language == _BUILT_IN:
                yield from _of(call, declared)
        for expression in _expressions(node):
            if isinstance(expression, FunctionCall):
                yield from of_expression(expression, declared)


def of_expression(expression: Expression, declared: Collection[str]) -> Iterator[Fault]:
    """What Flink refuses of one expression."""
    for part in walk(expression):
        if isinstance(part, FunctionCall):
            yield from _of(part, declared)


def of_view(root: Node, declared: Collection[str]) -> Iterator[Fault]:
    """Find what Flink refuses of a view where it is declared, whether a query reads it or not."""
    yield from (fault for fault in faults(root, declared) if not fault.late)


def called(root: Node) -> Iterator[str]:
    """Return the functions that a query calls."""
    for node in walk_nodes(root):
        yield from (call.function for call in _aggregates(node))
        for expression in _expressions(node):
            if isinstance(expression, FunctionCall):
                yield from (part.function for part in walk(expression) if isinstance(part, FunctionCall))
        if isinstance(node, Correlate):
            yield node.function


def unknown(names: Iterable[str], declared: Collection[str]) -> Iterator[Fault]:
    """Find the functions that are neither Flink's own nor declared."""
    for name in dict.fromkeys(names):
        if not (is_built_in(name) or name in (*ACCESSES, "UNNEST") or name.upper() in declared):
            yield Fault(
                f"function {name}", f"{name} is no built-in function, and the script does not declare it", certain=False
            )


def _of(call: FunctionCall | AggregateCall, declared: Collection[str]) -> Iterator[Fault]:
    types = [arg.type for arg in call.args if arg.type.name != "SYMBOL"]
    if call.function not in declared and (why := refused(call.function, types, call.type)):
        yield Fault(f"arguments of {call.function}", why, late=is_refused_late(call.function, types, call.type))
    if call.function == "LIKE" and len(call.args) > len(("value", "pattern")) and (why := _escaped(*call.args[1:])):
        yield Fault("escape", why, late=True)


def _rows(node: Node) -> Iterator[Fault]:
    """Find columns of a set operation, or of VALUES, whose types have nothing in common."""
    match node:
        case Union(branches=inputs):
            rows = [[column.type for column in each.schema] for each in inputs]
        case Opaque(inputs=inputs, kind=kind) if kind.startswith(("INTERSECT", "EXCEPT")):
            rows = [[column.type for column in each.schema] for each in inputs]
        case Values():
            rows = [[cell.type for cell in row] for row in node.rows]
        case _:
            return
    what = "VALUES" if isinstance(node, Values) else "a set operation"
    for place, types in enumerate(zip(*rows, strict=False), start=1):
        if why := mixed(types):
            yield Fault("types of rows", f"column {place} of {what} {why}", late="DATE" in why)


def _escaped(pattern: Expression, escape: Expression) -> str:
    """Why Flink refuses an ESCAPE; "" where it takes it, or a part of it is no literal."""
    if not (isinstance(escape, Literal) and isinstance(escape.value, str)):
        return ""
    sign = escape.value
    if len(sign) > 1:
        return f"ESCAPE takes one character, and '{sign}' has {len(sign)}"
    if not sign or not (isinstance(pattern, Literal) and isinstance(pattern.value, str)):
        return ""
    escaped = re.sub(rf"{re.escape(sign)}[_%{re.escape(sign)}]", "", pattern.value)
    return f"'{sign}' in '{pattern.value}' escapes neither _, % nor itself" if sign in escaped else ""


def _conditions(node: Node) -> list[Expression]:
    found = [call.filter for call in _aggregates(node) if call.filter is not None]
    if isinstance(node, Filter | Join) and node.condition is not None:
        return [node.condition, *found]
    return found


def _aggregates(node: Node) -> tuple[AggregateCall, ...]:
    if isinstance(node, Aggregate | GroupWindowAggregate):
        return node.aggregates
    return tuple([each.call for each in node.calls]) if isinstance(node, Over) else ()


def _expressions(node: Node) -> list[Expression]:
    found = _conditions(node)
    if isinstance(node, Project):
        found += node.expressions
    elif isinstance(node, Aggregate | GroupWindowAggregate):
        found += node.keys
    for call in _aggregates(node):
        found += call.args
    return found
