"""What a rehearsal has come to, as JSON values, so that another process goes on with it after a long wait.

The sequence is gone through from its beginning again; a step that was done gives what it gave then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.redeploy.run import Wait, Waiting
from airflow_flinkcompat.deploy.restore_test.started import Started
from airflow_flinkcompat.deploy.target import JobRef, Operation

T = TypeVar("T")
# A wait that is taken up again late looks for a moment all the same.
_AGAIN_SECONDS = 5.0


class Paused(Waiting):
    """Nothing failed: a wait takes long. Call ``rehearse`` again with ``state``; what was started goes on meanwhile.

    Whoever does not call again has to end it: ``Started.of(state)`` says what there is.
    """

    def __init__(self, what: str, wait: Wait, state: Mapping[str, Any]) -> None:
        super().__init__(what, wait)
        self.state = state


@dataclass
class Journal:
    """``done``: what each step gave. ``patience``: how long (seconds) one wait may take here; None: to its time-out."""

    done: dict[str, Any] = field(default_factory=dict)
    patience: float | None = None

    def once(self, step: str, do: Callable[[], T]) -> T:
        """What ``do`` gives, JSON values, or what it gave when this step was done."""
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
        """Look until it is no longer pending. Raises Overdue after ``timeout``, Waiting when patience ends before.

        ``asked``: the stop or savepoint that is waited for; ``settles``: the job is watched since this began.
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
        """When this wait began (seconds since the epoch), also where an earlier process began it."""
        return self.once(f"{step}, since", time.time)

    def state(self, started: Started) -> dict[str, Any]:
        """For ``Paused``."""
        return {"done": self.done, "started": started.messages()}
