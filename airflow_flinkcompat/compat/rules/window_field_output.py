from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.ranking import is_number
from airflow_flinkcompat.compat.rule import Rule, RuleMatch, RuleScope, TableApiCover, documented, measured
from airflow_flinkcompat.compat.rule_builders.examples import selecting
from airflow_flinkcompat.compat.rules.output_changed import computed_columns, projection_on_flink
from airflow_flinkcompat.model import Outcome


def only_window_fields(pair: PipelinePair) -> bool:
    """Bare window fields came into or left the output; everything else but the number of a rank stands as before."""
    old, new = ([c for c in side.columns if not is_number(c)] for side in (pair.old, pair.new))
    return old != new and computed_columns(pair.old) == computed_columns(pair.new)


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    if pair.operators and not pair.others and only_window_fields(pair):
        yield RuleMatch(
            "only window fields came into or left the output",
            pair.claim("columns"),
            format_expressions(pair.old.columns),
            format_expressions(pair.new.columns),
            verdicts=projection_on_flink(pair),
        )


RULE = Rule(
    code="window-field-output",
    title="A window field was added to or deleted from the output",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Window TVF row 7; Group Window Aggregate row 7"),
        "flink": measured(Outcome.COMPATIBLE, "w-add-window-start", "w-del-window-start", "g-add-wend"),
    },
    rationale="Window fields are known for every window; showing them needs no state.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount), window_start"),
    find=find,
    case_dependent=("flink",),
    table_api_cover=TableApiCover.ONE_WINDOW,
)
