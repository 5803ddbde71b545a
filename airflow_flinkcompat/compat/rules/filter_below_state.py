from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import conditions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, documented, inferred, measured
from airflow_flinkcompat.compat.shapes.examples import windowed
from airflow_flinkcompat.compat.shapes.part_rules import IGNORE, IGNORED
from airflow_flinkcompat.plan.operators import Region

# EXPLAIN on 2.3: the planner puts it below the window from either place; whether others do, no page says.
MOVED = dict.fromkeys(("vvr", "flink"), inferred(Outcome.UNKNOWN, "a condition above a session ends no session"))
PARTS = ("filters", "filters above the session window")


def _shown(region: Region) -> str:
    """A condition above a session window no longer ends sessions, so its place is part of it."""
    above = region.filters_above_session
    return conditions(region.filters) + (f" ({conditions(above)} above the session window)" if above else "")


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.aggregations or pair.ranks
    if sides is None or not pair.parts & set(PARTS):
        return
    old, new = (side.region for side in sides)
    ignored = dict(pair.pipeline.new_pipeline.settings).get(IGNORE, "false").lower() == "true"
    note = "; rows counted before the change keep the old condition" if ignored else ""
    moved = old.filters == new.filters
    word = "moved past the session window" if moved else "changed"
    yield Hit(
        f"a condition on the rows that reach the state {word}{note}",
        pair.claim(*PARTS),
        _shown(old),
        _shown(new),
        verdicts=IGNORED if ignored else MOVED if moved else {},
    )


RULE = Rule(
    code="filter-below-state",
    title="A condition below the state changed",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "WHERE page"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-filter-nonwindow-add"),
    },
    why="The stored values were gathered under the old condition.",
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("customer, SUM(amount)").replace("\nGROUP", "\nWHERE amount > 4\nGROUP"),
    ),
    find=find,
)
