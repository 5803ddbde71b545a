from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat import flink
from airflow_flinkcompat.compat.change import Change
from airflow_flinkcompat.compat.examples import windowed
from airflow_flinkcompat.compat.outcome import Basis, Outcome, Reason
from airflow_flinkcompat.compat.parts import Difference
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, documented, inferred, measured
from airflow_flinkcompat.compat.rules.output_changed import projection_on_flink
from airflow_flinkcompat.compat.rules.sink_changed import MEASURED_OPTIONS, not_null, sink_state_checked
from airflow_flinkcompat.compat.rules.source_table_changed import SHOWN, shown

UNKNOWN = Verdict(Outcome.UNKNOWN, Basis.INFERRED, "", Reason.NOT_COVERED)
FOLLOW = ("columns", "types", "order", "computed", "metadata")
"""Parts of a sink's declaration that follow the query's output."""
VVR: Mapping[str, Verdict] = {
    **dict.fromkeys(FOLLOW, inferred(Outcome.COMPATIBLE, "sink columns follow the query's output")),
    "connector": documented(Outcome.COMPATIBLE, "Sink table page: connector under ignore-sink = true"),
    "options": documented(Outcome.COMPATIBLE, "Sink table page: WITH under ignore-sink = true"),
}


def on_flink(change: Change, table: str, difference: Difference) -> Verdict:
    """A stateless sink may change its options and columns; a filesystem sink its columns with the projection."""
    writers = [pair for pair in change.pipelines if pair.sink == table]
    connectors = {t.option("connector") for program in change.programs for t in program.tables if t.name == table}
    if difference.part == "types" and not_null(difference.before) != not_null(difference.after):
        return Verdict(Outcome.UNKNOWN, Basis.INFERRED, "a NOT NULL enforcer comes or goes", Reason.NOT_COVERED)
    if difference.part in FOLLOW and writers:
        verdicts = [projection_on_flink(pair).get("flink", RULE.verdicts["flink"]) for pair in writers]
        return max(verdicts, key=lambda verdict: verdict.outcome.rank)
    if difference.part == "options" and connectors <= set(flink.STATELESS_SINKS):
        old, new = difference.before, difference.after
        if {key for key in {*old, *new} if old.get(key) != new.get(key)} <= MEASURED_OPTIONS:
            return measured(Outcome.COMPATIBLE, "x-sink-option")
    return UNKNOWN


def find(change: Change) -> Iterable[Hit]:
    for difference in change.script_differences:
        place, _, table = difference.key.rpartition("/")[0].partition("/")
        written = {pair.sink for pair in change.pipelines}
        if place != "table" or table not in written or difference.part == "declared":
            continue
        before, after = shown(difference)
        yield Hit(
            f"the declaration of sink table {table} changed: {SHOWN.get(difference.part, difference.part)}",
            (difference.key,),
            before,
            after,
            difference.before_span,
            difference.after_span,
            verdicts={
                "vvr": sink_state_checked(change) or VVR.get(difference.part, UNKNOWN),
                "flink": on_flink(change, table, difference),
            },
        )


SINK = "CREATE TABLE totals ({0}) WITH ('connector' = 'print');\nINSERT INTO totals\n"
RULE = Rule(
    code="sink-table-changed",
    title="A sink table's declaration changed",
    scope=Scope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.COMPATIBLE, "sink columns follow the query's output"),
        "flink": measured(Outcome.COMPATIBLE, "x-sink-option and changed projections into print"),
    },
    why="The columns of a sink follow the query; its options are its own business unless it keeps state.",
    example=Example(
        SINK.format("customer STRING, total BIGINT") + windowed("customer, SUM(amount)"),
        SINK.format("customer STRING, total BIGINT, start_time TIMESTAMP(3)")
        + windowed("customer, SUM(amount), window_start"),
    ),
    find=find,
)
