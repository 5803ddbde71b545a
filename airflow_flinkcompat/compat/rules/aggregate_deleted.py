from airflow_flinkcompat.compat.changes.aggregates import listed
from airflow_flinkcompat.compat.rule import measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rule_builders.metric_rules import Unwindowed, metrics_rule
from airflow_flinkcompat.model import Outcome

RULE = metrics_rule(
    code="aggregate-deleted",
    title="A metric was deleted",
    vvr=Outcome.COMPATIBLE,
    rows=(2, 2),
    flink=measured(Outcome.INCOMPATIBLE, "w-del-agg", "g-del-agg"),
    says=lambda fates: f"{listed(fates.dropped)} is gone; {listed(fates.kept)} did not change",
    rationale="VVR drops the deleted metric's state and keeps the rest. Open-source Flink compares the whole "
    "accumulator layout and refuses the shorter one.",
    example=selecting("customer, SUM(amount), COUNT(item)", "customer, SUM(amount)"),
    yields_to="ranked-row-changed",
    group=Unwindowed(("ga-del-first",), on_page=True),
    over=Unwindowed(("oa-del-max", "oa-del-first"), on_page=True),
)
