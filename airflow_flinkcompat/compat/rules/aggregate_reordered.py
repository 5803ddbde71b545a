from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="aggregate-reordered",
    title="Metrics changed places",
    vvr=Outcome.COMPATIBLE,
    rows=(5, 5),
    flink=measured(Outcome.INCOMPATIBLE, "w-reorder", "w-reorder-sametypes", "wc-reorder-sametypes"),
    says=lambda _: "the same metrics stand in another order",
    rationale="VVR finds each metric wherever it stands. Open-source Flink keeps accumulators by position.",
    example=selecting("customer, SUM(amount), MAX(item)", "customer, MAX(item), SUM(amount)"),
    yields_to="ranked-row-changed",
    group=Unwindowed(("ga-reorder-difftypes", "ga-reorder-sametypes"), on_page=True),
    over=Unwindowed(("oa-reorder-difftypes", "oa-reorder-sametypes"), on_page=True),
)
