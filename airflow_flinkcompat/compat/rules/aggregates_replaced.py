from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.shapes.examples import selecting
from airflow_flinkcompat.compat.shapes.metric_rules import metrics_rule

RULE = metrics_rule(
    code="aggregates-replaced",
    title="All metrics were replaced",
    vvr=Outcome.INCOMPATIBLE,
    rows=(17, 20),
    flink=measured(Outcome.INCOMPATIBLE, "g-all-different", "g-one-sum-to-max"),
    says=lambda _: "no metric of the deployed query survives",
    why="A partial reuse needs at least one metric that survives unchanged.",
    example=selecting("customer, SUM(amount)", "customer, MIN(amount)"),
)
