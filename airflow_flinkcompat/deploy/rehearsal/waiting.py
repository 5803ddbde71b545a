"""Waits of a rehearsal, which another process can resume, and savepoints of running jobs.

The journal stores the progress as JSON values, so that a different process can resume after a long wait. The resuming
process runs the sequence from the beginning. For completed steps, the sequence uses the stored results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from airflow_flinkcompat.deploy.errors import TargetError
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.redeploy.run import Wait, Waiting, new_id
from airflow_flinkcompat.deploy.rehearsal.place import LiveTarget, Started, Watcher
from airflow_flinkcompat.deploy.target import JobRef, Operation, Snapshot, Verb

T = TypeVar("T")
# Minimum seconds of a wait that a later process resumes.
_AGAIN_SECONDS = 5.0


class Paused(Waiting):
    """A long wait, which is no failure. To resume, call ``rehearse`` again with ``state``.

    The jobs of the rehearsal keep running during the wait. A caller that does not resume must cancel these jobs.
    ``Started.of(state)`` lists the jobs of the rehearsal.
    """

    def __init__(self, what: str, wait: Wait, state: Mapping[str, Any]) -> None:
        super().__init__(what, wait)
        self.state = state


@dataclass
class Journal:
    """Results of completed steps; ``patience``: maximum seconds of a wait, or None."""

    done: dict[str, Any] = field(default_factory=dict)
    patience: float | None = None

    def once(self, step: str, do: Callable[[], T]) -> T:
        """Run a step and store its result (JSON values), or return the stored result of the step."""
        if step not in self.done:
            self.done[step] = do()
        found: T = self.done[step]
        return found

    def until(
        self,
        step: str,
        look: Callable[[], T],
        pending: Callable[[T], bool],
        timeout: float,
        job_id: str,
        *,
        asked: Operation | None = None,
        settles: bool = False,
    ) -> T:
        """Poll until the value is not pending. Raises Overdue, or Waiting after ``patience``."""
        since = self.begun(step)
        left = max(timeout - (time.time() - since), _AGAIN_SECONDS)
        try:
            return poll(look, pending, timeout=left if self.patience is None else min(left, self.patience))
        except Overdue:
            if self.patience is None or left <= self.patience:
                raise
            wait = Wait(JobRef(job_id), since, time.time() + left, proven_since=since if settles else None)
            if asked is not None:
                wait = replace(wait, request_id=asked.request_id, verb=str(asked.verb))
            raise Waiting(f"waiting: {step}", wait) from None

    def begun(self, step: str) -> float:
        """Start time of a step in seconds since the epoch, even if an earlier process began the step."""
        return self.once(f"{step}, since", time.time)

    def state(self, started: Started) -> dict[str, Any]:
        return {"done": self.done, "started": started.messages()}


def step_of(job_id: str, what: str) -> str:
    return f"job {job_id} to {what}"


class SavepointTaker:
    """Taker of savepoints on a target, each within ``seconds``."""

    def __init__(self, target: LiveTarget, seconds: float, journal: Journal) -> None:
        self._target, self._savepoint_seconds, self._journal = target, seconds, journal

    def savepoint(
        self, watcher: Watcher, job: JobRef, directory: str | None, log: Callable[[str], None], step: str = "savepoint"
    ) -> Snapshot:
        """Take a savepoint of a job, which keeps running; ``step``: its name in the journal.

        The watcher deletes the savepoint at its end. Raises DeployError, Waiting.
        """

        def ask() -> str:
            log(f"taking a savepoint of job {job}, which keeps running")
            asked = Operation(Verb.SAVEPOINT, new_id(), job)
            watcher.announce(asked)
            self._target.savepoint(job, asked.request_id, directory)
            return asked.request_id

        once = self._journal.once
        asked = Operation(Verb.SAVEPOINT, once(f"{step} requested", ask), job)
        return Snapshot(once(step, lambda: self.awaited(watcher, asked)))

    def awaited(self, watcher: Watcher | None, asked: Operation) -> Snapshot:
        """Wait for the savepoint of a running job or of a stop. Raises DeployError, Waiting.

        The watcher deletes the savepoint at its end. With None, the savepoint is kept.
        """
        timeout = self._savepoint_seconds
        try:
            done = self._journal.until(
                f"savepoint {asked.request_id} of job {asked.job}",
                lambda: self._target.poll(asked),
                lambda seen: seen.snapshot is None,
                timeout,
                str(asked.job),
                asked=asked,
            )
        except Overdue:
            raise TargetError(f"the savepoint of job {asked.job} did not complete within {timeout:.0f} s") from None
        if watcher is not None:
            watcher.announce(done)
        assert done.snapshot is not None
        return done.snapshot
