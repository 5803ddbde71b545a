from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import listed
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured
from airflow_flinkcompat.compat.rules.only_aggregate_changed import only_one_left


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is not None and fates.none_kept and not only_one_left(fates):
        yield Hit(
            "no metric of the deployed query survives",
            pair.claim("aggregates"),
            listed(fates.old),
            listed(fates.new),
            fates=fates.table(),
        )


RULE = Rule(
    code="aggregates-replaced",
    title="All metrics were replaced",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 17"),
        "flink": measured(Outcome.INCOMPATIBLE, "g-all-different, g-one-sum-to-max"),
    },
    why="A partial reuse needs at least one metric that survives unchanged.",
    example=selecting("customer, SUM(amount)", "customer, MIN(amount)"),
    find=find,
    item="aggregates",
)
