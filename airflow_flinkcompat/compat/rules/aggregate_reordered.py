from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.shapes.examples import selecting
from airflow_flinkcompat.compat.shapes.metric_rules import metrics_rule

RULE = metrics_rule(
    code="aggregate-reordered",
    title="Metrics changed places",
    vvr=Outcome.COMPATIBLE,
    rows=(5, 5),
    flink=measured(Outcome.INCOMPATIBLE, "w-reorder", "w-reorder-sametypes", "wc-reorder-sametypes"),
    says=lambda _: "the same metrics stand in another order",
    why="VVR finds each metric wherever it stands. Open-source Flink keeps accumulators by position.",
    example=selecting("customer, SUM(amount), MAX(item)", "customer, MAX(item), SUM(amount)"),
)
