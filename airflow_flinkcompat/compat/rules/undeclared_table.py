from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.model import Basis, Outcome, Reason


def find(change: Change) -> Iterable[RuleMatch]:
    declared = [{table.name for table in program.tables} for program in change.programs]
    for name in sorted(change.used_tables - {""}):
        if not all(name in tables for tables in declared) and not change.parts("declared"):
            yield RuleMatch(f"table {name} is declared by neither the script nor the catalog: its types are not known")


QUERY = "SELECT customer, SUM(amount){0} FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(paid), INTERVAL '1' MINUTE))\n"
KEYS = "GROUP BY customer, window_start, window_end;"
RULE = Rule(
    code="undeclared-table",
    title="A table nobody declares",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": Verdict(Outcome.COMPATIBLE, Basis.INFERRED, "a note: the schema is taken to be the same on both sides"),
        "flink": inferred(Outcome.UNKNOWN, "pass the DDL as --catalog", Reason.UNDECLARED),
    },
    rationale="Layout depends on types. VVR's rules compare names and expressions, open-source Flink compares layouts.",
    example=Example(QUERY.format("") + KEYS, QUERY.format(", window_start") + KEYS),
    find=find,
)
