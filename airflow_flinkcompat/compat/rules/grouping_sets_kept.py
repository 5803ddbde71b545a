from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import (
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rules.table_function import kept_on_flink
from airflow_flinkcompat.model import Consequence, Outcome

OTHERS = {"flink": measured(Outcome.INCOMPATIBLE, "wc-grouping-sets-drop-one", consequence=Consequence.SILENTLY_WRONG)}


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is None or any(side.grouping_sets is None for side in sides):
        return
    yield RuleMatch(
        "GROUPING SETS, CUBE or ROLLUP stand on both sides",
        pair.claim("grouping sets"),
        format_group_by(sides[0]),
        format_group_by(sides[1]),
        verdicts=OTHERS if "grouping sets" in pair.parts else kept_on_flink(pair.pipeline),
    )


SETS = "window_start, window_end, ROLLUP (customer)"
RULE = Rule(
    code="grouping-sets-kept",
    title="GROUPING SETS, CUBE or ROLLUP before and after",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.UNKNOWN, "Window TVF row 26"),
        "flink": inferred(Outcome.UNKNOWN, "kept next to another change: not measured"),
    },
    rationale="The vendor's check does not look into grouping sets, whether they changed or not.",
    example=Example(windowed("customer, SUM(amount)", SETS), windowed("customer, SUM(amount), window_start", SETS)),
    find=find,
)
