from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import UNCHANGED, Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rules.source_renamed import other_reads
from airflow_flinkcompat.model import Outcome


def find(change: Change) -> Iterable[RuleMatch]:
    told = _in_place_of_each_other(change)
    for difference in change.parts("declared"):
        name = difference.key.split("/")[1]
        old, new = (name in tables for tables in change.tables_of_sides)
        if old != new and (difference.before is not None) == old and name not in told:
            yield RuleMatch(
                f"table {name} is declared only where it is used",
                (difference.key,),
                name if old else "",
                name if new else "",
                difference.before_span,
                difference.after_span,
            )


def _in_place_of_each_other(change: Change) -> set[str]:
    """Tables of which one is read or written now in place of another: that is told by itself."""
    read = [(difference.before, difference.after) for _, difference in other_reads(change)]
    written = [(pair.old.sink, pair.new.sink) for pair in change.pipelines if "sink" in pair.parts]
    return {name for names in (*read, *written) if all(names) for name in names if isinstance(name, str)}


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
