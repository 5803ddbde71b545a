from collections.abc import Iterable

from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is not None and not fates.old and not fates.new:
        yield Hit("neither side computes a metric; the keys seen so far are kept")


RULE = Rule(
    code="no-aggregates",
    title="No metrics before and after",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Window TVF row 8"),
        "flink": measured(Outcome.COMPATIBLE, "w-noagg-unchanged, w-noagg-addwstart, g-none-both"),
    },
    why="The state holds only which keys were seen in which window.",
    example=selecting("customer", "customer, window_start"),
    find=find,
)
