from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_conditions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.model import Outcome


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    old, new = (side.segment.window_filters for side in (pair.old, pair.new))
    if "window filters" in pair.parts:
        yield RuleMatch(
            "a condition on window fields above the state changed",
            pair.claim("window filters"),
            format_conditions(old),
            format_conditions(new),
        )


GROUPED = "FROM orders\nGROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE)"
RULE = Rule(
    code="window-filter-above-state",
    title="A condition on window fields above the state changed",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "no row names filters on the fields of a legacy group window"),
        "flink": inferred(Outcome.UNKNOWN, "not measured"),
    },
    rationale="The fields of a legacy group window exist only above it; no page states what a condition on them does.",
    example=Example(
        f"SELECT customer, SUM(amount)\n{GROUPED};",
        f"SELECT customer, SUM(amount)\n{GROUPED}\n"
        "HAVING TUMBLE_START(order_time, INTERVAL '1' MINUTE) > TIMESTAMP '2026-01-01 00:00:00';",
    ),
    find=find,
)
