"""Sources of tables that the old job does not read: state is computed of their rows, and they go on behind these."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.bootstrap.archives import HistoryLocations
from airflow_flinkcompat.bootstrap.source_ends import resumable
from airflow_flinkcompat.bootstrap.state_rows import StateQuery
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.exec_graph.exec_node import last_name
from airflow_flinkcompat.exec_graph.migration import Migration, OperatorMigration, StateAction
from airflow_flinkcompat.exec_graph.model import StateKind, StateSpec
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import Operator, OtherKind, Source, StatelessSegment, operators

GOES_ON_BEHIND = "it goes on behind what is read"


def new_sources(found: Migration) -> Mapping[str, StateSpec]:
    """The sources for which the old job has nothing, by the names of their tables."""
    lines = (line for line in found.operators if line.keep is StateAction.BEGINS and line.old is None)
    specs = (line.new for line in lines if line.new is not None)
    return {last_name(spec.name): spec for spec in specs if spec.kind is StateKind.POSITIONS}


def behind_their_rows(found: Migration, names: Collection[str]) -> Migration:
    """The same migration, of which some sources go on after the rows that state is computed of."""
    wanted = {spec.id for name, spec in new_sources(found).items() if name in names}

    def line(each: OperatorMigration) -> OperatorMigration:
        computed = each.new is not None and each.new.id in wanted
        return replace(each, keep=StateAction.COMPUTED, reason=GOES_ON_BEHIND) if computed else each

    return Migration(tuple(map(line, found.operators)))


def not_told(query: StateQuery, names: Collection[str]) -> str:
    """Why the state of an operator is not computed of rows of new tables."""
    new = [table.name for table in query.tables if table.path[2] in names]
    if new and (query.in_windows or query.doubts or query.clocks):
        return f"how far time has come in table {new[0]} the savepoint does not tell, as the old job does not read it"
    return ""


def left_out(side: Side, table: Table, places: Mapping[str, str], computed: Sequence[StateQuery]) -> str:
    """Why the source of a new table cannot go on behind rows of which some states are computed."""
    if (alike := sum(each.path[2] == table.path[2] for each in side.program.tables)) > 1:
        return f"the script declares {alike} tables {table.path[2]}, and which of them is read anew is not told apart"
    try:
        resumable(table, HistoryLocations(tables=dict(places)))
    except BackfillError as error:
        return str(error)
    outputs, _ = side.outputs
    if any(_reaches(output.segment, table.name) for output in outputs.values()):
        return f"rows of table {table.name} come to a sink as they are, and those from before would never come there"
    readers = {
        operator
        for output in outputs.values()
        for operator in operators(output)
        if not _is_union(operator) and any(_is_below(segment, table.name) for segment in operator.segments)
    }
    if len(readers) != sum(table in query.tables for query in computed):
        return f"not all that is kept of rows of table {table.name} is computed, and they come once"
    return ""


def _is_union(operator: Operator) -> bool:
    return operator.kind == OtherKind.UNION_ALL


def _reaches(segment: StatelessSegment, table: str) -> bool:
    """Whether rows of a table come through a segment with nothing but unions in between."""
    origin = segment.origin
    if isinstance(origin, Source):
        return origin.table == table
    return isinstance(origin, Operator) and _is_union(origin) and any(_reaches(each, table) for each in origin.segments)


def _is_below(segment: StatelessSegment, table: str) -> bool:
    origin = segment.origin
    if isinstance(origin, Source):
        return origin.table == table
    return isinstance(origin, Operator) and any(_is_below(each, table) for each in origin.segments)
