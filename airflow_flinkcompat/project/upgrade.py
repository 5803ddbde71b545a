"""The table ``[upgrade]`` of a project file: a move of all jobs to another Flink line, in waves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.file import ProjectTables, unknown_key

REST = "*"
"""The wave of all deployments that no earlier wave contains."""
_EXAMPLES = {
    "from": 'from = "1.20"',
    "to": 'to = "2.3"',
    "flink_conn_id": 'flink_conn_id = "flink_23"',
    "wave": 'wave = ["canary", "*"]',
    "hold": 'hold = "1 h"',
    "lag": "lag = { pendingRecords = 10000 }",
}
"""An example of each key."""
_REQUIRED = ("from", "to", "flink_conn_id", "wave")
_LINE = re.compile(r"\d+\.\d+")
_WAVE = re.compile(r"[A-Za-z0-9_-]+")
_DURATION = re.compile(r"(\d+) *(s|min|h|d)")
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_DEFAULT_HOLD = "10 min"
_TAKEN = ("audit", "back", "rest")
"""Names of other tasks and groups in the DAG of an upgrade."""


@dataclass(frozen=True)
class FleetUpgrade:
    """A move of all jobs to another Flink line.

    Attributes:
        old: The present line, such as ``1.20``.
        new: The next line, such as ``2.3``.
        waves: Tags of deployments, in the order of their moves; ``*`` for all other deployments.
        hold: Seconds for which the jobs of a wave must be healthy before the next wave.
        connection: The connection of the new line's cluster.
        connections: The connection of the new line's cluster, by the present connection; replaces ``connection``.
        lag: The largest healthy value of each metric of a job.
    """

    old: str
    new: str
    waves: tuple[str, ...]
    hold: float
    connection: str = ""
    connections: Mapping[str, str] = field(default_factory=dict)
    lag: Mapping[str, float] = field(default_factory=dict)

    def connection_of(self, present: str) -> str | None:
        """The connection of the new line for a deployment; None if ``flink_conn_id`` does not name it."""
        return self.connection or self.connections.get(present)

    def wave_of(self, tags: Sequence[str]) -> str | None:
        """The first wave that contains a deployment with these tags; None if no wave does."""
        return next((wave for wave in self.waves if wave == REST or wave in tags), None)


def is_of_line(version: str | None, line: str) -> bool:
    """True if a version such as ``2.3.0`` is known and belongs to a line such as ``2.3``."""
    return f"{version}.".startswith(f"{line}.")


def upgrade_of(tables: ProjectTables) -> FleetUpgrade:
    """Read the table ``[upgrade]``. Raises InputError with the place and the remedy of each fault."""
    if tables.upgrade is None:
        raise InputError(
            f'{tables.path}: [upgrade] is missing: add it with from = "1.20", to = "2.3", flink_conn_id and wave'
        )
    place = tables.positions.place
    if lines := [f"{place(f'upgrade.{key}')}: upgrade.{key}: {words}" for key, words in _faults(tables)]:
        raise InputError("\n  ".join(lines))
    table: Mapping[str, Any] = tables.upgrade
    connection = table["flink_conn_id"]
    one = isinstance(connection, str)
    return FleetUpgrade(
        table["from"],
        table["to"],
        tuple(table["wave"]),
        _seconds(table.get("hold", _DEFAULT_HOLD)),
        connection if one else "",
        {} if one else connection,
        table.get("lag", {}),
    )


def _faults(tables: ProjectTables) -> Iterator[tuple[str, str]]:
    table: Mapping[str, Any] = tables.upgrade or {}
    for key in table:
        if key not in _EXAMPLES:
            yield key, unknown_key(key, tuple(_EXAMPLES))
    for key in _REQUIRED:
        if key not in table:
            yield key, f"is missing from [upgrade]; add {_EXAMPLES[key]}"
    yield from _wrong_lines(table)
    yield from _wrong_waves(tables, table.get("wave", [REST]))
    if "hold" in table and _seconds(table["hold"]) <= 0:
        words = "is not a duration; write a number and s, min, h or d"
        yield "hold", f"{table['hold']!r} {words}, such as {_EXAMPLES['hold']}"
    yield from _wrong_connections(table.get("flink_conn_id", "one"))
    yield from _wrong_lag(table.get("lag", {}))


def _wrong_lines(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    lines = {key: table[key] for key in ("from", "to") if key in table}
    wrong = [key for key, line in lines.items() if not isinstance(line, str) or not _LINE.fullmatch(line)]
    for key in wrong:
        yield key, f"{lines[key]!r} is not a line of Flink; write it as text, such as {_EXAMPLES[key]}"
    if not wrong and len(lines) > 1 and _numbers(lines["from"]) >= _numbers(lines["to"]):
        yield "to", f"{lines['to']} is not later than {lines['from']}: an older line cannot read the newer line's state"


def _wrong_connections(connection: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(connection, str | Mapping) or not connection:
        yield "flink_conn_id", f"is not the id of a connection, or a table of ids; write {_EXAMPLES['flink_conn_id']}"
    elif isinstance(connection, Mapping):
        for key, value in connection.items():
            if not isinstance(value, str) or not value:
                yield f"flink_conn_id.{key}", "is not the id of a connection; write the new line's connection as text"


def _wrong_lag(lag: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(lag, Mapping):
        yield "lag", f"is not a table of metrics; write {_EXAMPLES['lag']}"
        return
    for key, value in lag.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield f"lag.{key}", f"{value!r} is not a number; write the largest healthy value of the metric"


def _wrong_waves(tables: ProjectTables, waves: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(waves, list) or not waves or not all(isinstance(each, str) for each in waves):
        yield "wave", f"is not a list of tags; write {_EXAMPLES['wave']}"
        return
    tags = {tag for table in tables.deployments.values() for tag in _tags(table)}
    for number, wave in enumerate(waves, start=1):
        key = f"wave.{number}"
        if wave in waves[: number - 1]:
            yield key, f"{wave!r} is listed twice; remove one"
        elif REST in waves[: number - 1]:
            yield key, f"{wave!r} follows {REST!r}, which contains all remaining deployments; move {REST!r} to the end"
        elif wave != REST and (not _WAVE.fullmatch(wave) or wave in _TAKEN):
            yield key, f"{wave!r} names no wave; use letters, digits, - and _, but not {', '.join(_TAKEN)}"
        elif wave != REST and wave not in tags:
            yield key, f"no deployment has the tag {wave!r}; the tags are {', '.join(sorted(tags)) or 'missing'}"


def _tags(table: Mapping[str, Any]) -> Sequence[str]:
    tags = table.get("tags", [])
    return [each for each in tags if isinstance(each, str)] if isinstance(tags, list) else []


def _seconds(written: Any) -> float:
    """The length of a duration such as ``1 h`` in seconds; 0 if the text is no duration."""
    found = _DURATION.fullmatch(written) if isinstance(written, str) else None
    return 0.0 if found is None else float(int(found[1]) * _SECONDS[found[2]])


def _numbers(line: str) -> tuple[int, ...]:
    return tuple(map(int, line.split(".")))
