"""Top-N and deduplication on both sides of a change, and which of the vendor's pages speaks of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.rule import Verdict, documented, inferred, unknown
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.operators import AggregateOperator, RankKind, RankOperator, StatelessSegment
from airflow_flinkcompat.plan.origins import OperatorColumn, RankNumber, window_field
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import DataType, TimeAttribute

PAGES = {
    RankKind.WINDOW_TOP_N: "Window Top-N",
    RankKind.TOP_N: "Top-N page",
    RankKind.DEDUPLICATION: "Deduplication page",
}


@dataclass(frozen=True)
class Ranking:
    """The same Top-N or deduplication on both sides."""

    pair: OperatorPair
    old: RankOperator
    new: RankOperator

    @staticmethod
    def of(pair: OperatorPair) -> Ranking | None:
        """None if either side is another kind of operator."""
        return None if pair.ranks is None else Ranking(pair, *pair.ranks)

    @property
    def sides(self) -> tuple[tuple[RankOperator, Program], tuple[RankOperator, Program]]:
        """Each side's operator and program."""
        return (self.old, self.pair.pipeline.old_program), (self.new, self.pair.pipeline.new_program)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({self.old.kind, self.new.kind})

    def on_page(self, outcome: Outcome, row: str) -> Verdict:
        """Verdict of this operator kind's page; window deduplication has none (rule-family.md, 17)."""
        if RankKind.WINDOW_DEDUPLICATION in self.kinds:
            return unknown("no page covers window deduplication")
        if len(self.kinds) > 1:
            return inferred(Outcome.INCOMPATIBLE, "one kind of operator became another")
        return documented(outcome, f"{PAGES[self.old.kind]}: {row}")

    @property
    def same_row_types(self) -> bool | None:
        """True if the stored rows have equal types in order; None if one is unknown."""
        return same_types(self.old.row_types, self.new.row_types)

    @property
    def only_window_fields_moved(self) -> bool:
        """True if only window fields moved in the row, because they moved in the GROUP BY below."""
        rest = [[c for c in side.row if window_field(c) is None] for side in (self.old, self.new)]
        return self.old.row != self.new.row and set(self.old.row) == set(self.new.row) and rest[0] == rest[1]

    def metrics_below_changed(self) -> bool:
        """True if a window aggregation under a window Top-N computes other metrics, read or not."""
        if self.kinds != {RankKind.WINDOW_TOP_N}:
            return False
        below = (p.aggregations for p in self.pair.pipeline.operators if p.path.startswith(f"{self.pair.path} > "))
        return any(sides is not None and set(sides[0].aggregates) != set(sides[1].aggregates) for sides in below)


def rankings(pipeline: PipelinePair) -> Iterator[Ranking]:
    """The Top-Ns and deduplications of a pipeline on both sides, nearest to the sink first."""
    for pair in pipeline.operators:
        ranking = Ranking.of(pair)
        if ranking is not None:
            yield ranking


def over_aggregation(rank: RankOperator) -> bool:
    """A window Top-N over a windowed aggregation: all rows of a window come at once, when it ends."""
    return (
        rank.kind == RankKind.WINDOW_TOP_N
        and isinstance(rank.segment.origin, AggregateOperator)
        and not rank.segment.windows
    )


def stores_no_row(rank: RankOperator) -> bool:
    """Deduplication that keeps the first row by processing time stores only that a key was seen."""
    return rank.kind == RankKind.DEDUPLICATION and rank.order_clock is TimeAttribute.PROCTIME and rank.order[0][1]


def same_types(old: tuple[DataType, ...], new: tuple[DataType, ...]) -> bool | None:
    """True if types are equal; None if one is unknown."""
    if not all(kind.is_known for kind in (*old, *new)):
        return None
    return [str(kind) for kind in old] == [str(kind) for kind in new]


def is_number(column: Expression) -> bool:
    """True if a column is the unchanged number of a ranking."""
    return isinstance(column, OperatorColumn) and isinstance(column.output, RankNumber)


def regions_above(pipeline: PipelinePair) -> Iterator[tuple[StatelessSegment, StatelessSegment, tuple[str, ...]]]:
    """The stretches right above a Top-N or deduplication on either side.

    With each come the keys of its conditions' differences.
    """
    parts = ("filters", "window filters")
    found = [(pipeline.old.segment, pipeline.new.segment, pipeline.claim(*parts))]
    for pair in pipeline.operators:
        if len(pair.old.segments) == len(pair.new.segments) == 1:
            found.append((pair.old.segments[0], pair.new.segments[0], pair.claim(*parts)))
    yield from (entry for entry in found if any(isinstance(side.origin, RankOperator) for side in entry[:2]))
