from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_conditions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import (
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rules.table_function import kept_on_flink
from airflow_flinkcompat.model import Consequence, Outcome

CHANGED = {"flink": measured(Outcome.INCOMPATIBLE, "filters-window-filter-changed")}
ADDED = {
    "flink": measured(
        Outcome.INCOMPATIBLE,
        "w-filter-window-add",
        "filters-window-filter-removed",
        consequence=Consequence.REFUSED_AT_SUBMIT,
    )
}


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations or pair.ranks
    if sides is None:
        return
    old, new = (side.segment.window_filters for side in sides)
    if not old and not new:
        return
    word = "stands on both sides" if old == new else "was added" if not old else "was deleted" if not new else "changed"
    verdicts = kept_on_flink(pair.pipeline) if old == new else CHANGED if old and new else ADDED
    yield RuleMatch(
        f"a filter on window fields {word}",
        pair.claim("window filters"),
        format_conditions(old),
        format_conditions(new),
        verdicts=verdicts,
    )


RULE = Rule(
    code="window-filter",
    title="A filter on window fields",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.UNKNOWN, "Window TVF row 22"),
        "flink": inferred(Outcome.UNKNOWN, "only unchanged window filters were measured"),
    },
    rationale="A condition on window fields is planned as an operator of its own below the aggregation, wherever it is "
    "written.",
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("customer, SUM(amount)").replace(
            "\nGROUP", "\nWHERE window_start >= TIMESTAMP '2026-01-01 00:00:00'\nGROUP"
        ),
        outcomes={"flink": Outcome.INCOMPATIBLE},
    ),
    find=find,
)
