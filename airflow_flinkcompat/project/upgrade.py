"""The table ``[upgrade]`` of a project file: a move of all jobs to another Flink version, in waves."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.model.durations import parse_duration
from airflow_flinkcompat.model.engine import line_numbers
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
_CONDITIONS = {"tag": '{ tag = "canary" }', "size": '{ size = "1 GB" }', "risk": '{ risk = "none" }'}
"""An example of each condition of a wave."""
_REQUIRED = ("from", "to", "flink_conn_id", "wave")
_LINE = re.compile(r"\d+\.\d+")
_SIZE = re.compile(r"(\d+) *([KMGT])B")
_POWERS = " KMGT"
_DEFAULT_HOLD = "10 min"


class Risk(StrEnum):
    """Risk of a move by the audit: an equal script, a changed script, a waiver or a request."""

    NONE = "none"
    LOW = "low"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """The place of the risk, from 0 for none."""
        return list(Risk).index(self)


@dataclass(frozen=True)
class Wave:
    """Conditions on the jobs of a wave. A job of the wave meets all of them.

    Attributes:
        tag: A tag of the deployment; "" for all tags.
        size: The largest size of the job's state, such as ``1 GB``; "" for all sizes.
        risk: The highest risk of the move; None for all risks.
    """

    tag: str = ""
    size: str = ""
    risk: Risk | None = None

    def __str__(self) -> str:
        if self.tag and not self.size and self.risk is None:
            return self.tag
        found = {"tag": self.tag, "size": self.size, "risk": self.risk}
        return ", ".join(f"{key} {value}" for key, value in found.items() if value) or REST

    def contains(self, tags: Sequence[str], size: int | None, risk: Risk) -> bool:
        """True if the wave contains a job with these tags, this size in bytes (None: unknown) and this risk."""
        return (
            (not self.tag or self.tag in tags)
            and (not self.size or (size is not None and size <= _bytes(self.size)))
            and (self.risk is None or risk.rank <= self.risk.rank)
        )


@dataclass(frozen=True)
class FleetUpgrade:
    """A move of all jobs to another Flink version.

    Attributes:
        old: The present line, such as ``1.20``.
        new: The next line, such as ``2.3``.
        waves: The waves, in the order of their moves.
        hold: Seconds for which the jobs of a wave must be healthy before the next wave.
        connection: The connection of the new line's cluster.
        connections: The connection of the new line's cluster, by the present connection; replaces ``connection``.
        lag: The largest healthy value of each metric of a job.
    """

    old: str
    new: str
    waves: tuple[Wave, ...]
    hold: float
    connection: str = ""
    connections: Mapping[str, str] = field(default_factory=dict)
    lag: Mapping[str, float] = field(default_factory=dict)

    def connection_of(self, present: str) -> str | None:
        """The connection of the new line for a deployment; None if ``flink_conn_id`` does not name it."""
        return self.connection or self.connections.get(present)

    def wave_of(self, tags: Sequence[str], size: int | None, risk: Risk) -> Wave | None:
        """The first wave that contains a job with these tags, this size in bytes and this risk, if any."""
        return next((wave for wave in self.waves if wave.contains(tags, size, risk)), None)


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
        tuple(map(_wave, table["wave"])),
        parse_duration(table.get("hold", _DEFAULT_HOLD)).total_seconds(),
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
    try:
        parse_duration(table.get("hold", _DEFAULT_HOLD))
    except InputError as error:
        yield "hold", str(error)
    yield from _wrong_connections(table.get("flink_conn_id", "one"))
    yield from _wrong_lag(table.get("lag", {}))


def _wrong_lines(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    lines = {key: table[key] for key in ("from", "to") if key in table}
    wrong = [key for key, line in lines.items() if not isinstance(line, str) or not _LINE.fullmatch(line)]
    for key in wrong:
        yield key, f"{lines[key]!r} is not a line of Flink; write it as text, such as {_EXAMPLES[key]}"
    if not wrong and len(lines) > 1 and line_numbers(lines["from"]) >= line_numbers(lines["to"]):
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
    if not isinstance(waves, list) or not waves or not all(isinstance(each, str | Mapping) for each in waves):
        yield "wave", f"is not a list of tags and tables; write {_EXAMPLES['wave']}"
        return
    tags = {tag for table in tables.deployments.values() for tag in _tags(table)}
    for number, wave in enumerate(waves, start=1):
        key, earlier = f"wave.{number}", waves[: number - 1]
        if wave in earlier:
            yield key, f"{wave!r} is listed twice; remove one"
        elif REST in earlier:
            yield key, f"{wave!r} follows {REST!r}, which contains all remaining deployments; move {REST!r} to the end"
        elif isinstance(wave, Mapping):
            yield from ((f"{key}.{part}", words) for part, words in _wrong_conditions(wave, tags))
            if not wave:
                yield key, f"has no condition; write {_CONDITIONS['size']}, or {REST!r} for all deployments"
        elif wave != REST and wave not in tags:
            yield key, _unknown_tag(wave, tags)


def _wrong_conditions(wave: Mapping[str, Any], tags: Collection[str]) -> Iterator[tuple[str, str]]:
    for key, value in wave.items():
        if key not in _CONDITIONS:
            yield key, unknown_key(key, tuple(_CONDITIONS))
        elif key == "tag" and value not in tags:
            yield key, _unknown_tag(value, tags)
        elif key == "size" and not (isinstance(value, str) and _SIZE.fullmatch(value)):
            yield key, f"{value!r} is not a size; write a number and KB, MB, GB or TB, such as {_CONDITIONS['size']}"
        elif key == "risk" and value not in (Risk.NONE, Risk.LOW):
            yield key, f"{value!r} is not the highest risk of a wave; write none or low, such as {_CONDITIONS['risk']}"


def _unknown_tag(tag: Any, tags: Collection[str]) -> str:
    return f"no deployment has the tag {tag!r}; the tags are {', '.join(sorted(tags)) or 'missing'}"


def _wave(written: str | Mapping[str, str]) -> Wave:
    if isinstance(written, str):
        return Wave("" if written == REST else written)
    risk = written.get("risk")
    return Wave(written.get("tag", ""), written.get("size", ""), None if risk is None else Risk(risk))


def _bytes(size: str) -> int:
    """The bytes of a size such as ``1 GB``."""
    found = _SIZE.fullmatch(size)
    assert found is not None
    return int(int(found[1]) * 1000 ** _POWERS.index(found[2]))


def _tags(table: Mapping[str, Any]) -> Sequence[str]:
    tags = table.get("tags", [])
    return [each for each in tags if isinstance(each, str)] if isinstance(tags, list) else []
