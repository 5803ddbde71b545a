from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import conditions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Consequence, Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, documented, inferred, measured
from airflow_flinkcompat.compat.rules.table_function import kept_on_flink
from airflow_flinkcompat.compat.shapes.examples import windowed

CHANGED = {"flink": measured(Outcome.INCOMPATIBLE, "filters-window-filter-changed")}
ADDED = {
    "flink": measured(
        Outcome.INCOMPATIBLE,
        "w-filter-window-add",
        "filters-window-filter-removed",
        consequence=Consequence.REFUSED_AT_SUBMIT,
    )
}


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.aggregations or pair.ranks
    if sides is None:
        return
    old, new = (side.region.window_filters for side in sides)
    if not old and not new:
        return
    word = "stands on both sides" if old == new else "was added" if not old else "was deleted" if not new else "changed"
    verdicts = kept_on_flink(pair.pipeline) if old == new else CHANGED if old and new else ADDED
    yield Hit(
        f"a filter on window fields {word}",
        pair.claim("window filters"),
        conditions(old),
        conditions(new),
        verdicts=verdicts,
    )


RULE = Rule(
    code="window-filter",
    title="A filter on window fields",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.UNKNOWN, "Window TVF row 22"),
        "flink": inferred(Outcome.UNKNOWN, "only unchanged window filters were measured"),
    },
    why="A condition on window fields is planned as an operator of its own below the aggregation, wherever it is "
    "written.",
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("customer, SUM(amount)").replace(
            "\nGROUP", "\nWHERE window_start >= TIMESTAMP '2026-01-01 00:00:00'\nGROUP"
        ),
    ),
    find=find,
)
