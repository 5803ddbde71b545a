from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_window
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import expected
from airflow_flinkcompat.compat.rule import Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import MINUTE, reading
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.plan.operators import AssignedWindow


def _refused(windowing: AssignedWindow | None) -> bool:
    if windowing is None or windowing.window.kind is not WindowKind.TUMBLE:
        return False
    return abs(windowing.window.offset) >= (windowing.window.size or 0)


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windows
    if sides is not None and _refused(sides[1]):
        yield RuleMatch(
            "open-source Flink refuses a TUMBLE whose offset is not smaller than its size",
            (),
            format_window(sides[0]),
            format_window(sides[1]),
        )


RULE = Rule(
    code="window-offset-refused",
    title="A TUMBLE offset of at least the size",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "the Windowing TVF page prints offsets of 16 minutes on a size of 10"),
        "flink": expected("the planners of 2.3 and 1.20 refuse it"),
    },
    rationale="The planner asks for abs(offset) < size on TUMBLE only; HOP and CUMULATE ran with larger ones.",
    example=reading(
        "customer, SUM(amount)",
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '4' MINUTE"),
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '14' MINUTE"),
    ),
    find=find,
)
