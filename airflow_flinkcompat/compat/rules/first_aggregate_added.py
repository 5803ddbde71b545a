from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import listed
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is not None and fates.new and not fates.old:
        yield Hit(
            "there was no metric before",
            pair.claim("aggregates"),
            "no metric",
            listed(fates.new),
            fates=fates.table(),
        )


RULE = Rule(
    code="first-aggregate-added",
    title="The first metric was added",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 15"),
        "flink": measured(Outcome.INCOMPATIBLE, "g-add-to-none"),
    },
    why="State without metrics has no accumulators a metric could go on from.",
    example=selecting("customer, window_start", "customer, window_start, COUNT(*)"),
    find=find,
    item="aggregates",
)
