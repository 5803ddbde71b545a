from collections.abc import Iterable

from airflow_flinkcompat.compat.clauses import conditions
from airflow_flinkcompat.compat.examples import windowed
from airflow_flinkcompat.compat.outcome import Basis, Outcome
from airflow_flinkcompat.compat.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, documented, measured

IGNORE = "table.optimizer.state-compatibility.ignore-filter"
IGNORED = {"vvr": Verdict(Outcome.COMPATIBLE, Basis.DOCUMENT, f"WHERE page: {IGNORE} = true")}


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.aggregations or pair.ranks
    if sides is None or "filters" not in pair.parts:
        return
    old, new = (side.region.filters for side in sides)
    ignored = dict(pair.pipeline.new_pipeline.settings).get(IGNORE, "false").lower() == "true"
    note = "; rows counted before the change keep the old condition" if ignored else ""
    yield Hit(
        f"a condition on the rows that reach the state changed{note}",
        pair.claim("filters"),
        conditions(old),
        conditions(new),
        verdicts=IGNORED if ignored else {},
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
