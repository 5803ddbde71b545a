from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_window
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Rule, RuleMatch, RuleScope, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import MINUTE, reading
from airflow_flinkcompat.compat.rules.window_changed import PARTS
from airflow_flinkcompat.model import Outcome


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windows
    if sides is None or "offset" not in pair.parts or pair.parts & set(PARTS):
        return
    yield RuleMatch(
        "another offset assigns every row to the same window",
        pair.claim("offset"),
        format_window(sides[0]),
        format_window(sides[1]),
    )


RULE = Rule(
    code="window-offset-respelled",
    title="Another offset with the same assignment",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "offsets compare as assignments; the Windowing TVF page lists equal ones"),
        "flink": measured(
            Outcome.COMPATIBLE, "offsets-tumble-negative", "offsets-hop-negative", "offsets-hop-whole-slide"
        ),
    },
    rationale="An offset is a shift of the assignment: on a size of 10 minutes, -6 and 4 minutes give the same "
    "windows.",
    example=reading(
        "customer, SUM(amount)",
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '4' MINUTE"),
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '-6' MINUTE"),
    ),
    find=find,
)
