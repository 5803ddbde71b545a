"""How the queries of a script use a table: read it, look rows up in it, or write it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.connectors import TableUse
from airflow_flinkcompat.plan.operators import JoinForm, JoinOperator, Output, Source, operators

_MAY_LOOK_UP = (JoinForm.LOOKUP, JoinForm.JOIN)


@dataclass(frozen=True)
class UsedTable:
    """One use of a table by one query, on either side."""

    use: TableUse
    pair: PipelinePair


def uses_of(change: Change, table: str) -> tuple[UsedTable, ...]:
    """Every use that the paired queries make of a table, on either side."""
    found = (
        UsedTable(use, pair)
        for pair in change.pipelines
        for use in dict.fromkeys(use for side in (pair.old, pair.new) for use in uses_in(side, table))
    )
    return tuple(found)


def uses_in(output: Output, table: str) -> Iterator[TableUse]:
    """Every use that one query makes of a table."""
    if output.sink == table:
        yield TableUse.SINK
    if _reads(output.segment.origin, table):
        yield TableUse.SOURCE
    for operator in operators(output):
        form = operator.form if isinstance(operator, JoinOperator) else None
        for place, segment in enumerate(operator.segments):
            if not _reads(segment.origin, table):
                continue
            if form in _MAY_LOOK_UP and place == 1:
                yield TableUse.LOOKUP
            if form is not JoinForm.LOOKUP or place != 1:
                yield TableUse.SOURCE


def _reads(origin: object, table: str) -> bool:
    return isinstance(origin, Source) and origin.table == table
