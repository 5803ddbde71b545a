from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import UNCHANGED, Example, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Basis, Outcome, Reason

COMES_OR_GOES = {
    "vvr": inferred(Outcome.COMPATIBLE, "judged where it is called"),
    "flink": inferred(Outcome.COMPATIBLE, "judged where it is called", ids=UNCHANGED),
}


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("function"):
        name = difference.key.partition("/")[2]
        used = change.uses_function(name)
        if not any(used):
            continue
        declared = difference.before is not None, difference.after is not None
        # Called by a side that does not declare it, it is another one there: built in, or from a catalog.
        with_its_calls = declared == used
        what = "comes or goes with its calls" if with_its_calls else "comes or goes while it is called"
        yield RuleMatch(
            f"function {name} {'is declared differently' if all(declared) else what}",
            (difference.key,),
            "" if difference.before is None else str(difference.before[2]),
            "" if difference.after is None else str(difference.after[2]),
            verdicts=COMES_OR_GOES if with_its_calls and not all(declared) else {},
        )


DECLARATION = "CREATE TEMPORARY FUNCTION tidy AS 'com.example.{0}';\n"
RULE = Rule(
    code="function-changed",
    title="A function that is used was declared differently",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": Verdict(
            Outcome.UNKNOWN,
            Basis.DOCUMENT,
            "Overview: a changed UDF dependency is to be verified by hand",
            Reason.OPAQUE,
        ),
        "flink": inferred(Outcome.UNKNOWN, reason=Reason.OPAQUE),
    },
    rationale="The check sees a function's name, not its body.",
    example=Example(
        DECLARATION.format("Tidy") + windowed("customer, MAX(tidy(item))"),
        DECLARATION.format("Tidier") + windowed("customer, MAX(tidy(item))"),
    ),
    find=find,
)
