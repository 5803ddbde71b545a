"""What the operators above an aggregation make of its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_flinkcompat.state.compiled.nodes import CompiledPlan, Node
from airflow_flinkcompat.state.compiled.streams import is_stateless

Columns = frozenset[int]
_HANDS_ON = frozenset(
    ("exchange", "mini-batch-assigner", "drop-update-before", "watermark-assigner", "union", "temporal-sort")
)


def computed_columns(plan: CompiledPlan, node: Node) -> tuple[frozenset[Columns], Columns]:
    """Which columns of an operator its readers compute something of together.

    Args:
        plan: A compiled plan.
        node: One of its nodes.

    Returns:
        The columns of which one output each is computed, then those that decide which rows go on. A further operator
        that keeps state is not looked behind: what it means says what it reads.
    """
    together: set[Columns] = set()
    deciding: set[int] = set()
    own = [frozenset({place}) for place in range(len(node.names))]
    reached = [(reader, own) for reader in plan.readers[node.place]]
    while reached:
        place, columns = reached.pop()
        reader = plan.nodes[place]
        if not is_stateless(reader):
            continue
        if reader.kind == "calc":
            deciding |= _used(reader.config.get("condition"), columns)
            columns = [_used(rex, columns) for rex in reader.config["projection"]]
            together |= set(columns)
        elif reader.kind not in _HANDS_ON:
            # Which of them a table function, a lookup or grouping sets go by is not told apart.
            deciding |= frozenset().union(*columns)
            continue
        reached += [(above, columns) for above in plan.readers[place]]
    return frozenset(together), frozenset(deciding)


def _used(rex: Any, columns: Sequence[Columns]) -> Columns:
    places = set(_references(rex))
    return frozenset().union(*(columns[place] for place in places if place < len(columns)))


def _references(rex: Any) -> Iterator[int]:
    if isinstance(rex, Mapping):
        if rex.get("kind") == "INPUT_REF":
            yield rex["inputIndex"]
        for part in rex.values():
            yield from _references(part)
    elif isinstance(rex, list):
        for part in rex:
            yield from _references(part)
