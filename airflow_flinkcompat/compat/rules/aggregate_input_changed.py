from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import listed
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is not None and fates.partly and fates.input_changes:
        old, new = (listed(side) for side in zip(*fates.input_changes, strict=True))
        yield Hit(
            f"the input of a metric is computed differently: {old} became {new}, which counts from zero",
            pair.claim("aggregates"),
            listed(fates.old),
            listed(fates.new),
            fates=fates.table(),
        )


RULE = Rule(
    code="aggregate-input-changed",
    title="The computation of a metric's input changed",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.PARTIAL, "Window TVF row 6"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-substr-view, w-expr-input-numeric, wc-substr-5to3"),
    },
    why="Values gathered from the old expression do not belong to the new one, even where the function and the "
    "column's "
    "name stay. Open-source Flink mixes them without an error when a projection was there before.",
    example=selecting("customer, SUM(amount), MAX(item)", "customer, SUM(amount), MAX(SUBSTRING(item, 1, 5))"),
    find=find,
    item="aggregates",
)
