"""Work that several pipelines share: relations that compute the same are found, and their rows computed once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields

from airflow_flinkcompat.backfill.compiling.steps import (
    Assign,
    Late,
    Read,
    Repeat,
    Select,
    Step,
    Together,
    Where,
    Write,
)
from airflow_flinkcompat.backfill.spark_sql.windows import Demand
from airflow_flinkcompat.plan.nodes import Node


class Columns:
    """The columns that all readers of a relation need together.

    Compiling all pipelines once fills it; compiled again, relations that compute the same become equal steps.
    """

    def __init__(self) -> None:
        self._kinds: dict[int, int] = {}
        self._shapes: dict[Hashable, int] = {}
        self._needed: dict[Hashable, frozenset[int]] = {}

    def of_all(
        self, node: Node, needed: frozenset[int], asked: Mapping[int, Demand] | None, context: Hashable
    ) -> frozenset[int]:
        """What all readers of a relation need under the same demand and in the same context; ``needed`` is one's."""
        kind = self._kind(node)
        demand = None if asked is None else frozenset((self._kinds.get(i, -i), each) for i, each in asked.items())
        key = (kind, demand, context)
        self._needed[key] = self._needed.get(key, frozenset()) | needed
        return self._needed[key]

    def _kind(self, node: Node) -> int:
        """A number that nodes have in common which compute the same; a deep plan is looked at node by node."""
        known = self._kinds.get(id(node))
        if known is None:
            below = tuple(self._kind(each) for each in node.inputs)
            own = tuple(getattr(node, field.name) for field in fields(node) if field.compare)
            shape = (type(node), below, tuple(value for value in own if not _is_input(value, node)))
            known = self._kinds[id(node)] = self._shapes.setdefault(shape, len(self._shapes))
        return known


def _is_input(value: object, node: Node) -> bool:
    return value is not None and (value == node.inputs or any(value is each for each in node.inputs))


def shared(writes: Iterable[Write]) -> frozenset[Step]:
    """The widest steps that several steps or sinks read, down to where rows are still one each.

    Rows that come once per window are cheaper made again than kept, and an aggregation may do without them.
    """
    readers: dict[Step, int] = {}
    pending = [step for write in writes for step in write.inputs]
    while pending:
        step = pending.pop()
        readers[step] = readers.get(step, 0) + 1
        if readers[step] == 1 or _spread(step):
            pending += step.inputs if isinstance(step, Together) else [] if isinstance(step, Read) else [step.input]
    return frozenset(step for step, count in readers.items() if count > 1 and not _spread(step))


def _spread(step: Step) -> bool:
    """Whether rows come several times, as projected or filtered after that."""
    while isinstance(step, Select | Where | Late):
        step = step.input
    return isinstance(step, Repeat) or (isinstance(step, Assign) and step.windows.overlapping)
