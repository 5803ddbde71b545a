from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, inferred
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.model import Basis, Consequence, Outcome


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("sharing"):
        yield RuleMatch(
            "an operator that several queries of the job read became several, or several became one",
            (difference.key,),
            difference.before,
            difference.after,
            difference.before_span,
            difference.after_span,
        )


SINKS = (
    "CREATE TABLE raw (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
    "CREATE TABLE big (customer STRING, total BIGINT) WITH ('connector' = 'print');\n"
)
SET = "EXECUTE STATEMENT SET BEGIN\nINSERT INTO raw\n{0}\nINSERT INTO big\n{1}\nEND;"
TOTAL = windowed("customer, SUM(amount)")
RULE = Rule(
    code="shared-operator-changed",
    title="An operator that several queries share was taken apart, or several became one",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "no page states which query takes over a state that was shared"),
        "flink": Verdict(
            Outcome.INCOMPATIBLE,
            Basis.INFERRED,
            "equal aggregations are planned once; every change of topology seen was refused",
            consequence=Consequence.REFUSED_AT_SUBMIT,
        ),
    },
    rationale="Queries of one statement set that compute the same share one operator. Once one of them computes "
    "something else, the job holds one operator more, and whose state it takes is not known.",
    example=Example(
        SINKS + SET.format(TOTAL, TOTAL),
        SINKS + SET.format(TOTAL, windowed("customer, SUM(amount) + COUNT(item)")),
    ),
    find=find,
)
