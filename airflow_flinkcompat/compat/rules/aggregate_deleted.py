from airflow_flinkcompat.compat.changes.aggregates import listed
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.shapes.examples import selecting
from airflow_flinkcompat.compat.shapes.metric_rules import metrics_rule

RULE = metrics_rule(
    code="aggregate-deleted",
    title="A metric was deleted",
    vvr=Outcome.COMPATIBLE,
    rows=(2, 2),
    flink=measured(Outcome.INCOMPATIBLE, "w-del-agg", "g-del-agg"),
    says=lambda fates: f"{listed(fates.dropped)} is gone; {listed(fates.kept)} did not change",
    why="VVR drops the deleted metric's state and keeps the rest. Open-source Flink compares the whole accumulator "
    "layout and refuses the shorter one.",
    example=selecting("customer, SUM(amount), COUNT(item)", "customer, SUM(amount)"),
)
