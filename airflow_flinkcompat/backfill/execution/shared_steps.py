"""Which steps several readers have in common."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_flinkcompat.backfill.steps import Assign, DropLate, Expand, Read, Select, Step, UnionAll, Where, Write


def shared_steps(writes: Iterable[Write]) -> frozenset[Step]:
    """The widest steps that several steps or sinks read, down to where rows are still one each.

    Rows that come once per window are cheaper made again than kept, and an aggregation may do without them.
    """
    readers: dict[Step, int] = {}
    pending = [step for write in writes for step in write.inputs]
    while pending:
        step = pending.pop()
        readers[step] = readers.get(step, 0) + 1
        if readers[step] == 1 or _spread(step):
            pending += step.inputs if isinstance(step, UnionAll) else [] if isinstance(step, Read) else [step.input]
    return frozenset(step for step, count in readers.items() if count > 1 and not _spread(step))


def _spread(step: Step) -> bool:
    """Whether rows come several times, as projected or filtered after that."""
    while isinstance(step, Select | Where | DropLate):
        step = step.input
    return isinstance(step, Expand) or (isinstance(step, Assign) and step.windows.overlapping)
