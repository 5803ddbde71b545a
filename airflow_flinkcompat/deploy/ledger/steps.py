"""Steps of a redeploy in the ledger, and the progress of earlier runs since the last deployment.

``deploying`` claims the deployment for one run. ``stopping`` → ``stopped`` names the former job; ``starting`` →
``started`` → ``deployed`` the new one. ``failed`` ends an attempt or, with ``rolls_back_to``, begins the way back:
``rolling-back`` → ``rolled-back``. Each action is recorded before it is taken, under an id chosen beforehand (one for
the stop and the start that follows). A later run can therefore ask the cluster about its outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from airflow_flinkcompat.deploy.ledger.entries import (
    DeployingEntry,
    FailedEntry,
    HeadEntry,
    LedgerEntry,
    RollingBackEntry,
    RunEntry,
    StepEntry,
    StoppedEntry,
    StoppingEntry,
)

S = TypeVar("S", bound=StepEntry)


@dataclass(frozen=True)
class Progress:
    """``head``: the deployment in force; ``steps``: all redeploy steps after it; ``last``: a number."""

    head: HeadEntry | None
    steps: tuple[StepEntry, ...]
    last: int

    @classmethod
    def of(cls, entries: Sequence[LedgerEntry]) -> Progress:
        """Compute the progress from the ledger's entries, oldest first."""
        head = next((entry for entry in reversed(entries) if isinstance(entry, HeadEntry)), None)
        since = 0 if head is None else head.number
        steps = tuple(entry for entry in entries if entry.number > since and isinstance(entry, StepEntry))
        return cls(head, steps, entries[-1].number if entries else 0)

    @property
    def unfinished(self) -> RunEntry | None:
        """The last step of an unfinished run."""
        last = self.steps[-1] if self.steps else None
        return last if isinstance(last, RunEntry) and last.is_open else None

    @property
    def reached(self) -> StepEntry | None:
        """The last step that did something, claims excluded."""
        return next((entry for entry in reversed(self.steps) if not isinstance(entry, DeployingEntry)), None)

    @property
    def stopped(self) -> StoppedEntry | None:
        """The stop that ended the head's job; None if a later one was begun, or failed: the job had come back."""
        ours = (entry for entry in reversed(self.steps) if self.head and entry.job_id == self.head.job_id)
        last = next((entry for entry in ours if isinstance(entry, StoppingEntry | StoppedEntry | FailedEntry)), None)
        return last if isinstance(last, StoppedEntry) else None

    @property
    def failed_start(self) -> FailedEntry | None:
        """The failed start whose way back is unfinished."""
        way_back = isinstance(self.reached, RollingBackEntry | FailedEntry) and self.reached.is_open
        if self.head is None or not way_back:
            return None
        failed = (entry for entry in reversed(self.steps) if isinstance(entry, FailedEntry))
        return next((entry for entry in failed if entry.rolls_back_to == self.head.number), None)

    def latest(self, *kinds: type[S]) -> S | None:
        """The last step of one of these kinds."""
        return next((entry for entry in reversed(self.steps) if isinstance(entry, kinds)), None)


def begun_mode(progress: Progress, sha256: str) -> str | None:
    """Start mode of an unfinished run that deploys this version; a retry continues in it."""
    claim = progress.latest(DeployingEntry)
    if progress.unfinished is None or progress.reached is None or claim is None or claim.sha256 != sha256:
        return None
    return claim.start_mode
