from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import listed
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is not None and fates.partly and fates.added and not fates.dropped:
        yield Hit(
            f"{listed(fates.added)} is new and counts from zero; {listed(fates.kept)} goes on from stored state",
            pair.claim("aggregates"),
            listed(fates.old),
            listed(fates.new),
            fates=fates.table(),
        )


RULE = Rule(
    code="aggregate-added",
    title="A metric was added",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.PARTIAL, "Window TVF row 1"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-add-agg, w-add-agg-front, w-add-agg-bigint"),
    },
    why="Stored accumulators hold no value for the new metric. VVR starts it at zero beside the kept ones; open-source "
    "Flink finds another accumulator layout and refuses.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount), COUNT(item)"),
    find=find,
    item="aggregates",
)
