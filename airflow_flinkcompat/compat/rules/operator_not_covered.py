from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, inferred


def find(pair: PipelinePair) -> Iterable[Hit]:
    if not pair.others or not pair.changed:
        return
    kinds = ", ".join(sorted({operator.kind for operator in pair.others}))
    claims = [difference.key for difference in pair.differences if difference.part != "sink"]
    for operators in pair.operators:
        if operators.old in pair.others or operators.new in pair.others:
            claims += [difference.key for difference in operators.differences]
    first = pair.others[0]
    yield Hit(
        f"something changed in a pipeline with {kinds}, for which there are no rules yet",
        tuple(claims),
        before_span=first.span,
    )


RULE = Rule(
    code="operator-not-covered",
    title="A change around an operator without rules",
    scope=Scope.PIPELINE,
    verdicts={"vvr": inferred(Outcome.UNKNOWN), "flink": inferred(Outcome.UNKNOWN)},
    why="INTERSECT and EXCEPT, subqueries in conditions and joins that cannot be told apart keep state of their own, "
    "often whole rows; any difference in such an operator or in its chain may break it.",
    example=Example(
        "SELECT customer FROM orders INTERSECT SELECT region FROM orders;",
        "SELECT customer FROM orders INTERSECT SELECT item FROM orders;",
    ),
    find=find,
)
