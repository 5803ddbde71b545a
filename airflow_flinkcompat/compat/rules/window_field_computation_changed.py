from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import expected
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, documented
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None:
        return
    old, new = (side.window_computations for side in sides)
    if bool(old) != bool(new):
        yield RuleMatch(
            "something is computed from a window field between the window and the GROUP BY on one side only",
            pair.claim("keys", "window keys", "key order", "windowed", "kind"),
            format_expressions(old),
            format_expressions(new),
        )


RULE = Rule(
    code="window-field-computation-changed",
    title="A computation on window fields was added or deleted",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 18"),
        "flink": expected("EXPLAIN: the window is materialised"),
    },
    rationale="A computed window field is an ordinary column: the aggregation no longer runs per window.",
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("customer, SUM(amount)", "customer, window_start + INTERVAL '1' SECOND, window_end"),
    ),
    find=find,
)
