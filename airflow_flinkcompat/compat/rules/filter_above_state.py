from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import conditions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, documented, measured
from airflow_flinkcompat.compat.rules.output_changed import projection_on_flink
from airflow_flinkcompat.compat.shapes.examples import windowed
from airflow_flinkcompat.compat.shapes.projections import on_vvr


def find(pair: PipelinePair) -> Iterable[Hit]:
    if "filters" in pair.parts and not pair.others:
        old, new = (side.region.filters for side in (pair.old, pair.new))
        yield Hit(
            "a condition above the state changed",
            pair.claim("filters"),
            conditions(old),
            conditions(new),
            verdicts={**projection_on_flink(pair), **on_vvr(pair)},
        )


RULE = Rule(
    code="filter-above-state",
    title="A condition above the state changed",
    scope=Scope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "WHERE page: what follows keeps no state"),
        "flink": measured(Outcome.COMPATIBLE, "w-having-add"),
    },
    why="HAVING and conditions over metrics decide which results leave; nothing is stored for them.",
    example=Example(
        windowed("customer, SUM(amount)"), windowed("customer, SUM(amount)").replace(";", "\nHAVING SUM(amount) > 10;")
    ),
    find=find,
    by_case=("vvr", "flink"),
)
