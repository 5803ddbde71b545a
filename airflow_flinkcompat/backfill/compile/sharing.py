"""Work that several pipelines share: relations that compute the same are found, and their rows computed once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields

from airflow_flinkcompat.backfill.spark_sql.windows import WindowRange
from airflow_flinkcompat.plan.nodes import Node


class NeededColumns:
    """The columns that all readers of a relation need together.

    Compiling all pipelines fills it. Where a later reader needs more than an earlier one was given (``settled`` is
    false), they are compiled again, so that relations that compute the same become equal steps.
    """

    def __init__(self) -> None:
        self._kinds: dict[int, int] = {}
        self._shapes: dict[Hashable, int] = {}
        self._needed: dict[Hashable, frozenset[int]] = {}
        self.settled = True
        """Whether nothing was asked for after it had been answered without it."""

    def of_all(
        self, node: Node, needed: frozenset[int], asked: Mapping[int, WindowRange] | None, context: Hashable
    ) -> frozenset[int]:
        """What all readers of a relation need under one range of windows and in one context; ``needed`` is one's."""
        kind = self._kind(node)
        window_range = None if asked is None else frozenset((self._kinds.get(i, -i), each) for i, each in asked.items())
        key = (kind, window_range, context)
        known = self._needed.get(key)
        self._needed[key] = found = needed | (known or frozenset())
        self.settled = self.settled and known in (None, found)
        return found

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
