"""Plan of a backfill, built without Spark: steps, chunks, hand-over, and guards that Spark will check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.compile.compiler import OPERATORS, compile_program
from airflow_flinkcompat.backfill.compile.context import CompileContext
from airflow_flinkcompat.backfill.compile.sink_columns import windows_of
from airflow_flinkcompat.backfill.compile.windowing import zone_of
from airflow_flinkcompat.backfill.connectors.registry import AssumedLocations, TableLocations
from airflow_flinkcompat.backfill.protocols import Locations, Range
from airflow_flinkcompat.backfill.request import BackfillRequest
from airflow_flinkcompat.backfill.result import BackfillError, Untranslatable, combined
from airflow_flinkcompat.backfill.spark_sql.windows import EPOCH, timestamp
from airflow_flinkcompat.backfill.steps import Step, Work, Write
from airflow_flinkcompat.compat.boundary import hand_over, nearest
from airflow_flinkcompat.compat.hand_over import BoundaryError, HandOver, time_zone
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.model import InputError, JobSpec
from airflow_flinkcompat.model.durations import shown_duration
from airflow_flinkcompat.plan.expressions import InputRef
from airflow_flinkcompat.plan.nodes import Scan, Window, WindowKind, outermost_windows
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.secrets.placeholders import placeholder_faults
from airflow_flinkcompat.sql import ScriptError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_MILLISECOND, _SECOND = timedelta(milliseconds=1), timedelta(seconds=1)
_MOST = 10_000
"""Maximum number of chunks in one run. Each chunk is compiled and runs as a separate Spark job."""


@dataclass(frozen=True)
class BackfillPlan:
    """Plan of a backfill; :func:`~.backfill.explain` describes it and ``run_backfill`` runs it.

    Attributes:
        request: The request, with its bounds in the local time of the windows.
        program: The plan of the script.
        bounds: The whole range.
        work: Steps that compute and publish the whole range.
        chunks: Chunks in order, each with its range and steps; empty if the range is computed as a whole.
        hand_over: Hand-over record for the live job; None without a boundary.
        guards: Conditions that the history must meet at the boundary.
    """

    request: BackfillRequest
    program: Program
    bounds: Range
    work: Work
    chunks: tuple[tuple[Range, Work], ...] = ()
    hand_over: HandOver | None = None
    guards: tuple[Guard, ...] = ()


def plan(request: BackfillRequest) -> BackfillPlan:
    """Plan a backfill without Spark.

    Args:
        request: The request.

    Returns:
        The steps, the chunks, and the hand-over to the live job.

    Raises:
        BackfillError: A part of the script or the request cannot be computed exactly.
    """
    program = _program(request.job)
    request = on_window_clock(request, program)
    places, bounds = TableLocations(request.tables, request.sinks, request.order_by), Range(request.from_, request.to)
    # If no time separates the script's windows, there is no range either. The script then fails here, with a remedy.
    record = None if request.boundary is None else _hand_over(request, program, request.boundary)
    compiled = compile_program(program, places, bounds, request.late == "drop")
    work = compiled.work(bounds)
    found = BackfillPlan(request, program, bounds, work)
    if request.chunk is not None:
        ranges = chunk_ranges(program, bounds, request.chunk)
        found = replace(found, chunks=tuple((part, compiled.work(part)) for part in ranges))
    if record is not None and request.boundary is not None:
        _check_replaced(work, request.boundary)
        asked = () if request.allow_incomplete else guards(program, places, record)
        found = replace(found, hand_over=record, guards=asked)
    return found


def why_refused(side: Side) -> str:
    """Reason why no backfill can recompute a script, for any locations; "" if one can."""
    try:
        compile_program(_program(side), AssumedLocations(), Range(None, None), drop_late=False)
    except Untranslatable as error:
        return "; ".join(mask_secrets(str(error)).splitlines())
    except BackfillError:  # The backfill itself reports errors of a request.
        return ""
    return ""


def _program(job: JobSpec) -> Program:
    if job.language == "sql":
        for place, why in placeholder_faults(job.script, job.source):
            raise BackfillError(why, place)
    try:
        return Side.of(job).program
    except (ScriptError, InputError) as error:
        raise BackfillError(str(error)) from None


def _hand_over(request: BackfillRequest, program: Program, boundary: datetime) -> HandOver:
    try:
        return hand_over(program, boundary, request.job.part_digests(), datetime.now(UTC))
    except BoundaryError as error:
        raise BackfillError(str(error)) from None


def _check_replaced(work: Work, boundary: datetime) -> None:
    """Check that rows can be replaced in windows up to the boundary.

    The live job also writes windows up to the boundary, partly from incomplete rows.
    """

    def refused(write: Write) -> BackfillError:
        return BackfillError(
            f"sink {write.rows.name}: for windows that end by {boundary.isoformat(' ')}, {write.target.place} "
            "would contain rows of both the backfill and the live job, which cannot be replaced there. Write the "
            f"backfill to a different location with --sink {write.rows.table.path[2]}=URI. Then use only rows "
            f"with window_end > TIMESTAMP '{boundary.isoformat(' ')}' from the live job, with a filter in the "
            "reader of both, or in the script before it is reviewed"
        )

    if errors := [refused(write) for write in work.writes if not write.target.replaces]:
        raise combined(errors)


def on_window_clock(request: BackfillRequest, program: Program) -> BackfillRequest:
    """Convert the bounds of a request to the local time of the windows, without a zone.

    Windows over a TIMESTAMP_LTZ use the local time of ``table.local-time-zone``. A TIMESTAMP has no zone, so its values
    are interpreted as UTC. Two cases are errors: windows in several zones that give a bound several meanings, and an
    hour that occurs twice in local time.
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
    """Time zones of the published windows, each with the name of a sink."""
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
        local = moment.astimezone(time_zone(zone))
        if local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset():
            raise BackfillError(
                f"{name} {moment.isoformat(' ')} is {local:%Y-%m-%d %H:%M:%S} in {zone}, the time zone of the "
                f"windows of {sink}. This hour occurs twice, so windows in this hour contain rows of both "
                "occurrences. Pass the local time of the windows, without an offset"
            )
        found.setdefault(local.replace(tzinfo=None, fold=0), f"{local:%Y-%m-%d %H:%M:%S} to {sink} ({zone})")
    if len(found) > 1:
        raise BackfillError(
            f"{name} {moment.isoformat(' ')} is {', and '.join(found.values())}, because windows of the script "
            "use different time zones. Pass the local time of the windows, without an offset, or run separate "
            "backfills"
        )
    return next(iter(found))


def chunk_ranges(program: Program, bounds: Range, length: timedelta) -> tuple[Range, ...]:
    """Split a range into chunks of about ``length`` that cut no window.

    A window is in the chunk where it ends.
    """
    windows = [window for pipeline in program.pipelines for window in windows_of(pipeline.sink.input)]
    if bounds.from_ is None or bounds.to is None:
        raise BackfillError("chunks require a range with both ends: pass --from and --to (or --boundary)")
    aligned = [window for window in windows if window is not None and window.kind is not WindowKind.SESSION]
    if len(aligned) < len(windows):
        raise BackfillError(
            "the end of a SESSION depends on its rows, so a range of sessions cannot be split into chunks: omit --chunk"
        )
    cuts = [bounds.from_, *_cuts(aligned, bounds.from_, bounds.to, length), bounds.to]
    ranges = (Range(bounds.from_, last, first) for first, last in pairwise(cuts))
    return (Range(bounds.from_, cuts[1]), *list(ranges)[1:])


def _cuts(windows: list[Window], from_: datetime, to: datetime, length: timedelta) -> list[datetime]:
    found = nearest(windows, (from_ - EPOCH) // _MILLISECOND)
    if found is None:
        raise BackfillError(
            "no time separates all windows of the script, so its range cannot be split into chunks: omit --chunk"
        )
    step = (found[1] - found[0]) * _MILLISECOND
    if length < step:
        raise BackfillError(
            f"a chunk of {shown_duration(length)} would split windows: chunks must be at least "
            f"{shown_duration(step)} long"
        )
    number = -((to - from_) // -length)
    if number > _MOST:
        raise BackfillError(
            f"chunks of {shown_duration(length)} would split this range into {number} chunks, but at most {_MOST} "
            "are supported: chunks must be at least "
            f"{shown_duration(-((to - from_) // -(_MOST * _SECOND)) * _SECOND)} long"
        )
    origin = EPOCH + found[0] * _MILLISECOND
    cuts = (origin + (from_ + length * i - origin) // step * step for i in range(1, number))
    return [cut for cut in dict.fromkeys(cuts) if cut > from_]


@dataclass(frozen=True)
class Guard:
    """Condition that one of the ``rows`` of a table has an event time (``c{time}``) at or after ``until``."""

    table: str
    rows: Step
    time: int
    until: datetime

    @property
    def _passed(self) -> str:
        kind = "TIMESTAMP_NTZ" if self.until.tzinfo is None else "TIMESTAMP_LTZ"
        return f"c{self.time} >= {timestamp(self.until, kind)}"

    def check(self, frame: DataFrame) -> None:
        """Raise :class:`BackfillError` if the history ends before the time.

        Reading stops at the first later row.
        """
        from pyspark.sql import functions as F

        if not frame.where(self._passed).select(F.lit(1)).isEmpty():
            return
        last = frame.agg(F.expr(f"CAST(max(c{self.time}) AS STRING)")).first()
        seen = (
            f"its last event time is {last[0]}" if last is not None and last[0] is not None else "it contains no rows"
        )
        raise BackfillError(
            f"the history of {self.table} does not reach {self.until.isoformat(' ')}, which is the boundary plus "
            f"the delay of its watermark: {seen}. Rows of windows that end by the boundary may therefore still "
            "arrive. Run the backfill after the source has passed this time. Pass --allow-incomplete only for a "
            "source that receives no more rows"
        )


def guards(program: Program, locations: Locations, record: HandOver) -> tuple[Guard, ...]:
    """Build the guards for the tables in the hand-over record."""
    until: Mapping[str, str] = {source.table: source.history_until for source in record.sources}
    found: dict[str, Guard] = {}
    for pipeline in program.pipelines:
        context = CompileContext(OPERATORS, locations, Range(), dict(pipeline.settings))
        for node in pipeline.sink.nodes:
            if isinstance(node, Scan) and node.table.name in until and node.table.watermark is not None:
                names = [column.name for column in node.table.columns]
                time = names.index(node.table.watermark.column)
                name = node.table.name
                moment = datetime.fromisoformat(until[name])
                found.setdefault(name, Guard(name, context.compile(node, frozenset({time})), time, moment))
    return tuple(found.values())
