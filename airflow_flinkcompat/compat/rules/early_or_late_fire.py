from collections.abc import Iterable

from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, documented, measured

FIRE = ("table.exec.emit.early-fire.enabled", "table.exec.emit.late-fire.enabled")


def _fires(settings: tuple[tuple[str, str], ...]) -> list[str]:
    return [key for key, value in settings if key in FIRE and value.strip().lower() == "true"]


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.windowed
    if sides is None or not any(side.window and side.window.notation == "group window" for side in sides):
        return
    old, new = (_fires(p.settings) for p in (pair.pipeline.old_pipeline, pair.pipeline.new_pipeline))
    if old or new:
        yield Hit("a group window fires early or late", (), ", ".join(old) or "neither", ", ".join(new) or "neither")


GROUPED = "SELECT customer, SUM(amount){0}\nFROM orders\nGROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE);"
SET = "SET 'table.exec.emit.early-fire.enabled' = 'true';\n"
RULE = Rule(
    code="early-or-late-fire",
    title="A group window that fires early or late",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Group Window Aggregate: early or late fire before or after"),
        "flink": measured(Outcome.COMPATIBLE, "early and late fire added, kept and removed: restored right"),
    },
    why="Results that leave before or after their window's end make it a retracting operator, which keeps other state.",
    example=Example(SET + GROUPED.format(""), SET + GROUPED.format(", TUMBLE_END(order_time, INTERVAL '1' MINUTE)")),
    find=find,
)
