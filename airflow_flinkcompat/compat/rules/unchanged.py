from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.emission import fires
from airflow_flinkcompat.compat.rule import Example, Level, Rule, RuleMatch, RuleScope, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rules.python_aggregate import aggregates_in
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import AggregateOperator


def _doubts(change: Change) -> Iterable[str]:
    """What the vendor's console may still call unknown or incompatible although nothing changed."""
    for pair in change.pipelines:
        if any(segment.functions for segment in pair.segments[1]):
            yield "a table function"
        if aggregates_in(pair.new, "python"):
            yield "a Python aggregate"
        for operators in pair.operators:
            side = operators.new
            if isinstance(side, AggregateOperator) and side.window is not None:
                if side.segment.window_filters:
                    yield "a filter on window fields"
                if side.window_computations:
                    yield "a computation on window fields"
                if side.window_aggregates:
                    yield "an aggregate over a window field"
                if side.grouping_sets is not None:
                    yield "grouping sets"
        if fires(pair.new_pipeline):
            yield "early or late fire"


EQUAL = inferred(Outcome.COMPATIBLE, "both sides are equal; no restore was run on this version of Flink")


def find(change: Change) -> Iterable[RuleMatch]:
    if change.unchanged:
        doubts = ", ".join(dict.fromkeys(_doubts(change)))
        note = f"; the vendor's console may still doubt it because of {doubts}" if doubts else ""
        flink = RULE.verdicts["flink"]
        same_here = {} if change.new.version in flink.versions else {"flink": EQUAL}
        yield RuleMatch(f"nothing that matters to state changed{note}", verdicts=same_here)


RULE = Rule(
    code="unchanged",
    title="Nothing changed",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "both sides are equal after canonicalisation"),
        "flink": measured(
            Outcome.COMPATIBLE, "w-unchanged", "w-reformat-comment-alias", "w-interval-spelling", "w-named-args"
        ),
    },
    rationale="Layout, comments, aliases, keyword case, CTEs and the spelling of intervals take no part in state.",
    example=Example(windowed("customer, SUM(amount)"), windowed("customer,  sum(amount) AS total")),
    find=find,
    level=Level.UNCHANGED,
)
