from airflow_flinkcompat.compat.changes.aggregates import listed
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.shapes.examples import selecting
from airflow_flinkcompat.compat.shapes.metric_rules import metrics_rule

RULE = metrics_rule(
    code="aggregate-added",
    title="A metric was added",
    vvr=Outcome.PARTIAL,
    rows=(1, 1),
    flink=measured(Outcome.INCOMPATIBLE, "w-add-agg", "w-add-agg-front", "w-add-agg-bigint"),
    says=lambda fates: f"{listed(fates.added)} is new; {listed(fates.kept)} did not change",
    why="Stored accumulators hold no value for the new metric. VVR starts it at zero beside the kept ones; open-source "
    "Flink finds another accumulator layout and refuses.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount), COUNT(item)"),
)
