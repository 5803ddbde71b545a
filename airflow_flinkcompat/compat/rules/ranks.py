"""Rules about rankings, which are Top-N and deduplication queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_flinkcompat.compat.changes.format import format_conditions, format_expressions, format_order_by, place_of
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.engines.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.engines.flink.ranking import Ranking, is_number, stores_no_row
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, ranked
from airflow_flinkcompat.compat.rule_builders.part_rules import verdict_with_state_above
from airflow_flinkcompat.compat.rule_builders.projections import projected_columns, projection_on_flink
from airflow_flinkcompat.compat.verdict import Verdict, combined, documented, inferred, measured, right, unknown
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import AggregateOperator, RankKind, RankOperator, StatelessSegment

PAGES = {
    RankKind.WINDOW_TOP_N: "Window Top-N",
    RankKind.TOP_N: "Top-N page",
    RankKind.DEDUPLICATION: "Deduplication page",
}
KEPT = {"flink": inferred(Outcome.COMPATIBLE, "the same condition applies above the stored rows", ids=("t-unchanged",))}


def _page_verdict(ranking: Ranking, outcome: Outcome, row: str) -> Verdict:
    """Verdict by the vendor's page on a ranking; unknown for window deduplication (rule-family.md, 17)."""
    if RankKind.WINDOW_DEDUPLICATION in ranking.kinds:
        return unknown("no page covers window deduplication")
    if len(ranking.kinds) > 1:
        return inferred(Outcome.INCOMPATIBLE, "the kind of ranking changed")
    return documented(outcome, f"{PAGES[ranking.old.kind]}: {row}")


def _metrics_below_changed(ranking: Ranking) -> bool:
    """True if the aggregation upstream of a Window Top-N computes different metrics, read or unread."""
    if ranking.kinds != {RankKind.WINDOW_TOP_N}:
        return False
    below = (p.aggregations for p in ranking.pair.pipeline.operators if p.path.startswith(f"{ranking.pair.path} > "))
    return any(sides is not None and set(sides[0].aggregates) != set(sides[1].aggregates) for sides in below)


def _rankings(pipeline: PipelinePair) -> Iterator[Ranking]:
    """The rankings of a pipeline on both sides, the ranking nearest the sink first."""
    for pair in pipeline.operators:
        ranking = Ranking.of(pair)
        if ranking is not None:
            yield ranking


def _regions_above(pipeline: PipelinePair) -> Iterator[tuple[StatelessSegment, StatelessSegment, tuple[str, ...]]]:
    """Segments that read a ranking's output directly, with the keys of their changed conditions."""
    parts = ("filters", "window filters")
    found = [(pipeline.old.segment, pipeline.new.segment, pipeline.claim(*parts))]
    for pair in pipeline.operators:
        if len(pair.old.segments) == len(pair.new.segments) == 1:
            found.append((pair.old.segments[0], pair.new.segments[0], pair.claim(*parts)))
    yield from (entry for entry in found if any(isinstance(side.origin, RankOperator) for side in entry[:2]))


def _is_above_window_top_n(segment: StatelessSegment) -> bool:
    return isinstance(segment.origin, RankOperator) and segment.origin.kind == RankKind.WINDOW_TOP_N


@Rule(
    code="rank-condition",
    title="A condition in addition to the rank condition",
    vvr=unknown("the page covers only WHERE rk < N"),
    flink=unknown("a changed condition above a ranking was not measured"),
    rationale="The Window Top-N page covers only conditions on the rank.",
    example=Example(ranked(), ranked(condition="place <= 3 AND total > 100")),
    operators=(RankOperator,),
)
def rank_condition(pair: PipelinePair) -> Iterable[RuleMatch]:
    for old, new, claims in _regions_above(pair):
        before, after = (side.filters | side.window_filters for side in (old, new))
        kept = before == after and bool(before) and pair.changed and _is_above_window_top_n(new)
        if before != after or kept:
            yield RuleMatch(
                "both versions have a condition in addition to the rank condition"
                if kept
                else "a condition in addition to the rank condition changed",
                claims,
                *map(format_conditions, (before, after)),
                verdicts=KEPT if kept else {},
            )


LATEST = """\
SELECT customer, amount
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {0} ORDER BY order_time DESC) AS place FROM orders)
WHERE place = 1;"""


@Rule(
    code="rank-constant-key",
    title="A constant among the keys of a ranking was added or removed",
    vvr=unknown("the pages judge any added partition key, but Flink's planner removes a constant key"),
    flink=unknown("EXPLAIN: the ranking stays, but the planner may remove the projection below"),
    rationale=(
        "A ranking stores rows by its partition keys. A constant key does not distinguish rows, so Flink's planner "
        "removes the key. The planner may then also remove a projection after the source, which changes the job."
    ),
    example=Example(LATEST.format("customer"), LATEST.format("customer, 1")),
    operators=(RankOperator,),
    parts=("constant key",),
)
def rank_constant_key(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is None or "constant key" not in pair.parts:
        return
    old, new = ("a constant among the keys" if side.constant_key else "" for side in (ranking.old, ranking.new))
    word = "came into" if new else "went from"
    yield RuleMatch(f"a constant {word} the keys of a ranking", pair.claim("constant key"), old, new)


def _number_on_vvr(kinds: set[str]) -> Verdict:
    if RankKind.WINDOW_DEDUPLICATION in kinds:
        return unknown("no page covers window deduplication")
    if RankKind.DEDUPLICATION in kinds:
        return inferred(Outcome.COMPATIBLE, "the rank number of a single row is always 1")
    page = "Window Top-N" if kinds == {RankKind.WINDOW_TOP_N} else "Top-N page"
    return documented(Outcome.COMPATIBLE, f"{page}: rank added to or removed from the result")


@Rule(
    code="rank-number-output",
    title="The rank number was added to or removed from the output",
    vvr=documented(Outcome.COMPATIBLE, "Window Top-N: rank added to or removed from the result"),
    flink=right("t-add-rk", "t-del-rk", "r-add-rk"),
    rationale=(
        "Flink computes the rank number of a row at emission. Only a Top-N without a window on open-source Flink "
        "stores an additional row for the number. The results are then wrong if the number is removed later."
    ),
    example=Example(ranked(), ranked("customer, total, window_start, place")),
    operators=(RankOperator,),
    case_dependent=("vvr", "flink"),
)
def rank_number_output(pair: PipelinePair) -> Iterable[RuleMatch]:
    read = [ranking for ranking in _rankings(pair) if "number read" in ranking.pair.parts]
    shown = [any(map(is_number, side.columns)) for side in (pair.old, pair.new)]
    if not read and shown[0] == shown[1]:
        return
    alone = projected_columns(pair.old) == projected_columns(pair.new)
    claims = [key for ranking in read for key in ranking.pair.claim("number read")]
    kinds = {kind for ranking in _rankings(pair) for kind in ranking.kinds}
    on_flink = [flink_ranking.number(ranking) for ranking in read]
    if "columns" in pair.parts and (projected := projection_on_flink(pair)):
        on_flink.append(projected)
    verdicts = {"flink": combined(on_flink)} if on_flink else {}
    yield RuleMatch(
        "the rank number was added to or removed from the columns that are read",
        (*claims, *(pair.claim("columns") if alone else ())),
        *map(format_expressions, (pair.old.columns, pair.new.columns)),
        verdicts={"vvr": _number_on_vvr(kinds), **verdicts},
    )


@Rule(
    code="rank-order-changed",
    title="The ORDER BY of a ranking changed",
    vvr=documented(Outcome.INCOMPATIBLE, "Window Top-N: fields or ordering in ORDER BY"),
    flink=unknown("t-order-dir was correct at parallelism 1, tn-dir and wd-dir were wrong"),
    rationale="A ranking stores rows by their sort values and removed the rows beyond its last rank.",
    example=Example(ranked(), ranked(order="total")),
    operators=(RankOperator,),
    parts=("order", "order clock"),
)
def rank_order_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is None or not pair.parts & {"order", "order clock"}:
        return
    yield RuleMatch(
        "the rows are ranked in a different order",
        pair.claim("order", "order clock", "kind"),
        *map(format_order_by, (ranking.old.order, ranking.new.order)),
        verdicts={
            "vvr": _page_verdict(ranking, Outcome.INCOMPATIBLE, "ORDER BY fields or direction"),
            "flink": verdict_with_state_above(pair, "flink", flink_ranking.order(ranking)),
        },
    )


@Rule(
    code="rank-partition-changed",
    title="A partition key of a ranking was added, deleted or computed differently",
    vvr=documented(Outcome.INCOMPATIBLE, "Window Top-N: partition keys"),
    flink=measured(Outcome.INCOMPATIBLE, "t-part-add", "tn-part-add", "dd-rd-part-othercol"),
    rationale="A ranking stores rows by partition. Rows stored under a different key belong to a different partition.",
    example=Example(ranked(), ranked(partition="customer, window_start, window_end")),
    operators=(RankOperator,),
    parts=("partition",),
)
def rank_partition_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is None:
        return
    old, new = ranking.old.partition, ranking.new.partition
    if set(old) != set(new):
        yield RuleMatch(
            "the rows are ranked within different partitions",
            pair.claim("partition", "kind"),
            f"PARTITION BY {format_expressions(old)}",
            f"PARTITION BY {format_expressions(new)}",
            verdicts={
                "vvr": _page_verdict(
                    ranking, Outcome.INCOMPATIBLE, "partition keys added, deleted or computed differently"
                ),
                "flink": flink_ranking.partition_changed(ranking),
            },
        )


@Rule(
    code="rank-partition-reordered",
    title="Partition keys of a ranking were reordered",
    vvr=documented(Outcome.COMPATIBLE, "Window Top-N: reorder partition keys"),
    flink=right("t-part-reorder"),
    rationale="The planner sorts partition keys, so both orders result in the same state.",
    example=Example(
        ranked(
            inner="customer, region, SUM(amount) AS total",
            keys="customer, region, window_start, window_end",
            partition="customer, region, window_start, window_end",
        ),
        ranked(
            inner="customer, region, SUM(amount) AS total",
            keys="customer, region, window_start, window_end",
            partition="region, customer, window_start, window_end",
        ),
    ),
    operators=(RankOperator,),
    parts=("partition",),
    case_dependent=("vvr", "flink"),
)
def rank_partition_reordered(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is None:
        return
    old, new = ranking.old.partition, ranking.new.partition
    if old != new and set(old) == set(new):
        yield RuleMatch(
            "the same PARTITION BY keys are in a different order",
            pair.claim("partition"),
            f"PARTITION BY {format_expressions(old)}",
            f"PARTITION BY {format_expressions(new)}",
            verdicts={
                "vvr": _page_verdict(ranking, Outcome.COMPATIBLE, "reorder partition keys"),
                "flink": flink_ranking.partition_reordered(ranking),
            },
        )


def _ranks(rank: RankOperator) -> str:
    return f"rank {rank.last}" if rank.first == rank.last else f"ranks {rank.first} to {rank.last}"


@Rule(
    code="rank-range-changed",
    title="The N of a Top-N changed",
    vvr=documented(Outcome.INCOMPATIBLE, "Window Top-N: the value of N"),
    flink=unknown("t-n and t-n-up were correct at parallelism 1, tn-n-up and tn-n-down were wrong"),
    rationale="A ranking does not store rows beyond its N, so a larger N lacks these rows.",
    example=Example(ranked(), ranked(condition="place <= 5")),
    operators=(RankOperator,),
    parts=("first", "last"),
)
def rank_range_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is None or not pair.parts & {"first", "last"}:
        return
    yield RuleMatch(
        "the query selects different ranks",
        pair.claim("first", "last", "kind"),
        *map(_ranks, (ranking.old, ranking.new)),
        before_span=place_of(ranking.old.conditions),
        after_span=place_of(ranking.new.conditions),
        verdicts={
            "vvr": _page_verdict(ranking, Outcome.INCOMPATIBLE, "the value of N"),
            "flink": verdict_with_state_above(pair, "flink", flink_ranking.kept_ranks(ranking)),
        },
    )


def _format_row(rank: RankOperator, row: bool) -> str:
    below = rank.segment.origin
    return format_expressions(rank.row if row or not isinstance(below, AggregateOperator) else below.aggregates)


def _row_on_vvr(ranking: Ranking) -> Verdict:
    """Verdict on a changed row. Deduplication that keeps the first row by processing time stores no row."""
    if ranking.kinds == {"deduplication"}:
        if stores_no_row(ranking.old) and stores_no_row(ranking.new):
            return _page_verdict(ranking, Outcome.COMPATIBLE, "selected fields, first row by processing time")
        if ranking.same_row_types is not False:
            return unknown(
                "Deduplication page: the page does not state whether a different field of the same type "
                "changes the schema"
            )
    return _page_verdict(ranking, Outcome.INCOMPATIBLE, "the input of the ranking")


@Rule(
    code="ranked-row-changed",
    title="The rows that are ranked changed",
    vvr=documented(Outcome.INCOMPATIBLE, "Window Top-N: aggregate fields and the input of the Top-N"),
    flink=measured(Outcome.INCOMPATIBLE, "t-mod-agg-sum-max", "r-add-output-col", "dd-rd-add-col", "tn-agg-count-sum"),
    rationale=(
        "A ranking stores whole rows. A row contains the columns that the query reads, the keys and the sort columns, "
        "in the order of the operator below. A different column, metric or order of metrics changes the stored rows."
    ),
    example=Example(ranked(), ranked("customer, total, item, window_start")),
    operators=(RankOperator,),
)
def ranked_row_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is None:
        return
    other_row = "row" in pair.parts and not ranking.only_window_fields_moved
    if not other_row and not _metrics_below_changed(ranking):
        return
    yield RuleMatch(
        "the ranked rows contain different columns"
        if other_row
        else "the aggregation below computes different metrics",
        pair.claim("selected", *(("row",) if other_row else ())),
        _format_row(ranking.old, other_row),
        _format_row(ranking.new, other_row),
        verdicts={"vvr": _row_on_vvr(ranking), **({"flink": flink_ranking.row(ranking)} if other_row else {})},
    )


@Rule(
    code="ranked-window-key-reordered",
    title="Window fields moved in the GROUP BY under a Top-N",
    vvr=documented(Outcome.INCOMPATIBLE, "Window Top-N: window fields reordered in the GROUP BY"),
    flink=unknown("restored correctly only at parallelism 1"),
    rationale=(
        "The aggregation is unaffected, but it emits its keys in the order of the GROUP BY. The ranking stores the "
        "keys in this order."
    ),
    example=Example(ranked(), ranked(keys="customer, window_end, window_start")),
    operators=(RankOperator,),
    parts=("row",),
)
def ranked_window_key_reordered(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is not None and ranking.only_window_fields_moved:
        yield RuleMatch(
            (
                "window_start and window_end changed their positions in the GROUP BY below and therefore in the "
                "ranked rows"
            ),
            pair.claim("row", "selected"),
            *map(format_expressions, (ranking.old.row, ranking.new.row)),
            verdicts={
                "vvr": _page_verdict(ranking, Outcome.INCOMPATIBLE, "window fields reordered in the GROUP BY"),
                "flink": flink_ranking.window_keys(ranking),
            },
        )
