from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, TableApiCover, documented, measured
from airflow_flinkcompat.compat.rule_builders.examples import MINUTE, windowed
from airflow_flinkcompat.model import Outcome


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("view"):
        name = difference.key.partition("/")[2]
        if change.may_be_used_unseen(name):
            continue
        yield RuleMatch(
            f"view {name} is written differently; what it means is judged where it is read", (difference.key,)
        )


RULE = Rule(
    code="view-rewritten",
    title="A view was added, deleted, renamed or rewritten",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Alias page: names never matter"),
        "flink": measured(Outcome.COMPATIBLE, "x-view-rename", "x-inline-view", "x-projection-upstream"),
    },
    rationale="A view is unfolded into the queries that read it; only what they compute then counts.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "CREATE TEMPORARY VIEW recent AS SELECT customer, amount, order_time FROM orders;\n"
        + windowed("customer, SUM(amount)", source=MINUTE.replace("TABLE orders", "TABLE recent")),
    ),
    find=find,
    table_api_cover=TableApiCover.ALWAYS,
)
