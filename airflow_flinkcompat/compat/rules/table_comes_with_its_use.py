from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import UNCHANGED, Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Outcome


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("declared"):
        name = difference.key.split("/")[1]
        old, new = (name in tables for tables in change.tables_of_sides)
        if old != new and (difference.before is not None) == old:
            yield RuleMatch(
                f"table {name} is declared only where it is used",
                (difference.key,),
                name if old else "",
                name if new else "",
                difference.before_span,
                difference.after_span,
            )


RULE = Rule(
    code="table-comes-with-its-use",
    title="A table's declaration came or went with what uses it",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "judged where the table is read or written"),
        "flink": inferred(Outcome.COMPATIBLE, "judged where the table is read or written", ids=UNCHANGED),
    },
    rationale="What a declaration means to state shows in the queries that read or write the table, where other rules "
    "judge it.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
        "INSERT INTO totals\n" + windowed("customer, SUM(amount)"),
    ),
    find=find,
)
