"""Record of a hand-over from a backfill to the live job: the owner of each window, the job's start.

At a boundary B the backfill reads event times before B and owns ``window_end <= B``; the live job owns ``window_end >
B``. The live job reads from the start of its first window, less the delay of the watermark, so that it drops the late
rows that a job from the beginning would have dropped. Simulated and measured without a wrong, missing or double window
for TUMBLE, HOP and CUMULATE. The reviewed script runs unchanged: windows are assigned when they are published.
:func:`~airflow_flinkcompat.compat.boundary.hand_over` computes a record.
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
    """A boundary that does not divide the script's windows, or a record of another script."""


@dataclass(frozen=True)
class SourceStart:
    """Start of the live job in a table, in event time.

    ``live_from`` is the first event time that it must not miss, ``history_until`` the time that the source must have
    passed before the backfill runs: ISO 8601, with a zone if the column holds instants. ``startup`` are the script's
    own startup options.
    """

    table: str
    time_column: str
    delay_ms: int
    live_from: str
    history_until: str
    startup: Mapping[str, str] = field(default_factory=dict)

    def misses(self) -> str:
        """Reason why a job with the script's start would miss rows of its windows; "" without one.

        A start by a time is compared with ``live_from`` if that is an instant: a time without zone is ambiguous.
        """
        mode, at = self.startup.get("scan.startup.mode", ""), self.startup.get("scan.startup.timestamp-millis", "")
        if mode == "latest-offset":
            seen = "latest-offset, so it starts with the next rows that arrive"
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
            "script so that it starts early enough, or set the group's offsets to that point"
        )


@dataclass(frozen=True)
class SinkCutover:
    """Owners of a sink's rows.

    ``first_window_start`` is the start of the live job's first own window. Of windows that end by the boundary it
    writes some from a part of their rows only; ``partial`` names them.
    """

    sink: str
    windows: tuple[str, ...]
    backfill_owns: str
    live_owns: str
    first_window_start: str
    partial: str


@dataclass(frozen=True)
class Cutover:
    """The record that ``backfill --boundary --hand-over FILE`` writes and a deployment reads.

    ``boundary`` is on the clock of the windows; ``sha256`` holds a hash for each of :data:`PARTS` of the script it was
    worked out for; ``at`` is when, ISO 8601 in UTC.
    """

    boundary: str
    sources: tuple[SourceStart, ...]
    sinks: tuple[SinkCutover, ...]
    sha256: Mapping[str, str]
    at: str
    schema: str = SCHEMA

    def to_dict(self) -> dict[str, Any]:
        """JSON values; :meth:`from_dict` reads them."""
        return {
            **asdict(self),
            "sources": [asdict(source) for source in self.sources],
            "sinks": [{**asdict(sink), "windows": list(sink.windows)} for sink in self.sinks],
        }

    @classmethod
    def from_dict(cls, data: object) -> Cutover:
        """Read a record; raises :class:`BoundaryError` naming the fault; later versions' fields are skipped."""
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            seen = data.get("schema") if isinstance(data, dict) else type(data).__name__
            raise BoundaryError(
                f"this is no hand-over record of schema {SCHEMA} ({seen}); backfill --hand-over writes one"
            )
        try:
            sinks = [_known(SinkCutover, row) for row in data["sinks"]]
            return cls(
                boundary=_text(data["boundary"]),
                sources=tuple(SourceStart(**_known(SourceStart, row)) for row in data["sources"]),
                sinks=tuple(SinkCutover(**{**row, "windows": tuple(row["windows"])}) for row in sinks),
                sha256={part: _text(data["sha256"][part]) for part in PARTS},
                at=_text(data["at"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise BoundaryError(f"the hand-over record is damaged ({error}); write it again with backfill") from None

    @classmethod
    def from_json(cls, text: str) -> Cutover:
        """Read a record from JSON; raises :class:`BoundaryError`."""
        try:
            return cls.from_dict(json.loads(text))
        except ValueError as error:
            if isinstance(error, BoundaryError):
                raise
            raise BoundaryError(f"the hand-over record is not JSON: {error}") from None

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"

    def check(self, job: JobSpec) -> None:
        """Raise :class:`BoundaryError` if the record is of another script, settings, functions or catalog."""
        if differing := [part for part, digest in job.part_digests().items() if digest != self.sha256[part]]:
            raise BoundaryError(
                f"the hand-over at {self.boundary} was computed with different values of {', '.join(differing)} "
                "than those of this deployment: backfill with exactly what is deployed, and pass that record"
            )

    def lines(self) -> tuple[str, ...]:
        """The record as a person reads it."""
        starts = []
        for source in self.sources:
            said = ", ".join(f"{key} = {value}" for key, value in source.startup.items())
            start = f"start {source.table} so that no row from {source.time_column} = {source.live_from} on is missed"
            starts.append(f"{start} (the script says {said})" if said else start)
        owned = tuple(f"{sink.sink}: {sink.partial}" for sink in self.sinks)
        return (f"boundary {self.boundary}: backfill owns window_end <= it, the live job the rest", *starts, *owned)


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
    """The time zone of a name; None for a name that Flink refuses, or that is unknown here.

    A name is ``UTC``, an offset as ``GMT+03:00``, or one of the time zone database. A zone whose clocks never change
    may be a :class:`datetime.timezone`.
    """
    if name == "UTC":
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, _, minutes = offset[2].partition(":")
        length = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(length if offset[1] == "+" else -length) if length <= _FURTHEST else None
    return ZoneInfo(name) if name in available_timezones() - _REFUSED else None
