from collections.abc import Iterable

from airflow_flinkcompat.compat.change import Change
from airflow_flinkcompat.compat.examples import windowed
from airflow_flinkcompat.compat.outcome import Basis, Outcome, Reason
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, inferred

COMES_OR_GOES = {
    engine: Verdict(Outcome.COMPATIBLE, Basis.INFERRED, "judged where it is called") for engine in ("vvr", "flink")
}


def find(change: Change) -> Iterable[Hit]:
    for difference in change.parts("function"):
        name = difference.key.partition("/")[2]
        if not change.uses_function(name):
            continue
        changed = difference.before is not None and difference.after is not None
        yield Hit(
            f"function {name} {'is declared differently' if changed else 'comes or goes with its calls'}",
            (difference.key,),
            "" if difference.before is None else str(difference.before[2]),
            "" if difference.after is None else str(difference.after[2]),
            verdicts={} if changed else COMES_OR_GOES,
        )


DECLARATION = "CREATE TEMPORARY FUNCTION tidy AS 'com.example.{0}';\n"
RULE = Rule(
    code="function-changed",
    title="A function that is used was declared differently",
    scope=Scope.SCRIPT,
    verdicts={
        "vvr": Verdict(
            Outcome.UNKNOWN,
            Basis.DOCUMENT,
            "Overview: a changed UDF dependency is to be verified by hand",
            Reason.OPAQUE,
        ),
        "flink": inferred(Outcome.UNKNOWN, reason=Reason.OPAQUE),
    },
    why="The check sees a function's name, not its body.",
    example=Example(
        DECLARATION.format("Tidy") + windowed("customer, MAX(tidy(item))"),
        DECLARATION.format("Tidier") + windowed("customer, MAX(tidy(item))"),
    ),
    find=find,
)
