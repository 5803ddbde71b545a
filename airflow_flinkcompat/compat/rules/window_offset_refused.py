from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import window
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.flink.ranking import expected
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Hit, Rule, Scope, inferred
from airflow_flinkcompat.compat.shapes.examples import MINUTE, reading
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.plan.operators import Windowing


def _refused(windowing: Windowing | None) -> bool:
    if windowing is None or windowing.window.kind is not WindowKind.TUMBLE:
        return False
    return abs(windowing.window.offset) >= (windowing.window.size or 0)


def find(pair: OperatorPair) -> Iterable[Hit]:
    sides = pair.windows
    if sides is not None and _refused(sides[1]):
        yield Hit(
            "open-source Flink refuses a TUMBLE whose offset is not smaller than its size",
            (),
            window(sides[0]),
            window(sides[1]),
        )


RULE = Rule(
    code="window-offset-refused",
    title="A TUMBLE offset of at least the size",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "the Windowing TVF page prints offsets of 16 minutes on a size of 10"),
        "flink": expected("the planners of 2.3 and 1.20 refuse it"),
    },
    why="The planner asks for abs(offset) < size on TUMBLE only; HOP and CUMULATE ran with larger ones.",
    example=reading(
        "customer, SUM(amount)",
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '4' MINUTE"),
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '14' MINUTE"),
    ),
    find=find,
)
