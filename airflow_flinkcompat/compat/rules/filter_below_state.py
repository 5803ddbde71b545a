from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_conditions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, documented, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rule_builders.part_rules import IGNORE, IGNORED
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import StatelessSegment

# EXPLAIN on 2.3: the planner puts it below the window from either place; whether others do, no page says.
MOVED = dict.fromkeys(("vvr", "flink"), inferred(Outcome.UNKNOWN, "a condition above a session ends no session"))
PARTS = ("filters", "filters above the session window")


def _shown(segment: StatelessSegment) -> str:
    """A condition above a session window no longer ends sessions, so its place is part of it."""
    above = segment.filters_above_session
    return format_conditions(segment.filters) + (
        f" ({format_conditions(above)} above the session window)" if above else ""
    )


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations or pair.ranks
    if sides is None or not pair.parts & set(PARTS):
        return
    old, new = (side.segment for side in sides)
    ignored = dict(pair.pipeline.new_pipeline.settings).get(IGNORE, "false").lower() == "true"
    note = "; rows counted before the change keep the old condition" if ignored else ""
    moved = old.filters == new.filters
    word = "moved past the session window" if moved else "changed"
    yield RuleMatch(
        f"a condition on the rows that reach the state {word}{note}",
        pair.claim(*PARTS),
        _shown(old),
        _shown(new),
        verdicts=IGNORED if ignored else MOVED if moved else {},
    )


RULE = Rule(
    code="filter-below-state",
    title="A condition below the state changed",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "WHERE page"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-filter-nonwindow-add"),
    },
    rationale="The stored values were gathered under the old condition.",
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("customer, SUM(amount)").replace("\nGROUP", "\nWHERE amount > 4\nGROUP"),
    ),
    find=find,
)
