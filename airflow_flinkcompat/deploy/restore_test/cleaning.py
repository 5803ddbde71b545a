"""End of everything that a rehearsal has started."""

from __future__ import annotations

import time
from contextlib import suppress

from airflow_flinkcompat.deploy.errors import DeployError, SavepointFailed, SnapshotGone, StopFailed
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.restore_test.place import RestoreTestTarget, Started
from airflow_flinkcompat.deploy.target import Operation, Verb

SECONDS = 300.0
"""Seconds for which a watcher whose owner died keeps trying."""
_EVERY = 0.5
# A job this long unknown to the cluster after its owner's end was never submitted.
_COMING_SECONDS = 60.0


def clean_up(
    target: RestoreTestTarget,
    started: Started,
    *,
    timeout: float = SECONDS,
    coming: float = _COMING_SECONDS,
) -> list[str]:
    """Cancel jobs and dispose of savepoints, for as long as it takes; return a description of the rest.

    ``coming``: how long (seconds) a job that the cluster does not know may still come up.
    """
    begin = time.monotonic()

    def step() -> list[str]:
        may_come = time.monotonic() - begin < coming
        # Jobs first: a stop that is at work ends with its job.
        operations = sorted(started.operations.values(), key=lambda each: each.verb is not Verb.START)
        left = {each.request_id: _ended(target, each, may_come) for each in operations}
        # What is done is not tried again.
        started.operations = {key: each for key, each in started.operations.items() if left[key]}
        return [words for words in left.values() if words]

    try:
        return poll(step, bool, timeout=timeout, every=_EVERY)
    except Overdue as overdue:
        still: list[str] = overdue.last
        return still


def _ended(target: RestoreTestTarget, operation: Operation, may_come: bool) -> str:
    """Empty once nothing is left of an operation, or can come of it any more."""
    try:
        end = _end_job if operation.verb is Verb.START else _end_savepoint
        return end(target, operation, may_come)
    except DeployError as error:  # the target may come back
        return str(error)


def _end_job(target: RestoreTestTarget, start: Operation, may_come: bool) -> str:
    job = target.poll(start).job
    status = None if job is None else target.status(job)
    if job is None or status is None:
        return f"job {start.job or f'of request {start.request_id}'} may still start" if may_come else ""
    if not status.terminal:
        target.cancel(job)
    return ""


def _end_savepoint(target: RestoreTestTarget, asked: Operation, _may_come: bool) -> str:
    try:
        snapshot = asked.snapshot or target.poll(asked).snapshot
    except (SavepointFailed, StopFailed):  # none was written, or it was never asked for
        return ""
    if snapshot is None:
        return f"the savepoint {asked.request_id} of job {asked.job} is still being written"
    with suppress(SnapshotGone):
        target.dispose(snapshot)
    return ""
