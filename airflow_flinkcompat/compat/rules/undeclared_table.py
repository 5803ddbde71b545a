from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink import settings
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.model import Basis, Outcome, Reason
from airflow_flinkcompat.plan.operators import Output, sources


def find(change: Change) -> Iterable[RuleMatch]:
    declared = [{table.name for table in program.tables} for program in change.programs]
    for name in sorted(change.used_tables - {""}):
        known = all(name in tables for tables in declared)
        if not known and not change.parts("declared") and _types_decide(name, change):
            yield RuleMatch(f"table {name} is declared by neither the script nor the catalog: its types are not known")


def _tables(output: Output) -> set[str]:
    return {output.sink, *(source.table for source in sources(output))}


def _types_decide(name: str, change: Change) -> bool:
    """Whether anything changed of which the table's types, or what it is at all, may say what it does.

    Queries that read or write it and are the same on both sides keep the same state, whatever its types are.
    """
    if change.parts("engine") or change.parts("insert order"):
        return True
    if any(settings.asks_for_tables(each.key.partition("/")[2]) for each in change.parts("setting")):
        return True
    pairs = [pair for pair in change.pipelines if name in _tables(pair.old) | _tables(pair.new)]
    beside = {table for pair in pairs for table in _tables(pair.old) | _tables(pair.new)}
    return any(pair.changed for pair in pairs) or any(
        each.key.startswith("table/") and each.part != "options" and each.key.split("/")[1] in beside
        for each in change.script_differences
    )


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
    beside_operators=True,
)
