from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.aggregates import listed
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import Example, Level, Rule, RuleMatch, RuleScope, documented, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.expressions import AggregateCall
from airflow_flinkcompat.plan.operators import AggregateOperator, Output, operators


def aggregates_in(output: Output, language: str) -> list[AggregateCall]:
    """The aggregates of one language anywhere in a pipeline."""
    return [
        call
        for operator in operators(output)
        if isinstance(operator, AggregateOperator)
        for call in operator.aggregates
        if call.language == language
    ]


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    old, new = (aggregates_in(side, "python") for side in (pair.old, pair.new))
    if old or new:
        yield RuleMatch(
            "a Python aggregate function is used: the check cannot see into its state",
            (),
            listed(old) or "none",
            listed(new) or "none",
        )


DECLARATION = "CREATE TEMPORARY FUNCTION weighted AS 'metrics.weighted' LANGUAGE PYTHON;\n"
RULE = Rule(
    code="python-aggregate",
    title="A Python aggregate function (UDAF)",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.UNKNOWN, "Window TVF row 24; Group Window Aggregate row 22"),
        "flink": inferred(Outcome.UNKNOWN, "Python aggregates were not measured"),
    },
    rationale="The accumulator of a Python function is opaque bytes; nobody but the function knows whether they still "
    "fit.",
    example=Example(
        DECLARATION + windowed("customer, SUM(amount)"),
        DECLARATION + windowed("customer, SUM(amount), weighted(amount)"),
    ),
    find=find,
    level=Level.OPAQUE,
)
