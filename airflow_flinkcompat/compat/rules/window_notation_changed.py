from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.single_operator_query import computed_below
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rules.window_changed import PARTS
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.nodes import WindowKind


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None or "notation" not in pair.parts or pair.parts & set(PARTS):
        return
    old, new = (side.window.notation if side.window else "none" for side in sides)
    # The window's keys are written in another way with the notation; what they say is the same.
    claims = pair.claim("notation", "kind", "windowed", "window keys", "key order")
    tumble = all(side.window is not None and side.window.window.kind is WindowKind.TUMBLE for side in sides)
    verdicts = {"flink": COMPUTED} if tumble and computed_below(pair.pipeline) else {}
    yield RuleMatch("the same window is written in the other notation", claims, old, new, verdicts=verdicts)


COMPUTED = measured(
    Outcome.INCOMPATIBLE,
    "notation-computed-tumble-to-tvf",
    consequence=Consequence.REFUSED_AT_RESTORE,
)

RULE = Rule(
    code="window-notation-changed",
    title="The same window in the other notation",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "no page states whether the two operators share state"),
        "flink": measured(
            Outcome.INCOMPATIBLE,
            "w-tumble-to-legacytumble-samesize",
            "g-to-tvf",
            consequence=Consequence.REFUSED_AT_SUBMIT,
        ),
    },
    rationale="A windowing table-valued function and a legacy group window are planned as different operators.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "SELECT customer, SUM(amount)\nFROM orders\nGROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE);",
    ),
    find=find,
)
