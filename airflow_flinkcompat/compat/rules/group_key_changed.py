from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Rule, RuleMatch, RuleScope, documented, measured
from airflow_flinkcompat.compat.rule_builders.examples import grouping
from airflow_flinkcompat.compat.rules.window_bounds_in_keys_changed import BOUNDS
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import AggregateOperator
from airflow_flinkcompat.plan.origins import describe, uses_window_field


def _plain(side: AggregateOperator) -> set[object]:
    return {key for key in side.keys if not uses_window_field(key)}


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is None:
        return
    old, new = (_plain(side) for side in sides)
    bounds = [side.window_keys & BOUNDS for side in sides]
    swapped = len(bounds[0]) == len(bounds[1]) == 1 and bounds[0] != bounds[1]
    if old != new or (swapped and "notation" not in pair.parts):
        gone = ", ".join(sorted(describe(key) for key in old - new))
        come = ", ".join(sorted(describe(key) for key in new - old))
        what = (
            " and ".join(filter(None, (gone and f"{gone} left", come and f"{come} joined")))
            or "a window bound changed in"
        )
        yield RuleMatch(
            f"{what} the group keys",
            pair.claim("keys", "key order", *(("window keys",) if swapped else ())),
            format_group_by(sides[0]),
            format_group_by(sides[1]),
            verdicts={} if pair.windowed else {"vvr": documented(Outcome.INCOMPATIBLE, "Group Aggregate page")},
        )


RULE = Rule(
    code="group-key-changed",
    title="A group key was added, deleted or computed differently",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 11; Group Window Aggregate row 13"),
        "flink": measured(
            Outcome.INCOMPATIBLE, "w-mod-key-sametype", "w-mod-key-othercol", "g-add-key", "ga-key-othercol"
        ),
    },
    rationale="State is found by its key. Values stored under another key belong to another group.",
    example=grouping(
        "customer, SUM(amount)", "customer, window_start, window_end", "customer, region, window_start, window_end"
    ),
    find=find,
)
