from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.aggregates import listed
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, documented, inferred, measured
from airflow_flinkcompat.compat.rules.table_function import kept_on_flink
from airflow_flinkcompat.compat.shapes.examples import selecting

CHANGED = {"flink": measured(Outcome.INCOMPATIBLE, "w-agg-on-window-start")}


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.windowed
    if sides is None:
        return
    old, new = (side.window_aggregates for side in sides)
    if old or new:
        yield Hit(
            "a window field is aggregated",
            (),
            listed(old) or "none",
            listed(new) or "none",
            verdicts=kept_on_flink(pair.pipeline) if old == new else CHANGED,
        )


RULE = Rule(
    code="window-field-aggregated",
    title="An aggregate over a window field",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.UNKNOWN, "Window TVF row 25"),
        "flink": inferred(Outcome.UNKNOWN, "only unchanged aggregates over window fields were measured"),
    },
    why="The window field becomes an ordinary column of the aggregation's input.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount), MAX(window_start)"),
    find=find,
)
