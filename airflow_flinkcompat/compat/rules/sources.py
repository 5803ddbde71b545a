"""The rule about the declaration of a source table."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.format import differing_values, format_value
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.query_form import stateless_expressions
from airflow_flinkcompat.compat.engines.flink import lookups, sinks, stateless
from airflow_flinkcompat.compat.engines.flink.lookups import LookupMode, is_lookup, mode
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, windowed
from airflow_flinkcompat.compat.rule_builders.option_matches import option_matches
from airflow_flinkcompat.compat.rule_builders.table_options import uses_of
from airflow_flinkcompat.compat.rules import lookup_joins
from airflow_flinkcompat.compat.verdict import (
    Verdict,
    combined,
    documented,
    inferred,
    refused,
    refused_at_submit,
    right,
    unknown,
)
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known, SourceState, TableUse
from airflow_flinkcompat.model import Basis, Consequence, Outcome
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, Literal
from airflow_flinkcompat.plan.nodes import WatermarkStrategy
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    Output,
    RankOperator,
    Source,
    operators,
    sources,
)
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn, PassedOutput, SourceColumn, leaves
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import DataType


class Use(Enum):
    """Use of a column: in a group key or a stored row, as input of a metric, or any other use."""

    STORED = "stored"
    WINDOW_COUNT = "a windowed COUNT"
    WINDOW_SUM = "a windowed SUM"
    WINDOW_MAX = "a windowed MAX"
    SUM = "a running SUM"
    MAX = "a running MAX"
    IN_FLIGHT = "a row that may wait for the answer of an asynchronous lookup"
    OTHER = "other"


def uses(change: Change, table: str, column: str) -> frozenset[Use]:
    """Uses of a table column on either side, with uses of columns of the same name in other tables."""
    return frozenset(
        use
        for pair in change.pipelines
        for output, program in ((pair.old, pair.old_program), (pair.new, pair.new_program))
        if table in {source.table for source in sources(output)}
        for use in _uses(output, program, column)
    )


def _uses(output: Output, program: Program, column: str) -> Iterator[Use]:
    passed_on = (leaf for value in stateless_expressions(output) for leaf in leaves(value))
    if any(isinstance(leaf, SourceColumn) and leaf.column == column for leaf in passed_on):
        yield Use.OTHER
    for operator in operators(output):
        if isinstance(operator, AggregateOperator):
            places: list[tuple[Use, tuple[Any, ...]]] = [(Use.STORED, operator.keys)]
            places += [
                (_use(call, operator), call.args if call.filter is None else (*call.args, call.filter))
                for call in operator.aggregates
            ]
        else:
            places = [(_use_of_row(operator), operator.expressions)]
            if is_lookup(operator) and mode(operator, output, program) is LookupMode.ASYNCHRONOUS:
                places.append((Use.IN_FLIGHT, operator.rows[0]))  # type: ignore[attr-defined]
        yield from (use for use, parts in places if any(column in _columns(part) for part in parts))


def _columns(value: Any) -> set[str]:
    """The table columns from which a value is computed, directly or through upstream operators."""
    found: set[str] = set()
    for leaf in leaves(value):
        match leaf:
            case SourceColumn():
                found.add(leaf.column)
            case OperatorColumn(output=KeyOutput(key=below) | PassedOutput(column=below)):
                found |= _columns(below)
            case OperatorColumn(output=AggregateCall(args=args)):
                found |= {column for arg in args for column in _columns(arg)}
            case OperatorColumn(output=below):
                found |= _columns(below)
    return found


SUMS = frozenset({Use.SUM, Use.WINDOW_SUM})
MAXIMA = frozenset({Use.MAX, Use.WINDOW_MAX})
RUNNING = frozenset({Use.SUM, Use.MAX})
"""Uses in aggregations without a window, which were measured only on Flink 2.3."""


def _use(call: AggregateCall, operator: AggregateOperator) -> Use:
    """The use of a metric's input; ``OTHER`` unless the input is a plain column."""
    bare = call.filter is None and not call.distinct and all(isinstance(arg, SourceColumn) for arg in call.args)
    if not bare or (operator.window is not None and not operator.windowed):
        return Use.OTHER
    if operator.windowed:
        windowed = {"COUNT": Use.WINDOW_COUNT, "SUM": Use.WINDOW_SUM, "MAX": Use.WINDOW_MAX}
        return windowed.get(call.function, Use.OTHER)
    return {"SUM": Use.SUM, "MAX": Use.MAX}.get(call.function, Use.OTHER)


def _use_of_row(operator: Operator) -> Use:
    """The use of an operator's input row; ``OTHER`` for a possible lookup join, which stores no input."""
    lookup = isinstance(operator, JoinOperator) and operator.kind in (JoinForm.LOOKUP, JoinForm.JOIN)
    return Use.OTHER if lookup else Use.STORED


ON_VVR = documented(
    Outcome.INCOMPATIBLE, "Source table page (its summary): a field changes the stored row of a stateful operator"
)
REFUSED = Consequence.REFUSED_AT_RESTORE
NOT_NULL = ("types-sum-argument-not-null", "types-max-argument-not-null")
NOT_NULL_RUNNING = ("ga-input-notnull", "ga-max-notnull")
"""Restores of NOT NULL changes without a window, on one Flink minor version only."""


def types_on_vvr(found: frozenset[Use]) -> Verdict:
    """Verdict on a changed type by the uses of the column; the vendor's pages cover no changed types."""
    if Use.STORED in found:
        return ON_VVR
    return unknown("the page's row about changed fields shows a different computation; no page covers types")


def types_on_flink(old: DataType, new: DataType, found: frozenset[Use]) -> Verdict:
    """Verdict on a changed type by the uses of the column; types of keys and rows must be exactly equal."""
    if Use.STORED in found:
        return refused("ga-key-notnull", "types-key-length", "rj-key-notnull", "dd-rd-notnull")
    if Use.IN_FLIGHT in found:
        return refused("al-stateless-idle-type")
    same = replace(old, nullable=True) == replace(new, nullable=True)
    if found == {Use.WINDOW_COUNT}:
        return right("types-count-argument")
    if same and found and found <= SUMS | MAXIMA:
        return right(*(NOT_NULL_RUNNING if found & RUNNING else NOT_NULL))
    if found and found <= MAXIMA and old.name == new.name == "VARCHAR" and old.nullable == new.nullable:
        return right("ga-max-varchar-len" if found & RUNNING else "types-max-argument-length")
    if found and found <= SUMS and old.name == new.name == "DECIMAL" and old.parameters[1:] == new.parameters[1:]:
        return right("ga-sum-decimal-prec" if found & RUNNING else "types-sum-argument-precision")
    if found & (SUMS | MAXIMA) and not same:
        return refused("x-source-b-int", "types-sum-argument-wider", "ga-max-decimal-prec")
    return unknown("a different type in this use was not measured")


SHOWN = {"columns": "its columns", "types": "column types", "computed": "computed columns", "order": "column order"}
"""Names of some declaration parts in messages, where the key is too short."""
CONDITIONAL = frozenset(
    {
        "scan.incremental.snapshot.chunk.key-column",
        "cdcmode",
        "scan.full-changelog",
        "changelog-mode",
        "upsertsource",
        "scan.read-changelog-as-append-only.enabled",
        "rows",
    }
)
"""Options that the vendor's page calls compatible under conditions outside the script.

``rows`` stands for literal rows in a program, which no page covers.
"""
CHANGELOG_FORMAT = re.compile("debezium|canal|maxwell|ogg|changelog")
"""Formats that contain updates and deletes and therefore also set the changelog mode."""
UNKNOWN = unknown()
UNUSED = documented(Outcome.COMPATIBLE, "Source table page (its summary): an unused field is added")
RENAMED = right("ga-col-renamed", note="an unused column under a different name")
BESIDE_STATE = inferred(
    Outcome.COMPATIBLE,
    (
        "Source table page (its summary): the input of stateful operators decides, and the query has no "
        "stateful operator"
    ),
)
KEYED = documented(
    Outcome.UNKNOWN,
    "Source table page (its summary): a primary key is conditionally compatible, because downstream operators "
    "derive their key from it",
)
JOINED = refused("cd-join-pk-col")
PARTS: Mapping[str, tuple[Verdict, Verdict]] = {
    "columns": (UNKNOWN, UNKNOWN),
    "columns added": (UNUSED, UNKNOWN),
    "columns renamed": (UNKNOWN, RENAMED),
    "types": (UNKNOWN, UNKNOWN),
    "types added": (UNUSED, UNKNOWN),
    "types renamed": (UNKNOWN, RENAMED),
    "types unused": (UNKNOWN, right("types-unused-column")),
    # A changed computed column is a difference in every query that reads the column.
    "computed": (
        documented(Outcome.COMPATIBLE, "Source table page (its summary): judged in the queries that use the column"),
        right("x-source-add-column-end"),
    ),
    "order": (inferred(Outcome.COMPATIBLE, "VVR finds columns by name"), right("x-source-add-column-end")),
    "watermark": (UNKNOWN, UNKNOWN),
    "watermark delay": (
        documented(Outcome.COMPATIBLE, "Source table page (its summary): watermark interval"),
        right("declarations-watermark-delay"),
    ),
    "connector": (documented(Outcome.INCOMPATIBLE, "Source table page (its summary): connector type"), UNKNOWN),
    "options": (
        documented(Outcome.COMPATIBLE, "Source table page (its summary): other WITH options are not checked"),
        UNKNOWN,
    ),
    "options conditional": (
        documented(
            Outcome.UNKNOWN, "Source table page (its summary): sharding column and changelog mode are conditional"
        ),
        UNKNOWN,
    ),
    "metadata": (UNKNOWN, UNKNOWN),
    "metadata added": (UNUSED, UNKNOWN),
    "primary key": (KEYED, UNKNOWN),
    "primary key joined": (KEYED, JOINED),
    "partitions": (UNKNOWN, UNKNOWN),
}
"""Verdicts on ``vvr`` and ``flink`` by the changed part of a declaration and the kind of change."""


def parts_key(change: Change, table: str, difference: Difference) -> str:
    """The key of a difference in :data:`PARTS`."""
    old, new = difference.before, difference.after
    match difference.part:
        case "columns":
            if _only_renames_unused(change, table, old, new):
                return "columns renamed"
            kept = tuple(column for column in new if column in old)
            return "columns added" if kept == old else "columns"
        case "types":
            if _only_renames_unused(change, table, tuple(old), tuple(new)) and list(old.values()) == list(new.values()):
                return "types renamed"
            if old.keys() == new.keys():
                return "types unused"
            same = all(old[name] == new[name] for name in old if name in new)
            return "types added" if same and set(old) <= set(new) else "types"
        case "metadata" if old == tuple(each for each in new if each in old):
            return "metadata added"
        case "primary key" if _has_regular_join(change, table):
            return "primary key joined"
        case "watermark" if old is not None and new is not None and old.column == new.column:
            return "watermark delay" if delay_of(old) == delay_of(new) is not None else "watermark"
    return difference.part


def delay_of(watermark: WatermarkStrategy) -> Expression | None:
    """The column of a watermark with a constant delay; None for any other expression."""
    match watermark.expression:
        case SourceColumn() as column:
            return column
        case FunctionCall("-", (SourceColumn() as column, Literal())):
            return column
    return None


def format_difference(difference: Difference) -> tuple[str, str]:
    """Format both values of a difference; of a mapping, only the entries that differ."""
    old, new = differing_values(difference)
    if difference.part != "watermark":
        return format_value(old), format_value(new)
    old, new = (
        "no watermark" if mark is None else f"WATERMARK FOR {mark.column} AS {format_value(mark.expression)}"
        for mark in (old, new)
    )
    return old, new


def _only_renames_unused(change: Change, table: str, old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    """True if unused columns were renamed without a change of their positions."""
    names = {name for pair in zip(old, new, strict=False) if pair[0] != pair[1] for name in pair}
    return len(old) == len(new) and not names & change.used_columns(table)


def _has_regular_join(change: Change, table: str) -> bool:
    """True if a regular join reads the table, because the join stores rows by their primary key."""
    return any(
        operator.kind == JoinForm.REGULAR and any(segment.origin == source for segment in operator.segments)
        for pair in change.pipelines
        for operator in (*operators(pair.old), *operators(pair.new))
        for source in (*sources(pair.old), *sources(pair.new))
        if source.table == table
    )


def judge_types(change: Change, table: str, difference: Difference) -> Mapping[str, Verdict] | None:
    """Verdicts on changed types of used columns; None if no used column changed its type."""
    old, new = difference.before, difference.after
    changed = {name for name in old if name in new and old[name] != new[name]} & change.used_columns(table)
    if not changed:
        return None
    kinds = [{column.name: column.type for column in each.columns} for each in change.tables(table)]
    found = {name: uses(change, table, name) for name in changed}
    flink = (types_on_flink(kinds[0][name], kinds[1][name], used) for name, used in found.items())
    return {"vvr": combined(types_on_vvr(used) for used in found.values()), "flink": combined(flink)}


def verdicts_of(change: Change, table: str, difference: Difference) -> Mapping[str, Verdict]:
    """Verdicts on a changed part, combined over all queries that read the table."""
    found = _verdicts_of(change, table, difference)
    readers = [
        pair
        for pair in change.pipelines
        if table in {source.table for side in (pair.old, pair.new) for source in sources(side)}
    ]
    if difference.part not in stateless.SOURCE_PARTS or not readers:
        return found
    vvr = found["vvr"]
    by_key = any(each.primary_key for each in change.tables(table))
    doubted = vvr.outcome is Outcome.UNKNOWN and vvr.basis is Basis.INFERRED
    if doubted and not by_key and all(map(_stores_no_row, readers)):
        vvr = BESIDE_STATE
    elif doubted:
        vvr = _lookup_verdict_on_vvr(change, table, readers) or vvr
    flink = combined(_verdict_for_reader(change, table, pair, difference, found["flink"]) for pair in readers)
    return {**found, "vvr": vvr, "flink": flink}


def _stores_no_row(pair: PipelinePair) -> bool:
    """True if a query has no state, not even results by the primary key of the sink."""
    sides = (pair.old, pair.old_program), (pair.new, pair.new_program)
    keyed = any(table is not None and table.primary_key for table in sinks.tables(pair))
    return not keyed and all(stateless.keeps_no_rows(output, program) for output, program in sides)


def _looks_up(operator: Operator, table: str) -> bool:
    looked_up = operator.segments[1].origin if lookups.is_lookup(operator) else None
    return isinstance(looked_up, Source) and looked_up.table == table


def _lookup_verdict_on_vvr(change: Change, table: str, readers: Iterable[PipelinePair]) -> Verdict | None:
    """The verdict of the vendor's page on lookup joins if the table is only looked up; else None."""
    if {used.use for used in uses_of(change, table)} != {TableUse.LOOKUP}:
        return None
    found = [
        [
            lookup_joins.lookup_join_on_vvr(operator)
            for operator in pair.operators
            if all(_looks_up(side, table) for side in (operator.old, operator.new))
        ]
        for pair in readers
    ]
    return combined(verdict for each in found for verdict in each) if all(found) else None


def _verdict_for_reader(
    change: Change, table: str, pair: PipelinePair, difference: Difference, found: Verdict
) -> Verdict:
    verdict = stateless.settled(pair, found, *stateless.SOURCE_PARTS[difference.part])
    if verdict.outcome is not Outcome.UNKNOWN:
        return verdict
    row = parts_key(change, table, difference)
    part = row if row == "watermark delay" else difference.part
    return stateless.read_alike(pair, part) or verdict


def _verdicts_of(change: Change, table: str, difference: Difference) -> Mapping[str, Verdict]:
    """Verdicts from :data:`PARTS`, apart from changes that their restores do not cover."""
    if difference.part == "types" and (verdicts := judge_types(change, table, difference)):
        return verdicts
    row = parts_key(change, table, difference)
    vvr, flink = PARTS[row]
    read_by = {each.option("connector") for each in change.tables(table)}
    if row in ON_FILESYSTEM and read_by != {"filesystem"}:
        in_source = all(registry.source(each).watermark is Known.YES for each in read_by)
        return {"vvr": vvr, "flink": DELAY_IN_SOURCE if in_source and row == "watermark delay" else UNKNOWN}
    if row == "computed" and _has_ranking(change, table):
        flink = BELOW_A_RANK
    return {"vvr": vvr, "flink": flink}


def _has_ranking(change: Change, table: str) -> bool:
    """True if a ranking reads the table."""
    sides = (side for pair in change.pipelines for side in (pair.old, pair.new))
    readers = (side for side in sides if table in {source.table for source in sources(side)})
    return any(isinstance(operator, RankOperator) for side in readers for operator in operators(side))


DELAY_IN_SOURCE = inferred(
    Outcome.COMPATIBLE,
    "no state contains the watermark delay, and Flink plans the same operators for any delay",
    ids=(
        "declarations-watermark-delay",
        "kafka-source-tumble-watermark-delay",
        "kafka-source-group-watermark-delay",
        "kafka-source-stateless-watermark-delay",
    ),
)
BELOW_A_RANK = unknown(
    "below a ranking, Flink plans a separate Calc for computed columns, even if no query reads them. This "
    "may change all operator ids above"
)
ON_FILESYSTEM = ("computed", "order", "watermark delay", "columns renamed", "types renamed", "types unused")


def option_on_vvr(key: str, before: Mapping[str, str], after: Mapping[str, str]) -> Verdict:
    """The vendor's verdict on a changed option; options in ``CONDITIONAL`` are conditionally compatible."""
    formats = (str(side.get(key)).lower() for side in (before, after) if key.endswith("format"))
    conditional = key.lower() in CONDITIONAL or any(map(CHANGELOG_FORMAT.search, formats))
    return PARTS["options conditional" if conditional else "options"][0]


NORMALIZED = refused_at_submit("ks-group-to-upsert-kafka", note="a separate operator normalizes keyed rows")
READ_BY_ITSELF = frozenset(
    {SourceState.PARTITIONS, SourceState.FILES, SourceState.SHARDS, SourceState.LOG, SourceState.TABLE_VERSION}
)
"""Kinds of stored positions that only sources of the same kind can read."""
ANEW = "the job fails or starts from the position in its options, so rows may be missing or read twice"
OLD_CONSUMER = inferred(
    Outcome.INCOMPATIBLE,
    "FlinkKafkaConsumer stored offsets as function state, but KafkaSource stores the splits of its reader",
)
ANOTHER_SOURCE = inferred(Outcome.INCOMPATIBLE, "a source can read only the kind of positions that it stores")


def connector_on_flink(change: Change, table: str, difference: Difference) -> tuple[str, Verdict]:
    """A sentence and the verdict on a source with a different connector."""
    stored, other = (registry.source(each).positions for each in (difference.before, difference.after))
    read = [used.pair for used in uses_of(change, table) if used.use is TableUse.SOURCE]
    kept = any(pair.old.segment.origin and pair.operators for pair in read)
    if (difference.before, difference.after) == ("kafka", "upsert-kafka") and kept:
        return "a separate operator normalizes keyed rows, which changes all later operator ids", NORMALIZED
    if not read:
        sentence = "the job looks up rows through a different connector"
        return sentence, unknown(f"{sentence}: no restore confirms it")
    declared = change.programs[0].table(table)
    style = None if declared is None else declared.option("connector.type")
    if difference.before is None and style == "kafka" and difference.after is not None:
        return (
            f"no other source can read the positions that the old connector.type stored: {ANEW}",
            OLD_CONSUMER,
        )
    if stored is not other and {stored, other} <= READ_BY_ITSELF:
        sentence = (
            f"the savepoint contains {stored.value}, from which a source of {difference.after} cannot resume: {ANEW}"
        )
        return sentence, ANOTHER_SOURCE
    old = difference.before or (f"the old connector.type {style}" if style else "a table of a catalog")
    sentence = f"the savepoint contains the state of {old} ({stored.value}), not positions for a different connector"
    return sentence, unknown("a change between these source connectors was not measured")


def table_differences(change: Change, tables: Container[str]) -> Iterator[tuple[str, Difference]]:
    """Tables and differences of their declarations, without options if the connector changed."""
    for difference in change.script_differences:
        place, _, table = difference.key.rpartition("/")[0].partition("/")
        declared = place == "table" and table in tables and difference.part != "declared"
        connectors_of = {each.option("connector") for each in change.tables(table)} if declared else set()
        if declared and (difference.part != "options" or len(connectors_of) == 1):
            yield table, difference


def connector_match(
    change: Change, what: str, table: str, difference: Difference, vvr: Verdict, flink: Verdict, note: str
) -> RuleMatch:
    """The match of a changed connector, which also claims the changed options."""
    options = (each.key for each in change.parts("options") if each.key == f"table/{table}/options")
    return difference.match(
        f"{what} table {table}: a different connector",
        *format_difference(difference),
        also=options,
        verdicts={"vvr": vvr, "flink": flink},
        notes={"flink": note and f": {note}"},
    )


@Rule(
    code="source-table-changed",
    title="A source table's declaration changed",
    vvr=UNKNOWN,
    flink=UNKNOWN,
    rationale=(
        "VVR checks the connector of a source and the used fields. In all measured restores, open-source Flink "
        "restored sources regardless of their options."
    ),
    example=Example(
        windowed("customer, SUM(amount)"),
        "CREATE TABLE orders (\n"
        "  customer STRING, amount BIGINT, item STRING, region STRING, order_time TIMESTAMP(3),\n"
        "  arrived AS PROCTIME(), WATERMARK FOR order_time AS order_time - INTERVAL '9' SECOND\n"
        ") WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');\n" + windowed("customer, SUM(amount)"),
        outcomes=dict.fromkeys(("vvr", "flink"), Outcome.COMPATIBLE),
    ),
    parts=("table",),
    beside_operators=True,
)
def source_table_changed(change: Change) -> Iterable[RuleMatch]:
    for table, difference in table_differences(change, change.source_tables):
        if difference.part == "options":
            read = tuple(used for used in uses_of(change, table) if used.use is not TableUse.SINK)
            yield from option_matches(change, "source", table, difference, read, option_on_vvr)
        elif difference.part == "connector":
            note, verdict = connector_on_flink(change, table, difference)
            yield connector_match(change, "source", table, difference, PARTS["connector"][0], verdict, note)
        else:
            yield difference.match(
                f"the declaration of source table {table} changed: {SHOWN.get(difference.part, difference.part)}",
                *format_difference(difference),
                verdicts=verdicts_of(change, table, difference),
            )
