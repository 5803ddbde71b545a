from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="distinct-aggregate-changed",
    title="A DISTINCT metric changed",
    vvr=Outcome.INCOMPATIBLE,
    rows=(13, 14),
    flink=measured(Outcome.INCOMPATIBLE, "w-distinct-add", "w-distinct-del", "w-distinct-mod-func"),
    says=lambda _: "a DISTINCT metric was added, deleted, changed or moved among the DISTINCT ones",
    rationale="The values seen so far are part of the state's layout, in the order of the DISTINCT metrics.",
    example=selecting("customer, SUM(amount), COUNT(DISTINCT item)", "customer, SUM(amount), COUNT(DISTINCT region)"),
    group=Unwindowed(("ga-distinct-del", "ga-distinct-func", "ga-distinct-swap-sametype")),
)
