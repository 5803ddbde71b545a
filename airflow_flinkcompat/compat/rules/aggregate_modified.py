from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, became, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="aggregate-modified",
    title="A metric's function changed",
    vvr=Outcome.PARTIAL,
    rows=(4, 4),
    flink=measured(Outcome.INCOMPATIBLE, "w-mod-max-min", "g-mod-max-min", "w-first-last"),
    says=lambda fates: f"{became(fates.function_changes)}: another function is another metric",
    rationale="A changed metric is a deleted one and a new one. Open-source Flink reads the old accumulator as the new "
    "metric's where the types fit: MAX continues from a MIN, without an error.",
    example=selecting("customer, SUM(amount), MAX(item)", "customer, SUM(amount), MIN(item)"),
    yields_to="ranked-row-changed",
    group=Unwindowed(("ga-mod-sum-max", "ga-mod-sum-count", "ga-mod-sum-avg"), on_page=True),
    over=Unwindowed(("oa-rows-mod-sum-max",), on_page=True),
)
