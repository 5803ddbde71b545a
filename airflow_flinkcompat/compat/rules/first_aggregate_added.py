from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="first-aggregate-added",
    title="The first metric was added",
    vvr=Outcome.INCOMPATIBLE,
    rows=(15, 18),
    flink=measured(Outcome.INCOMPATIBLE, "g-add-to-none"),
    says=lambda _: "there was no metric before",
    rationale="State without metrics has no accumulators for a metric to continue from.",
    example=selecting("customer, window_start", "customer, window_start, COUNT(*)"),
    group=Unwindowed(("ga-add-first",)),
)
