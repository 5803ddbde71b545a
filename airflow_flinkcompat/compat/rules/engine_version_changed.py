from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.outcome import Basis, Outcome, Reason
from airflow_flinkcompat.compat.rule import Example, Hit, Level, Rule, Scope, Verdict, inferred
from airflow_flinkcompat.compat.shapes.examples import windowed


def find(change: Change) -> Iterable[Hit]:
    for difference in change.parts("engine"):
        yield Hit("the engine or its version differs", (difference.key,), difference.before, difference.after)


RULE = Rule(
    code="engine-version-changed",
    title="Engine or engine version differs",
    scope=Scope.SCRIPT,
    verdicts={
        "vvr": Verdict(Outcome.UNKNOWN, Basis.DOCUMENT, "Overview: versions must match", Reason.VERSION),
        "flink": inferred(Outcome.UNKNOWN, "restores across versions were not measured", Reason.VERSION),
    },
    why="Another version may plan other operators for the same SQL.",
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, SUM(amount)"), versions=("2.3", "1.20")),
    find=find,
    level=Level.VERSION,
)
