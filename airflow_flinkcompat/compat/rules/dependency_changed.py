from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.format import format_value
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Basis, Outcome, Reason

KIND = "ResourceStatement"


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("statement"):
        if difference.key.startswith(tuple(f"statement/{sign}{KIND} " for sign in "+-")):
            yield RuleMatch(
                "another library is loaded; its connectors and functions are not looked into",
                (difference.key,),
                "" if difference.before is None else format_value(difference.before),
                "" if difference.after is None else format_value(difference.after),
            )


RULE = Rule(
    code="dependency-changed",
    title="A library came, went or was replaced",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": Verdict(
            Outcome.UNKNOWN,
            Basis.DOCUMENT,
            "Overview: a changed connector or UDF dependency is to be verified by hand",
            Reason.OPAQUE,
        ),
        "flink": inferred(Outcome.UNKNOWN, "what a library does is not seen", Reason.OPAQUE),
    },
    rationale="A custom connector or function may keep state of its own, and another version of it may keep another "
    "one.",
    example=Example(
        "ADD JAR '/lib/tidy-1.jar';\n" + windowed("customer, SUM(amount)"),
        "ADD JAR '/lib/tidy-2.jar';\n" + windowed("customer, SUM(amount)"),
    ),
    find=find,
)
