from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, TableApiCover, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Outcome

FUNCTION = {"flink": inferred(Outcome.UNKNOWN, "unused tables and views were measured, functions were not")}


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.script_differences:
        place, _, name = difference.key.partition("/")
        table = name.rpartition("/")[0]
        if change.may_be_used_unseen(table if place == "table" else name):
            continue
        if place == "table" and table not in change.used_tables:
            yield RuleMatch(f"table {table} is declared but not used", (difference.key,))
        elif place == "function" and not any(change.uses_function(name)):
            yield RuleMatch(f"function {name} is declared but not used", (difference.key,), verdicts=FUNCTION)


RULE = Rule(
    code="unused-declaration",
    title="A declaration nothing uses",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "no query uses it"),
        "flink": measured(Outcome.COMPATIBLE, "declarations-unused-table"),
    },
    rationale="The planner sees only what a query reads or writes.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "CREATE TABLE spare (a INT) WITH ('connector' = 'print');\n" + windowed("customer, SUM(amount)"),
    ),
    find=find,
    case_dependent=("flink",),
    table_api_cover=TableApiCover.ALWAYS,
)
