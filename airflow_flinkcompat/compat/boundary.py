"""The time boundary between the windows of a backfill and those of the live job.

:mod:`~airflow_flinkcompat.compat.hand_over` describes the protocol. If a program has no aligned boundary, the error
names the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo

from airflow_flinkcompat.compat.changes.format import format_row_count, format_window
from airflow_flinkcompat.compat.hand_over import BoundaryError, HandOver, SinkHandOver, SourceStart, time_zone
from airflow_flinkcompat.plan import Program
from airflow_flinkcompat.plan.lineage import resolve_operators
from airflow_flinkcompat.plan.nodes import (
    Frame,
    GroupWindowAggregate,
    Measure,
    Node,
    Scan,
    Table,
    Window,
    WindowAssign,
    WindowKind,
    outermost_windows,
)
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    AssignedWindow,
    JoinForm,
    JoinOperator,
    Operator,
    OtherKind,
    OtherOperator,
    OverOperator,
    RankOperator,
    TooLarge,
    operators,
    segments,
)
from airflow_flinkcompat.plan.origins import duration
from airflow_flinkcompat.plan.program import Pipeline
from airflow_flinkcompat.plan.types import TimeAttribute

_EPOCH = datetime(1970, 1, 1)
_MILLISECOND = timedelta(milliseconds=1)
_BY_HAND = (
    "choose the boundary manually: backfill with --from and --to, and let consumers read each row from one side only"
)


def hand_over(program: Program, boundary: datetime, sha256: Mapping[str, str], at: datetime) -> HandOver:
    """Compute the hand-over of a program's windows at ``boundary``, on the windows' clock without zone.

    Raises :class:`BoundaryError` if the boundary cuts a window. The message names the nearest boundaries that cut no
    window. The error is also raised for programs without a possible boundary: SESSION, OVER, state without windows,
    processing time, a watermark without a constant delay.
    """
    reasons = [f"{pipeline.sink.name}: {reason}" for pipeline in program.pipelines for reason in _reasons(pipeline)]
    if reasons:
        raise BoundaryError("\n".join(dict.fromkeys(f"{reason}; {_BY_HAND}" for reason in reasons)))
    outermost = {
        pipeline.sink.name: tuple(found.window for found in outermost_windows(pipeline.sink.input) if found is not None)
        for pipeline in program.pipelines
    }
    moment = _milliseconds(boundary)
    _check_aligned([window for windows in outermost.values() for window in windows], boundary)
    starts: dict[str, tuple[Table, int, Mapping[str, str]]] = {}
    for pipeline in program.pipelines:
        for table, first in _reads(pipeline.sink.input, moment):
            known = starts.get(table.name)
            starts[table.name] = (table, min(first, known[1] if known else first), dict(pipeline.settings))
    sources = tuple(_start(table, first, moment, settings) for table, first, settings in starts.values())
    sinks: dict[str, SinkHandOver] = {}
    for pipeline in program.pipelines:
        name = pipeline.sink.name
        text = tuple(dict.fromkeys(format_window(windowing) for windowing in _windowings(pipeline)))
        first = min(first_start(window, moment) for window in outermost[name])
        before = sinks.get(name)
        sinks[name] = _ownership(name, (*(before.windows if before else ()), *text), boundary, first)
    return HandOver(
        _iso(moment), sources, tuple(sinks.values()), dict(sha256), at.astimezone(UTC).isoformat(timespec="seconds")
    )


def boundary_moment(window: Window, moment: int) -> bool:
    """True if a window with this definition begins at ``moment`` (milliseconds on the windows' clock)."""
    return (moment - window.normalised_offset) % _period(window) == 0


def first_start(window: Window, moment: int) -> int:
    """Start of the earliest window that ends after ``moment``.

    ``moment`` and the result are in milliseconds on the windows' clock. If ``moment`` is aligned, the result is
    ``moment - (size - slide)`` for HOP, and ``moment`` for TUMBLE and CUMULATE.
    """
    period, offset, size = _period(window), window.normalised_offset, window.size or 0
    return (moment - size - offset) // period * period + offset + period


def nearest(windows: Iterable[Window], moment: int) -> tuple[int, int] | None:
    """The nearest window boundaries before and after ``moment``; None if the windows share no boundary."""
    step, offset = 1, 0
    for window in windows:
        period, own = _period(window), window.normalised_offset
        common = math.gcd(step, period)
        if (own - offset) % common:
            return None
        # Chinese remainder: the offset that both congruences share.
        factor = (own - offset) // common * pow(step // common, -1, period // common) % (period // common)
        offset, step = offset + step * factor, step // common * period
    before = (moment - offset) // step * step + offset
    return before, before + step


def _period(window: Window) -> int:
    """Distance between aligned moments: the slide of HOP, the size of TUMBLE and CUMULATE."""
    return (window.slide if window.kind is WindowKind.HOP else window.size) or 1


def _check_aligned(windows: list[Window], boundary: datetime) -> None:
    moment = _milliseconds(boundary)
    if all(boundary_moment(window, moment) for window in windows) and _EPOCH + moment * _MILLISECOND == boundary:
        return
    found = nearest(windows, moment)
    if found is None:
        raise BoundaryError(f"the windows of the script have no common boundary; {_BY_HAND}")
    raise BoundaryError(
        f"the boundary {boundary.isoformat(' ')} cuts a window: use {_iso(found[0])} or {_iso(found[1])}"
    )


def _reasons(pipeline: Pipeline) -> list[str]:
    """Reasons why a pipeline has no known boundary; empty if the pipeline has a boundary."""
    try:
        found = [reason for operator in operators(resolve_operators(pipeline.sink)) if (reason := _unbounded(operator))]
    except TooLarge as error:
        return [str(error)]
    for windowing in _windowings(pipeline):
        if windowing.window.kind is WindowKind.SESSION:
            found.append(
                "a SESSION ends when the rows of its key pause, so no moment lies between the sessions of all keys"
            )
        elif windowing.window.measure is Measure.ROWS:
            period = windowing.window.slide or windowing.window.size
            found.append(
                "a window over rows ends after enough rows of its key, so no moment lies between the windows of all "
                f"keys: a job that starts later needs the number of rows of each key since the very beginning, "
                f"modulo {period}"
            )
        elif windowing.time_attribute is not TimeAttribute.ROWTIME:
            found.append("its windows do not use event time, so no moment in history lies between them")
    return found or ([] if None not in outermost_windows(pipeline.sink.input) else ["its rows belong to no window"])


def _unbounded(operator: Operator) -> str | None:
    match operator:
        case AggregateOperator(windowed=True) | JoinOperator(form=JoinForm.WINDOW):
            return None
        case RankOperator() if operator.window is not None:
            return None
        case OtherOperator(kind=OtherKind.UNION_ALL):
            return None
        case OverOperator():
            return (
                "an OVER aggregation combines rows across any boundary: a job that starts at the boundary also needs "
                f"{_needed(operator.frame)}"
            )
    return f"a {operator.kind} keeps its state regardless of windows, across any boundary"


def _needed(frame: Frame) -> str:
    """The rows on the other side of a boundary that the OVER frame of a row at the boundary needs."""

    def rows(far: int | None, side: str) -> str:
        if far is None or frame.window is not None:
            return f"every {side} row of each key"
        if frame.unit == "RANGE":
            return f"the rows of INTERVAL {duration(far)} {'before' if side == 'earlier' else 'after'} it"
        return f"the {format_row_count(far)} {'before' if side == 'earlier' else 'after'} it of each key"

    ahead = "" if frame.following == 0 else f" and {rows(frame.following, 'later')}"
    return rows(frame.preceding, "earlier") + ahead


def _windowings(pipeline: Pipeline) -> tuple[AssignedWindow, ...]:
    output = resolve_operators(pipeline.sink)
    assigned = [windowing for segment in segments(output) for windowing in segment.windows]
    legacy = [one.window for one in operators(output) if isinstance(one, AggregateOperator) and one.window is not None]
    return tuple(dict.fromkeys((*assigned, *legacy)))


def _reads(node: Node, moment: int) -> Iterable[tuple[Table, int]]:
    """Source tables, each with the first event time that belongs to a window that ends after ``moment``."""
    if isinstance(node, WindowAssign | GroupWindowAggregate):
        moment = min(first_start(node.window, moment), moment)
    if isinstance(node, Scan):
        yield node.table, moment
    for below in node.inputs:
        yield from _reads(below, moment)


def _start(table: Table, first: int, boundary: int, settings: Mapping[str, str]) -> SourceStart:
    delay = table.watermark_delay
    if delay is None or table.watermark is None:
        raise BoundaryError(
            f"table {table.name}: its watermark is not a column minus an interval, so the possible delay of its rows "
            f"is unknown; {_BY_HAND}"
        )
    column = next(column for column in table.columns if column.name == table.watermark.column)
    instant = column.type.name == "TIMESTAMP_LTZ"

    def written(moment: int, shift: int, choose: Callable[[Iterable[datetime]], datetime]) -> str:
        """Format a moment; ``choose`` selects the instant of a local time that occurs twice or is skipped."""
        if not instant:
            return _iso(moment + shift)
        zone = _zone(settings.get("table.local-time-zone"), table)
        local = (_EPOCH + moment * _MILLISECOND).replace(tzinfo=zone)
        found = choose(local.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
        return (found + shift * _MILLISECOND).isoformat().replace("+00:00", "Z")

    startup = {key: value for key, value in table.options if key.startswith("scan.startup.")}
    live_from, history_until = written(first, -delay, min), written(boundary, delay, max)
    return SourceStart(table.name, column.name, delay, live_from, history_until, startup)


def _zone(name: str | None, table: Table) -> tzinfo:
    found = time_zone(name) if name else None
    if found is None:
        said = f"is {name}, which Flink refuses or this check does not recognize" if name else "is not set"
        raise BoundaryError(
            f"table {table.name}: its windows depend on table.local-time-zone, which {said}; SET it to a zone "
            "such as UTC or Europe/Berlin"
        )
    return found


def _ownership(sink: str, windows: tuple[str, ...], boundary: datetime, first: int) -> SinkHandOver:
    at = boundary.isoformat(" ")
    return SinkHandOver(
        sink,
        tuple(dict.fromkeys(windows)),
        f"window_end <= TIMESTAMP '{at}'",
        f"window_end > TIMESTAMP '{at}'",
        _iso(first),
        (
            f"the first window of the live job starts at {_iso(first)}; the live job may see only part of the rows of "
            f"windows that end by {at}, and the backfill must replace those results"
        ),
    )


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND


def _iso(moment: int) -> str:
    return (_EPOCH + moment * _MILLISECOND).isoformat(" ")
