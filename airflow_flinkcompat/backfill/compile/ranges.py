"""Steps of a program for any range of published windows, and rows that its sources can leave out."""

from __future__ import annotations

import re
from dataclasses import replace

from airflow_flinkcompat.backfill.protocols import Partitioned, Range, TimeBounded, TimeSpan
from airflow_flinkcompat.backfill.spark_sql.windows import DAY, Aligned, WindowRange, micros_of
from airflow_flinkcompat.backfill.steps import (
    Assign,
    AssignSessions,
    DropLate,
    Joined,
    Read,
    Select,
    Step,
    UnionAll,
    Where,
)


def published_windows(bounds: Range) -> WindowRange:
    """Windows wholly inside a range, and those of the chunk, if any."""
    return WindowRange.inside(bounds.from_, bounds.to, bounds.after)


def for_range(step: Step, published: WindowRange) -> Step:
    """The same step for another range."""
    if isinstance(step, Read):
        return step
    if isinstance(step, UnionAll | Joined):
        return replace(step, inputs=tuple(for_range(inner, published) for inner in step.inputs))
    below = for_range(step.input, published)
    match step:
        case Assign(asked=asked) if asked is not None:
            return replace(step, input=below, window_range=asked.within(published))
        case AssignSessions(asked=asked) if asked is not None:
            counted = None if step.counted is None else published
            return replace(step, input=below, window_range=asked.within(published), counted=counted)
        case DropLate(ends=ends) if ends is not None:
            return replace(step, input=below, counted=late_in(*ends, published))
    return replace(step, input=below)


def late_in(windows: Aligned, end: str, own: WindowRange) -> str:
    """Spark SQL: the window that ends at ``end`` belongs to this range; exactly one chunk has each."""
    micros = micros_of(end)
    bounds = ((windows.start(micros), ">=", own.starts), (micros, ">=", own.ends), (micros, "<=", own.until))
    return " AND ".join(f"{value} {sign} {moment}" for value, sign, moment in bounds if moment is not None) or "TRUE"


_COLUMN = re.compile(r"\bc([0-9]+)\b")


def push_down_ranges(step: Step) -> Step:
    """The same step, whose sources may skip rows outside of all requested windows."""
    if isinstance(step, Read):
        return step
    if isinstance(step, UnionAll | Joined):
        return replace(step, inputs=tuple(push_down_ranges(inner) for inner in step.inputs))
    below = push_down_ranges(step.input)
    if isinstance(step, Where) and isinstance(below, Read) and _chooses_folders(step.condition, below):
        return replace(below, condition=step.condition)
    if isinstance(step, Assign):
        first, last = step.windows.span(step.window_range)
        if step.zone:  # local time is never a day away from UTC
            first, last = (None if first is None else first - DAY), (None if last is None else last + DAY)
        if first is not None or last is not None:
            below = _narrowed(below, step.time, first, last)
    return replace(step, input=below)


def _chooses_folders(condition: str, read: Read) -> bool:
    """True if a condition over a table selects its folders (a text that looks like a column does no harm)."""
    asked = {int(position) for position in _COLUMN.findall(condition)}
    folders = read.source.folders if isinstance(read.source, Partitioned) else frozenset()
    chosen = any(field in folders for position, field in read.fields if position in asked)
    return (
        chosen and read.watermark is None and not read.condition and asked <= {position for position, _ in read.columns}
    )


def _narrowed(step: Step, position: int, first: int | None, last: int | None) -> Step:
    match step:
        case Where():
            return replace(step, input=_narrowed(step.input, position, first, last))
        case UnionAll():
            return replace(step, inputs=tuple(_narrowed(inner, position, first, last) for inner in step.inputs))
        case Select():
            passed = dict(step.columns)[position]
            if passed.startswith("c") and passed[1:].isdigit():
                return replace(step, input=_narrowed(step.input, int(passed[1:]), first, last))
        case Read() if position in (fields := dict(step.fields)) and isinstance(step.source, TimeBounded):
            if step.watermark is not None:
                return step  # every row counts for the watermark
            return replace(step, source=step.source.within(TimeSpan(fields[position], first, last)))
    return step
