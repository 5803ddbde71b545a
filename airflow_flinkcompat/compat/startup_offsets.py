"""What a job's sources do that are given no state, in words: by what the catalogue of connectors says of each."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_flinkcompat.compat.changes.table_use import uses_in
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.connectors import TableUse, source
from airflow_flinkcompat.plan.nodes import Scan

_HINTED = re.compile(r"([\w.-]+)'?\s*=\s*'([^']*)'")


def options_that_count(connector: str) -> tuple[str, ...]:
    """The options of a table by which its source begins somewhere."""
    known = source(connector).startup
    return (known.option, *known.more) if known and known.option else ()


def by_itself(connector: str, options: Mapping[str, str]) -> str:
    """Where a source begins that is neither given state nor told where: ``starts …``. Options of others are ignored."""
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
    """Tables that a side reads and declares → where each begins by itself; hints win over options of the table."""
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
