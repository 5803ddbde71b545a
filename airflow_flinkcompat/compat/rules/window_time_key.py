from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, inferred, measured
from airflow_flinkcompat.compat.shapes.examples import grouping
from airflow_flinkcompat.plan.nodes import WindowField


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.windowed
    if sides is None or "notation" in pair.parts:
        return
    if sides[0].window_keys ^ sides[1].window_keys == {WindowField.TIME}:
        yield Hit(
            "window_time joined or left the keys",
            pair.claim("window keys", "key order"),
            group_by(sides[0]),
            group_by(sides[1]),
        )


RULE = Rule(
    code="window-time-key",
    title="window_time joined or left the keys",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "no row names window_time as a key"),
        "flink": measured(Outcome.COMPATIBLE, "w-add-window-time", note="the state's keys stay the same"),
    },
    why="window_time follows from window_end, so it splits no group; whether VVR's check knows that, no page says.",
    example=grouping(
        "customer, SUM(amount)", "customer, window_start, window_end", "customer, window_start, window_end, window_time"
    ),
    find=find,
)
