"""Rules about sink tables and their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference, table_parts
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import sinks, stateless
from airflow_flinkcompat.compat.engines.flink.sink_swaps import another_table, connector_verdict, sources_append
from airflow_flinkcompat.compat.engines.flink.validation.conflicts import Materializer
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, TableApiCover, windowed
from airflow_flinkcompat.compat.rule_builders.option_matches import judge_options, option_matches
from airflow_flinkcompat.compat.rule_builders.projections import projection_on_flink
from airflow_flinkcompat.compat.rule_builders.table_options import UsedTable, uses_of
from airflow_flinkcompat.compat.rules.sources import SHOWN, connector_match, format_difference, table_differences
from airflow_flinkcompat.compat.verdict import Verdict, combined, documented, expected, inferred, right, unknown
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known, TableUse
from airflow_flinkcompat.connectors.registry import is_stateless_sink, sink
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import OtherKind, OtherOperator, OverOperator

IGNORE = "table.optimizer.state-compatibility.ignore-sink"
CHECKED = documented(Outcome.UNKNOWN, f"Sink table page (read in part): {IGNORE} = false")
ALIKE = "the declarations of the two sinks differ, and such a change was not measured"
RENAMED = {
    "kafka": ("sk-stateless-kafka-topic", "sk-stateless-kafka-eo-topic"),
    "upsert-kafka": ("sk-group-upsert-renamed",),
    "jdbc": ("sk-stateless-jdbc-renamed", "sk-group-jdbc-renamed"),
    "filesystem": ("file-sinks-renamed",),
}
"""Restores after a sink table was renamed, by connector."""


def sink_on_flink(pair: PipelinePair, change: Change) -> Verdict | None:
    """Verdict on ``flink`` on a different sink table; None for the general verdict of the rule."""
    for side, name in zip(change.programs, (pair.old.sink, pair.new.sink), strict=True):
        if sum(pipeline.sink.name == name for pipeline in side.pipelines) > 1:
            return unknown("several queries write to one of the sinks and are planned as a union")
    if found := connector_verdict(pair) if any(sinks.connectors(pair)) else another_table(pair, change):
        return found
    tables = [table for table in sinks.tables(pair) if table is not None]
    connector = sinks.connectors(pair)[0]
    if len(tables) < 2:
        return unknown(sinks.UNDECLARED)
    facts = registry.sink(connector)
    if facts.ids_use_table_name and len({table.path[-1] for table in tables}) > 1:
        return expected(f"{facts.document}: the operators of the new sink find no state")  # fmt: skip
    before, after = map(table_parts, tables)
    options = judge_options(
        tables[0].name, connector, before["options"], after["options"], [UsedTable(TableUse.SINK, pair)]
    )
    if connector not in RENAMED or any(before[part] != after[part] for part in before if part != "options"):
        if reason := sinks.stays(pair):
            return unknown(reason)
        if not all(before[part] == after[part] for part in ("metadata", "computed")):
            return unknown(ALIKE)
    if connector not in RENAMED:
        return None if options is None else options.verdict
    renamed = right(*RENAMED[connector], note="no stored state contains a table name")
    return renamed if options is None else combined((renamed, options.verdict))


def sink_state_checked(change: Change) -> Verdict | None:
    """Unknown if ignore-sink is off on either side, because VVR then checks the state of sinks; else None."""
    on = [
        dict(pipeline.settings).get(IGNORE, "true").lower()
        for program in change.programs
        for pipeline in program.pipelines
    ]
    return CHECKED if "false" in on else None


PRINT_SINK = "CREATE TABLE {0} (customer STRING, amount BIGINT) WITH ('connector' = 'print');\n"
SUM_QUERY = "INSERT INTO {0} SELECT customer, amount FROM orders;"


@Rule(
    code="sink-changed",
    title="A different sink table",
    vvr=documented(
        Outcome.COMPATIBLE, "Sink table page (read in part): name, connector and WITH under ignore-sink = true"
    ),
    flink=right("sinks-renamed"),
    rationale="VVR's check ignores sinks by default. Open-source Flink also restores the state of a sink.",
    example=Example((PRINT_SINK + SUM_QUERY).format("totals"), (PRINT_SINK + SUM_QUERY).format("sums")),
    parts=("sink",),
    beside_operators=True,
    case_dependent=("vvr", "flink"),
)
def sink_changed(change: Change) -> Iterable[RuleMatch]:
    for pair in change.pipelines:
        if "sink" in pair.parts:
            old, new = pair.old.sink, pair.new.sink
            declared = (each.key for each in change.parts("declared") if each.key.split("/")[1] in (old, new))
            yield RuleMatch(
                "results are written to a different table",
                (*pair.claim("sink"), *declared),
                old or "a bare SELECT",
                new or "a bare SELECT",
                before_span=pair.old.span,
                after_span=pair.new.span,
                verdicts={"flink": sink_on_flink(pair, change), "vvr": sink_state_checked(change)},
            )


UNKNOWN = unknown()
FOLLOW = ("columns", "types", "order", "computed", "metadata")
"""Parts of a sink's declaration that depend on the output of the query."""
METADATA = unknown("a Calc may cast or move written metadata, which changes the id of the sink's writer")
CAST_IN_A_SET = unknown(
    "a Calc that casts values may be added or removed. This renumbers the operators of the other queries in the "
    "statement set"
)
CAST_INTO_ROWS = unknown(
    "values are cast for the sink, and Flink may plan the cast below a sort or an OVER, which changes the stored rows"
)
OTHER_ROWS_KEPT = inferred(
    Outcome.INCOMPATIBLE, "the operator that stores results by the sink's primary key stores rows of the sink's types"
)
PROJECTED = ("w-add-window-start", "sinks-columns-renamed", "sinks-column-wider", "sinks-column-not-null")
"""Restores with changed columns of a print sink, with or without changed columns of the query."""
KEYED = ("sinks-group-key-added", "sinks-group-key-removed", "sinks-window-key-added", "sinks-window-key-removed")
REKEYED = {"upsert-kafka": ("sk-group-upsert-pk",), "jdbc": ("sk-group-jdbc-pk",)}
"""Restores with a different location and a changed primary key that contains the result key."""
KEY_OF_CHANGES = (
    "a source may emit updates, and Flink may store its rows or the results depending on the primary key of the sink"
)
STALE = unknown(
    "if the result keys change, rows under the old keys are never updated or deleted. Write to a different location"
)
VVR: Mapping[str, Verdict] = {
    **dict.fromkeys(FOLLOW, inferred(Outcome.COMPATIBLE, "sink columns depend only on the output of the query")),
    "connector": documented(Outcome.COMPATIBLE, "Sink table page (read in part): connector under ignore-sink = true"),
    "options": documented(Outcome.COMPATIBLE, "Sink table page (read in part): WITH under ignore-sink = true"),
    "partitions": inferred(Outcome.COMPATIBLE, "Sink table page (read in part): ignore-sink = true excludes sinks"),
}


def sink_table_on_flink(pair: PipelinePair, difference: Difference) -> Verdict:
    """Verdict on ``flink`` on a changed part of a sink's declaration, apart from options and connector."""
    if difference.part == "metadata" and not all(map(sinks.keeps_nothing, sinks.connectors(pair))):
        return METADATA
    if sinks.shares_its_job(pair) and _has_new_types(pair) and not _surely_projected(pair):
        return CAST_IN_A_SET
    found = _part_on_flink(pair, difference)
    ids = stateless.SINK_PARTS.get(difference.part)
    return found if ids is None else stateless.settled(pair, found, *ids)


def _surely_projected(pair: PipelinePair) -> bool:
    return sinks.surely_projected(pair.old) and sinks.surely_projected(pair.new)


def _has_new_types(pair: PipelinePair) -> bool:
    """True if the column types of the sink changed, so that Flink casts values to different types."""
    old, new = (None if table is None else [column.type for column in table.stored] for table in sinks.tables(pair))
    return old != new


def _part_on_flink(pair: PipelinePair, difference: Difference) -> Verdict:
    if swapped := connector_verdict(pair):
        # If a changed connector is compatible, changed columns are compatible too.
        safe = swapped.outcome is Outcome.COMPATIBLE and difference.part in ("columns", "types", "order")
        return combined((swapped, right(*PROJECTED))) if safe else swapped
    reason = sinks.stays(pair)
    if difference.part == "primary key" and sink(sinks.connectors(pair)[0]).upserts is Known.YES:
        return _judge_primary_key(pair)
    if difference.part == "primary key" and not sources_append(pair):
        return unknown(KEY_OF_CHANGES)
    if not reason:
        return _judge_stored_casts(pair) or _judge_stateless(difference)
    if difference.part in FOLLOW and not any(map(is_stateless_sink, sinks.connectors(pair))):
        return projection_on_flink(pair) or UNKNOWN
    return unknown(reason)


def _judge_stored_casts(pair: PipelinePair) -> Verdict | None:
    """Verdict if an operator stores values that are cast for the sink; None if no operator stores them."""
    if not _has_new_types(pair):
        return None
    if any(front is not None and front.materializer is not Materializer.NONE for front in sinks.fronts(pair)):
        return OTHER_ROWS_KEPT
    stores = any(
        isinstance(top, OverOperator) or (isinstance(top, OtherOperator) and top.kind == OtherKind.TEMPORAL_SORT)
        for top in sinks.result_origins(pair)
    )
    return CAST_INTO_ROWS if stores and _casts(pair) else None


def _casts(pair: PipelinePair) -> bool:
    """True if the type of a sink column changed, so that Flink may cast its values differently."""
    old, new = ([] if table is None else table.stored for table in sinks.tables(pair))
    types = {column.name: column.type for column in old}
    return len(old) == len(new) or any(types.get(column.name, column.type) != column.type for column in new)


def _judge_primary_key(pair: PipelinePair) -> Verdict:
    """Verdict on a changed primary key of a sink that accepts upserts."""
    old, new = sinks.tables(pair)
    connector = sinks.connectors(pair)[0] or ""
    if old is None or new is None or not sinks.location_changed(old, new):
        return STALE
    if reason := sinks.front_stays(pair):
        return unknown(reason)
    ids = REKEYED.get(connector)
    return right(*ids) if ids else UNKNOWN


def _judge_stateless(difference: Difference) -> Verdict:
    match difference.part:
        case "columns" | "types" | "order":
            return right(*PROJECTED)
        case "primary key":
            return right(*KEYED)
    return UNKNOWN


TOTALS_SINK = "CREATE TABLE totals ({0}) WITH ('connector' = 'print');\nINSERT INTO totals\n"


@Rule(
    code="sink-table-changed",
    title="A sink table's declaration changed",
    vvr=inferred(Outcome.COMPATIBLE, "sink columns depend only on the output of the query"),
    flink=right("x-sink-option", *PROJECTED),
    rationale="The columns of a sink depend on the query. The options of a sink matter only if the sink keeps state.",
    example=Example(
        TOTALS_SINK.format("customer STRING, total BIGINT") + windowed("customer, SUM(amount)"),
        TOTALS_SINK.format("who STRING, total BIGINT") + windowed("customer, SUM(amount)"),
    ),
    parts=("table",),
    beside_operators=True,
    case_dependent=("vvr", "flink"),
    table_api_cover=TableApiCover.ONE_WINDOW,
)
def sink_table_changed(change: Change) -> Iterable[RuleMatch]:
    checked = sink_state_checked(change)
    of_options = checked or VVR["options"]
    sink_names = {name for pair in change.pipelines for name in (pair.old.sink, pair.new.sink)}
    for table, difference in table_differences(change, sink_names):
        writers = [pair for pair in change.pipelines if table in (pair.old.sink, pair.new.sink)]
        vvr = checked or VVR.get(difference.part, UNKNOWN)
        if difference.part == "options":
            written = [used for used in uses_of(change, table) if used.use is TableUse.SINK]
            yield from option_matches(change, "sink", table, difference, written, lambda *_: of_options)
        elif difference.part == "connector":
            verdict = combined(connector_verdict(pair) or UNKNOWN for pair in writers)
            yield connector_match(change, "sink", table, difference, vvr, verdict, verdict.source)
        else:
            flink = combined(sink_table_on_flink(pair, difference) for pair in writers)
            yield difference.match(
                f"the declaration of sink table {table} changed: {SHOWN.get(difference.part, difference.part)}",
                *format_difference(difference),
                verdicts={"vvr": vvr, "flink": flink},
            )


TOTALS_COLUMNS = "CREATE TABLE totals (sum1 BIGINT, sum2 BIGINT) WITH ('connector' = 'print');\nINSERT INTO totals"


@Rule(
    code="insert-columns-changed",
    title="The INSERT's column list changed",
    vvr=inferred(Outcome.COMPATIBLE, "sink columns depend only on the output of the query"),
    flink=right("sinks-column-list", "sinks-column-list-shorter-sink"),
    rationale=(
        "Flink writes values in the order of the sink's columns, regardless of the order in the column list. State "
        "does not contain the column list."
    ),
    example=Example(
        TOTALS_COLUMNS + " (sum1)\n" + windowed("SUM(amount)"), TOTALS_COLUMNS + " (sum2)\n" + windowed("SUM(amount)")
    ),
    parts=("insert columns",),
    beside_operators=True,
    case_dependent=("flink",),
)
def insert_columns_changed(pair: PipelinePair) -> Iterable[RuleMatch]:
    if "insert columns" in pair.parts and not pair.others:
        old, new = (", ".join(side.insert_columns) or "all columns" for side in (pair.old, pair.new))
        reason = sinks.stays(pair)
        doubt = unknown(reason)
        settled = stateless.settled(pair, doubt, *stateless.COLUMN_LIST)
        verdicts = {"flink": settled if reason else projection_on_flink(pair)}
        claims = pair.claim("insert columns")
        yield RuleMatch("the INSERT lists different columns of its sink", claims, old, new, verdicts=verdicts)
