from airflow_flinkcompat.compat.changes.aggregates import listed
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="aggregate-added",
    title="A metric was added",
    vvr=Outcome.PARTIAL,
    rows=(1, 1),
    flink=measured(Outcome.INCOMPATIBLE, "w-add-agg", "w-add-agg-front", "w-add-agg-bigint"),
    says=lambda fates: f"{listed(fates.added)} is new; {listed(fates.kept)} did not change",
    rationale="Stored accumulators hold no value for the new metric. VVR starts it at zero next to the kept ones; "
    "open-source Flink finds another accumulator layout and refuses.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount), COUNT(item)"),
    yields_to="ranked-row-changed",
    group=Unwindowed(("ga-add-sametype-input", "ga-add-sum-plain"), on_page=True),
    over=Unwindowed(("oa-add-count",), on_page=True),
)
