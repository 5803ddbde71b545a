from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.outcome import Consequence, Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, inferred, measured
from airflow_flinkcompat.compat.shapes.examples import windowed
from airflow_flinkcompat.compat.shapes.projections import coming_or_going


def find(pair: PipelinePair) -> Iterable[Hit]:
    if "operators" not in pair.parts:
        return
    old, new = (", ".join(operator.kind for operator in side) or "none" for side in (pair.removed, pair.added))
    found = coming_or_going(pair)
    # What stands above reads the operator's columns in place of its input's.
    claims = pair.claim("operators", *(("columns", "filters") if found else ()))
    yield Hit(
        "stateful operators came into or left the pipeline",
        claims,
        old,
        new,
        verdicts={"flink": found} if found else {},
    )


RULE = Rule(
    code="operators-added-or-removed",
    title="A stateful operator came or went",
    scope=Scope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "no row covers an operator that comes or goes inside a query"),
        "flink": measured(
            Outcome.INCOMPATIBLE, "every change of topology seen was refused", Consequence.REFUSED_AT_SUBMIT
        ),
    },
    why="Open-source Flink finds operators by their place in the topology; VVR's pages speak of changes within an "
    "operator.",
    example=Example("SELECT customer, amount FROM orders;", windowed("customer, SUM(amount)")),
    find=find,
)
