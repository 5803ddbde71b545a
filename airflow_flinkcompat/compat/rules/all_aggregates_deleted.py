from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="all-aggregates-deleted",
    title="All metrics were deleted",
    vvr=Outcome.INCOMPATIBLE,
    rows=(14, 15),
    flink=measured(Outcome.INCOMPATIBLE, "w-del-all-aggs", "g-del-all"),
    says=lambda _: "no metric is left",
    rationale="Nothing survives that the stored state could serve.",
    example=selecting("customer, SUM(amount), window_start", "customer, window_start"),
    group=Unwindowed(("ga-del-all",)),
)
