from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is not None and "metrics nobody reads" in pair.parts:
        old, new = (format_expressions(side.pruned_inputs) for side in sides)
        yield RuleMatch(
            "metrics that nobody reads ask for other columns, or for them in another order",
            pair.claim("metrics nobody reads"),
            old,
            new,
        )


VIEW = "CREATE TEMPORARY VIEW sums AS\n{0}\nSELECT customer, total FROM sums;"
RULE = Rule(
    code="unread-metric-changed",
    title="A metric that nobody reads",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "the planner leaves the metric out, so nothing is stored for it"),
        "flink": inferred(Outcome.UNKNOWN, "EXPLAIN: the metric is left out, what was computed for it may stay"),
    },
    rationale="Flink's planner drops a metric nobody reads, but only after it has planned the projection below it: "
    "that may put an operator into the job, or take one away.",
    example=Example(
        VIEW.format(windowed("customer, SUM(amount) AS total")),
        VIEW.format(windowed("customer, SUM(amount) AS total, MAX(UPPER(item)) AS last")),
    ),
    find=find,
)
