from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import listed
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is not None and fates.reordered and not fates.distinct_changed:
        yield Hit(
            "the same metrics stand in another order",
            pair.claim("aggregates"),
            listed(fates.old),
            listed(fates.new),
            fates=fates.table(),
        )


RULE = Rule(
    code="aggregate-reordered",
    title="Metrics changed places",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Window TVF row 5"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-reorder, w-reorder-sametypes, wc-reorder-sametypes"),
    },
    why="VVR finds each metric wherever it stands. Open-source Flink keeps accumulators by position.",
    example=selecting("customer, SUM(amount), MAX(item)", "customer, MAX(item), SUM(amount)"),
    find=find,
)
