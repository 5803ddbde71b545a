from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, inferred, measured
from airflow_flinkcompat.compat.shapes.examples import grouping

KEYS_OF_STATE = {"flink": inferred(Outcome.INCOMPATIBLE, "EXPLAIN: fields of materialised windows are group keys")}


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.windowed
    if sides is None or "key order" not in pair.parts or "keys" in pair.parts or "window keys" in pair.parts:
        return
    if "notation" not in pair.parts:
        claims = pair.claim("key order")
        verdicts = {} if all(side.windowed for side in sides) else KEYS_OF_STATE
        yield Hit("only window keys moved", claims, group_by(sides[0]), group_by(sides[1]), verdicts=verdicts)


RULE = Rule(
    code="window-key-reordered",
    title="Window keys changed places",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Window TVF row 9; Group Window Aggregate row 8"),
        "flink": measured(Outcome.COMPATIBLE, "w-windowkeys-swap"),
    },
    why="Window keys are kept apart from the group key; only the order of the other keys makes the key.",
    example=grouping(
        "customer, SUM(amount)", "customer, window_end, window_start", "window_start, customer, window_end"
    ),
    find=find,
    by_case=("flink",),
)
