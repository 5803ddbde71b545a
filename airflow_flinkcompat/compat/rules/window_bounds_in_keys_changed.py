from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Rule, RuleMatch, RuleScope, documented, measured
from airflow_flinkcompat.compat.rule_builders.examples import grouping
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.nodes import WindowField

BOUNDS = frozenset({WindowField.START, WindowField.END})


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None or "notation" in pair.parts:
        return
    old, new = (side.window_keys for side in sides)
    if (old >= BOUNDS) != (new >= BOUNDS):
        yield RuleMatch(
            "the GROUP BY started or stopped holding both window_start and window_end",
            pair.claim("window keys", "key order", "windowed", "kind"),
            format_group_by(sides[0]),
            format_group_by(sides[1]),
        )


RULE = Rule(
    code="window-bounds-in-keys-changed",
    title="GROUP BY holds both window bounds, or no longer does",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 19"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-groupby-only-ws-to-both"),
    },
    rationale="With both bounds the aggregation is planned per window; with one it is an unbounded aggregation over "
    "windowed rows.",
    example=grouping("customer, SUM(amount)", "customer, window_start", "customer, window_start, window_end"),
    find=find,
)
