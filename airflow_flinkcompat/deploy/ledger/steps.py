"""The steps of a redeploy as the ledger holds them, and how far earlier runs came since the last deployment.

``deploying`` claims the deployment for one run. ``stopping`` → ``stopped`` names the former job; ``starting`` →
``started`` → ``deployed`` the new one. ``failed`` ends an attempt, or, with ``rolls_back_to``, begins the way back:
``rolling-back`` → ``rolled-back``. What is about to be done is written down before it is done, under an id chosen
beforehand, so that whoever comes later can ask the cluster what became of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_flinkcompat.deploy.ledger.history import HEADS, LedgerEntry

DEPLOYING, STOPPING, STOPPED, STARTING, STARTED = "deploying", "stopping", "stopped", "starting", "started"
DEPLOYED, FAILED, ROLLING_BACK, ROLLED_BACK = "deployed", "failed", "rolling-back", "rolled-back"
STEPS = HEADS | {DEPLOYING, STOPPING, STOPPED, STARTING, STARTED, ROLLING_BACK}
# After one of these a run has more to do.
_OPEN = frozenset({DEPLOYING, STOPPING, STOPPED, STARTING, STARTED, ROLLING_BACK})


@dataclass(frozen=True)
class Progress:
    """``head`` is the deployment that is in force, ``steps`` all that redeploys did after it, ``last`` a number."""

    head: LedgerEntry | None
    steps: tuple[LedgerEntry, ...]
    last: int

    @classmethod
    def of(cls, entries: Sequence[LedgerEntry]) -> Progress:
        """What the ledger's entries, oldest first, say."""
        head = next((entry for entry in reversed(entries) if entry.is_head), None)
        since = 0 if head is None else head.number
        steps = tuple(entry for entry in entries if entry.number > since and is_step(entry))
        return cls(head, steps, entries[-1].number if entries else 0)

    @property
    def unfinished(self) -> LedgerEntry | None:
        """The last step of a run that has not come to its end."""
        last = self.steps[-1] if self.steps else None
        return last if last is not None and is_open(last) else None

    @property
    def reached(self) -> LedgerEntry | None:
        """The last step that did something, beside claims."""
        return next((entry for entry in reversed(self.steps) if entry.kind != DEPLOYING), None)

    @property
    def stopped(self) -> LedgerEntry | None:
        """The stop that ended the head's job; None where a later one was begun, or failed: the job had come back."""
        ours = (entry for entry in reversed(self.steps) if self.head and entry.job_id == self.head.job_id)
        last = next((entry for entry in ours if entry.kind in (STOPPING, STOPPED, FAILED)), None)
        return last if last is not None and last.kind == STOPPED else None

    @property
    def failed_start(self) -> LedgerEntry | None:
        """The failed start whose way back has not come to its end."""
        reached = self.reached
        if self.head is None or reached is None or not (reached.kind == ROLLING_BACK or reached.rolls_back_to):
            return None
        failed = (entry for entry in reversed(self.steps) if entry.rolls_back_to == self.head.number)
        return next(failed, None)

    def latest(self, *kinds: str) -> LedgerEntry | None:
        """The last step of one of these kinds."""
        return next((entry for entry in reversed(self.steps) if entry.kind in kinds), None)


def is_open(entry: LedgerEntry) -> bool:
    """Whether the run that wrote the entry had more to do."""
    return entry.kind in _OPEN or bool(entry.rolls_back_to)


def is_step(entry: LedgerEntry) -> bool:
    """Whether a redeploy wrote the entry; a decision or a failed check in between takes no part in the sequence."""
    return entry.kind in STEPS or (entry.kind == FAILED and bool(entry.script))
