from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="no-aggregates",
    title="No metrics before and after",
    vvr=Outcome.COMPATIBLE,
    rows=(8, 9),
    flink=measured(Outcome.COMPATIBLE, "w-noagg-unchanged", "w-noagg-addwstart", "g-none-both"),
    says=lambda _: "neither side computes a metric; the keys seen so far are kept",
    rationale="The state holds only which keys were seen in which window.",
    example=selecting("customer", "customer, window_start"),
    group=Unwindowed(("ga-noagg-unchanged",)),
)
