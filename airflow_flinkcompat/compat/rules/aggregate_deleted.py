from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import listed
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is not None and fates.partly and fates.dropped and not fates.added:
        yield Hit(
            f"{listed(fates.dropped)} is gone and its state is dropped; {listed(fates.kept)} goes on from stored state",
            pair.claim("aggregates"),
            listed(fates.old),
            listed(fates.new),
            fates=fates.table(),
        )


RULE = Rule(
    code="aggregate-deleted",
    title="A metric was deleted",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Window TVF row 2"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-del-agg, g-del-agg"),
    },
    why="VVR drops the deleted metric's state and keeps the rest. Open-source Flink compares the whole accumulator "
    "layout "
    "and refuses the shorter one.",
    example=selecting("customer, SUM(amount), COUNT(item)", "customer, SUM(amount)"),
    find=find,
    item="aggregates",
)
