from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.shapes.examples import selecting
from airflow_flinkcompat.compat.shapes.metric_rules import metrics_rule

RULE = metrics_rule(
    code="distinct-aggregate-changed",
    title="A DISTINCT metric changed",
    vvr=Outcome.INCOMPATIBLE,
    rows=(13, 14),
    flink=measured(Outcome.INCOMPATIBLE, "w-distinct-add", "w-distinct-del", "w-distinct-mod-func"),
    says=lambda _: "a DISTINCT metric was added, deleted, changed or moved among the DISTINCT ones",
    why="The values seen so far are part of the state's layout, in the order of the DISTINCT metrics.",
    example=selecting("customer, SUM(amount), COUNT(DISTINCT item)", "customer, SUM(amount), COUNT(DISTINCT region)"),
)
