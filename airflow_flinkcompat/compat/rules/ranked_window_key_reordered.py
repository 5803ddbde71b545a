from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.changes.ranking import Ranking
from airflow_flinkcompat.compat.engines.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, documented, inferred
from airflow_flinkcompat.compat.rule_builders.examples import ranked
from airflow_flinkcompat.model import Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is not None and ranking.only_window_fields_moved:
        yield RuleMatch(
            "window_start and window_end stand elsewhere in the GROUP BY below, and so in the ranked rows",
            pair.claim("row", "selected"),
            format_expressions(ranking.old.row),
            format_expressions(ranking.new.row),
            verdicts={
                "vvr": ranking.on_page(Outcome.INCOMPATIBLE, "window fields reordered in the GROUP BY"),
                "flink": flink_ranking.window_keys(ranking),
            },
        )


RULE = Rule(
    code="ranked-window-key-reordered",
    title="Window fields moved in the GROUP BY under a Top-N",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window Top-N: window fields reordered in the GROUP BY"),
        "flink": inferred(Outcome.UNKNOWN, "restored right at parallelism 1 only"),
    },
    rationale="The aggregation alone does not mind, but it hands its keys up in the order of the GROUP BY, and the "
    "ranking stores them in that order.",
    example=Example(ranked(), ranked(keys="customer, window_end, window_start")),
    find=find,
)
