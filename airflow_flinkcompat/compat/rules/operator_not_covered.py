from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import Example, PlanCover, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.model import Outcome


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    if not pair.others or not pair.changed:
        return
    kinds = ", ".join(sorted({operator.kind for operator in pair.others}))
    claims = [difference.key for difference in pair.differences if difference.part != "sink"]
    for operators in pair.operators:
        if operators.old in pair.others or operators.new in pair.others:
            claims += [difference.key for difference in operators.differences]
    first = pair.others[0]
    yield RuleMatch(
        f"something changed in a pipeline with {kinds}, for which there are no rules yet",
        tuple(claims),
        before_span=first.span,
    )


RULE = Rule(
    code="operator-not-covered",
    title="A change around an operator without rules",
    scope=RuleScope.PIPELINE,
    verdicts={"vvr": inferred(Outcome.UNKNOWN), "flink": inferred(Outcome.UNKNOWN)},
    rationale="INTERSECT and EXCEPT, subqueries in conditions and joins that cannot be told apart keep state of their "
    "own, often whole rows; any difference in such an operator or in its chain may break it.",
    example=Example(
        "SELECT customer FROM orders INTERSECT SELECT region FROM orders;",
        "SELECT customer FROM orders INTERSECT SELECT item FROM orders;",
    ),
    find=find,
    plan_cover=PlanCover.ALWAYS,
)
