from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import plain
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.flink import sinks
from airflow_flinkcompat.compat.flink.ranking import unmeasured, wrong
from airflow_flinkcompat.compat.outcome import Basis, Outcome, Reason
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, documented, measured
from airflow_flinkcompat.compat.shapes.part_rules import gathered_above, right
from airflow_flinkcompat.plan.operators import JoinForm, JoinOperator, Source

STRATEGY = "table.optimizer.non-deterministic-update.strategy"
RESOLVED = Verdict(
    Outcome.UNKNOWN, Basis.DOCUMENT, f"Lookup join page: {STRATEGY} = TRY_RESOLVE may give it state", Reason.DOCUMENTED
)
ELSEWHERE = ("source", "source hints", "query hints", "table functions")
"""Parts that rules of their own speak of: another table, hints, functions."""


def on_vvr(pair: OperatorPair) -> Verdict:
    if dict(pair.pipeline.new_pipeline.settings).get(STRATEGY, "").upper() == "TRY_RESOLVE":
        return RESOLVED
    if gathered_above(pair):
        return documented(Outcome.UNKNOWN, "Lookup join page: what it hands on may break operators behind it")
    return documented(Outcome.COMPATIBLE, "Lookup join page: any change")


def on_flink(pair: OperatorPair) -> Verdict:
    if gathered_above(pair):
        return wrong("lj-agg-key-lookup, lj-agg-cond-add, lj-agg-inner-to-left-miss", None)
    if not all(isinstance(side.regions[0].origin, Source) for side in (pair.old, pair.new)):
        return unmeasured("only lookups from a source were measured")
    moved = sinks.stays(pair.pipeline) if pair.pipeline.old.sink or pair.pipeline.new.sink else ""
    return unmeasured(moved) if moved else right("lj-key-othercol, lj-where-add, lj-dim-renamed")


def find(pair: OperatorPair) -> Iterable[Hit]:
    if not all(isinstance(s, JoinOperator) and s.form is JoinForm.LOOKUP for s in (pair.old, pair.new)):
        return
    for difference in pair.differences:
        if difference.part.partition(" of input ")[0] not in ELSEWHERE:
            yield Hit(
                f"lookup join: its {difference.part} changed",
                (difference.key,),
                plain(difference.before),
                plain(difference.after),
                verdicts={"vvr": on_vvr(pair), "flink": on_flink(pair)},
            )


TABLE = "CREATE TABLE names (customer STRING, name STRING) WITH ('connector' = 'jdbc');\n"
SINK = "CREATE TABLE named (customer STRING, name STRING) WITH ('connector' = 'print');\nINSERT INTO named\n"
JOIN = (
    TABLE
    + SINK
    + (
        "SELECT orders.customer, names.name\nFROM orders {0} names FOR SYSTEM_TIME AS OF orders.arrived\n"
        "ON orders.customer = names.customer;"
    )
)
RULE = Rule(
    code="lookup-join-changed",
    title="A lookup join changed",
    scope=Scope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Lookup join page: any change"),
        "flink": measured(Outcome.COMPATIBLE, "lj-key-othercol, lj-where-add, lj-dim-renamed", versions=("2.3",)),
    },
    why="A lookup asks another system and keeps nothing. What reads it may: an aggregation above goes on from values "
    "that were looked up in the old way.",
    example=Example(JOIN.format("JOIN"), JOIN.format("LEFT JOIN")),
    find=find,
    by_case=("vvr", "flink"),
)
