"""What can be settled of a request without Spark: the work, its chunks, and the hand-over to the live job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from airflow_flinkcompat.backfill.chunks import chunk_ranges
from airflow_flinkcompat.backfill.clocks import settled
from airflow_flinkcompat.backfill.compiling.compiler import compile_program
from airflow_flinkcompat.backfill.compiling.steps import Work, Write
from airflow_flinkcompat.backfill.connectors.base import Range
from airflow_flinkcompat.backfill.connectors.places import AssumedPlaces, Places
from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable, combined
from airflow_flinkcompat.backfill.guard import Guard, guards
from airflow_flinkcompat.backfill.request import BackfillRequest
from airflow_flinkcompat.compat.handovers.boundary import hand_over
from airflow_flinkcompat.compat.handovers.record import BoundaryError, HandOver, fingerprint
from airflow_flinkcompat.compat.side import InputError, Side
from airflow_flinkcompat.plan import Program
from airflow_flinkcompat.secrets import mask_secrets, placeholder_faults
from airflow_flinkcompat.sql import ScriptError


@dataclass(frozen=True)
class Plan:
    """What a backfill would do.

    ``request`` is the one asked for, with its bounds on the windows' clock.
    ``work`` is that of the whole range ``bounds``; ``chunks`` are its parts in order, each with its range, none where
    all is done at once. ``hand_over`` and ``guards`` are there with a boundary.
    """

    request: BackfillRequest
    program: Program
    bounds: Range
    work: Work
    chunks: tuple[tuple[Range, Work], ...] = ()
    hand_over: HandOver | None = None
    guards: tuple[Guard, ...] = ()


def plan(request: BackfillRequest) -> Plan:
    """The plan of a request. Raises :class:`BackfillError` for whatever cannot be done exactly."""
    program = _program(request)
    request = settled(request, program)
    places, bounds = Places(request.tables, request.sinks, request.order_by), Range(request.from_, request.to)
    drop_late = request.late == "drop"
    # What no moment divides knows no range either, and says here what it needs.
    record = None if request.boundary is None else _hand_over(request, program, request.boundary)
    work = compile_program(program, places, bounds, drop_late)
    found = Plan(request, program, bounds, work)
    if request.chunk is not None:
        ranges = chunk_ranges(program, bounds, request.chunk)
        parts = tuple((part, compile_program(program, places, part, drop_late)) for part in ranges)
        found = replace(found, chunks=parts)
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
    request = BackfillRequest(
        script_text=side.script, source=side.source, settings=side.settings, functions=side.functions,
        catalog=side.catalog, language=side.language, variables=side.variables, files=side.files,
    )  # fmt: skip
    try:
        program = _program(request)
        settled(request, program)
        compile_program(program, AssumedPlaces(), Range(None, None), drop_late=False)
    except Untranslatable as error:
        return "; ".join(mask_secrets(str(error)).splitlines())
    except BackfillError:  # what is for the backfill itself to ask
        return ""
    return ""


def _program(request: BackfillRequest) -> Program:
    if request.language == "sql":
        for place, why in placeholder_faults(request.script_text, request.source):
            raise BackfillError(why, place)
    try:
        return Side(
            request.script_text,
            request.settings,
            request.functions,
            request.catalog,
            source=request.source,
            language=request.language,
            variables=request.variables,
            files=request.files,
        ).program
    except (ScriptError, InputError) as error:
        raise BackfillError(str(error)) from None


def _hand_over(request: BackfillRequest, program: Program, boundary: datetime) -> HandOver:
    functions = [{"name": f.name, "kind": f.kind, "language": f.language} for f in request.functions]
    # A program computes what its variables and the files beside it make of it.
    given = [*sorted(request.variables.items()), *sorted(request.files.items())]
    script = "\n".join([request.script_text, *(f"{name}={value}" for name, value in given)])
    sha256 = fingerprint(script, request.settings, functions, request.catalog)
    try:
        return hand_over(program, boundary, sha256, datetime.now(UTC))
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
