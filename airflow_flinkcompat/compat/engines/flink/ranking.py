"""Engine ``flink``: verdicts on changes of a Top-N or a deduplication.

All verdicts were measured on Flink 2.3.0; verdicts on a window Top-N also on 1.20.3. A ranking's strategy depends on
its input. Over an append-only table, a ranking stores only the rows of the selected ranks. If rows may be retracted, a
ranking stores all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeGuard

from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.verdict import Remedy, Verdict, refused, right, unknown, wrong
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known
from airflow_flinkcompat.connectors.registry import FORMATS
from airflow_flinkcompat.model import Consequence
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    RankKind,
    RankOperator,
    Source,
    StatelessSegment,
)
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn, RankNumber, SourceColumn, window_field
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import DataType, TimeAttribute

REFUSED, WRONG = Consequence.REFUSED_AT_RESTORE, Consequence.SILENTLY_WRONG
NOT_AT_ONE = replace(
    unknown("rows may wait in a ranking with a parallelism above 1, and parallelism.default is not 1 on both sides"),
    remedy=Remedy.PARALLELISM_ONE,
)
_PARALLELISM = ("parallelism.default", "table.exec.resource.default-parallelism")
APPENDING_CONNECTORS = frozenset(
    name
    for name, facts in registry.catalogue().items()
    if facts.source is not None and facts.source.appends is Known.YES
)
"""Connectors of append-only sources, unless the format contains updates."""
APPENDING_FORMATS = frozenset(name for name, facts in FORMATS.items() if facts.appends is Known.YES)


@dataclass(frozen=True)
class Ranking:
    """A Top-N or a deduplication on both sides of a change."""

    pair: OperatorPair
    old: RankOperator
    new: RankOperator

    @staticmethod
    def of(pair: OperatorPair) -> Ranking | None:
        """The ranking of a pair; None if either side is not a Top-N or a deduplication."""
        return None if pair.ranks is None else Ranking(pair, *pair.ranks)

    @property
    def sides(self) -> tuple[tuple[RankOperator, Program], tuple[RankOperator, Program]]:
        """The operator and the program of each side."""
        return (self.old, self.pair.pipeline.old_program), (self.new, self.pair.pipeline.new_program)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({self.old.kind, self.new.kind})

    @property
    def same_row_types(self) -> bool | None:
        """True if both sides store rows with equal column types; None if a type is unknown."""
        return same_types(self.old.row_types, self.new.row_types)

    @property
    def only_window_fields_moved(self) -> bool:
        """True if the input rows differ only in the position of window fields."""
        rest = [[c for c in side.row if window_field(c) is None] for side in (self.old, self.new)]
        return self.old.row != self.new.row and set(self.old.row) == set(self.new.row) and rest[0] == rest[1]


def over_aggregation(rank: RankOperator) -> bool:
    """True for a window Top-N over a windowed aggregation, which emits all rows when a window ends."""
    return (
        rank.kind == RankKind.WINDOW_TOP_N
        and isinstance(rank.segment.origin, AggregateOperator)
        and not rank.segment.windows
    )


def stores_no_row(rank: RankOperator) -> bool:
    """True for a deduplication that keeps the first row by processing time, and stores only seen keys."""
    return rank.kind == RankKind.DEDUPLICATION and rank.order_clock is TimeAttribute.PROCTIME and rank.order[0][1]


def same_types(old: tuple[DataType, ...], new: tuple[DataType, ...]) -> bool | None:
    """True if the types are equal; None if a type is unknown."""
    if not all(kind.is_known for kind in (*old, *new)):
        return None
    return [str(kind) for kind in old] == [str(kind) for kind in new]


def is_number(column: Expression) -> bool:
    """True if a column only passes on the rank number."""
    return isinstance(column, OperatorColumn) and isinstance(column.output, RankNumber)


def partition_reordered(ranking: Ranking) -> Verdict:
    """Verdict on reordered partition keys, which the planner sorts itself."""
    if all(map(over_aggregation, (ranking.old, ranking.new))):
        return right("t-part-reorder")
    return right("tn-part-reorder-difftype", "dd-pa-part-reorder-difftype", "dd-rd-part-reorder", "wd-part-reorder")


def partition_changed(ranking: Ranking) -> Verdict:
    """Verdict on changed partition keys: stored rows belong to different partitions."""
    old, new = (tuple(sorted(side.partition_types, key=str)) for side in (ranking.old, ranking.new))
    ids = ("t-part-add", "r-part-add", "tn-part-add", "dd-pa-part-add", "dd-rd-part-othercol", "wd-part-othercol")
    return wrong(*ids, consequence=_by_layout(same_types(old, new)))


def number(ranking: Ranking) -> Verdict:
    """Verdict on a rank number that is added to or removed from the columns read downstream."""
    old, new = ranking.old, ranking.new
    if old.kind != new.kind or (old.first, new.first) != (1, 1):
        return unknown("adding or removing the rank number was measured only from rank 1")
    if over_aggregation(old) and over_aggregation(new):
        return right("t-add-rk", "t-del-rk")
    if old.kind == RankKind.WINDOW_TOP_N:
        added = right("r-add-rk")
        return (
            added if new.number_read else unknown("directly on windowed rows, only adding the rank number was measured")
        )
    if _both(ranking, _pruned):
        return right("tn-rank-add") if new.number_read else wrong("tn-rank-del", note="one row fewer is stored")
    if new.number_read and _both(ranking, _counting):
        return right("tn-agg-rank-add")
    return unknown("adding or removing the rank number over this input was not measured")


def projected(old: RankOperator, new: RankOperator, *, only_number: bool) -> Verdict | None:
    """Verdict on a changed projection before a sink without state; None if not measured."""
    if old.kind == new.kind == RankKind.WINDOW_TOP_N:
        return right("t-add-rk", "t-del-rk", "r-add-rk", note="a separate operator above the ranking")
    if stores_no_row(old) and stores_no_row(new):
        return right("dd-pa-col-swap")
    constant = not (old.number_read or new.number_read)
    return right("tn-rank-add", "tn-agg-rank-add") if only_number and not constant else None


def kept_ranks(ranking: Ranking) -> Verdict:
    """Verdict on a changed range of ranks."""
    old, new = ranking.old, ranking.new
    if old.kind != new.kind:
        return wrong("dd-rd-n-1-to-2", "wd-n-1-to-2", note="one operator ignores the other's state")
    from_first = (old.first, new.first) == (1, 1)
    if over_aggregation(old) and over_aggregation(new):
        not_first = None if from_first else unknown("only ranks that start at 1 were measured")
        return rows_may_wait(ranking) or not_first or right("t-n", "t-n-up")
    if old.kind == RankKind.WINDOW_TOP_N:
        why = "directly on windowed rows, only a higher N was measured"
        return wrong("r-n-1to4-asc") if new.last > old.last else unknown(why)
    if _both(ranking, _pruned) and old.last != new.last:
        return wrong("tn-n-up", "tn-n-down", "tn-n-1-to-3")
    if old.number_read or new.number_read:
        return unknown("different ranks were measured only without the rank number in the output")
    if _both(ranking, _all_stored) and from_first and new.last > old.last:
        return right("tn-agg-n-up", note="every row is stored")
    if _both(ranking, _pruned) and old.first == 1 < new.first < new.last:
        return right("tn-range-2-3", note="the stored rows are the same")
    return unknown("different ranks over this input were not measured")


def order(ranking: Ranking) -> Verdict:
    """Verdict on a changed ORDER BY."""
    old, new = ranking.old, ranking.new
    same = same_types(old.order_types, new.order_types)
    if over_aggregation(old) and over_aggregation(new) and same is not False:
        if [key for key, _, _ in old.order] != [key for key, _, _ in new.order]:
            return unknown("a different ORDER BY column of the same type was not measured")
        return rows_may_wait(ranking) or right("t-order-dir")
    ids = ("t-order-col", "tn-dir", "tn-order-sametype", "tn-order-add", "dd-pa-to-pd", "dd-ra-to-rd", "wd-dir")
    if same is False or _both(ranking, _all_stored) or stores_no_row(old) != stores_no_row(new):
        return refused(*ids)
    return wrong(*ids, consequence=_by_layout(same))


def row(ranking: Ranking) -> Verdict:
    """Verdict on a changed input row: Flink reads stored rows as if they were new rows."""
    old, new = ranking.old, ranking.new
    if stores_no_row(old) and stores_no_row(new):
        plain = _both(ranking, _plain)
        seen = right("dd-pa-col-swap", note="the state records only that a key was seen")
        return seen if plain else unknown("only plain columns of the table were measured")
    ids = ("t-mod-agg-sum-max", "r-add-output-col", "dd-rd-add-col", "dd-pd-add-col", "dd-pd-col-swap", "wd-col-add")
    return wrong(*ids, consequence=_by_layout(ranking.same_row_types))


def window_keys(ranking: Ranking) -> Verdict:
    """Verdict on window fields at different positions in the stored row."""
    if ranking.same_row_types is False:
        return refused("t-groupby-nonwindow-reorder", note="columns of different types are swapped")
    return rows_may_wait(ranking) or right("top-n-window-keys-swapped")


def rows_may_wait(ranking: Ranking) -> Verdict | None:
    """Verdict if a savepoint may contain rows of a window Top-N over an aggregation; None if it cannot.

    At parallelism 1, the rows of a window and the watermark that emits them arrive together.
    """
    for rank, _ in ranking.sides:
        window = rank.window
        if not over_aggregation(rank) or window is None:
            return unknown("only a window Top-N over an aggregation is empty between watermarks")
        if window.window.kind is not WindowKind.TUMBLE or window.time_attribute is not TimeAttribute.ROWTIME:
            return unknown("only event-time TUMBLE windows were measured")
    return None if at_parallelism_one(ranking.pair.pipeline) else NOT_AT_ONE


def at_parallelism_one(pair: PipelinePair) -> bool:
    """True if, by the settings of both sides, each operator of a query has one subtask."""
    for pipeline in (pair.old_pipeline, pair.new_pipeline):
        default, of_tables = (dict(pipeline.settings).get(key) for key in _PARALLELISM)
        if default != "1" or of_tables not in (None, "-1", "1"):
            return False
    return True


def _by_layout(same: bool | None) -> Consequence | None:
    return None if same is None else WRONG if same else REFUSED


def _plain(rank: RankOperator, program: Program) -> bool:
    """True if the input consists of unchanged columns of an append-only table."""
    bare = all(isinstance(column, SourceColumn) for column in rank.row) and not rank.segment.windows
    return bare and appends_only(rank.segment, program)


def _both(ranking: Ranking, holds: Callable[[RankOperator, Program], bool]) -> bool:
    return all(holds(rank, program) for rank, program in ranking.sides)


def _pruned(rank: RankOperator, program: Program) -> bool:
    """True for a Top-N over an append-only table, which stores only the rows of its ranks."""
    return rank.kind == RankKind.TOP_N and appends_only(rank.segment, program)


def _counting(rank: RankOperator, program: Program) -> bool:
    """True for a Top-N by descending counts, partitioned by aggregation keys: a row's rank never falls."""
    below = _aggregation(rank, program)
    by_keys = all(isinstance(key, OperatorColumn) and isinstance(key.output, KeyOutput) for key in rank.partition)
    if below is None or not by_keys or len(rank.order) != 1:
        return False
    key, ascending, _ = rank.order[0]
    return not ascending and isinstance(key, OperatorColumn) and _is_plain(key.output, "COUNT")


def _all_stored(rank: RankOperator, program: Program) -> bool:
    """True for a Top-N by a sum of plain columns, which may rise or fall, so that all rows are stored."""
    below = _aggregation(rank, program)
    if below is None or below.segment.filters or rank.segment.filters:
        return False
    keys = [key for key, _, _ in rank.order if isinstance(key, OperatorColumn)]
    return any(
        _is_plain(key.output, "SUM") and all(isinstance(arg, SourceColumn) for arg in key.output.args) for key in keys
    )


def _is_plain(output: object, function: str) -> TypeGuard[AggregateCall]:
    """True for a built-in aggregate over all rows: no DISTINCT, no FILTER."""
    return isinstance(output, AggregateCall) and replace(output, args=(), span=None) == AggregateCall(
        function, (), output.type
    )


def _aggregation(rank: RankOperator, program: Program) -> AggregateOperator | None:
    """The group aggregation over an append-only table that a Top-N ranks; None for other inputs."""
    below = rank.segment.origin
    if rank.kind != RankKind.TOP_N or not isinstance(below, AggregateOperator):
        return None
    plain = below.window is None and below.grouping_sets is None and not rank.segment.functions
    return below if plain and appends_only(below.segment, program) else None


def appends_only(segment: StatelessSegment, program: Program) -> bool:
    """True if a segment reads an append-only table: known connector and format, no hint."""
    origin = segment.origin
    if not isinstance(origin, Source) or origin.hints or segment.functions:
        return False
    table = program.table(origin.table)
    if table is None or table.primary_key or table.option("connector") not in APPENDING_CONNECTORS:
        return False
    formats = {table.option(key) for key in ("format", "value.format")} - {None}
    return formats <= APPENDING_FORMATS
