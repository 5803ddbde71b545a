from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import window
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, inferred, measured
from airflow_flinkcompat.compat.rules.window_changed import PARTS
from airflow_flinkcompat.compat.shapes.examples import MINUTE, reading


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.windows
    if sides is None or "offset" not in pair.parts or pair.parts & set(PARTS):
        return
    yield Hit(
        "another offset assigns every row to the same window",
        pair.claim("offset"),
        window(sides[0]),
        window(sides[1]),
    )


RULE = Rule(
    code="window-offset-respelled",
    title="Another offset with the same assignment",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "offsets compare as assignments; the Windowing TVF page lists equal ones"),
        "flink": measured(
            Outcome.COMPATIBLE, "offsets-tumble-negative", "offsets-hop-negative", "offsets-hop-whole-slide"
        ),
    },
    why="An offset is a shift of the assignment: on a size of 10 minutes, -6 and 4 minutes give the same windows.",
    example=reading(
        "customer, SUM(amount)",
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '4' MINUTE"),
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '-6' MINUTE"),
    ),
    find=find,
)
