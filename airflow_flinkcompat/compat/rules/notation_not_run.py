from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rules.table_api_changed import PROGRAM
from airflow_flinkcompat.model import Outcome, Reason


def find(change: Change) -> Iterable[RuleMatch]:
    for side, which in ((change.old, "deployed"), (change.new, "proposed")):
        found = side.not_run
        if found:
            spans = (found[0].span, None) if side is change.old else (None, found[0].span)
            what = "; ".join(dict.fromkeys(note.text for note in found))
            yield RuleMatch(
                f"{side.engine} {side.version} does not take the {which} program: {what}", (), "", "", *spans
            )


MINUTE = """\
minute = Tumble.over(lit(1).minutes).on(col("order_time")).alias("w")
orders = t_env.from_path("orders").window(minute)
"""
RULE = Rule(
    code="notation-not-run",
    title="The engine does not take this notation",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "VVR is made of Flink", Reason.VERSION),
        "flink": inferred(Outcome.UNKNOWN, "old string expressions were refused by 2.3.0", Reason.VERSION),
    },
    rationale="What the program says is understood, but this version of the engine has no way to express it: the "
    "old string expressions went with Flink 1.16, and the rest of FLIP-11 never came. Another program runs.",
    example=Example(
        PROGRAM + MINUTE + 'orders.group_by(col("w"), col("customer")).select(col("amount").sum).execute()\n',
        PROGRAM + MINUTE + 'orders.group_by("w, customer").select("amount.sum").execute()\n',
        versions=("8", "8"),
        language="python",
    ),
    find=find,
)
