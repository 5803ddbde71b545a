from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.changes.ranking import Ranking
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.model import Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    ranking = Ranking.of(pair)
    if ranking is None or "constant key" not in pair.parts:
        return
    old, new = ("a constant among the keys" if side.constant_key else "" for side in (ranking.old, ranking.new))
    word = "came into" if new else "went from"
    yield RuleMatch(f"a constant {word} the keys of a ranking", pair.claim("constant key"), old, new)


LATEST = """\
SELECT customer, amount
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {0} ORDER BY order_time DESC) AS place FROM orders)
WHERE place = 1;"""
RULE = Rule(
    code="rank-constant-key",
    title="A constant among the keys of a ranking came or went",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "the pages count any added partition key; Flink's planner drops a constant"),
        "flink": inferred(Outcome.UNKNOWN, "EXPLAIN: the ranking stays, a projection below it may be gone"),
    },
    rationale="Ranked rows are stored by the keys that tell them apart, and a constant tells nothing apart: Flink's "
    "planner drops it. It may read the source through one projection less then, though, which makes another job of it.",
    example=Example(LATEST.format("customer"), LATEST.format("customer, 1")),
    find=find,
)
