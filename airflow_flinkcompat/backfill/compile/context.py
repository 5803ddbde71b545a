"""Shared state of the compiler, and the context that it passes from an operator to its inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from airflow_flinkcompat.backfill.protocols import Locations, Range
from airflow_flinkcompat.backfill.result import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import references
from airflow_flinkcompat.backfill.spark_sql.windows import AskedWindows, WindowRange
from airflow_flinkcompat.backfill.steps import Step
from airflow_flinkcompat.plan.expressions import Expression, conjuncts, through, transform
from airflow_flinkcompat.plan.nodes import Filter, GroupWindowAggregate, Join, Node, Over, Project, WindowAssign


class NeededColumns:
    """Columns that the readers of a relation need, as one set for all readers.

    The first compilation of all pipelines collects the columns. If a later reader needs more columns than an earlier
    reader received, ``settled`` is False. All pipelines are then compiled again, so that equal relations become equal
    steps.
    """

    def __init__(self) -> None:
        self._kinds: dict[int, int] = {}
        self._shapes: dict[Hashable, int] = {}
        self._needed: dict[Hashable, frozenset[int]] = {}
        self.settled = True
        """True if no reader has requested more columns than earlier readers received."""

    def of_all(
        self, node: Node, needed: frozenset[int], asked: Mapping[int, WindowRange] | None, context: Hashable
    ) -> frozenset[int]:
        """Add the columns of one reader; return the columns of all readers for one range and context.

        ``needed`` contains the columns of the added reader.
        """
        kind = self._kind(node)
        window_range = None if asked is None else frozenset((self._kinds.get(i, -i), each) for i, each in asked.items())
        key = (kind, window_range, context)
        known = self._needed.get(key)
        self._needed[key] = found = needed | (known or frozenset())
        self.settled = self.settled and known in (None, found)
        return found

    def _kind(self, node: Node) -> int:
        """Number that all equal nodes share. A deep plan is compared node by node."""
        known = self._kinds.get(id(node))
        if known is None:
            below = tuple(self._kind(each) for each in node.inputs)
            own = tuple(getattr(node, field.name) for field in fields(node) if field.compare)
            shape = (type(node), below, tuple(value for value in own if not _is_input(value, node)))
            known = self._kinds[id(node)] = self._shapes.setdefault(shape, len(self._shapes))
        return known


def _is_input(value: object, node: Node) -> bool:
    return value is not None and (value == node.inputs or any(value is each for each in node.inputs))


_CONSTRUCTS = {
    "Join": "a join",
    "Sort": "ORDER BY or LIMIT",
    "Values": "VALUES or a SELECT without FROM",
    "Correlate": "a table function",
}


@dataclass(frozen=True)
class FiltersAbove:
    """Filters on the output of a relation, if no operator between them and the relation changes rows.

    Stores the conditions of the filters, and the columns that readers of the filtered rows need. Both refer to columns
    of the relation.
    """

    conditions: tuple[Expression, ...]
    read: frozenset[int]

    @classmethod
    def under(cls, node: Filter, needed: frozenset[int], above: FiltersAbove | None) -> FiltersAbove:
        if above is None:
            return cls(conjuncts(node.condition), needed)
        return replace(above, conditions=above.conditions + conjuncts(node.condition))

    def through(self, node: Project) -> FiltersAbove:
        """Rewrite filters on the output of a projection with the columns of the projection's input."""
        leaf = through(node.expressions)
        conditions = tuple(part for each in self.conditions for part in conjuncts(transform(each, leaf)))
        return FiltersAbove(conditions, references([node.expressions[i] for i in self.read]))


def is_ranking_input(node: Node) -> bool:
    """True if a relation is an OVER, or only filters and projections of an OVER."""
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Over)


Compile = Callable[["CompileContext", Any, frozenset[int], FiltersAbove | None], Step]
"""Compiler of one node type.

The compiler receives the columns that readers need, and the filters on the output of the node.
"""


@dataclass(frozen=True)
class CompileContext:
    """Context in which a pipeline's relations are compiled: locations, published windows and settings."""

    operators: Mapping[type[Node], Compile]
    """Compilers of nodes, by node type or base type."""
    locations: Locations
    bounds: Range
    settings: Mapping[str, str]
    drop_late: bool = False
    written: bool = False
    """True if a PyFlink or Table API program wrote the pipeline. A program can express more than SQL."""
    columns: NeededColumns = field(default_factory=NeededColumns)
    asked: Mapping[int, AskedWindows] | None = None
    """Windows that downstream windows request, by node. Other nodes compute all windows."""
    arriving: bool = False
    "True if a downstream operator depends on the order of arrival."

    @property
    def batch(self) -> bool:
        """True if the script runs in batch mode, which has no time attributes."""
        return self.settings.get("execution.runtime-mode", "streaming").lower() == "batch"

    def requested_windows(self, node: WindowAssign | GroupWindowAggregate) -> AskedWindows:
        """Windows of a windowing node that must be computed."""
        if self.asked is None:
            return AskedWindows()
        asked = self.asked.get(id(node), AskedWindows(every=True))
        # Late rows are counted for all windows of the range, even for windows that no downstream window contains.
        return replace(asked, published_too=True) if self.drop_late else asked

    @property
    def own(self) -> WindowRange:
        """Windows that lie completely inside the range."""
        return WindowRange.inside(self.bounds.from_, self.bounds.to, self.bounds.after)

    def under(self, asked: Mapping[int, AskedWindows]) -> CompileContext:
        return replace(self, asked=asked)

    def following_arrival(self, arriving: bool) -> CompileContext:
        """Context for the input of an operator that may depend on the order of arrival."""
        return replace(self, arriving=arriving)

    def compile(self, node: Node, needed: frozenset[int], above: FiltersAbove | None = None) -> Step:
        above = above if is_ranking_input(node) else None
        asked = None if self.asked is None else {i: each.within(self.own) for i, each in self.asked.items()}
        needed = self.columns.of_all(node, needed, asked, (above, self.arriving))
        for kind in type(node).__mro__:
            if (operator := self.operators.get(kind)) is not None:
                return operator(self, node, needed, above)
        what = _CONSTRUCTS.get(type(node).__name__, type(node).__name__)
        if isinstance(node, Join):
            what = f"{'an' if str(node.kind)[0] in 'AI' else 'a'} {node.kind} join"
        raise Untranslatable(f"a backfill does not support {what} yet; {FLINK_BATCH}", node.span)
