from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, documented, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rules.table_function import kept_on_flink
from airflow_flinkcompat.model import Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None:
        return
    old, new = (side.window_computations for side in sides)
    if old and new:
        yield RuleMatch(
            "something is computed from a window field on both sides",
            # Which computation it is: the document leaves that open too.
            pair.claim("keys", "key order") if set(old) ^ set(new) else (),
            format_expressions(old),
            format_expressions(new),
            verdicts=kept_on_flink(pair.pipeline),
        )


KEYS = "customer, window_start + INTERVAL '1' SECOND, window_end"
RULE = Rule(
    code="window-field-computation-kept",
    title="A computation on window fields before and after",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.UNKNOWN, "Window TVF row 21"),
        "flink": inferred(Outcome.UNKNOWN, "only unchanged computations were measured"),
    },
    rationale="The vendor's check does not look into computations on window fields, whether they changed or not.",
    example=Example(windowed("customer, SUM(amount)", KEYS), windowed("customer, SUM(amount), window_end", KEYS)),
    find=find,
)
