from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.shapes.examples import selecting
from airflow_flinkcompat.compat.shapes.metric_rules import metrics_rule

RULE = metrics_rule(
    code="no-aggregates",
    title="No metrics before and after",
    vvr=Outcome.COMPATIBLE,
    rows=(8, 9),
    flink=measured(Outcome.COMPATIBLE, "w-noagg-unchanged", "w-noagg-addwstart", "g-none-both"),
    says=lambda _: "neither side computes a metric; the keys seen so far are kept",
    why="The state holds only which keys were seen in which window.",
    example=selecting("customer", "customer, window_start"),
)
