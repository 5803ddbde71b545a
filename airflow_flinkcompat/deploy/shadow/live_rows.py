"""Wait between the savepoints of a shadow run, in which the live job reads rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.rehearsal.place import TrialTarget
from airflow_flinkcompat.deploy.rehearsal.restoring import Inconclusive, require_running
from airflow_flinkcompat.deploy.target import JobRef, RowCounts

_EVERY = 2.0
"""Seconds between two looks at the live job."""


def wait_for_rows(
    target: TrialTarget, job: JobRef, seconds: float, rows: int | None, log: Callable[[str], None]
) -> float:
    """Wait until the live job has read ``rows`` rows, at most ``seconds``. Return the waited seconds.

    Raises Inconclusive if the job stops running, or if the target cannot count rows.
    """
    begin = time.monotonic()
    if rows is None:
        log(f"waiting for {seconds:.0f} s, in which the live job reads rows")
        with suppress(Overdue):
            poll(lambda: require_running(target, job), lambda _: True, timeout=seconds, every=_EVERY)
        return time.monotonic() - begin
    if not isinstance(target, RowCounts):
        raise Inconclusive(f"{target} does not count the rows of sources: leave out --until-rows")
    counts, last, read = target, target.source_rows(job), 0
    log(f"waiting until the live job has read {rows} rows, at most {seconds:.0f} s")

    def look() -> int:
        """The rows that were read during the wait. A restart of the tasks sets the metric to 0."""
        nonlocal last, read
        require_running(target, job)
        if (now := counts.source_rows(job)) is not None:
            read += 0 if last is None else now - last if now >= last else now
            last = now
        return read

    with suppress(Overdue):
        poll(look, lambda seen: seen < rows, timeout=seconds, every=_EVERY)
    log(f"the live job has read {read} rows")
    return time.monotonic() - begin
