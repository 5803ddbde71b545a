from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.changes.ranking import Ranking
from airflow_flinkcompat.compat.engines.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, documented, measured
from airflow_flinkcompat.compat.rule_builders.examples import ranked
from airflow_flinkcompat.model import Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is None:
        return
    old, new = ranking.old.partition, ranking.new.partition
    if old != new and set(old) == set(new):
        yield RuleMatch(
            "the same PARTITION BY keys stand in another order",
            pair.claim("partition"),
            f"PARTITION BY {format_expressions(old)}",
            f"PARTITION BY {format_expressions(new)}",
            verdicts={
                "vvr": ranking.on_page(Outcome.COMPATIBLE, "reorder partition keys"),
                "flink": flink_ranking.partition_reordered(ranking),
            },
        )


RULE = Rule(
    code="rank-partition-reordered",
    title="Partition keys of a ranking changed places",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Window Top-N: reorder partition keys"),
        "flink": measured(Outcome.COMPATIBLE, "t-part-reorder"),
    },
    rationale="The planner puts partition keys in an order of its own, so both orders make the same state.",
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
    find=find,
    case_dependent=("vvr", "flink"),
)
