from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import values
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.changes.ranking import Ranking
from airflow_flinkcompat.compat.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, documented, inferred
from airflow_flinkcompat.compat.shapes.examples import ranked


def find(pair: OperatorPair) -> Iterable[Hit]:
    ranking = Ranking.of(pair)
    if ranking is not None and ranking.only_window_fields_moved:
        yield Hit(
            "window_start and window_end stand elsewhere in the GROUP BY below, and so in the ranked rows",
            pair.claim("row", "selected"),
            values(ranking.old.row),
            values(ranking.new.row),
            verdicts={
                "vvr": ranking.on_page(Outcome.INCOMPATIBLE, "window fields reordered in the GROUP BY"),
                "flink": flink_ranking.window_keys(ranking),
            },
        )


RULE = Rule(
    code="ranked-window-key-reordered",
    title="Window fields moved in the GROUP BY under a Top-N",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window Top-N: window fields reordered in the GROUP BY"),
        "flink": inferred(Outcome.UNKNOWN, "restored right at parallelism 1 only"),
    },
    why="The aggregation alone does not mind, but it hands its keys up in the order of the GROUP BY, and the ranking "
    "stores them in that order.",
    example=Example(ranked(), ranked(keys="customer, window_end, window_start")),
    find=find,
)
