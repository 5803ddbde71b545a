from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import UNCHANGED, Example, Level, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rules.python_aggregate import aggregates_in
from airflow_flinkcompat.model import Outcome, Reason
from airflow_flinkcompat.plan import Program, functions
from airflow_flinkcompat.plan.expressions import AggregateCall, FunctionCall, walk
from airflow_flinkcompat.plan.operators import AggregateOperator, Output
from airflow_flinkcompat.plan.origins import OperatorColumn, leaves

OPERATORS = frozenset({"FIELD", "ITEM", "VALUES", "ROW", "ARRAY", "MAPCONSTRUCTOR", "MULTISETCONSTRUCTOR"})
"""What the plan itself calls, and no catalogue lists."""


def is_known(call: FunctionCall | AggregateCall, program: Program) -> bool:
    """Whether a function is Flink's own and of the catalogue, or is declared."""
    name = call.function
    declared = (function.name.lower() for function in program.functions)
    return functions.lookup(name) is not None or name in OPERATORS or name.lower() in declared


def undeclared(program: Program, output: Output) -> list[FunctionCall]:
    """Calls above an aggregation that nobody declares and that read no metric: they may be aggregates themselves."""
    if not isinstance(output.segment.origin, AggregateOperator):
        return []
    return [
        part
        for whole in (*output.columns, *output.segment.filters, *output.segment.window_filters)
        for part in walk(whole)
        if isinstance(part, FunctionCall)
        and not is_known(part, program)
        and not any(
            isinstance(leaf, OperatorColumn) and isinstance(leaf.output, AggregateCall) for leaf in leaves(part)
        )
    ]


def _doubted(program: Program, output: Output) -> list[AggregateCall | FunctionCall]:
    return [*aggregates_in(output, "undeclared"), *undeclared(program, output)]


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    old, new = _doubted(pair.old_program, pair.old), _doubted(pair.new_program, pair.new)
    if old or new:
        names = ", ".join(sorted({call.function for call in (*old, *new)}))
        yield RuleMatch(
            f"nobody declares {names}: say what it is, for instance --function {names.split(', ')[0]}=aggregate:java",
            (),
            format_expressions(old),
            format_expressions(new),
            verdicts={} if pair.changed else {"flink": CALLED_AS_BEFORE},
        )


CALLED_AS_BEFORE = inferred(
    Outcome.COMPATIBLE, "its query is the same on both sides, so it keeps what it kept", ids=UNCHANGED
)
RULE = Rule(
    code="undeclared-aggregate",
    title="An aggregate function nobody declares",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, reason=Reason.OPAQUE),
        "flink": inferred(Outcome.UNKNOWN, reason=Reason.OPAQUE),
    },
    rationale="It may be a Python function, whose state the check cannot see into, or an ordinary Java one.",
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, SUM(amount), weighted(amount)")),
    find=find,
    level=Level.OPAQUE,
    case_dependent=("flink",),
)
