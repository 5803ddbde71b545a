from collections.abc import Iterable

from airflow_flinkcompat.compat.aggregates import listed
from airflow_flinkcompat.compat.change import PipelinePair
from airflow_flinkcompat.compat.examples import windowed
from airflow_flinkcompat.compat.outcome import Outcome, Reason
from airflow_flinkcompat.compat.rule import Example, Hit, Level, Rule, Scope, inferred
from airflow_flinkcompat.compat.rules.python_aggregate import aggregates_in


def find(pair: PipelinePair) -> Iterable[Hit]:
    old, new = (aggregates_in(side, "undeclared") for side in (pair.old, pair.new))
    if old or new:
        names = ", ".join(sorted({call.function for call in (*old, *new)}))
        yield Hit(
            f"nobody declares {names}: say what it is, for instance --function {names.split(', ')[0]}=aggregate:java",
            (),
            listed(old) or "none",
            listed(new) or "none",
        )


RULE = Rule(
    code="undeclared-aggregate",
    title="An aggregate function nobody declares",
    scope=Scope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, reason=Reason.OPAQUE),
        "flink": inferred(Outcome.UNKNOWN, reason=Reason.OPAQUE),
    },
    why="It may be a Python function, whose state the check cannot see into, or an ordinary Java one.",
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, SUM(amount), weighted(amount)")),
    find=find,
    level=Level.OPAQUE,
)
