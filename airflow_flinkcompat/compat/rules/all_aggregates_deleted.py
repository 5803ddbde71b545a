from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import listed
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is not None and fates.old and not fates.new:
        yield Hit(
            "no metric is left",
            pair.claim("aggregates"),
            listed(fates.old),
            "no metric",
            fates=fates.table(),
        )


RULE = Rule(
    code="all-aggregates-deleted",
    title="All metrics were deleted",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 14"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-del-all-aggs, g-del-all"),
    },
    why="Nothing survives that the stored state could serve.",
    example=selecting("customer, SUM(amount), window_start", "customer, window_start"),
    find=find,
    item="aggregates",
)
