"""Whether Flink's validator takes the arguments of conditions and calls, as far as their types are known."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from airflow_flinkcompat.compat.engines.flink.validation.fault import Fault
from airflow_flinkcompat.compat.engines.flink.validation.signatures import refused
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, Literal, walk
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Filter,
    GroupWindowAggregate,
    Join,
    Node,
    Over,
    Project,
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
        for condition in _conditions(node):
            if condition.type.is_known and condition.type.name not in ("BOOLEAN", "NULL"):
                kind = condition.type.with_nullability(True)
                yield Fault("condition", f"a condition is a {kind}; compare it with something")
        for call in _aggregates(node):
            if call.language == _BUILT_IN:
                yield from _of(call, declared)
        for expression in _expressions(node):
            yield from of_expression(expression, declared)


def of_expression(expression: Expression, declared: Collection[str]) -> Iterator[Fault]:
    """What Flink refuses of one expression.

    Args:
        expression: The expression.
        declared: As in :func:`faults`.

    Yields:
        The faults.
    """
    for part in walk(expression):
        if isinstance(part, FunctionCall):
            yield from _of(part, declared)


def _of(call: FunctionCall | AggregateCall, declared: Collection[str]) -> Iterator[Fault]:
    types = [arg.type for arg in call.args if arg.type.name != "SYMBOL"]
    if call.function not in declared and (why := refused(call.function, types, call.type)):
        yield Fault(f"arguments of {call.function}", why)
    if call.function == "LIKE" and len(call.args) > len(("value", "pattern")) and (why := _escaped(*call.args[1:])):
        yield Fault("escape", why)


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


def _conditions(node: Node) -> Iterator[Expression]:
    if isinstance(node, Filter | Join) and node.condition is not None:
        yield node.condition
    for call in _aggregates(node):
        if call.filter is not None:
            yield call.filter


def _aggregates(node: Node) -> Iterator[AggregateCall]:
    if isinstance(node, Aggregate | GroupWindowAggregate):
        yield from node.aggregates
    elif isinstance(node, Over):
        yield from (each.call for each in node.calls)


def _expressions(node: Node) -> Iterator[Expression]:
    yield from _conditions(node)
    if isinstance(node, Project):
        yield from node.expressions
    elif isinstance(node, Aggregate | GroupWindowAggregate):
        yield from node.keys
    for call in _aggregates(node):
        yield from call.args
