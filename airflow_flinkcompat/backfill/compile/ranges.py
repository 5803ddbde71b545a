"""The steps of a program for any range of published windows, from those that it was compiled to for one."""

from __future__ import annotations

from dataclasses import replace

from airflow_flinkcompat.backfill.protocols import Range
from airflow_flinkcompat.backfill.spark_sql.windows import Aligned, WindowRange, micros_of
from airflow_flinkcompat.backfill.steps import Assign, AssignSessions, DropLate, Read, Step, UnionAll


def published_windows(bounds: Range) -> WindowRange:
    """The windows wholly inside a range, and of the chunk where it is one."""
    return WindowRange.inside(bounds.from_, bounds.to, bounds.after)


def for_range(step: Step, published: WindowRange) -> Step:
    """The same step for another range.

    Args:
        step: A step as it is compiled, of which no source was told which times are asked for.
        published: The windows that are published now.

    Returns:
        The step that compiling the program for that range would give.
    """
    if isinstance(step, Read):
        return step
    if isinstance(step, UnionAll):
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
    """Spark SQL: the window that ends at ``end`` is one of the range's own, each of which one chunk alone has."""
    micros = micros_of(end)
    bounds = ((windows.start(micros), ">=", own.starts), (micros, ">=", own.ends), (micros, "<=", own.until))
    return " AND ".join(f"{value} {sign} {moment}" for value, sign, moment in bounds if moment is not None) or "TRUE"
