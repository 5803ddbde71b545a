from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import values
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, inferred
from airflow_flinkcompat.compat.shapes.examples import windowed


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.aggregations
    if sides is not None and "metrics nobody reads" in pair.parts:
        old, new = (values(side.left_out) for side in sides)
        yield Hit(
            "metrics that nobody reads ask for other columns, or for them in another order",
            pair.claim("metrics nobody reads"),
            old,
            new,
        )


VIEW = "CREATE TEMPORARY VIEW sums AS\n{0}\nSELECT customer, total FROM sums;"
RULE = Rule(
    code="unread-metric-changed",
    title="A metric that nobody reads",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "the planner leaves the metric out, so nothing is stored for it"),
        "flink": inferred(Outcome.UNKNOWN, "EXPLAIN: the metric is left out, what was computed for it may stay"),
    },
    why="Flink's planner drops a metric nobody reads, but only after it has planned the projection below it: that may "
    "put an operator into the job, or take one away.",
    example=Example(
        VIEW.format(windowed("customer, SUM(amount) AS total")),
        VIEW.format(windowed("customer, SUM(amount) AS total, MAX(UPPER(item)) AS last")),
    ),
    find=find,
)
