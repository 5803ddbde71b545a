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
MAY_BE = inferred(Outcome.UNKNOWN, "whether Flink accepts the proposed statement is not known")

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
    rationale="Flink refuses the new statement: the columns of the query do not fit the sink, the sink takes inserts "
    "alone, a declaration or a call is invalid, or the statement needs ON CONFLICT (from Flink 2.3 on). No job starts, "
    "with state or without. A fault that the deployed version has as well is reported only if the line of Flink "
    "decides it: other faults did not keep that version from running.",
    example=Example(
        _TOTALS + "INSERT INTO totals SELECT customer, amount FROM orders;",
        _TOTALS + "INSERT INTO totals SELECT customer, amount, item FROM orders;",
    ),
    find=find,
    case_dependent=("flink", "vvr"),
    beside_operators=True,
)
