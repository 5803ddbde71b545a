"""Bounds with a zone, taken to the clock of the windows they bound.

Windows over a TIMESTAMP_LTZ run on the local time of ``table.local-time-zone``. A TIMESTAMP has no zone: which instant
it stands for is a convention, and here it is UTC, as for whoever writes such times without saying more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from airflow_flinkcompat.backfill.compile.windowing import zone_of
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.request import BackfillRequest
from airflow_flinkcompat.compat.cutover import zones
from airflow_flinkcompat.plan.expressions import InputRef
from airflow_flinkcompat.plan.nodes import outermost_windows
from airflow_flinkcompat.plan.program import Program


def on_window_clock(request: BackfillRequest, program: Program) -> BackfillRequest:
    """The request with bounds on the clock of the windows, without zone.

    Raises :class:`BackfillError` where windows of several clocks give a bound several meanings, and for one in an hour
    that comes twice on the windows' clock: windows there hold rows of before and after it.
    """
    bounds = {"--from": request.from_, "--to": request.to, "--boundary": request.boundary}
    if all(moment is None or moment.tzinfo is None for moment in bounds.values()):
        return request
    clocks = dict(_clocks(program)) or {"UTC": "the script"}
    if request.boundary is not None:
        del bounds["--to"]
    from_, to, boundary = (_local(name, bounds.get(name), clocks) for name in ("--from", "--to", "--boundary"))
    return replace(request, from_=from_, to=boundary or to, boundary=boundary)


def _clocks(program: Program) -> Iterator[tuple[str, str]]:
    """The zones of the windows that are published, each with the name of a sink."""
    for pipeline in program.pipelines:
        settings = dict(pipeline.settings)
        for node in outermost_windows(pipeline.sink.input):
            if node is not None and isinstance(node.time, InputRef):
                yield zone_of(settings, node, node.time) or "UTC", pipeline.sink.name


def _local(name: str, moment: datetime | None, clocks: Mapping[str, str]) -> datetime | None:
    if moment is None or moment.tzinfo is None:
        return moment
    found: dict[datetime, str] = {}
    for zone, sink in clocks.items():
        local = moment.astimezone(zones.zone(zone))
        if local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset():
            raise BackfillError(
                f"{name} {moment.isoformat(' ')} is {local:%Y-%m-%d %H:%M:%S} in {zone}, the clock of the windows of "
                f"{sink}, where that hour comes twice: windows there hold rows of both. Give the local time of the "
                "windows, without an offset"
            )
        found.setdefault(local.replace(tzinfo=None, fold=0), f"{local:%Y-%m-%d %H:%M:%S} to {sink} ({zone})")
    if len(found) > 1:
        raise BackfillError(
            f"{name} {moment.isoformat(' ')} is {', and '.join(found.values())}: the windows of the script run on "
            "clocks that disagree. Give the local time of the windows, without an offset, or backfill them apart"
        )
    return next(iter(found))
