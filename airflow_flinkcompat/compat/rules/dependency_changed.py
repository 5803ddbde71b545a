from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.clauses import plain
from airflow_flinkcompat.compat.outcome import Basis, Outcome, Reason
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, inferred
from airflow_flinkcompat.compat.shapes.examples import windowed

KIND = "ResourceStatement"


def find(change: Change) -> Iterable[Hit]:
    for difference in change.parts("statement"):
        if difference.key.startswith(tuple(f"statement/{sign}{KIND} " for sign in "+-")):
            yield Hit(
                "another library is loaded; its connectors and functions are not looked into",
                (difference.key,),
                "" if difference.before is None else plain(difference.before),
                "" if difference.after is None else plain(difference.after),
            )


RULE = Rule(
    code="dependency-changed",
    title="A library came, went or was replaced",
    scope=Scope.SCRIPT,
    verdicts={
        "vvr": Verdict(
            Outcome.UNKNOWN,
            Basis.DOCUMENT,
            "Overview: a changed connector or UDF dependency is to be verified by hand",
            Reason.OPAQUE,
        ),
        "flink": inferred(Outcome.UNKNOWN, "what a library does is not seen", Reason.OPAQUE),
    },
    why="A custom connector or function may keep state of its own, and another version of it may keep another one.",
    example=Example(
        "ADD JAR '/lib/tidy-1.jar';\n" + windowed("customer, SUM(amount)"),
        "ADD JAR '/lib/tidy-2.jar';\n" + windowed("customer, SUM(amount)"),
    ),
    find=find,
)
