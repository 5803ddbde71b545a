from airflow_flinkcompat.compat.changes.aggregates import listed
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="aggregate-added-and-deleted",
    title="Metrics were added and deleted together",
    vvr=Outcome.PARTIAL,
    rows=(3, 3),
    flink=measured(Outcome.INCOMPATIBLE, "w-add-del-sametypes"),
    says=lambda fates: (
        f"{listed(fates.added)} is new, {listed(fates.dropped)} is gone; {listed(fates.kept)} did not change"
    ),
    rationale="VVR treats each metric by itself. Open-source Flink keeps accumulators by position: another set is "
    "refused, or, where the types happen to fit, read as if nothing had changed.",
    example=selecting("customer, SUM(amount), MAX(item)", "customer, MAX(item), COUNT(region)"),
    yields_to="ranked-row-changed",
    group=Unwindowed(on_page=True),
    over=Unwindowed(on_page=True),
)
