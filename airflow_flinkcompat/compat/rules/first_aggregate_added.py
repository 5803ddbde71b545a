from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.shapes.examples import selecting
from airflow_flinkcompat.compat.shapes.metric_rules import metrics_rule

RULE = metrics_rule(
    code="first-aggregate-added",
    title="The first metric was added",
    vvr=Outcome.INCOMPATIBLE,
    rows=(15, 18),
    flink=measured(Outcome.INCOMPATIBLE, "g-add-to-none"),
    says=lambda _: "there was no metric before",
    why="State without metrics has no accumulators a metric could go on from.",
    example=selecting("customer, window_start", "customer, window_start, COUNT(*)"),
)
