from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink import settings
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.model import Basis, Outcome, Reason
from airflow_flinkcompat.plan.operators import Output, sources

MESSAGE = (
    "table {} is declared by neither the script nor the catalog: its types are not known; name the file of its DDL as "
    "catalog (in the project file, or --catalog)"
)


def find(change: Change) -> Iterable[RuleMatch]:
    declared = [{table.name for table in program.tables} for program in change.programs]
    names = [name for name in sorted(change.used_tables - {""}) if not all(name in tables for tables in declared)]
    if not names or change.parts("declared"):
        return
    deciding = _whose_types_decide(change)
    for name in names:
        if deciding is None or name in deciding:
            yield RuleMatch(MESSAGE.format(name))


def _whose_types_decide(change: Change) -> set[str] | None:
    """The tables whose types, or what they are at all, may say what a change does; None: those of every table may.

    Queries that read or write a table and are the same on both sides keep the same state, whatever its types are.
    """
    if change.parts("engine") or change.parts("insert order"):
        return None
    if any(settings.asks_for_tables(each.key.partition("/")[2]) for each in change.parts("setting")):
        return None
    differing = {
        each.key.split("/")[1]
        for each in change.script_differences
        if each.key.startswith("table/") and each.part != "options"
    }
    of_pairs = ((pair, _tables(pair.old) | _tables(pair.new)) for pair in change.pipelines)
    return {name for pair, tables in of_pairs if pair.changed or tables & differing for name in tables}


def _tables(output: Output) -> set[str]:
    return {output.sink, *(source.table for source in sources(output))}


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
