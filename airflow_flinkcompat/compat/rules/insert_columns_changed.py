from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import sinks, stateless
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rules.output_changed import projection_on_flink
from airflow_flinkcompat.model import Outcome


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    if "insert columns" in pair.parts and not pair.others:
        old, new = (", ".join(side.insert_columns) or "all columns" for side in (pair.old, pair.new))
        reason = sinks.stays(pair)
        doubt = inferred(Outcome.UNKNOWN, reason)
        kept = {"flink": stateless.settled(pair, doubt, *stateless.COLUMN_LIST)}
        verdicts = kept if reason else projection_on_flink(pair)
        claims = pair.claim("insert columns")
        yield RuleMatch("the INSERT names other columns of its sink", claims, old, new, verdicts=verdicts)


SINK = "CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');\nINSERT INTO totals"
RULE = Rule(
    code="insert-columns-changed",
    title="The INSERT's column list changed",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "sink columns follow the query's output"),
        "flink": measured(Outcome.COMPATIBLE, "sinks-column-list"),
    },
    rationale="The list maps values to columns of the sink; nothing is stored for it.",
    example=Example(
        SINK + "\n" + windowed("customer, SUM(amount)"),
        SINK + " (total, customer)\n" + windowed("SUM(amount), customer"),
    ),
    find=find,
    beside_operators=True,
    case_dependent=("flink",),
)
