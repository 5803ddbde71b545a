"""A long range cut into pieces that are computed one after the other; every window belongs to exactly one of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from airflow_flinkcompat.backfill.compile.window_origins import windows_of
from airflow_flinkcompat.backfill.durations import shown_duration
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.protocols import Range
from airflow_flinkcompat.backfill.spark_sql.windows import EPOCH
from airflow_flinkcompat.compat.cutover.boundary import nearest
from airflow_flinkcompat.plan.nodes import Window, WindowKind
from airflow_flinkcompat.plan.program import Program

_MILLISECOND, _SECOND = timedelta(milliseconds=1), timedelta(seconds=1)
_MOST = 10_000
"""Chunks of one run: each is compiled, and is a job of its own."""


def chunk_ranges(program: Program, bounds: Range, length: timedelta) -> tuple[Range, ...]:
    """The pieces of a range, in order, each about ``length`` long: a window belongs to that in which it ends.

    They begin where no window is cut: at a multiple of the slide of HOP, of the size of TUMBLE and CUMULATE. Raises
    :class:`BackfillError` for an open range, a SESSION, and a length in which no such moment lies.
    """
    windows = [window for pipeline in program.pipelines for window in windows_of(pipeline.sink.input)]
    if bounds.from_ is None or bounds.to is None:
        raise BackfillError("chunks need a range with both ends: give --from and --to (or --boundary)")
    aligned = [window for window in windows if window is not None and window.kind is not WindowKind.SESSION]
    if len(aligned) < len(windows):
        raise BackfillError(
            "a SESSION ends where its data pauses, so a range of sessions cannot be cut into chunks: leave out --chunk"
        )
    cuts = [bounds.from_, *_cuts(aligned, bounds.from_, bounds.to, length), bounds.to]
    ranges = (Range(bounds.from_, last, first) for first, last in pairwise(cuts))
    return (Range(bounds.from_, cuts[1]), *list(ranges)[1:])


def _cuts(windows: list[Window], from_: datetime, to: datetime, length: timedelta) -> list[datetime]:
    found = nearest(windows, (from_ - EPOCH) // _MILLISECOND)
    if found is None:
        raise BackfillError("no moment divides all windows of the script at once: leave out --chunk")
    step = (found[1] - found[0]) * _MILLISECOND
    if length < step:
        raise BackfillError(
            f"a chunk of {shown_duration(length)} would cut windows: it has to last {shown_duration(step)} or longer"
        )
    number = -((to - from_) // -length)
    if number > _MOST:
        raise BackfillError(
            f"chunks of {shown_duration(length)} would be {number} over this range, and {_MOST} is the most: they have "
            f"to last {shown_duration(-((to - from_) // -(_MOST * _SECOND)) * _SECOND)} or longer"
        )
    origin = EPOCH + found[0] * _MILLISECOND
    cuts = (origin + (from_ + length * i - origin) // step * step for i in range(1, number))
    return [cut for cut in dict.fromkeys(cuts) if cut > from_]
