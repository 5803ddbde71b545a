from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import MINUTE
from airflow_flinkcompat.model import Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is not None and "metrics written twice" in pair.parts:
        old, new = (f"{format_expressions(side.aggregates)} and {side.repeated_calls} of them again" for side in sides)
        yield RuleMatch(
            "a metric is computed once more, or once less, over an equal column",
            pair.claim("metrics written twice"),
            old,
            new,
        )


QUERY = """\
SELECT customer, {0}
FROM (SELECT customer, amount, amount AS paid, window_start, window_end
  FROM {1})
GROUP BY customer, window_start, window_end;
"""
RULE = Rule(
    code="metric-written-twice",
    title="A metric over another name of its column",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "a repeated call counts once, its arguments resolved to source columns"),
        "flink": inferred(Outcome.INCOMPATIBLE, "EXPLAIN: both calls have an accumulator"),
    },
    rationale="Flink keeps a repeated call once, but only where both are written over the same column: MAX(amount) and "
    "MAX(paid) are two accumulators though paid is only another name, or an equal computed column.",
    example=Example(QUERY.format("MAX(amount)", MINUTE), QUERY.format("MAX(amount), MAX(paid)", MINUTE)),
    find=find,
)
