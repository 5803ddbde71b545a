from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="only-aggregate-changed",
    title="The only metric's computation changed",
    vvr=Outcome.INCOMPATIBLE,
    rows=(16, 19),
    flink=measured(Outcome.INCOMPATIBLE, "w-one-agg-calc-change", "wc-one-agg-calc", "g-only-one-left-calc"),
    says=lambda _: "the only metric is computed differently, so nothing survives",
    rationale="A partial reuse needs at least one metric that survives unchanged.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount + 1)"),
    group=Unwindowed(("ga-input-cast-double",)),
)
