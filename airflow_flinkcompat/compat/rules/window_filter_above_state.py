from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import conditions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, inferred


def find(pair: PipelinePair) -> Iterable[Hit]:
    old, new = (side.region.window_filters for side in (pair.old, pair.new))
    if "window filters" in pair.parts:
        yield Hit(
            "a condition on window fields above the state changed",
            pair.claim("window filters"),
            conditions(old),
            conditions(new),
        )


GROUPED = "FROM orders\nGROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE)"
RULE = Rule(
    code="window-filter-above-state",
    title="A condition on window fields above the state changed",
    scope=Scope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "no row names filters on the fields of a legacy group window"),
        "flink": inferred(Outcome.UNKNOWN, "not measured"),
    },
    why="The fields of a legacy group window exist only above it; no page says what a condition on them does.",
    example=Example(
        f"SELECT customer, SUM(amount)\n{GROUPED};",
        f"SELECT customer, SUM(amount)\n{GROUPED}\n"
        "HAVING TUMBLE_START(order_time, INTERVAL '1' MINUTE) > TIMESTAMP '2026-01-01 00:00:00';",
    ),
    find=find,
)
