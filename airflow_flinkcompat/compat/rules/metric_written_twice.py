from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import values
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, inferred
from airflow_flinkcompat.compat.shapes.examples import MINUTE


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.aggregations
    if sides is not None and "metrics written twice" in pair.parts:
        old, new = (f"{values(side.aggregates)} and {side.repeated_calls} of them again" for side in sides)
        yield Hit(
            "a metric is computed once more, or once less, over a column that says the same",
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
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "a repeated call counts once, its arguments resolved to source columns"),
        "flink": inferred(Outcome.INCOMPATIBLE, "EXPLAIN: both calls have an accumulator"),
    },
    why="Flink keeps a repeated call once, but only where both are written over the same column: MAX(amount) and "
    "MAX(paid) are two accumulators though paid is only another name, or a computed column that says the same.",
    example=Example(QUERY.format("MAX(amount)", MINUTE), QUERY.format("MAX(amount), MAX(paid)", MINUTE)),
    find=find,
)
