from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.outcome import Outcome, Reason
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, inferred


def find(change: Change) -> Iterable[Hit]:
    if change.ambiguous:
        names = ", ".join(name or "a bare SELECT" for name in change.ambiguous)
        yield Hit(
            f"several queries write into {names} and it cannot be told which replaced which",
            change.claim("pairing"),
        )


SINK = "CREATE TABLE raw (customer STRING) WITH ('connector' = 'print');\nEXECUTE STATEMENT SET BEGIN\n"
PART = "INSERT INTO raw SELECT {0} FROM orders;\n"
RULE = Rule(
    code="pairing-ambiguous",
    title="It cannot be told which query replaced which",
    scope=Scope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, reason=Reason.AMBIGUOUS),
        "flink": inferred(Outcome.UNKNOWN, reason=Reason.AMBIGUOUS),
    },
    why="An arbitrary pairing would be a guess.",
    example=Example(
        SINK + PART.format("customer") + PART.format("item") + "END;",
        SINK + PART.format("UPPER(customer)") + PART.format("UPPER(item)") + "END;",
    ),
    find=find,
)
