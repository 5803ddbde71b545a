from airflow_flinkcompat.compat.changes.aggregates import listed
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.shapes.examples import selecting
from airflow_flinkcompat.compat.shapes.metric_rules import metrics_rule

RULE = metrics_rule(
    code="aggregate-added-and-deleted",
    title="Metrics were added and deleted together",
    vvr=Outcome.PARTIAL,
    rows=(3, 3),
    flink=measured(Outcome.INCOMPATIBLE, "w-add-del-sametypes"),
    says=lambda fates: (
        f"{listed(fates.added)} is new, {listed(fates.dropped)} is gone; {listed(fates.kept)} did not change"
    ),
    why="VVR treats each metric by itself. Open-source Flink keeps accumulators by position: another set is refused, "
    "or, where the types happen to fit, read as if nothing had changed.",
    example=selecting("customer, SUM(amount), MAX(item)", "customer, MAX(item), COUNT(region)"),
)
