from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.shapes.examples import selecting
from airflow_flinkcompat.compat.shapes.metric_rules import metrics_rule

RULE = metrics_rule(
    code="all-aggregates-deleted",
    title="All metrics were deleted",
    vvr=Outcome.INCOMPATIBLE,
    rows=(14, 15),
    flink=measured(Outcome.INCOMPATIBLE, "w-del-all-aggs", "g-del-all"),
    says=lambda _: "no metric is left",
    why="Nothing survives that the stored state could serve.",
    example=selecting("customer, SUM(amount), window_start", "customer, window_start"),
)
