"""Whether Flink plans a join FOR SYSTEM_TIME AS OF; every kind was asked of a 2.3.0 planner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from airflow_flinkcompat.compat.engines.flink.validation.fault import Fault
from airflow_flinkcompat.plan.expressions import (
    ACCESSES,
    Expression,
    FunctionCall,
    InputRef,
    conjuncts,
    through,
    transform,
    walk,
)
from airflow_flinkcompat.plan.nodes import Filter, Join, Node, Project
from airflow_flinkcompat.plan.scalars import time_attribute_of
from airflow_flinkcompat.plan.types import TimeAttribute

_REFUSED = ("RIGHT", "FULL")
_EQUALITIES = ("=", "IS NOT DISTINCT FROM")


def faults(root: Node) -> Iterator[Fault]:
    """Find what Flink refuses of the joins FOR SYSTEM_TIME AS OF of a query.

    Args:
        root: The query.

    Yields:
        The faults.
    """
    yield from _below(root, ())


def _below(node: Node, above: Sequence[Expression]) -> Iterator[Fault]:
    """Find the faults of a node and what is below it; the conditions of WHERE above it are over its columns."""
    match node:
        case Filter():
            yield from _below(node.input, (*above, *conjuncts(node.condition)))
        case Project():
            computed = through(node.expressions)
            yield from _below(node.input, [transform(part, computed) for part in above])
        case Join():
            width = len(node.left.schema)
            if node.temporal is not None:
                yield from _of(node, above)
            yield from _below(node.left, [part for part in above if _sides(part, width) == {True}])
            right = _shifted(width)
            yield from _below(node.right, [transform(part, right) for part in above if _sides(part, width) == {False}])
        case _:
            for each in node.inputs:
                yield from _below(each, ())


def _of(join: Join, above: Sequence[Expression]) -> Iterator[Fault]:
    own = () if join.condition is None else conjuncts(join.condition)
    by_event_time = join.temporal is not None and time_attribute_of(join.temporal, join.schema)
    # A join with versions takes its key from ON alone, a lookup from WHERE too.
    compared = own if by_event_time is TimeAttribute.ROWTIME else (*own, *above)
    width = len(join.left.schema)
    keys = [key for part in compared if (key := _key(part, width)) is not None]
    if join.kind in _REFUSED:
        yield Fault("kind of join", f"a join FOR SYSTEM_TIME AS OF is no {join.kind} JOIN; take INNER or LEFT")
    elif not keys:
        yield Fault("key of join", "a join FOR SYSTEM_TIME AS OF has no = of columns of both sides; compare the key")
    elif not any(_is_stored(key) for key in keys):
        message = "the key of a join FOR SYSTEM_TIME AS OF is computed; compare a column of the joined table itself"
        yield Fault("key of join", message, certain=False)


def _is_stored(key: Expression) -> bool:
    return isinstance(key, InputRef) or (isinstance(key, FunctionCall) and key.function in ACCESSES)


def _key(part: Expression, width: int) -> Expression | None:
    """The side of an equality that is computed of the right input alone, where the other one is of the left input."""
    if not isinstance(part, FunctionCall) or part.function not in _EQUALITIES:
        return None
    sides = [_sides(arg, width) for arg in part.args]
    return part.args[sides.index({False})] if {True} in sides and {False} in sides else None


def _shifted(width: int) -> Callable[[Expression], Expression]:
    return lambda leaf: replace(leaf, index=leaf.index - width) if isinstance(leaf, InputRef) else leaf


def _sides(expression: Expression, width: int) -> set[bool]:
    return {part.index < width for part in walk(expression) if isinstance(part, InputRef)}
