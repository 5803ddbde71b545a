from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.model import Outcome, Reason


def find(change: Change) -> Iterable[RuleMatch]:
    if change.ambiguous:
        names = ", ".join(name or "a bare SELECT" for name in change.ambiguous)
        yield RuleMatch(
            f"several queries write into {names}, and which replaced which is not known",
            change.claim("pairing"),
        )


SINK = "CREATE TABLE raw (customer STRING) WITH ('connector' = 'print');\nEXECUTE STATEMENT SET BEGIN\n"
PART = "INSERT INTO raw SELECT {0} FROM orders;\n"
RULE = Rule(
    code="pairing-ambiguous",
    title="Which query replaced which is not known",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, reason=Reason.AMBIGUOUS),
        "flink": inferred(Outcome.UNKNOWN, reason=Reason.AMBIGUOUS),
    },
    rationale="An arbitrary pairing would be a guess.",
    example=Example(
        SINK + PART.format("customer") + PART.format("item") + "END;",
        SINK + PART.format("UPPER(customer)") + PART.format("UPPER(item)") + "END;",
    ),
    find=find,
)
