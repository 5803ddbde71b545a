from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import place_of
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.changes.ranking import Ranking
from airflow_flinkcompat.compat.engines.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, documented, inferred
from airflow_flinkcompat.compat.rule_builders.examples import ranked
from airflow_flinkcompat.compat.rule_builders.part_rules import noticed_above
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import RankOperator


def _ranks(rank: RankOperator) -> str:
    return f"rank {rank.last}" if rank.first == rank.last else f"ranks {rank.first} to {rank.last}"


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is None or not pair.parts & {"first", "last"}:
        return
    yield RuleMatch(
        "other ranks are kept",
        pair.claim("first", "last", "kind"),
        _ranks(ranking.old),
        _ranks(ranking.new),
        before_span=place_of(ranking.old.conditions),
        after_span=place_of(ranking.new.conditions),
        verdicts={
            "vvr": ranking.on_page(Outcome.INCOMPATIBLE, "the value of N"),
            "flink": noticed_above(pair, "flink", flink_ranking.kept_ranks(ranking)),
        },
    )


RULE = Rule(
    code="rank-range-changed",
    title="The N of a Top-N changed",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window Top-N: the value of N"),
        "flink": inferred(Outcome.UNKNOWN, "t-n and t-n-up were right at parallelism 1, tn-n-up and tn-n-down wrong"),
    },
    rationale="Rows below the old N were never kept, so a larger N has nothing to show for them.",
    example=Example(ranked(), ranked(condition="place <= 5")),
    find=find,
)
