"""Metrics that survive a change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_flinkcompat.compat.rule import Fate
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.plan.expressions import AggregateCall
from airflow_flinkcompat.plan.operators import AggregateOperator, OverOperator
from airflow_flinkcompat.plan.origins import describe


@dataclass(frozen=True)
class Fates:
    """Old and new metrics of one operator, sorted by their fate; each a set in written order."""

    old: tuple[AggregateCall, ...]
    new: tuple[AggregateCall, ...]

    @cached_property
    def kept(self) -> tuple[AggregateCall, ...]:
        return tuple(call for call in self.old if call in self.new)

    @cached_property
    def dropped(self) -> tuple[AggregateCall, ...]:
        return tuple(call for call in self.old if call not in self.new)

    @cached_property
    def added(self) -> tuple[AggregateCall, ...]:
        return tuple(call for call in self.new if call not in self.old)

    @cached_property
    def codes(self) -> frozenset[str]:
        """The rules for this change: the documents' rows, decided only by the surviving metrics.

        A DISTINCT metric that was added, deleted, modified or moved among the DISTINCT ones is a change of its own.
        """
        if self.old == self.new:
            return frozenset() if self.old else frozenset({"no-aggregates"})
        distinct = {"distinct-aggregate-changed"} if _distinct(self.old) != _distinct(self.new) else set()
        if not self.old:
            return frozenset({"first-aggregate-added", *distinct})
        if not self.new:
            return frozenset({"all-aggregates-deleted", *distinct})
        if not self.kept:
            # One metric remains, and it is one of the old ones over another input: a row of its own.
            one = len(self.new) == 1 and self.new[0].function in {call.function for call in self.old}
            return frozenset({"only-aggregate-changed" if one else "aggregates-replaced", *distinct})
        return frozenset(distinct or self._partly())

    def _partly(self) -> set[str]:
        """True if an aggregate survives and DISTINCT is not touched."""
        if not self.added:
            return {"aggregate-deleted" if self.dropped else "aggregate-reordered"}
        if not self.dropped:
            return {"aggregate-added"}
        found = {"aggregate-modified"} if self.function_changes else set()
        found |= {"aggregate-input-changed"} if self.input_changes else set()
        if not len(self.replacements()) == len(self.added) == len(self.dropped):
            found.add("aggregate-added-and-deleted")
        return found

    @property
    def changed(self) -> bool:
        """Another set of metrics, or other DISTINCT ones, which the vendor counts as one changed item."""
        return bool(self.codes - {"no-aggregates", "aggregate-reordered"})

    def replacements(self) -> tuple[tuple[AggregateCall, AggregateCall], ...]:
        """Dropped and added metrics that correspond: same arguments or same function."""
        left = list(self.added)
        found = []
        for old in self.dropped:
            twins = [new for new in left if new.args == old.args] or [n for n in left if n.function == old.function]
            if twins:
                left.remove(twins[0])
                found.append((old, twins[0]))
        return tuple(found)

    @property
    def function_changes(self) -> tuple[tuple[AggregateCall, AggregateCall], ...]:
        """Metrics whose function changed over the same input."""
        return tuple((a, b) for a, b in self.replacements() if a.args == b.args)

    @property
    def input_changes(self) -> tuple[tuple[AggregateCall, AggregateCall], ...]:
        """Metrics whose input's computation changed under the same function."""
        return tuple((a, b) for a, b in self.replacements() if a.args != b.args)

    @cached_property
    def table(self) -> tuple[tuple[str, Fate], ...]:
        """The fate of each metric, for the report."""
        rows = [(describe(call), Fate.KEPT) for call in self.kept]
        rows += [(describe(call), Fate.DROPPED) for call in self.dropped]
        return (*rows, *((describe(call), Fate.FROM_ZERO) for call in self.added))


def fates(old: AggregateOperator | OverOperator, new: AggregateOperator | OverOperator) -> Fates:
    """The fates of the metrics of one pair of operators."""
    return Fates(old.aggregates, new.aggregates)


def listed(calls: Iterable[AggregateCall]) -> str:
    """Metrics as a reader would write them."""
    return ", ".join(describe(call) for call in calls)


def _distinct(calls: tuple[AggregateCall, ...]) -> tuple[AggregateCall, ...]:
    return tuple(call for call in calls if call.distinct)
