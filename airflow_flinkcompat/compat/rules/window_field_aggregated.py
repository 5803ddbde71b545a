from collections.abc import Iterable
from dataclasses import replace

from airflow_flinkcompat.compat.changes.aggregates import listed
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Rule, RuleMatch, RuleScope, documented, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rules.table_function import kept_on_flink
from airflow_flinkcompat.model import Outcome

CHANGED = {"flink": measured(Outcome.INCOMPATIBLE, "w-agg-on-window-start")}


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None:
        return
    old, new = (side.window_aggregates for side in sides)
    if old or new:
        yield RuleMatch(
            "a window field is aggregated",
            (),
            listed(old) or "none",
            listed(new) or "none",
            verdicts=kept_on_flink(pair.pipeline) if old == new else CHANGED,
        )


RULE = Rule(
    code="window-field-aggregated",
    title="An aggregate over a window field",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.UNKNOWN, "Window TVF row 25"),
        "flink": inferred(Outcome.UNKNOWN, "only unchanged aggregates over window fields were measured"),
    },
    rationale="The window field becomes an ordinary column of the aggregation's input.",
    example=replace(
        selecting("customer, SUM(amount)", "customer, SUM(amount), MAX(window_start)"),
        outcomes={"flink": Outcome.INCOMPATIBLE},
    ),
    find=find,
)
