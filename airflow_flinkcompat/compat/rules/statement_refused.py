from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink.ranking import expected
from airflow_flinkcompat.compat.engines.flink.validation import Query, brought
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rules.program_refused import NAME_ON_VVR, ON_VVR
from airflow_flinkcompat.model import Outcome

MAY_BE = inferred(Outcome.UNKNOWN, "whether Flink plans the proposed statement cannot be told")

_TOTALS = "CREATE TABLE totals (customer STRING, amount BIGINT) WITH ('connector' = 'print');\n"


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    old = Query(pair.old_pipeline, pair.old, pair.old_program)
    new = Query(pair.new_pipeline, pair.new, pair.new_program)
    for fault in brought(old, new):
        said = "refuses" if fault.certain else "may refuse"
        named = {"vvr": NAME_ON_VVR} if fault.of_name else {}
        yield RuleMatch(
            f"Flink {said} the proposed statement: {fault.message}",
            verdicts=named if fault.certain else {"flink": MAY_BE},
        )


RULE = Rule(
    code="statement-refused",
    title="Flink does not take the statement",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": ON_VVR,
        "flink": expected("asked of Flink's planner, 2.3.0"),
    },
    rationale="The columns of the query do not go into those of the sink, its results change and the sink takes rows "
    "that are only added, or Flink refuses the declaration of a table. With state or without it no job comes of it. "
    "What the deployed version has too keeps nothing from running and is not told.",
    example=Example(
        _TOTALS + "INSERT INTO totals SELECT customer, amount FROM orders;",
        _TOTALS + "INSERT INTO totals SELECT customer, amount, item FROM orders;",
    ),
    find=find,
    case_dependent=("flink", "vvr"),
    beside_operators=True,
)
