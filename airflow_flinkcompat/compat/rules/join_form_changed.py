from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import (
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.operators import JoinForm, JoinOperator

MEASURED = (
    {JoinForm.REGULAR, JoinForm.INTERVAL},
    {JoinForm.REGULAR, JoinForm.TEMPORAL},
)
OTHERWISE = inferred(
    Outcome.INCOMPATIBLE, "another operator, which finds no state of its own; how its restore ends was not measured"
)


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    forms = [side.form for side in (pair.old, pair.new) if isinstance(side, JoinOperator)]
    if len(set(forms)) == 2 and JoinForm.JOIN not in forms:
        claims = tuple(difference.key for difference in pair.differences)
        yield RuleMatch(
            f"a {forms[0].value} became a {forms[1].value}",
            claims,
            forms[0].value,
            forms[1].value,
            verdicts={} if set(forms) in MEASURED else {"flink": OTHERWISE},
        )


JOIN = "SELECT a.customer, b.customer\nFROM orders AS a JOIN orders AS b\nON a.item = b.item{0};"
RULE = Rule(
    code="join-form-changed",
    title="A join became another kind of join",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Join pages: type"),
        "flink": measured(
            Outcome.INCOMPATIBLE, "rj-inner-to-interval", "tj-to-regular", consequence=Consequence.REFUSED_AT_SUBMIT
        ),
    },
    rationale="A join of time bounds, of versions, of windows and one of neither are different operators with other "
    "state.",
    example=Example(
        JOIN.format(""),
        JOIN.format(" AND a.order_time BETWEEN b.order_time - INTERVAL '1' MINUTE AND b.order_time"),
    ),
    find=find,
)
