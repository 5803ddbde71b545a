from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import Fates, listed
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def only_one_left(fates: Fates) -> bool:
    """One metric remains, and it is one of the old ones over another input."""
    return fates.none_kept and len(fates.new) == 1 and fates.new[0].function in {c.function for c in fates.old}


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is not None and only_one_left(fates):
        yield Hit(
            "the only metric is computed differently, so nothing survives",
            pair.claim("aggregates"),
            listed(fates.old),
            listed(fates.new),
            fates=fates.table(),
        )


RULE = Rule(
    code="only-aggregate-changed",
    title="The only metric's computation changed",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 16"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-one-agg-calc-change, wc-one-agg-calc"),
    },
    why="A partial reuse needs at least one metric that survives unchanged.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount + 1)"),
    find=find,
    item="aggregates",
)
