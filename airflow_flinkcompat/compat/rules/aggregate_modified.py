from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import listed
from airflow_flinkcompat.compat.examples import selecting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def find(pair: OperatorPair) -> Iterable[Hit]:
    fates = pair.fates
    if fates is not None and fates.partly and fates.function_changes:
        changed = fates.function_changes
        old, new = (listed(side) for side in zip(*changed, strict=True))
        yield Hit(
            f"{old} became {new}: the old value is dropped, the new metric counts from zero",
            pair.claim("aggregates"),
            listed(fates.old),
            listed(fates.new),
            fates=fates.table(),
        )


RULE = Rule(
    code="aggregate-modified",
    title="A metric's function changed",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.PARTIAL, "Window TVF row 4"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-mod-max-min, g-mod-max-min, w-first-last"),
    },
    why="A changed metric is a deleted one and a new one. Open-source Flink reads the old accumulator as the new "
    "metric's where the types fit: MAX goes on from a MIN, without an error.",
    example=selecting("customer, SUM(amount), MAX(item)", "customer, SUM(amount), MIN(item)"),
    find=find,
    item="aggregates",
)
