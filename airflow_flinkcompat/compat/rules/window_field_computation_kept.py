from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import values
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, documented, inferred
from airflow_flinkcompat.compat.rules.table_function import kept_on_flink
from airflow_flinkcompat.compat.shapes.examples import windowed


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.windowed
    if sides is None:
        return
    old, new = (side.window_computations for side in sides)
    if old and new:
        yield Hit(
            "something is computed from a window field on both sides",
            # Which computation it is: the document leaves that open too.
            pair.claim("keys", "key order") if set(old) ^ set(new) else (),
            values(old),
            values(new),
            verdicts=kept_on_flink(pair.pipeline),
        )


KEYS = "customer, window_start + INTERVAL '1' SECOND, window_end"
RULE = Rule(
    code="window-field-computation-kept",
    title="A computation on window fields before and after",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.UNKNOWN, "Window TVF row 21"),
        "flink": inferred(Outcome.UNKNOWN, "only unchanged computations were measured"),
    },
    why="The vendor's check does not look into computations on window fields, whether they changed or not.",
    example=Example(windowed("customer, SUM(amount)", KEYS), windowed("customer, SUM(amount), window_end", KEYS)),
    find=find,
)
