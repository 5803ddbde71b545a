from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.model import Basis, Consequence, Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None:
        return
    old, new = (side.window.mismatched if side.window else () for side in sides)
    if old or new:
        yield RuleMatch(
            "a field of a group window names another window than the GROUP BY",
            pair.claim("window field calls"),
            ", ".join(map(str, old)) or "none",
            ", ".join(map(str, new)) or "none",
        )


QUERY = "SELECT customer, SUM(amount), TUMBLE_START(order_time, INTERVAL '{0}' MINUTE)\nFROM orders\n"
KEYS = "GROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE);"
RULE = Rule(
    code="window-field-mismatch",
    title="A window field of another window",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "a note: the documents' own examples hold such fields"),
        "flink": Verdict(
            Outcome.INCOMPATIBLE,
            Basis.INFERRED,
            "the validator asks for a matching call in the GROUP BY",
            consequence=Consequence.REFUSED_AT_SUBMIT,
        ),
    },
    rationale="TUMBLE_START and its kin stand for the window of the GROUP BY; one of another window has none to show.",
    example=Example(QUERY.format(1) + KEYS, QUERY.format(2) + KEYS),
    find=find,
)
