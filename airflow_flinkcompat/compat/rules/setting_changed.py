from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.change import Change
from airflow_flinkcompat.compat.clauses import setting
from airflow_flinkcompat.compat.examples import windowed
from airflow_flinkcompat.compat.outcome import Basis, Consequence, Outcome, Reason
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, inferred, measured
from airflow_flinkcompat.plan.operators import AggregateOperator

REFUSED = Consequence.REFUSED_AT_SUBMIT
UNKNOWN = Verdict(Outcome.UNKNOWN, Basis.INFERRED, "", Reason.NOT_COVERED)
FLINK: Mapping[str, Verdict] = {
    "pipeline.name": measured(Outcome.COMPATIBLE, "x-pipeline-name"),
    "pipeline.object-reuse": measured(Outcome.COMPATIBLE, "x-objectreuse"),
    "table.exec.source.idle-timeout": measured(Outcome.COMPATIBLE, "x-idle-timeout-added"),
    "pipeline.max-parallelism": measured(Outcome.INCOMPATIBLE, "x-maxparallelism-change", REFUSED),
    "table.optimizer.agg-phase-strategy": measured(Outcome.INCOMPATIBLE, "x-onephase", REFUSED),
    "table.optimizer.distinct-agg.split.enabled": measured(Outcome.INCOMPATIBLE, "w-distinct-split-setting", REFUSED),
    "table.exec.mini-batch.enabled": measured(Outcome.INCOMPATIBLE, "u-minibatch", REFUSED),
    "pipeline.operator-chaining.enabled": measured(Outcome.INCOMPATIBLE, "chaining off: refused", REFUSED),
}
VVR: Mapping[str, Verdict] = {
    "pipeline.name": inferred(Outcome.COMPATIBLE, "a name takes no part in state"),
    "table.exec.state.ttl": inferred(Outcome.COMPATIBLE, "values stored before keep their old time to live"),
    # Both switch what is checked, not what runs.
    "table.optimizer.state-compatibility.ignore-filter": inferred(Outcome.COMPATIBLE, "a switch of the check itself"),
    "table.optimizer.state-compatibility.ignore-sink": inferred(Outcome.COMPATIBLE, "a switch of the check itself"),
}
TTL = "table.exec.state.ttl"


def _ttl_on_flink(change: Change) -> Verdict:
    """Adding it was restored right on windowed aggregations, which it does not reach."""
    every = [pair for pipeline in change.pipelines for pair in pipeline.operators]
    plain = all(
        isinstance(side, AggregateOperator) and side.windowed for pair in every for side in (pair.old, pair.new)
    )
    return measured(Outcome.COMPATIBLE, "x-ttl-set") if every and plain else UNKNOWN


def find(change: Change) -> Iterable[Hit]:
    for difference in change.parts("setting"):
        key = difference.key.partition("/")[2]
        flink = _ttl_on_flink(change) if key == TTL else FLINK.get(key, UNKNOWN)
        yield Hit(
            f"setting {key} changed",
            (difference.key,),
            setting(key, difference.before),
            setting(key, difference.after),
            verdicts={"vvr": VVR.get(key, UNKNOWN), "flink": flink},
        )


RULE = Rule(
    code="setting-changed",
    title="A setting changed",
    scope=Scope.SCRIPT,
    verdicts={"vvr": inferred(Outcome.UNKNOWN), "flink": inferred(Outcome.UNKNOWN)},
    why="Many settings change the operators a query is planned into, or how their state is laid out; only those that "
    "were measured or documented are known not to.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "SET 'table.exec.mini-batch.enabled' = 'true';\n" + windowed("customer, SUM(amount)"),
    ),
    find=find,
)
