from collections.abc import Iterable

from airflow_flinkcompat.compat.change import Change
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, inferred
from airflow_flinkcompat.compat.rules.insert_added_or_removed import BOTH, SINKS


def find(change: Change) -> Iterable[Hit]:
    claims = change.claim("insert order")
    if claims:
        yield Hit("the queries stand in another order", claims)


LINES = BOTH.splitlines()
RULE = Rule(
    code="insert-order-changed",
    title="Queries changed places in the script",
    scope=Scope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "statement order inside a set (readings)"),
        "flink": inferred(Outcome.UNKNOWN, "which operator takes whose state is judged in a later version"),
    },
    why="Open-source Flink numbers operators as it meets them.",
    example=Example(SINKS + BOTH, SINKS + "\n".join([LINES[0], LINES[2], LINES[1], LINES[3]])),
    find=find,
)
