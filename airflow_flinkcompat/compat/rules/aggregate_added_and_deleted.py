from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import listed
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is None or not fates.partly or not (fates.added and fates.dropped):
        return
    if len(fates.replacements()) == len(fates.added) == len(fates.dropped):
        return
    yield Hit(
        f"{listed(fates.added)} counts from zero, {listed(fates.dropped)} is dropped; {listed(fates.kept)} goes on",
        pair.claim("aggregates"),
        listed(fates.old),
        listed(fates.new),
        fates=fates.table(),
    )


RULE = Rule(
    code="aggregate-added-and-deleted",
    title="Metrics were added and deleted together",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.PARTIAL, "Window TVF row 3"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-add-del-sametypes"),
    },
    why="VVR treats each metric by itself. Open-source Flink keeps accumulators by position: another set is "
    "refused, or, "
    "where the types happen to fit, read as if nothing had changed.",
    example=selecting("customer, SUM(amount), MAX(item)", "customer, MAX(item), COUNT(region)"),
    find=find,
    item="aggregates",
)
