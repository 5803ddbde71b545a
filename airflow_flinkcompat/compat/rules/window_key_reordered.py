from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Rule, RuleMatch, RuleScope, documented, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import grouping
from airflow_flinkcompat.model import Outcome

KEYS_OF_STATE = {"flink": inferred(Outcome.INCOMPATIBLE, "EXPLAIN: fields of materialised windows are group keys")}


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None or "key order" not in pair.parts or "keys" in pair.parts or "window keys" in pair.parts:
        return
    if "notation" not in pair.parts:
        claims = pair.claim("key order")
        verdicts = {} if all(side.windowed for side in sides) else KEYS_OF_STATE
        yield RuleMatch(
            "only window keys moved", claims, format_group_by(sides[0]), format_group_by(sides[1]), verdicts=verdicts
        )


RULE = Rule(
    code="window-key-reordered",
    title="Window keys changed places",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Window TVF row 9; Group Window Aggregate row 8"),
        "flink": measured(Outcome.COMPATIBLE, "w-windowkeys-swap"),
    },
    rationale="Window keys are kept apart from the group key; only the order of the other keys makes the key.",
    example=grouping(
        "customer, SUM(amount)", "customer, window_end, window_start", "window_start, customer, window_end"
    ),
    find=find,
    case_dependent=("flink",),
    yields_to="ranked-window-key-reordered",
)
