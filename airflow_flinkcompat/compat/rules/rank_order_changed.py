from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_order_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.changes.ranking import Ranking
from airflow_flinkcompat.compat.engines.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, documented, inferred
from airflow_flinkcompat.compat.rule_builders.examples import ranked
from airflow_flinkcompat.compat.rule_builders.part_rules import noticed_above
from airflow_flinkcompat.model import Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is None or not pair.parts & {"order", "order clock"}:
        return
    yield RuleMatch(
        "the rows are ranked in another order",
        pair.claim("order", "order clock", "kind"),
        format_order_by(ranking.old.order),
        format_order_by(ranking.new.order),
        verdicts={
            "vvr": ranking.on_page(Outcome.INCOMPATIBLE, "ORDER BY fields or direction"),
            "flink": noticed_above(pair, "flink", flink_ranking.order(ranking)),
        },
    )


RULE = Rule(
    code="rank-order-changed",
    title="The ORDER BY of a ranking changed",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window Top-N: fields or ordering in ORDER BY"),
        "flink": inferred(Outcome.UNKNOWN, "t-order-dir was right at parallelism 1, tn-dir and wd-dir were wrong"),
    },
    rationale="Rows are stored by the values they are ordered by, and rows that ranked too low are gone.",
    example=Example(ranked(), ranked(order="total")),
    find=find,
)
