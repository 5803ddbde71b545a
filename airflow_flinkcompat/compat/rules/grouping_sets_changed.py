from collections.abc import Iterable

from airflow_flinkcompat.compat.clauses import group_by
from airflow_flinkcompat.compat.examples import grouping
from airflow_flinkcompat.compat.outcome import Consequence, Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.windowed
    if sides is None:
        return
    old, new = (side.grouping_sets is not None for side in sides)
    if old != new:
        word = "left" if old else "came in"
        # Which keys stand together is what grouping sets say; the keys' own rules speak of plain GROUP BYs.
        claims = pair.claim("grouping sets", "windowed", "kind")
        yield Hit(f"GROUPING SETS, CUBE or ROLLUP {word}", claims, group_by(sides[0]), group_by(sides[1]))


RULE = Rule(
    code="grouping-sets-changed",
    title="GROUPING SETS, CUBE or ROLLUP added or deleted",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 20"),
        "flink": measured(Outcome.INCOMPATIBLE, "planner: an Expand appears", Consequence.REFUSED_AT_SUBMIT),
    },
    why="Every set becomes a group of its own, told apart by a further key in the state.",
    example=grouping(
        "customer, SUM(amount)",
        "customer, window_start, window_end",
        "window_start, window_end, GROUPING SETS ((customer), ())",
    ),
    find=find,
)
