"""Progress of a rehearsal as JSON values, so that another process can resume it after a long wait.

The sequence runs from its beginning again; a completed step returns its stored result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.redeploy.run import Wait, Waiting
from airflow_flinkcompat.deploy.restore_test.place import Started
from airflow_flinkcompat.deploy.target import JobRef, Operation

T = TypeVar("T")
# A wait that is taken up again late looks for a moment all the same.
_AGAIN_SECONDS = 5.0


class Paused(Waiting):
    """A long wait, not a failure: call ``rehearse`` again with ``state``; started jobs continue meanwhile.

    If the caller does not, it must end them: ``Started.of(state)`` lists them.
    """

    def __init__(self, what: str, wait: Wait, state: Mapping[str, Any]) -> None:
        super().__init__(what, wait)
        self.state = state


@dataclass
class Journal:
    """Results of steps (``done``); ``patience``: longest wait here in seconds, None: up to the time-out."""

    done: dict[str, Any] = field(default_factory=dict)
    patience: float | None = None

    def once(self, step: str, do: Callable[[], T]) -> T:
        """The result of ``do`` as JSON values, or the stored result if this step was done."""
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
        """Look until the value is no longer pending; raises Overdue, or Waiting after ``patience``.

        ``asked``: the awaited stop or savepoint; ``settles``: the job has been watched since this began.
        """
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
        """Start of this wait in seconds since the epoch, even if an earlier process began it."""
        return self.once(f"{step}, since", time.time)

    def state(self, started: Started) -> dict[str, Any]:
        """The state for ``Paused``."""
        return {"done": self.done, "started": started.messages()}
