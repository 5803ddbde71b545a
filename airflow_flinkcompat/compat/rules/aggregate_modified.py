from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.shapes.examples import selecting
from airflow_flinkcompat.compat.shapes.metric_rules import became, metrics_rule

RULE = metrics_rule(
    code="aggregate-modified",
    title="A metric's function changed",
    vvr=Outcome.PARTIAL,
    rows=(4, 4),
    flink=measured(Outcome.INCOMPATIBLE, "w-mod-max-min", "g-mod-max-min", "w-first-last"),
    says=lambda fates: f"{became(fates.function_changes)}: another function is another metric",
    why="A changed metric is a deleted one and a new one. Open-source Flink reads the old accumulator as the new "
    "metric's where the types fit: MAX goes on from a MIN, without an error.",
    example=selecting("customer, SUM(amount), MAX(item)", "customer, SUM(amount), MIN(item)"),
)
