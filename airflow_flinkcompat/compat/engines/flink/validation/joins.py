"""Whether Flink plans a join FOR SYSTEM_TIME AS OF; every kind was asked of a 2.3.0 planner."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_flinkcompat.compat.engines.flink.validation.fault import Fault
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, InputRef, walk
from airflow_flinkcompat.plan.nodes import Filter, Join, Node, walk_nodes

_REFUSED = ("RIGHT", "FULL")
_EQUALITIES = ("=", "IS NOT DISTINCT FROM")


def faults(root: Node) -> Iterator[Fault]:
    """What Flink refuses of the joins FOR SYSTEM_TIME AS OF of a query.

    Args:
        root: The query; of one with a WHERE nothing is said, as that may become part of the join's condition.

    Yields:
        The faults.
    """
    nodes = list(walk_nodes(root))
    if any(isinstance(node, Filter) for node in nodes):
        return
    for node in nodes:
        if not isinstance(node, Join) or node.temporal is None:
            continue
        if node.kind in _REFUSED:
            yield Fault("kind of join", f"a join FOR SYSTEM_TIME AS OF is no {node.kind} JOIN; take INNER or LEFT")
        elif not _has_key(node):
            yield Fault(
                "key of join", "a join FOR SYSTEM_TIME AS OF has no = of columns of both sides; compare the key"
            )


def _has_key(join: Join) -> bool:
    width = len(join.left.schema)
    return join.condition is not None and any(
        isinstance(part, FunctionCall) and part.function in _EQUALITIES and len(_sides(part, width)) > 1
        for part in walk(join.condition)
    )


def _sides(expression: Expression, width: int) -> set[bool]:
    return {part.index < width for part in walk(expression) if isinstance(part, InputRef)}
