from collections.abc import Iterable, Mapping
from dataclasses import replace

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink.ranking import expected
from airflow_flinkcompat.compat.engines.flink.validation import Fault, Query, brought
from airflow_flinkcompat.compat.engines.flink.validation.conflicts import ON_CONFLICT
from airflow_flinkcompat.compat.rule import Example, Remedy, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.compat.rules.program_refused import NAME_ON_VVR, ON_VVR
from airflow_flinkcompat.model import Outcome

_REFUSED = expected("asked of Flink's planner, 2.3.0")
MAY_BE = inferred(Outcome.UNKNOWN, "whether Flink plans the proposed statement cannot be told")

_TOTALS = "CREATE TABLE totals (customer STRING, amount BIGINT) WITH ('connector' = 'print');\n"


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    old = Query(pair.old_pipeline, pair.old, pair.old_program, pair.lines[0])
    new = Query(pair.new_pipeline, pair.new, pair.new_program, pair.lines[1])
    for fault in brought(old, new):
        said = "refuses" if fault.certain else "may refuse"
        yield RuleMatch(f"Flink {said} the proposed statement: {fault.message}", verdicts=verdicts(fault))


def verdicts(fault: Fault) -> Mapping[str, Verdict]:
    """Return the verdicts on a fault where they are not those of the rule.

    Args:
        fault: What Flink refuses, or may refuse.

    Returns:
        A verdict for each engine that has one of its own.
    """
    if not fault.certain:
        return {"flink": MAY_BE}
    own = {"vvr": NAME_ON_VVR} if fault.of_name else {}
    return own | ({"flink": replace(_REFUSED, remedy=Remedy.ON_CONFLICT)} if fault.kind == ON_CONFLICT else {})


RULE = Rule(
    code="statement-refused",
    title="Flink does not take the statement",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": ON_VVR,
        "flink": _REFUSED,
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
