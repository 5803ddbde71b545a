from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="aggregates-replaced",
    title="All metrics were replaced",
    vvr=Outcome.INCOMPATIBLE,
    rows=(17, 20),
    flink=measured(Outcome.INCOMPATIBLE, "g-all-different", "g-one-sum-to-max"),
    says=lambda _: "no metric of the deployed query survives",
    rationale="A partial reuse needs at least one metric that survives unchanged.",
    example=selecting("customer, SUM(amount)", "customer, MIN(amount)"),
    group=Unwindowed(("ga-global-mod", "ga-first-to-last")),
)
