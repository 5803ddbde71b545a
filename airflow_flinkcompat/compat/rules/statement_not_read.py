from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Example, Level, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rule_builders.unread import unread_alike
from airflow_flinkcompat.model import Outcome, Reason
from airflow_flinkcompat.plan.program import REFUSED


def find(change: Change) -> Iterable[RuleMatch]:
    alike = unread_alike(change)
    for i, program in enumerate(change.programs):
        for problem in program.problems:
            if problem.reason == REFUSED or problem.message in alike:
                continue
            spans = (problem.span, None) if i == 0 else (None, problem.span)
            yield RuleMatch(
                f"{'deployed' if i == 0 else 'proposed'} script: {problem.message}",
                change.claim("unread"),
                "",
                "",
                *spans,
            )
    for problem in change.failures:
        yield RuleMatch(problem.message, (), before_span=problem.span)


RULE = Rule(
    code="statement-not-read",
    title="A statement could not be read",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, reason=Reason.NOT_READ),
        "flink": inferred(Outcome.UNKNOWN, reason=Reason.NOT_READ),
    },
    rationale="What was not read may hold anything.",
    example=Example(windowed("customer, SUM(amount)"), "SELECT FROM WHERE;\n" + windowed("customer, SUM(amount)")),
    find=find,
    level=Level.REST,
)
