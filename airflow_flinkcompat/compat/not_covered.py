"""What a difference is called that no rule claims. It has its page in the catalogue, but nothing looks for it."""

from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Rule, Scope, inferred
from airflow_flinkcompat.compat.shapes.examples import windowed

SINK = "CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
TOTAL = windowed("customer, SUM(amount)")
RULE = Rule(
    code="difference-not-covered",
    title="A difference no rule covers",
    scope=Scope.SCRIPT,
    verdicts={"vvr": inferred(Outcome.UNKNOWN), "flink": inferred(Outcome.UNKNOWN)},
    why="Every difference between both sides is claimed by a rule. What none claims may do anything to stored state, "
    "so it is named and left to a person: silence never means compatible.",
    example=Example(SINK + "INSERT INTO totals\n" + TOTAL, SINK + "INSERT OVERWRITE totals\n" + TOTAL),
    find=lambda change: (),
)
