"""Uses of a table by queries, and the position from which a source starts without state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.connectors import TableUse, source
from airflow_flinkcompat.plan.nodes import Scan
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


_HINTED = re.compile(r"([\w.-]+)'?\s*=\s*'([^']*)'")


def options_that_count(connector: str) -> tuple[str, ...]:
    """The options of a table by which its source begins somewhere."""
    known = source(connector).startup
    return (known.option, *known.more) if known and known.option else ()


def by_itself(connector: str, options: Mapping[str, str]) -> str:
    """Start of a source without state and offsets: ``starts …``. Options of others are ignored."""
    known = source(connector).startup
    if known is None:
        return f"starts as its connector ({connector or 'of its catalog'}) does, which is not known here"
    if not known.option:
        return f"starts {known.itself}"
    set_ = [f"{key} = {options[key]}" for key in known.more if key in options]
    if known.option in options:
        return f"starts by its own options: {', '.join([f'{known.option} = {options[known.option]}', *set_])}"
    more = f" ({', '.join(set_)})" if set_ else ""
    return f"starts by its connector's default, {known.option} = {known.default}{more}"


def startup_positions(side: Side) -> tuple[tuple[str, str], ...]:
    """Starting positions of the declared tables that a side reads; hints override options of the table."""
    outputs, failures = side.outputs
    scans = [node for each in side.program.pipelines for node in each.sink.nodes if isinstance(node, Scan)]
    found: dict[str, str] = {}
    for scan in scans:
        name = scan.table.name
        uses = {use for output in outputs.values() for use in uses_in(output, name)}
        if scan.table.declared and (failures or TableUse.SOURCE in uses or TableUse.LOOKUP not in uses):
            hinted = (pair for hint, text in scan.hints if hint == "OPTIONS" for pair in _HINTED.findall(text))
            options = {**dict(scan.table.options), **dict(hinted)}
            found.setdefault(name, by_itself(options.get("connector", ""), options))
    return tuple(found.items())
