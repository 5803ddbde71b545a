from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.upgrade.verdict import judged
from airflow_flinkcompat.compat.rule import Example, Level, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Basis, Outcome, Reason
from airflow_flinkcompat.model.engine import ENGINE_FACTS


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("engine"):
        sides = difference.before, difference.after
        of_flink = ENGINE_FACTS[change.new.engine].flink_lines is None
        if change.old.engine != change.new.engine or not of_flink:
            yield RuleMatch("the engine or its version differs", (difference.key,), *sides)
            continue
        for each in judged(change):
            yield RuleMatch(each.message, (difference.key,), *sides, verdicts={"flink": each.verdict})


RULE = Rule(
    code="engine-version-changed",
    title="Engine or engine version differs",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": Verdict(Outcome.UNKNOWN, Basis.DOCUMENT, "Overview: versions must match", Reason.VERSION),
        "flink": inferred(Outcome.UNKNOWN, "restores between these lines", Reason.VERSION),
    },
    rationale="Another version may plan other operators for the same SQL, or read what they store otherwise. On "
    "open-source Flink jobs were restored from one line on another: an upgrade is compatible where each operator, "
    "aggregate function, stored type, connector and setting that decides about the plan was restored right between "
    "just these two lines, and incompatible where one of them was not. What was not run is named. A script that "
    "changes with the upgrade has to be compatible on both lines besides; to upgrade it as it is first is surer.",
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, SUM(amount)"), versions=("2.3", "1.20")),
    find=find,
    level=Level.VERSION,
    case_dependent=("flink",),
)
