"""Table sources: columns, facets, the operators after a scan, and normalization of changelogs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import ColumnIdentity, Known, SinkState, SourceState
from airflow_flinkcompat.connectors.registry import FORMATS
from airflow_flinkcompat.exec_graph.exec_node import ExecNode, PlanError
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import USER_TIMERS, VALUE, CannotLower, NamedState, StateLayout
from airflow_flinkcompat.exec_graph.lowering import (
    CALC,
    SCAN,
    WATERMARK,
    NodeFamily,
    PlannedJob,
    PossibleChains,
    at_least,
    check_functions,
    check_no_operators,
    connector_words,
    contradictory,
    decided,
    mentions,
    of_one_input,
)
from airflow_flinkcompat.exec_graph.model import MEANING, UNSURE, Facets
from airflow_flinkcompat.exec_graph.nodes.aggregate import in_batches
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets
from airflow_flinkcompat.exec_graph.nodes.sink import cast_by_calc, written_by_its_key
from airflow_flinkcompat.exec_graph.streams import output_meanings
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbol, Symbols, columns, conjuncts, resolved, row
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import Source, StatelessSegment
from airflow_flinkcompat.plan.origins import SourceColumn, leaves
from airflow_flinkcompat.plan.types import TimeAttribute


def scanned(
    node: ExecNode, symbols: Symbols, tables: Mapping[str, str], identities: Mapping[str, ColumnIdentity] | None = None
) -> ColumnMeanings:
    """The output of a scan: columns and rows after pushed-down projections and filters."""
    table = node.config["scanTableSource"]["table"]
    identity = (identities or {}).get(table["identifier"], ColumnIdentity.NAME)
    name = tables.get(table["identifier"], table["identifier"])
    schema = table.get("resolvedTable", {}).get("schema", {}).get("columns", ())
    metadata = {
        each["name"]: each.get("metadataKey") or each["name"] for each in schema if each.get("kind") == "METADATA"
    }

    # Positions in a projection refer to the stored columns; metadata columns follow them.
    stored = [each for each in schema if each.get("kind") not in ("COMPUTED", "METADATA")]
    names = tuple(each["name"] for each in stored)
    places = {each: place for place, each in enumerate(names)}

    def column(each: str) -> Symbol:
        """The meaning of a column, by its name or position; the meaning of a metadata column, by its key."""
        if each in metadata:
            return symbols.of("metadata", name, metadata[each])
        if identity is ColumnIdentity.NAME or each not in places:
            return symbols.of("column", name, each)
        type_ = json.dumps(stored[places[each]].get("dataType"), sort_keys=True)
        # The fields of a nested ROW are also identified by position.
        fields = (type_,) if "ROW" in type_ else ()
        named = (each,) if identity is ColumnIdentity.BOTH else ()
        return symbols.of("column", name, *named, places[each], *fields)

    shown = ColumnMeanings(tuple(map(column, names)), names, (), symbols.of("table", name))
    for ability in node.config["scanTableSource"].get("abilities") or ():
        match ability["type"]:
            case "ProjectPushDown":
                paths = [tuple(path) for path in ability["projectedFields"]]
                picked = [_column_or_field(shown, path, stored, symbols) for path in paths]
                names = tuple(shown.names[path[0]] if path[0] < len(shown.names) else "" for path in paths)
                shown = replace(shown, symbols=tuple(picked), names=names)
            case "ReadingMetadata" | "WatermarkPushDown" | "SourceWatermark":
                pass  # the watermark expression does not affect state (measured)
            case "FilterPushDown":  # a downstream Calc may repeat some predicates, in any order
                predicates = (conjuncts(each, shown, symbols) for each in ability["predicates"])
                shown = replace(shown, rows=symbols.filtered(shown.rows, frozenset().union(*predicates)))
            case kind:
                what = resolved({k: v for k, v in ability.items() if k not in ("type", "producedType")}, shown, symbols)
                shown = replace(shown, rows=symbols.of("read", kind, shown.rows, what))
    behind = node.names[len(shown.symbols) :]
    if not schema and identity is not ColumnIdentity.NAME:
        raise PlanError(f"the plan does not show the columns of the temporary table {name}")
    if not schema or len(shown.symbols) + len(behind) != len(node.names) or not set(behind) <= metadata.keys():
        shown = replace(shown, symbols=tuple(map(column, node.names)))
    else:
        shown = replace(shown, symbols=(*shown.symbols, *map(column, behind)))
    return output_meanings(node, shown.symbols, shown.rows)


def _column_or_field(
    shown: ColumnMeanings, path: tuple[int, ...], stored: Sequence[Mapping[str, Any]], symbols: Symbols
) -> Symbol:
    """The meaning of a column or of a nested field, whose position is only valid within one row type."""
    column = symbols.number(shown.at(path[0]))
    if len(path) == 1:
        return column
    type_ = json.dumps(stored[path[0]].get("dataType"), sort_keys=True) if path[0] < len(stored) else ""
    return symbols.of("path", column, path[1:], type_)


def source_facets(node: ExecNode, tables: Mapping[str, str]) -> Facets:
    """The facets of a scan: its table. Flink matches sources by operator id alone (measured)."""
    identifier = node.config["scanTableSource"]["table"]["identifier"]
    return {(MEANING, "table"): tables.get(identifier, identifier), (UNSURE, "table"): identifier}


_APPEND_FORMATS = frozenset({None, "json", "csv", "avro", "avro-confluent", "raw", "protobuf", "parquet", "orc"})
_READS_OTHERWISE = frozenset({"changelog-mode", "scan.read-changelog-as-append-only.enabled", "scan.full-changelog"})
"""Options that change the row kinds of a changelog, and therefore the operators that read it."""


def derive_source(job: PlannedJob, source: Source) -> Table:
    """The table that a scan reads; raise CannotLower if the state or output of the source is unknown."""
    table = job.table(source.table)
    facts = registry.source(table.option("connector"))
    if facts.positions not in (SourceState.PARTITIONS, SourceState.FILES) or facts.appends is not Known.YES:
        raise CannotLower(f"the state of a source with {connector_words(table)} is unknown", place=table.name)
    options = dict(table.options)
    if "scan.parallelism" in options or mentions(source.hints, "parallelism"):
        raise CannotLower("a source with a separate parallelism may not be chained", place=table.name)
    if mentions(source.hints, "format", "connector"):
        raise CannotLower("a hint sets the format of a source", place=table.name)
    formats = {options.get(key) for key in registry.format_keys(table.option("connector"))}
    if not formats <= _APPEND_FORMATS:
        raise CannotLower(f"rows in format {', '.join(map(str, formats))} may be retracted", place=table.name)
    if table.primary_key:
        raise CannotLower(
            "a different operator may store the rows of a source with a primary key again", place=table.name
        )
    if table.partitioned_by:
        raise CannotLower("the planned operators of a partitioned source are unknown", place=table.name)
    return table


def table_with_only_state(job: PlannedJob, source: Source) -> Table | None:
    """The table whose source has the only state of a job; None if other operators may have state.

    The operator id of a scan does not depend on downstream operators. The result is also None if the options of the
    source leave its state uncertain.
    """
    table = job.table(source.table)
    facts, options = registry.source(table.option("connector")), dict(table.options)
    if source.hints or "scan.parallelism" in options or not _has_stateless_sink(job):
        return None
    taken = _takes_changes(job, table)
    match facts.positions:
        case SourceState.LOG:
            return table if taken and not _READS_OTHERWISE & options.keys() else None
        case SourceState.PARTITIONS | SourceState.FILES:
            # This format contains all changes of a row, so no operator stores rows to derive them.
            whole = facts.appends is Known.YES and _format_appends(table) is Known.NO
            return table if taken and whole and not table.partitioned_by else None
        case SourceState.NOTHING:
            return table if taken and not table.primary_key else None
        case SourceState.COUNTER:
            counted = [key for key, value in options.items() if key.endswith(".kind") and value.lower() != "random"]
            return None if counted or table.primary_key else table
    return None


def _has_stateless_sink(job: PlannedJob) -> bool:
    sink = job.output.sink
    return not sink or registry.sink(job.table(sink).option("connector")).state is SinkState.NONE


def _takes_changes(job: PlannedJob, read: Table) -> bool:
    """True if the sink accepts every change of a row, so that no operator stores rows for the sink."""
    if not job.output.sink:
        return True
    written = job.table(job.output.sink)
    sink = registry.sink(written.option("connector"))
    if not written.primary_key:
        return sink.updates is Known.YES
    asked = job.settings.get("table.exec.sink.upsert-materialize", "AUTO").upper()
    taken = Known.YES in (sink.updates, sink.upserts)
    return taken and asked == "AUTO" and written_by_its_key(job.output, read, written)


def _format_appends(table: Table) -> Known:
    """YES if rows of a table's format only append; NOT_KNOWN if the format is unknown."""
    given = [name for key in registry.format_keys(table.option("connector")) if (name := table.option(key))]
    format = FORMATS.get(given[0]) if len(given) == 1 else None
    return Known.NOT_KNOWN if format is None else format.appends


def stateless_operators(job: PlannedJob, table: Table, *, at_head: bool) -> PossibleChains:
    """The operators between the scan and the sink of a stateless query."""
    segment = job.output.segment
    check_no_operators(segment)
    if segment.windows:
        raise CannotLower("windows without an aggregation are separate operators")
    check_functions(job, (*job.output.columns, *segment.filters))
    check_conditions(segment, table)
    if at_head:
        return ((SCAN, CALC),)  # operators after such a scan keep no state
    seen = simplified_stretch(table, job.output.columns, bool(segment.filters))
    return with_output_calc(seen, cast_by_calc(job))


def check_conditions(segment: StatelessSegment, *tables: Table) -> None:
    """Raise CannotLower if the planner may remove a condition."""
    if any(decided(condition, *tables) for condition in segment.filters) or contradictory(segment.filters):
        raise CannotLower(
            "the planner may remove a condition that is true or false for every row, or remove the source"
        )


def simplified_stretch(table: Table, wanted: tuple[Expression, ...], filtered: bool) -> PossibleChains:
    """The possible operators from a scan to a projection, with and without simplifications."""
    ways = dict.fromkeys((wanted, at_least(wanted)))
    return tuple(dict.fromkeys(kinds for way in ways for kinds in stretch_above(table, way, filtered, ordered=False)))


def with_output_calc(stretch: PossibleChains, converted: Known) -> PossibleChains:
    """Add a Calc that casts the output or adds columns, if Flink may plan one."""
    with_calc = tuple(kinds if kinds[-1] == CALC else (*kinds, CALC) for kinds in stretch)
    return {Known.YES: with_calc, Known.NO: stretch, Known.NOT_KNOWN: (*stretch, *with_calc)}[converted]


def stretch_above(table: Table, wanted: tuple[Expression, ...], filtered: bool, *, ordered: bool) -> PossibleChains:
    """The possible operators from a scan to a projection."""
    facts = registry.source(table.option("connector"))
    if Known.NOT_KNOWN in (facts.projection, facts.watermark):
        raise CannotLower(f"the push-downs into a source with {connector_words(table)} are unknown")
    names = tuple(part.column if isinstance(part, SourceColumn) else "" for part in wanted)
    stored = all(name in table.physical for name in names)
    assigned = table.watermark is not None and facts.watermark is Known.NO
    if facts.projection is Known.NO:
        return _whole(table, names, filtered or not stored, assigned)
    if any(name in {key for key, _, _ in table.metadata} for name in columns_read(wanted)):
        raise CannotLower("the planned operators for metadata columns of this source are unknown")
    if assigned:
        return _projected_below_watermark(table, wanted, names, filtered or not stored, ordered)
    every = len(set(names)) == len(table.physical)
    calc = filtered or not stored or len(set(names)) < len(names) or (every and names != table.physical)
    return ((SCAN, CALC) if calc else (SCAN,),)


def _whole(table: Table, names: tuple[str, ...], computed: bool, assigned: bool) -> PossibleChains:
    """The operators after a source that emits all columns: a Calc drops and reorders columns."""
    if assigned:
        raise CannotLower("watermarks after a source that reads all columns were not measured")
    emitted = (*table.physical, *(name for name, _, _ in table.metadata))
    time = table.watermark.column if table.watermark is not None else ""
    if time and time not in emitted and (time in names or not computed):
        return ((SCAN, CALC), (SCAN, CALC, CALC), (SCAN,))
    if computed or names != emitted:
        return ((SCAN, CALC),)
    return ((SCAN,),) if not table.metadata else ((SCAN,), (SCAN, CALC))


def _projected_below_watermark(
    table: Table, wanted: tuple[Expression, ...], names: tuple[str, ...], computed: bool, ordered: bool
) -> PossibleChains:
    """The operators after a source that emits projected columns and the time attribute."""
    time = table.watermark.column if table.watermark is not None else ""
    clocks = {column.name for column in table.columns if column.time_attribute is TimeAttribute.PROCTIME}
    if time not in table.physical or clocks & set(columns_read(wanted)):
        raise CannotLower("the operator that computes a time attribute is uncertain")
    if computed and any(name not in clocks for name, _ in table.computed):
        raise CannotLower("the operator that computes columns before watermarks is uncertain")
    used = {*columns_read(wanted), time}
    if ordered:
        natural = tuple(name for name in table.physical if name in used)
        return ((SCAN, WATERMARK, CALC) if computed or names != natural else (SCAN, WATERMARK),)
    above = computed or time not in names or len(set(names)) < len(names)
    upper = (WATERMARK, CALC) if above else (WATERMARK,)
    if used < set(table.physical):
        return ((SCAN, *upper),)
    if computed:  # a source may emit all its columns in either order
        return ((SCAN, *upper), (SCAN, CALC, *upper))
    order = names if time in names else (*names, time)
    return ((SCAN, CALC, *upper) if tuple(dict.fromkeys(order)) != table.physical else (SCAN, *upper),)


def every_column(table: Table) -> set[str]:
    """The columns that a source emits without projection push-down."""
    return {*table.physical, *(name for name, _, _ in table.metadata)}


def columns_read(wanted: Iterable[Expression]) -> tuple[str, ...]:
    return tuple(leaf.column for part in wanted for leaf in leaves(part) if isinstance(leaf, SourceColumn))


def normalize_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The layout of a ChangelogNormalize: the latest row of each key."""
    state = NamedState("deduplicate-state", VALUE, row(below))
    timers = "" if in_batches(node) else USER_TIMERS
    return StateLayout(columns(below, node.config["uniqueKeys"]), (state,), timers, carried_only=True)


FAMILIES = (
    NodeFamily((ExecKind.TABLE_SOURCE_SCAN,), source_facets),
    NodeFamily((ExecKind.CHANGELOG_NORMALIZE,), kept_row_facets, of_one_input(normalize_layout)),
)
