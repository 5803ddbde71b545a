from collections.abc import Iterable, Set

from airflow_flinkcompat.compat.changes.format import format_conditions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, documented, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rule_builders.part_rules import IGNORE, IGNORED
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.expressions import Expression, Literal
from airflow_flinkcompat.plan.operators import AggregateOperator, RankOperator, StatelessSegment
from airflow_flinkcompat.plan.origins import leaves

# EXPLAIN on 2.3: the planner puts it below the window from either place; whether others do, no page says.
MOVED = dict.fromkeys(("vvr", "flink"), inferred(Outcome.UNKNOWN, "a condition above a session ends no session"))
# What is stored of the keys that are left is right (restored on 2.3); rows sent for the others stay in the sink.
OF_KEYS = {"flink": inferred(Outcome.UNKNOWN, "it leaves out whole keys, whose rows stay in the sink")}
PARTS = ("filters", "filters above the session window")


def _shown(segment: StatelessSegment) -> str:
    """A condition above a session window no longer ends sessions, so its place is part of it."""
    above = segment.filters_above_session
    return format_conditions(segment.filters) + (
        f" ({format_conditions(above)} above the session window)" if above else ""
    )


def _leaves_out_keys(old: AggregateOperator | RankOperator, new: AggregateOperator | RankOperator) -> bool:
    """Return whether conditions are only added, each over columns that part the state."""
    before, after = (side.keys if isinstance(side, AggregateOperator) else side.partition for side in (old, new))
    added = new.segment.filters - old.segment.filters
    of_keys = all(_is_over(condition, {*after}) for condition in added)
    return before == after and old.segment.filters < new.segment.filters and of_keys


def _is_over(condition: Expression, columns: Set[Expression]) -> bool:
    """Return whether it reads columns and only these, and no NULL, with which it may be constant."""
    read = {*leaves(condition)}
    literals = {leaf for leaf in read if isinstance(leaf, Literal)}
    return bool(read - literals) and read - literals <= columns and all(each.value is not None for each in literals)


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
        verdicts=IGNORED if ignored else MOVED if moved else OF_KEYS if _leaves_out_keys(*sides) else {},
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
