from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, became, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="aggregate-input-changed",
    title="The computation of a metric's input changed",
    vvr=Outcome.PARTIAL,
    rows=(6, 6),
    flink=measured(Outcome.INCOMPATIBLE, "w-substr-view", "w-expr-input-numeric", "wc-substr-5to3"),
    says=lambda fates: f"the input of a metric is computed differently: {became(fates.input_changes)}",
    rationale="Values gathered from the old expression do not belong to the new one, even where the function and the "
    "column's name stay. Open-source Flink mixes them without an error when a projection was there before.",
    example=selecting("customer, SUM(amount), MAX(item)", "customer, SUM(amount), MAX(SUBSTRING(item, 1, 5))"),
    yields_to="ranked-row-changed",
    group=Unwindowed(("ga-input-col-swap",), on_page=True),
    over=Unwindowed(("oa-input-col-swap",)),
)
