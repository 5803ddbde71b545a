from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.changes.ranking import Ranking, stores_no_row
from airflow_flinkcompat.compat.engines.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.rule import (
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    Verdict,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.rule_builders.examples import ranked
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import AggregateOperator, RankOperator


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is None:
        return
    other_row = "row" in pair.parts and not ranking.only_window_fields_moved
    if not other_row and not ranking.metrics_below_changed():
        return
    yield RuleMatch(
        "the ranked rows hold other columns" if other_row else "the aggregation below computes other metrics",
        pair.claim("selected", *(("row",) if other_row else ())),
        _shown(ranking.old, other_row),
        _shown(ranking.new, other_row),
        verdicts={"vvr": _on_vvr(ranking), **({"flink": flink_ranking.row(ranking)} if other_row else {})},
    )


def _shown(rank: RankOperator, row: bool) -> str:
    below = rank.segment.origin
    return format_expressions(rank.row if row or not isinstance(below, AggregateOperator) else below.aggregates)


def _on_vvr(ranking: Ranking) -> Verdict:
    """Deduplication has rows of its own: by processing time, first row kept, nothing of the row is stored."""
    if ranking.kinds == {"deduplication"}:
        if stores_no_row(ranking.old) and stores_no_row(ranking.new):
            return ranking.on_page(Outcome.COMPATIBLE, "selected fields, first row by processing time")
        if ranking.same_row_types is not False:
            return inferred(Outcome.UNKNOWN, "Deduplication page: whether a field of the same type changes the schema")
    return ranking.on_page(Outcome.INCOMPATIBLE, "the input of the ranking")


RULE = Rule(
    code="ranked-row-changed",
    title="The rows that are ranked changed",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window Top-N: aggregate fields and the input of the Top-N"),
        "flink": measured(
            Outcome.INCOMPATIBLE, "t-mod-agg-sum-max", "r-add-output-col", "dd-rd-add-col", "tn-agg-count-sum"
        ),
    },
    rationale="A ranking stores whole rows: what the query reads of them, the keys and what they are ordered by, in "
    "the order of the operator below. Another column, metric or order of metrics makes them other rows.",
    example=Example(ranked(), ranked("customer, total, item, window_start")),
    find=find,
)
