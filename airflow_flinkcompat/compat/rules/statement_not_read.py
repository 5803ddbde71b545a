import re
from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.deployable import ObstacleKind, obstacles
from airflow_flinkcompat.compat.rule import Example, Level, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rule_builders.unread import unread_alike
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.model import Outcome, Reason
from airflow_flinkcompat.plan.program import REFUSALS, Problem

MALFORMED = {
    "flink": inferred(
        Outcome.INCOMPATIBLE,
        "Flink's parser refuses it: of 302 statements of public scripts that are no SQL by this grammar, 2.3.0 refused "
        "290",
    ),
    "vvr": inferred(Outcome.INCOMPATIBLE, "VVR reads SQL with Flink's parser, which refuses it"),
}
_GRAMMAR_OF_BOTH = re.compile(
    r"(?:SELECT|WITH|INSERT|EXECUTE STATEMENT SET|CREATE (?:TEMPORARY )?(?:TABLE|VIEW))\b|[^\w\s]|\w+$", re.IGNORECASE
)
"""How statements begin of which VVR's documents show no more than Flink's grammar has; none is a word alone."""
_OWN_ON_VVR = re.compile(r"\b(?:MATCH_RECOGNIZE|EMIT|AS (?:TABLE|DATABASE))\b", re.IGNORECASE)
"""Clauses that VVR's grammar has more of: patterns, and tables made of others."""


def is_malformed(side: Side) -> bool:
    """Whether a statement of a side is one that Flink's own grammar knows, in Flink's own dialect, and is wrong."""
    return any(each.kind is ObstacleKind.SYNTAX for each in obstacles(side))


def _alike_on_both(problem: Problem) -> bool:
    """Whether VVR's parser reads a statement of this kind as Flink's does."""
    text = str(problem.text).strip()
    return _GRAMMAR_OF_BOTH.match(text) is not None and _OWN_ON_VVR.search(text) is None


def find(change: Change) -> Iterable[RuleMatch]:
    alike = unread_alike(change)
    deployed = {problem.text for problem in change.programs[0].problems}
    for i, program in enumerate(change.programs):
        for problem in program.problems:
            if problem.reason in REFUSALS or problem.message in alike:
                continue
            refused = i == 1 and problem.malformed and problem.text not in deployed and is_malformed(change.new)
            engines = ("flink", "vvr") if _alike_on_both(problem) else ("flink",)
            yield RuleMatch(
                f"{'deployed' if i == 0 else 'proposed'} script: {problem.message}",
                change.claim("unread"),
                before_span=None if i else problem.span,
                after_span=problem.span if i else None,
                verdicts={engine: MALFORMED[engine] for engine in engines} if refused else {},
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
    rationale="What was not read may hold anything. Flink's parser refuses a proposed statement of a kind that this "
    "grammar knows whole, and no job starts.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "SELECT FROM WHERE;\n" + windowed("customer, SUM(amount)"),
        outcomes=dict.fromkeys(MALFORMED, Outcome.INCOMPATIBLE),
    ),
    find=find,
    level=Level.REST,
    case_dependent=("flink", "vvr"),
)
