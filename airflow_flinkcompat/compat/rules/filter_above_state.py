from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_conditions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, documented, measured
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rule_builders.projections import on_vvr
from airflow_flinkcompat.compat.rules.output_changed import projection_on_flink
from airflow_flinkcompat.model import Outcome


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    if "filters" in pair.parts and not pair.others:
        old, new = (side.segment.filters for side in (pair.old, pair.new))
        yield RuleMatch(
            f"a condition{' above the state' if pair.operators else ''} changed",
            pair.claim("filters"),
            format_conditions(old),
            format_conditions(new),
            verdicts={**projection_on_flink(pair), **on_vvr(pair)},
        )


RULE = Rule(
    code="filter-above-state",
    title="A condition above the state changed",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "WHERE page: what follows keeps no state"),
        "flink": measured(Outcome.COMPATIBLE, "w-having-add"),
    },
    rationale="HAVING and conditions over metrics decide which results leave; nothing is stored for them.",
    example=Example(
        windowed("customer, SUM(amount)"), windowed("customer, SUM(amount)").replace(";", "\nHAVING SUM(amount) > 10;")
    ),
    find=find,
    case_dependent=("vvr", "flink"),
    beside_operators=True,
)
