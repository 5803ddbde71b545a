from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Example, Level, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Basis, Outcome, Reason


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("engine"):
        yield RuleMatch("the engine or its version differs", (difference.key,), difference.before, difference.after)


RULE = Rule(
    code="engine-version-changed",
    title="Engine or engine version differs",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": Verdict(Outcome.UNKNOWN, Basis.DOCUMENT, "Overview: versions must match", Reason.VERSION),
        "flink": inferred(Outcome.UNKNOWN, "restores across versions were not measured", Reason.VERSION),
    },
    rationale="Another version may plan other operators for the same SQL.",
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, SUM(amount)"), versions=("2.3", "1.20")),
    find=find,
    level=Level.VERSION,
)
