from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.aggregates import listed
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rules.python_aggregate import aggregates_in
from airflow_flinkcompat.model import Outcome, Reason


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    old, new = ([*aggregates_in(side, "java"), *aggregates_in(side, "scala")] for side in (pair.old, pair.new))
    if (old or new) and pair.changed:
        yield RuleMatch(
            "a Java or Scala aggregate function is used",
            (),
            listed(old) or "none",
            listed(new) or "none",
        )


DECLARATION = "CREATE TEMPORARY FUNCTION weighted AS 'com.example.Weighted';\n"
RULE = Rule(
    code="user-aggregate",
    title="A Java or Scala aggregate function",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "an ordinary aggregate (readings)"),
        "flink": inferred(Outcome.UNKNOWN, "aggregates of one's own were not measured", Reason.OPAQUE),
    },
    rationale="Declared as Java or Scala it is an aggregate like any other; on open-source Flink its state was not "
    "measured.",
    example=Example(
        DECLARATION + windowed("customer, weighted(amount)"),
        DECLARATION + windowed("customer, weighted(amount), window_start"),
    ),
    find=find,
)
