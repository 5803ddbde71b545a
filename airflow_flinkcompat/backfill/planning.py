"""What can be settled of a request without Spark: the work, its chunks, and the hand-over to the live job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from airflow_flinkcompat.backfill.chunks import chunk_ranges
from airflow_flinkcompat.backfill.clocks import on_window_clock
from airflow_flinkcompat.backfill.compile.compiler import compile_program
from airflow_flinkcompat.backfill.connectors.locations import AssumedLocations, TableLocations
from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable, combined
from airflow_flinkcompat.backfill.guard import Guard, guards
from airflow_flinkcompat.backfill.protocols import Range
from airflow_flinkcompat.backfill.request import BackfillRequest
from airflow_flinkcompat.backfill.steps import Work, Write
from airflow_flinkcompat.compat.cutover.boundary import hand_over
from airflow_flinkcompat.compat.cutover.record import BoundaryError, Cutover
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.model import InputError, JobSpec
from airflow_flinkcompat.plan import Program
from airflow_flinkcompat.secrets import mask_secrets, placeholder_faults
from airflow_flinkcompat.sql import ScriptError


@dataclass(frozen=True)
class BackfillPlan:
    """What a backfill does: :func:`~airflow_flinkcompat.backfill.explain` tells it, ``run_backfill`` does it.

    Attributes:
        request: The one asked for, with its bounds on the windows' clock.
        program: The plan of its script.
        bounds: The whole range.
        work: What computes and publishes it.
        chunks: Its parts in order, each with its range; none where all is done at once.
        hand_over: What the live job has to know; None without a boundary.
        guards: What must hold of the history where there is a boundary.
    """

    request: BackfillRequest
    program: Program
    bounds: Range
    work: Work
    chunks: tuple[tuple[Range, Work], ...] = ()
    hand_over: Cutover | None = None
    guards: tuple[Guard, ...] = ()


def plan(request: BackfillRequest) -> BackfillPlan:
    """Settle without Spark what a backfill does; the script is planned and compiled once.

    Args:
        request: What is asked for.

    Returns:
        The work, its chunks, and the hand-over to the live job.

    Raises:
        BackfillError: Something cannot be done exactly.
    """
    program = _program(request.job)
    request = on_window_clock(request, program)
    places, bounds = TableLocations(request.tables, request.sinks, request.order_by), Range(request.from_, request.to)
    # What no moment divides knows no range either, and says here what it needs.
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
    """Why no backfill recomputes a script, wherever history lies and results go.

    Args:
        side: The script, with all that it is planned with.

    Returns:
        The reasons, with secrets masked; "" where it can be recomputed once places and a range are named.
    """
    try:
        compile_program(_program(side), AssumedLocations(), Range(None, None), drop_late=False)
    except Untranslatable as error:
        return "; ".join(mask_secrets(str(error)).splitlines())
    except BackfillError:  # what is for the backfill itself to ask
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


def _hand_over(request: BackfillRequest, program: Program, boundary: datetime) -> Cutover:
    try:
        return hand_over(program, boundary, request.job.part_digests(), datetime.now(UTC))
    except BoundaryError as error:
        raise BackfillError(str(error)) from None


def _check_replaced(work: Work, boundary: datetime) -> None:
    """The live job writes windows that end by the boundary as well, some of them from a part of their rows."""

    def refused(write: Write) -> BackfillError:
        return BackfillError(
            f"sink {write.rows.name}: {write.target.place} takes the backfill's rows beside what the live job writes "
            f"of windows that end by {boundary.isoformat(' ')}, and nothing there can replace those. Write the "
            f"backfill elsewhere with --sink {write.rows.table.path[2]}=URI, and take window_end > TIMESTAMP "
            f"'{boundary.isoformat(' ')}' from the live job: in whatever reads both, or in the script before it is "
            "reviewed"
        )

    if errors := [refused(write) for write in work.writes if not write.target.replaces]:
        raise combined(errors)
