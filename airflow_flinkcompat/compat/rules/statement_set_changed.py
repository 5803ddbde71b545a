from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import (
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    TableApiCover,
    Verdict,
    inferred,
    measured,
)
from airflow_flinkcompat.model import Basis, Outcome, Reason

SEVERAL = dict.fromkeys(
    ("vvr", "flink"),
    Verdict(Outcome.UNKNOWN, Basis.INFERRED, "only a set around a single INSERT was measured", Reason.NOT_COVERED),
)


def find(change: Change) -> Iterable[RuleMatch]:
    claims = change.claim("statement set")
    if claims:
        single = all(len(program.pipelines) == 1 for program in change.programs)
        yield RuleMatch(
            "a STATEMENT SET was put around or taken from the queries", claims, verdicts={} if single else SEVERAL
        )


SINK = "CREATE TABLE raw (customer STRING) WITH ('connector' = 'print');\n"
RULE = Rule(
    code="statement-set-changed",
    title="A STATEMENT SET around the queries",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "the queries stay the same"),
        "flink": measured(Outcome.COMPATIBLE, "x-stmtset-wrap"),
    },
    rationale="A set around one query plans the same job.",
    example=Example(
        SINK + "INSERT INTO raw SELECT customer FROM orders;",
        SINK + "EXECUTE STATEMENT SET BEGIN\nINSERT INTO raw SELECT customer FROM orders;\nEND;",
    ),
    find=find,
    case_dependent=("vvr", "flink"),
    table_api_cover=TableApiCover.ONE_QUERY,
)
