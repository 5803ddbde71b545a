from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Rule, RuleMatch, RuleScope, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import grouping
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.nodes import WindowField


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None or "notation" in pair.parts:
        return
    if sides[0].window_keys ^ sides[1].window_keys == {WindowField.TIME}:
        yield RuleMatch(
            "window_time joined or left the keys",
            pair.claim("window keys", "key order"),
            format_group_by(sides[0]),
            format_group_by(sides[1]),
        )


RULE = Rule(
    code="window-time-key",
    title="window_time joined or left the keys",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "no row names window_time as a key"),
        "flink": measured(Outcome.COMPATIBLE, "w-add-window-time", note="the state's keys stay the same"),
    },
    rationale="window_time follows from window_end, so it splits no group; whether VVR's check knows that, no page "
    "says.",
    example=grouping(
        "customer, SUM(amount)", "customer, window_start, window_end", "customer, window_start, window_end, window_time"
    ),
    find=find,
)
