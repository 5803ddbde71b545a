from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import NESTING, PipelinePair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.model import Outcome


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    if NESTING in pair.parts:
        yield RuleMatch(
            "the query is nested in another way: it has the same result, but Flink may plan other operators for it",
            pair.claim(NESTING),
        )


INNER = "SELECT customer, amount, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) AS place FROM orders"
RULE = Rule(
    code="nested-otherwise",
    title="A query is nested in another way",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "both sides are equal after canonicalisation"),
        "flink": inferred(Outcome.UNKNOWN, "QUALIFY in place of a subquery was refused, as was one below UNNEST"),
    },
    rationale="Flink's planner merges a subquery, view or WITH query that only selects and filters with the query "
    "around it, as plans and restores show. It plans three things as written, so that state may find no operator: "
    "QUALIFY, a subquery below UNNEST, and a subquery that calls a non-deterministic function or your own.",
    example=Example(
        f"SELECT customer, amount FROM ({INNER}) WHERE place <= 3;",
        "SELECT customer, amount FROM orders\n"
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) <= 3;",
    ),
    find=find,
)
