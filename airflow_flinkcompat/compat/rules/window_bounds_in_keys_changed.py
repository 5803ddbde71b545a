from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import group_by
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, measured
from airflow_flinkcompat.compat.shapes.examples import grouping
from airflow_flinkcompat.plan.nodes import WindowField

BOUNDS = frozenset({WindowField.START, WindowField.END})


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.windowed
    if sides is None or "notation" in pair.parts:
        return
    old, new = (side.window_keys for side in sides)
    if (old >= BOUNDS) != (new >= BOUNDS):
        yield Hit(
            "the GROUP BY started or stopped holding both window_start and window_end",
            pair.claim("window keys", "key order", "windowed", "kind"),
            group_by(sides[0]),
            group_by(sides[1]),
        )


RULE = Rule(
    code="window-bounds-in-keys-changed",
    title="GROUP BY holds both window bounds, or no longer",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 19"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-groupby-only-ws-to-both"),
    },
    why="With both bounds the aggregation is planned per window; with one it is an unbounded aggregation over "
    "windowed rows.",
    example=grouping("customer, SUM(amount)", "customer, window_start", "customer, window_start, window_end"),
    find=find,
)
