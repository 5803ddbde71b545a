"""Record of a hand-over from a backfill to the live job: each window's owner, and the job's start.

At a boundary B the backfill reads event times before B and owns ``window_end <= B``; the live job owns ``window_end >
B``. The live job reads from the start of its first window, minus the delay of the watermark. The live job therefore
drops the same late rows as a job that reads from the beginning. Simulations and measurements with TUMBLE, HOP and
CUMULATE showed no wrong, missing or duplicate window. The reviewed script runs unchanged, because windows are assigned
to an owner only when results are published. :func:`~airflow_flinkcompat.compat.boundary.hand_over` computes a record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from airflow_flinkcompat.model import InputError, JobSpec

SCHEMA = "flinkcompat-handover/1"
PARTS = ("script", "settings", "functions", "catalog")


class BoundaryError(InputError):
    """Raised for a boundary that cuts the script's windows, or a record of a different script."""


@dataclass(frozen=True)
class SourceStart:
    """The event time from which the live job reads a table.

    ``live_from`` is the first event time that the job must read. ``history_until`` is the event time that the source
    must have passed before the backfill runs. Both fields are times in ISO 8601, with a zone if the time column
    contains instants. ``startup`` are the startup options in the script.
    """

    table: str
    time_column: str
    delay_ms: int
    live_from: str
    history_until: str
    startup: Mapping[str, str] = field(default_factory=dict)

    def misses(self) -> str:
        """Message if the script's startup options skip rows of the live job's windows; "" if they skip none.

        A startup timestamp is compared with ``live_from`` only if ``live_from`` has a zone: a time without zone is
        ambiguous.
        """
        mode, at = self.startup.get("scan.startup.mode", ""), self.startup.get("scan.startup.timestamp-millis", "")
        if mode == "latest-offset":
            seen = "at latest-offset, so only with rows that arrive later"
        elif mode == "timestamp" and at.isdigit() and self.live_from.endswith("Z"):
            start = datetime.fromtimestamp(int(at) / 1000, UTC)
            if start <= datetime.fromisoformat(self.live_from):
                return ""
            seen = f"at {start.isoformat().replace('+00:00', 'Z')}"
        else:
            return ""
        return (
            f"table {self.table}: the live job must read from {self.time_column} = {self.live_from} on, but the "
            f"script starts it {seen}: choose its source offsets ({self.live_from}, earliest), change the "
            "script so that it starts early enough, or set the consumer group's offsets to that time"
        )


@dataclass(frozen=True)
class SinkHandOver:
    """Conditions that select the rows of a sink that the backfill or the live job owns.

    ``first_window_start`` is the start of the first window that the live job owns. The live job also writes incomplete
    results of some windows that end by the boundary; ``partial`` describes these windows.
    """

    sink: str
    windows: tuple[str, ...]
    backfill_owns: str
    live_owns: str
    first_window_start: str
    partial: str


@dataclass(frozen=True)
class HandOver:
    """The record that ``backfill --boundary --hand-over FILE`` writes and a deployment reads.

    ``boundary`` is a time on the windows' clock. ``sha256`` contains the hash of each of the script's :data:`PARTS`.
    ``at`` is the time of the computation, ISO 8601 in UTC.
    """

    boundary: str
    sources: tuple[SourceStart, ...]
    sinks: tuple[SinkHandOver, ...]
    sha256: Mapping[str, str]
    at: str
    schema: str = SCHEMA

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON values, which :meth:`from_dict` reads."""
        return {
            **asdict(self),
            "sources": [asdict(source) for source in self.sources],
            "sinks": [{**asdict(sink), "windows": list(sink.windows)} for sink in self.sinks],
        }

    @classmethod
    def from_dict(cls, data: object) -> HandOver:
        """Read a record and ignore unknown fields; raise :class:`BoundaryError` if the record is damaged."""
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            seen = data.get("schema") if isinstance(data, dict) else type(data).__name__
            raise BoundaryError(
                f"not a hand-over record of schema {SCHEMA} but {seen}; write a record with backfill --hand-over"
            )
        try:
            sinks = [_known(SinkHandOver, row) for row in data["sinks"]]
            return cls(
                boundary=_text(data["boundary"]),
                sources=tuple(SourceStart(**_known(SourceStart, row)) for row in data["sources"]),
                sinks=tuple(SinkHandOver(**{**row, "windows": tuple(row["windows"])}) for row in sinks),
                sha256={part: _text(data["sha256"][part]) for part in PARTS},
                at=_text(data["at"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise BoundaryError(f"the hand-over record is damaged ({error}); write it again with backfill") from None

    @classmethod
    def from_json(cls, text: str) -> HandOver:
        """Read a record from JSON; raise :class:`BoundaryError` if it is damaged."""
        try:
            return cls.from_dict(json.loads(text))
        except ValueError as error:
            if isinstance(error, BoundaryError):
                raise
            raise BoundaryError(f"the hand-over record is not JSON: {error}") from None

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"

    def check(self, job: JobSpec) -> None:
        """Raise :class:`BoundaryError` if the record belongs to a different script or other job parts."""
        if differing := [part for part, digest in job.part_digests().items() if digest != self.sha256[part]]:
            raise BoundaryError(
                f"the hand-over at {self.boundary} was computed with different values of {', '.join(differing)} than "
                f"those of this deployment: run the backfill for exactly the deployed job, and pass its hand-over "
                f"record"
            )

    def lines(self) -> tuple[str, ...]:
        """The record in sentences for a person."""
        starts = []
        for source in self.sources:
            startup = ", ".join(f"{key} = {value}" for key, value in source.startup.items())
            start = f"start {source.table} so that it reads every row with {source.time_column} >= {source.live_from}"
            starts.append(f"{start} (the script sets {startup})" if startup else start)
        owned = tuple(f"{sink.sink}: {sink.partial}" for sink in self.sinks)
        return (
            f"boundary {self.boundary}: the backfill owns windows that end by then, the live job owns later windows",
            *starts,
            *owned,
        )


def _known(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    return {f.name: row[f.name] for f in fields(kind)}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value} is not text")
    return value


_OFFSET = re.compile(r"GMT([+-])([0-9]{1,2}|[0-9]{2}:[0-5][0-9])")
_FURTHEST = timedelta(hours=18)
_REFUSED = {"EST", "MST", "HST", "ROC"}


@cache
def time_zone(name: str) -> tzinfo | None:
    """The time zone with a name; None if Flink refuses the name, or the time zone database lacks it.

    A name is ``UTC``, an offset such as ``GMT+03:00``, or from the time zone database. For ``UTC`` and offsets, the
    result is a :class:`datetime.timezone`.
    """
    if name == "UTC":
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, _, minutes = offset[2].partition(":")
        length = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(length if offset[1] == "+" else -length) if length <= _FURTHEST else None
    return ZoneInfo(name) if name in available_timezones() - _REFUSED else None
