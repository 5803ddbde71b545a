from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.ranking import expected
from airflow_flinkcompat.compat.refusals import of_old_style
from airflow_flinkcompat.compat.rule import Example, Level, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rules.table_api_changed import PROGRAM
from airflow_flinkcompat.model import Outcome, Reason

DEPLOYED = inferred(Outcome.UNKNOWN, "what Flink refuses does not run: another program is deployed", Reason.NOT_READ)

ON_VVR = inferred(Outcome.UNKNOWN, "no page speaks of it; VVR is made of Flink", Reason.NOT_READ)
"""What Flink refuses, whatever it is."""
OF_SQL = inferred(Outcome.INCOMPATIBLE, "the words of Flink's own check of the statement")
NAME_ON_VVR = inferred(Outcome.INCOMPATIBLE, "VVR is made of Flink and has no other columns or tables to find")


def find(change: Change) -> Iterable[RuleMatch]:
    old, new = change.refusals
    if not change.unchanged:
        # The same script goes on wherever it runs today, on an older line say that the check was not told.
        new = (*new, *of_old_style(change.new))
    claims = change.claim("unread") if old or new else ()
    for refusal in new:
        said = f"Flink refuses the proposed {refusal.what}: {refusal.message}"
        verdicts = {"flink": OF_SQL} if refusal.what == "script" else {}
        verdicts |= {"vvr": NAME_ON_VVR} if refusal.of_name else {}
        yield RuleMatch(said, claims, after_span=refusal.span, verdicts=verdicts)
    for refusal in old:
        yield RuleMatch(
            f"Flink refuses the deployed {refusal.what}: {refusal.message}",
            claims,
            before_span=refusal.span,
            verdicts={"vvr": DEPLOYED, "flink": DEPLOYED},
        )


MINUTE = """\
minute = Tumble.over({}).on(col("order_time")).alias("w")
orders = t_env.from_path("orders")
orders.window(minute).group_by(col("w"), col("customer")).select(col("customer"), col("amount").sum).execute()
"""
RULE = Rule(
    code="program-refused",
    title="Flink refuses the program",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": ON_VVR,
        "flink": expected("each rule was seen with PyFlink 2.3.0"),
    },
    rationale="A window or an aggregate is written in a way that Flink's validator or planner turns down: with state "
    "or without it no job comes of it. The finding says what to write instead.",
    example=Example(PROGRAM + MINUTE.format("lit(10).minutes"), PROGRAM + MINUTE.format("lit(10)"), language="python"),
    find=find,
    level=Level.REST,
    case_dependent=("flink", "vvr"),
    beside_operators=True,
)
