from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import values
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.outcome import Outcome, Reason
from airflow_flinkcompat.compat.rule import Example, Hit, Level, Rule, Scope, inferred
from airflow_flinkcompat.compat.rules.python_aggregate import aggregates_in
from airflow_flinkcompat.compat.shapes.examples import windowed
from airflow_flinkcompat.plan import Program, functions
from airflow_flinkcompat.plan.expressions import AggregateCall, Call, walk
from airflow_flinkcompat.plan.operators import AggregateOperator, Output
from airflow_flinkcompat.plan.origins import OperatorColumn, leaves

OPERATORS = frozenset({"FIELD", "ITEM", "VALUES", "ROW", "ARRAY", "MAPCONSTRUCTOR", "MULTISETCONSTRUCTOR"})
"""What the plan itself calls, and no catalogue lists."""


def undeclared(program: Program, output: Output) -> list[Call]:
    """Calls above an aggregation that nobody declares and that read no metric: they may be aggregates themselves."""
    if not isinstance(output.region.origin, AggregateOperator):
        return []
    declared = {function.name.lower() for function in program.functions}
    return [
        part
        for whole in (*output.columns, *output.region.filters, *output.region.window_filters)
        for part in walk(whole)
        if isinstance(part, Call)
        and part.function.lower() not in declared
        and functions.lookup(part.function.upper()) is None
        and part.function not in OPERATORS
        and not any(
            isinstance(leaf, OperatorColumn) and isinstance(leaf.output, AggregateCall) for leaf in leaves(part)
        )
    ]


def _doubted(program: Program, output: Output) -> list[AggregateCall | Call]:
    return [*aggregates_in(output, "undeclared"), *undeclared(program, output)]


def find(pair: PipelinePair) -> Iterable[Hit]:
    old, new = _doubted(pair.old_program, pair.old), _doubted(pair.new_program, pair.new)
    if old or new:
        names = ", ".join(sorted({call.function for call in (*old, *new)}))
        yield Hit(
            f"nobody declares {names}: say what it is, for instance --function {names.split(', ')[0]}=aggregate:java",
            (),
            values(old),
            values(new),
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
