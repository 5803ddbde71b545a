"""Decide, without Spark, which state of a migration past rows can supply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark_sql.expressions import references
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.exec_graph.exec_node import last_name
from airflow_flinkcompat.exec_graph.layout import NamedState, Stored
from airflow_flinkcompat.exec_graph.migration import Migration, OperatorMigration, with_history
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.queries import state_query
from airflow_flinkcompat.history.sources import (
    RESUMES_AFTER_ROWS,
    AssumedHistory,
    HistoryLocations,
    require_monitored_folder,
    resumable,
)
from airflow_flinkcompat.history.state_rows import StateQuery
from airflow_flinkcompat.migration.slices import OVER, timers_show_pending
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import Operator, OtherKind, Source, StatelessSegment, operators

_NOT_STORED = "the operator does not store its watermark, so the savepoint does not show which rows the job had emitted"
_WAITING = (
    f"{_NOT_STORED}. Timers replace the watermark only for an event-time OVER with unchanged input rows and an "
    "unchanged event time"
)
_NEVER_SENT = "an OVER by processing time would never emit the rows that still wait for the watermark"


def with_computable_state(
    found: Migration, new: Side, old: Side | None, tables: Mapping[str, str], begins: bool
) -> tuple[Migration, Mapping[str, str]]:
    """Add computed state to a migration. Also return why other state cannot be computed, by operator name.

    ``tables``: Location of the rows by table name; "" for the location that the script declares. ``old``: Script of the
    job that has read the rows. ``begins``: True if the job has never run, so that only its rows determine the
    watermark.
    """
    places = requested_places(tables)
    known = {table.path[2]: table.name for table in new.program.tables}
    before = {} if old is None else {table.path: table for table in old.program.tables}
    if unknown := sorted(tables.keys() - known.keys()):
        raise InputError(
            f"history of {unknown[0]}: the new script declares no table with this name. Its tables are "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    reasons: dict[str, str] = {}
    specs = [line.new for line in found.operators if line.new is not None]
    sources = Counter(last_name(spec.name) for spec in specs if spec.kind is StateKind.POSITIONS)

    new_tables = new_sources(found)
    # The savepoint contains no watermark for operators that the old job lacks.
    without_watermark = {line.new.id for line in found.operators if line.old is None and line.new is not None}
    completes_windows = {
        line.new.id
        for line in found.operators
        if line.new is not None
        and line.effect is RestoreEffect.REWRITTEN
        and line.keeps
        and not (line.merges or line.accepted)
    }
    waiting = {
        line.new.id: line for line in found.operators if line.new is not None and _timers_replace_watermark(line)
    }
    queries: dict[str, StateQuery] = {}
    refused: dict[str, str] = {}

    def computable(spec: StateSpec) -> bool:
        try:
            query = state_query(new, spec, AssumedHistory(places))
            if not begins:
                _require_known_output(query, spec, spec.id in completes_windows, waiting.get(spec.id), old)
                for table in query.tables:
                    require_monitored_folder(table)
                    require_monitored_folder(before.get(table.path, table))
            if query.in_windows and query.states and spec.id in without_watermark and not begins:
                raise NotComputable("the operator is new, so the savepoint does not store its watermark")
        except (BackfillError, NotComputable) as error:
            reasons[spec.name] = str(error)
            return False
        names = [table.path[2] for table in query.tables]
        if missing := [name for name in names if name not in tables]:
            reasons[spec.name] = f"the history of table {missing[0]} is not specified: pass --history {missing[0]}"
            return False
        if several := [name for name in names if sources[name] > 1]:
            reasons[spec.name] = f"several sources with separate positions read table {several[0]}"
            return False
        why = reason_without_watermark(query, new_tables) or next(
            (refused[name] for name in names if name in refused), ""
        )
        if why:
            reasons[spec.name] = why
            return False
        queries[spec.id] = query
        return True

    while True:
        queries.clear()
        made = with_history(found, computable)
        read = {table for query in queries.values() for table in query.tables if table.path[2] in new_tables}
        excluded = {table.path[2]: reason_against_resuming(new, table, places, [*queries.values()]) for table in read}
        if not any(excluded.values()):
            lines = (_with_script_words(line, queries) for line in made.operators)
            return resume_after_rows(replace(made, operators=tuple(lines)), excluded), reasons
        refused |= {name: why for name, why in excluded.items() if why}


def requested_places(tables: Mapping[str, str]) -> Mapping[str, str]:
    """Locations of the tables whose rows are not where the script declares them."""
    return {table: place for table, place in tables.items() if place}


def _timers_replace_watermark(line: OperatorMigration) -> bool:
    """True if the old operator's timers show which rows were not emitted."""
    return line.old is not None and timers_show_pending(line.old)


def _require_known_output(
    query: StateQuery, spec: StateSpec, completes_windows: bool, waits: OperatorMigration | None, old: Side | None
) -> None:
    """Check that the savepoint shows which rows or windows the operator had emitted."""
    if spec.name == OVER and waits is not None and not query.timers_show_pending:
        raise NotComputable(_NEVER_SENT)
    if query.timers_show_pending and not (waits is not None and old is not None and _has_same_input(waits, query, old)):
        raise NotComputable(_WAITING)
    if not (query.stores_watermark or query.timers_show_pending or (query.spans and completes_windows)):
        raise NotComputable(_NOT_STORED)


def _has_same_input(line: OperatorMigration, query: StateQuery, old: Side) -> bool:
    """True if the new operator receives the same rows with the same event time as the old operator."""
    before, after = line.old, line.new
    if before is None or after is None or before.rows is None or before.rows != after.rows:
        return False
    clocks = {table.path: _clock(table) for table in old.program.tables}
    return all(clocks.get(table.path) == _clock(table) for table in query.tables)


def _clock(table: Table) -> Hashable:
    """Definition of a table's event time and watermark delay."""
    if table.watermark is None:
        return None
    computed = dict(table.computed)
    parts = [table.watermark.expression]
    if (made := computed.get(table.watermark.column)) is not None:
        parts.append(made)
    read = [table.columns[place] for place in sorted(references(parts))]
    names = {column.name for column in read}
    return table.watermark.column, *parts, *read, *(each for each in table.metadata if each[0] in names)


def _with_script_words(line: OperatorMigration, queries: Mapping[str, StateQuery]) -> OperatorMigration:
    """Replace the plan's names for expressions with the words of the script."""
    if not line.from_history or line.new is None:
        return line
    written = {each.state.name: each.state for each in queries[line.new.id].states}

    def in_script_words(stored: Stored, by: Stored) -> Stored:
        pairs = zip(stored.fields, by.fields, strict=True)
        return replace(
            stored,
            fields=tuple(replace(field, words=own.words) if "$" in field.words else field for field, own in pairs),
        )

    def renamed(state: NamedState) -> NamedState:
        by = written.get(state.name)
        if by is None:
            return state
        key = in_script_words(state.map_key, by.map_key) if state.map_key and by.map_key else state.map_key
        return replace(state, value=in_script_words(state.value, by.value), map_key=key)

    return replace(line, states=tuple(replace(each, new=renamed(each.new)) for each in line.states))


def new_sources(found: Migration) -> Mapping[str, StateSpec]:
    """Sources that the old job lacks, by table name."""
    lines = (line for line in found.operators if line.effect is RestoreEffect.EMPTY and line.old is None)
    specs = (line.new for line in lines if line.new is not None)
    return {last_name(spec.name): spec for spec in specs if spec.kind is StateKind.POSITIONS}


def resume_after_rows(found: Migration, names: Collection[str]) -> Migration:
    """Mark new sources that must resume after the rows that computed state already includes."""
    wanted = {spec.id for name, spec in new_sources(found).items() if name in names}

    def line(each: OperatorMigration) -> OperatorMigration:
        computed = each.new is not None and each.new.id in wanted
        return replace(each, effect=RestoreEffect.COMPUTED, reason=RESUMES_AFTER_ROWS) if computed else each

    return Migration(tuple(map(line, found.operators)))


def reason_without_watermark(query: StateQuery, names: Collection[str]) -> str:
    """Reason why rows of new tables cannot supply an operator's state; "" if they can."""
    new = [table.name for table in query.tables if table.path[2] in names]
    if new and (query.in_windows or query.doubts or query.clocks):
        return (
            f"the savepoint does not store the watermark of table {new[0]}, because the old job does not read "
            "this table"
        )
    return ""


def reason_against_resuming(side: Side, table: Table, places: Mapping[str, str], computed: Sequence[StateQuery]) -> str:
    """Reason why the source of a new table cannot resume after the rows in computed state; "" if it can."""
    if (alike := sum(each.path[2] == table.path[2] for each in side.program.tables)) > 1:
        return f"the script declares {alike} tables named {table.path[2]}, so it is ambiguous which of them is new"
    try:
        resumable(table, HistoryLocations(tables=dict(places)))
    except BackfillError as error:
        return str(error)
    outputs, _ = side.outputs
    if any(_reaches(output.segment, table.name) for output in outputs.values()):
        return f"rows of table {table.name} reach a sink unchanged, so the sink would lack the earlier rows"
    readers = {
        operator
        for output in outputs.values()
        for operator in operators(output)
        if not _is_union(operator) and any(_is_below(segment, table.name) for segment in operator.segments)
    }
    if len(readers) != sum(table in query.tables for query in computed):
        return f"another operator that reads table {table.name} has no computed state, and would miss the earlier rows"
    return ""


def _is_union(operator: Operator) -> bool:
    return operator.kind == OtherKind.UNION_ALL


def _reaches(segment: StatelessSegment, table: str) -> bool:
    """True if rows of a table reach a segment directly or only through unions."""
    origin = segment.origin
    if isinstance(origin, Source):
        return origin.table == table
    return isinstance(origin, Operator) and _is_union(origin) and any(_reaches(each, table) for each in origin.segments)


def _is_below(segment: StatelessSegment, table: str) -> bool:
    origin = segment.origin
    if isinstance(origin, Source):
        return origin.table == table
    return isinstance(origin, Operator) and any(_is_below(each, table) for each in origin.segments)
