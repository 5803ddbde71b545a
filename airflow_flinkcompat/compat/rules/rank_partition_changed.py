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
    if set(old) != set(new):
        yield RuleMatch(
            "the rows are ranked within other partitions",
            pair.claim("partition", "kind"),
            f"PARTITION BY {format_expressions(old)}",
            f"PARTITION BY {format_expressions(new)}",
            verdicts={
                "vvr": ranking.on_page(Outcome.INCOMPATIBLE, "partition keys added, deleted or computed differently"),
                "flink": flink_ranking.partition_changed(ranking),
            },
        )


RULE = Rule(
    code="rank-partition-changed",
    title="A partition key of a ranking was added, deleted or computed differently",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window Top-N: partition keys"),
        "flink": measured(Outcome.INCOMPATIBLE, "t-part-add", "tn-part-add", "dd-rd-part-othercol"),
    },
    rationale="Ranked rows are stored by partition. Rows stored under another key belong to another partition.",
    example=Example(ranked(), ranked(partition="customer, window_start, window_end")),
    find=find,
)
