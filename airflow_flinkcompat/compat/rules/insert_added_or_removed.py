from collections.abc import Iterable

from airflow_flinkcompat.compat.change import Change
from airflow_flinkcompat.compat.outcome import Basis, Consequence, Outcome, Reason
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, documented, measured
from airflow_flinkcompat.plan.operators import operators

TABLES_TOO = Verdict(
    Outcome.UNKNOWN,
    Basis.DOCUMENT,
    "Overview: a sink deleted and a temporary table changed in one edit",
    Reason.SEVERAL_CHANGES,
)


def find(change: Change) -> Iterable[Hit]:
    names = {output.sink for output in (*change.removed, *change.added)}
    declared = [d for d in change.script_differences if d.key.startswith("table/")]
    claims = change.claim("inserts") + tuple(
        d.key for d in declared if d.part == "declared" and d.key.split("/")[1] in names
    )
    for output in change.removed:
        verdicts = {"vvr": TABLES_TOO} if declared else {}
        yield Hit(f"the query into {output.sink} is gone", claims, output.sink, "", output.span, verdicts=verdicts)
    for output in change.added:
        stateful = bool(operators(output))
        yield Hit(
            f"a query into {output.sink} with{'' if stateful else 'out'} state is new",
            claims,
            "",
            output.sink,
            after_span=output.span,
            verdicts={"vvr": documented(Outcome.INCOMPATIBLE, "Sink table page: a stateful query")} if stateful else {},
        )


SINKS = (
    "CREATE TABLE raw (customer STRING) WITH ('connector' = 'print');\n"
    "CREATE TABLE big (customer STRING) WITH ('connector' = 'print');\n"
)
BOTH = (
    "EXECUTE STATEMENT SET BEGIN\nINSERT INTO raw SELECT customer FROM orders;\n"
    "INSERT INTO big SELECT customer FROM orders WHERE amount > 9;\nEND;"
)
ONE = "EXECUTE STATEMENT SET BEGIN\nINSERT INTO raw SELECT customer FROM orders;\nEND;"
RULE = Rule(
    code="insert-added-or-removed",
    title="A query was added to or deleted from the script",
    scope=Scope.SCRIPT,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Sink table page: a deleted sink, an added stateless one"),
        "flink": measured(
            Outcome.INCOMPATIBLE, "x-stmtset-add-unrelated-last, x-stmtset-remove", Consequence.REFUSED_AT_SUBMIT
        ),
    },
    why="One more query changes the topology of the whole job.",
    example=Example(SINKS + BOTH, SINKS + ONE),
    find=find,
)
