from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import listed
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is not None and fates.distinct_changed:
        yield Hit(
            "a DISTINCT metric was added, deleted, changed or moved among the DISTINCT ones",
            pair.claim("aggregates"),
            listed(call for call in fates.old if call.distinct) or "no DISTINCT metric",
            listed(call for call in fates.new if call.distinct) or "no DISTINCT metric",
            fates=fates.table(),
        )


RULE = Rule(
    code="distinct-aggregate-changed",
    title="A DISTINCT metric changed",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 13"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-distinct-add, w-distinct-del, w-distinct-mod-func"),
    },
    why="The values seen so far are part of the state's layout, in the order of the DISTINCT metrics.",
    example=selecting("customer, SUM(amount), COUNT(DISTINCT item)", "customer, SUM(amount), COUNT(DISTINCT region)"),
    find=find,
    item="aggregates",
)
