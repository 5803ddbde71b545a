from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_conditions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.ranking import regions_above
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import ranked
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import RankKind, RankOperator, StatelessSegment

KEPT = {
    "flink": inferred(Outcome.COMPATIBLE, "the same condition is asked above the stored rows", ids=("t-unchanged",))
}


def _of_window_top_n(segment: StatelessSegment) -> bool:
    return isinstance(segment.origin, RankOperator) and segment.origin.kind == RankKind.WINDOW_TOP_N


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    for old, new, claims in regions_above(pair):
        before, after = (side.filters | side.window_filters for side in (old, new))
        kept = before == after and bool(before) and pair.changed and _of_window_top_n(new)
        if before != after or kept:
            yield RuleMatch(
                "both sides have a condition next to the one on the rank"
                if kept
                else "a condition next to the one on the rank changed",
                claims,
                format_conditions(before),
                format_conditions(after),
                verdicts=KEPT if kept else {},
            )


RULE = Rule(
    code="rank-condition",
    title="A condition next to the one on the rank",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "the page shows nothing but WHERE rk < N"),
        "flink": inferred(Outcome.UNKNOWN, "a changed condition above a ranking was not measured"),
    },
    rationale="The page of Window Top-N knows a condition on the rank and no other.",
    example=Example(ranked(), ranked(condition="place <= 3 AND total > 100")),
    find=find,
)
