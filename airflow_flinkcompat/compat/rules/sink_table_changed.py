from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import restores as flink
from airflow_flinkcompat.compat.engines.flink import sinks
from airflow_flinkcompat.compat.rule import (
    Example,
    PlanCover,
    Rule,
    RuleMatch,
    RuleScope,
    TableApiCover,
    Verdict,
    documented,
    inferred,
    measured,
    together,
)
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rules.output_changed import projection_on_flink
from airflow_flinkcompat.compat.rules.sink_changed import (
    MEASURED_OPTIONS,
    connector_on_flink,
    options_changed,
    sink_state_checked,
)
from airflow_flinkcompat.compat.rules.source_table_changed import SHOWN, format_difference
from airflow_flinkcompat.model import Outcome

UNKNOWN = inferred(Outcome.UNKNOWN)
FOLLOW = ("columns", "types", "order", "computed", "metadata")
"""Parts of a sink's declaration that follow the query's output."""
PROJECTED = ("w-add-window-start", "sinks-columns-renamed", "sinks-column-wider", "sinks-column-not-null")
"""Other columns of a print sink, with those of the query or by themselves."""
KEYED = ("sinks-group-key-added", "sinks-group-key-removed", "sinks-window-key-added", "sinks-window-key-removed")
VVR: Mapping[str, Verdict] = {
    **dict.fromkeys(FOLLOW, inferred(Outcome.COMPATIBLE, "sink columns follow the query's output")),
    "connector": documented(Outcome.COMPATIBLE, "Sink table page (read in part): connector under ignore-sink = true"),
    "options": documented(Outcome.COMPATIBLE, "Sink table page (read in part): WITH under ignore-sink = true"),
}


def on_flink(pair: PipelinePair, difference: Difference) -> Verdict:
    """A stateless sink may change its columns, key and options; a filesystem sink its columns with the projection."""
    if difference.part == "connector":
        return connector_on_flink(pair) or UNKNOWN
    reason = sinks.stays(pair)
    if not reason:
        return _on_stateless(difference)
    if difference.part in FOLLOW and not {*sinks.connectors(pair)} & {*flink.STATELESS_SINKS}:
        return projection_on_flink(pair).get("flink", UNKNOWN)
    return inferred(Outcome.UNKNOWN, reason)


def _on_stateless(difference: Difference) -> Verdict:
    match difference.part:
        case "columns" | "types" | "order":
            return measured(Outcome.COMPATIBLE, *PROJECTED)
        case "primary key":
            return measured(Outcome.COMPATIBLE, *KEYED)
        case "options" if options_changed(difference.before, difference.after) <= MEASURED_OPTIONS:
            return measured(Outcome.COMPATIBLE, "x-sink-option")
    return UNKNOWN


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.script_differences:
        place, _, table = difference.key.rpartition("/")[0].partition("/")
        writers = [pair for pair in change.pipelines if table in (pair.old.sink, pair.new.sink)]
        if place != "table" or not writers or difference.part == "declared":
            continue
        before, after = format_difference(difference)
        yield RuleMatch(
            f"the declaration of sink table {table} changed: {SHOWN.get(difference.part, difference.part)}",
            (difference.key,),
            before,
            after,
            difference.before_span,
            difference.after_span,
            verdicts={
                "vvr": sink_state_checked(change) or VVR.get(difference.part, UNKNOWN),
                "flink": together(on_flink(pair, difference) for pair in writers),
            },
        )


SINK = "CREATE TABLE totals ({0}) WITH ('connector' = 'print');\nINSERT INTO totals\n"
RULE = Rule(
    code="sink-table-changed",
    title="A sink table's declaration changed",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "sink columns follow the query's output"),
        "flink": measured(Outcome.COMPATIBLE, "x-sink-option", *PROJECTED),
    },
    rationale="The columns of a sink follow the query; its options are its own business unless it keeps state.",
    example=Example(
        SINK.format("customer STRING, total BIGINT") + windowed("customer, SUM(amount)"),
        SINK.format("customer STRING, total BIGINT, start_time TIMESTAMP(3)")
        + windowed("customer, SUM(amount), window_start"),
    ),
    find=find,
    beside_operators=True,
    case_dependent=("vvr", "flink"),
    plan_cover=PlanCover.COLUMNS_OF_STATELESS_SINKS,
    table_api_cover=TableApiCover.ONE_WINDOW,
)
