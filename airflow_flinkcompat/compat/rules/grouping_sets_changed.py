from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Rule, RuleMatch, RuleScope, documented, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import grouping
from airflow_flinkcompat.model import Consequence, Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is None:
        return
    old, new = (side.grouping_sets is not None for side in sides)
    if old != new:
        word = "left" if old else "came in"
        # Which keys stand together is what grouping sets say; the keys' own rules speak of plain GROUP BYs.
        claims = pair.claim("grouping sets", "windowed", "kind")
        before, after = (format_group_by(side) for side in sides)
        verdicts = (
            {} if pair.windowed else {"vvr": inferred(Outcome.UNKNOWN, "no page speaks of them without a window")}
        )
        yield RuleMatch(f"GROUPING SETS, CUBE or ROLLUP {word}", claims, before, after, verdicts=verdicts)


RULE = Rule(
    code="grouping-sets-changed",
    title="GROUPING SETS, CUBE or ROLLUP added or deleted",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 20"),
        "flink": measured(
            Outcome.INCOMPATIBLE,
            "ga-grouping-sets",
            note="an Expand appears",
            consequence=Consequence.REFUSED_AT_SUBMIT,
        ),
    },
    rationale="Every set becomes a group of its own, told apart by a further key in the state.",
    example=grouping(
        "customer, SUM(amount)",
        "customer, window_start, window_end",
        "window_start, window_end, GROUPING SETS ((customer), ())",
    ),
    find=find,
)
