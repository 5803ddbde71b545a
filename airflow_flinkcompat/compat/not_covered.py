"""What a difference is called that no rule claims. It has its page in the catalogue, but nothing looks for it."""

from airflow_flinkcompat.compat.rule import Example, Rule, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Outcome

SINK = "CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
TOTAL = windowed("customer, SUM(amount)")
RULE = Rule(
    code="difference-not-covered",
    title="A difference no rule covers",
    scope=RuleScope.SCRIPT,
    verdicts={"vvr": inferred(Outcome.UNKNOWN), "flink": inferred(Outcome.UNKNOWN)},
    rationale="Every difference between both sides is claimed by a rule. What none claims may do anything to stored "
    "state, so it is named and left to a person: silence never means compatible.",
    example=Example(SINK + "INSERT INTO totals\n" + TOTAL, SINK + "INSERT OVERWRITE totals\n" + TOTAL),
    find=lambda change: (),
    beside_operators=True,
)
