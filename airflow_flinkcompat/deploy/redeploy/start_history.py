"""Verification of a start long after it was made, by events within its settle time.

Since then Flink may have restarted the job from a checkpoint of its own, and its present state proves little about the
start. To go back now would write the rows since the savepoint a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.ledger.entries import LedgerEntry, StoppedEntry
from airflow_flinkcompat.deploy.target import CANNOT_TELL, JobHistory, JobStatus, checkpoint_number, same_snapshot


@dataclass(frozen=True)
class StartHistory:
    """Judgement of a start that another call began.

    ``since``: time of its record, in seconds since the epoch; ``start_seconds``: time that it had to prove itself.
    ``number``: of the savepoint's or checkpoint's own number, 0 for a start without state, None if nobody knows it.
    ``job_history``: asks the target; None if it does not show that. ``exact``: it began then, not at some time after
    that. ``otherwise``: remedy for a job that is not right.
    """

    job_id: str
    savepoint: str | None
    number: Callable[[], int | None]
    since: float
    start_seconds: float
    settle_seconds: float
    job_history: Callable[[], JobHistory | None]
    exact: bool = True
    otherwise: str = "cancel it, and deploy again"

    def proved(self, status: JobStatus) -> tuple[str, ...] | None:
        """History of the job after it was proved, a line each; None if its settle time must still be judged.

        The start is proved if the first restore was the requested one and either of two conditions holds. A checkpoint
        of its own was complete for the settle time before anything failed. Or all failures happened long after the time
        of the start and the settle time. Raises DeployError if this is unknown: the start is then neither recorded nor
        undone.
        """
        seen = self.job_history()
        if seen is None:
            raise self._inconclusive(status, f"its history since then {CANNOT_TELL}")
        began_as_given = same_snapshot(seen.restored, self.savepoint)
        own = seen.restored_own
        events = list(seen.failures)
        if own and not events and seen.restored_at is not None:  # recovered with its JobManager, which forgets failures
            events = [seen.restored_at]
        if not events or not seen.completed or not (began_as_given or own):
            return None
        if not seen.all_failures:
            raise self._inconclusive(status, "it failed so often that Flink no longer shows its first failures")
        first = min(events)
        settled = seen.checkpoint is not None and first >= seen.checkpoint + self.settle_seconds
        if not settled and first < self.since + self.start_seconds + self.settle_seconds:
            return None
        if not settled and not self.exact:
            raise self._inconclusive(
                status,
                "its start time is unknown, and Flink does not show the checkpoints before its first failure",
            )
        if not began_as_given and not self._began_with_it(status, seen):
            raise self._inconclusive(
                status,
                f"it was last restored from a checkpoint of its own, {seen.restored}, and its history does "
                f"not prove that it started from {self.savepoint or 'an empty state'}",
            )
        times = len(seen.failures)
        failed = f"failed {times} time{'s' * (times != 1)}, first" if times else "was recovered"
        at = datetime.fromtimestamp(first, UTC).isoformat(timespec="seconds")
        last = f": {status.failure}" if status.failure else ""
        return (
            f"after its settle time it {failed} at {at}, and is {status.state} now"
            f"{'' if began_as_given else f', restored from its own checkpoint {seen.restored}'}{last}",
        )

    def _began_with_it(self, status: JobStatus, seen: JobHistory) -> bool:
        """True if a job that was restored from its own checkpoint began with the requested state.

        Flink numbers a job's checkpoints from its start (from 1 without state), so the numbers unused by its own
        checkpoints are those before it. Flink also counts every restore, including the first. Both must fit.
        """
        number = self.number()
        pending = 0 if status.tasks_running else 1  # a failure it was not restored after
        after_failures = len(seen.failures) - pending
        if number is None or seen.restored_number is None:
            return False
        if self.savepoint is None:
            return seen.newest <= seen.triggered and seen.restores <= len(seen.failures)
        return (
            seen.restored_number > number
            and seen.newest - seen.completed >= number
            and seen.restores > max(after_failures, 0)
        )

    def _inconclusive(self, status: JobStatus, why: str) -> DeployError:
        return DeployError(
            f"the outcome of the start of job {self.job_id} can no longer be determined, because {why}. It "
            f"is {status.state}; nothing was stopped or started. Look at its rows and its log: if it is "
            f"correct, record it with `flinkcompat ledger adopt --job-id {self.job_id} --former-ended`; if "
            f"not, {self.otherwise}"
        )


def number_of(savepoint: str | None, entries: Sequence[LedgerEntry]) -> int | None:
    """The number that Flink gave a savepoint or checkpoint; 0 for none, None if nobody knows it.

    Of a savepoint that was not measured, the number of the checkpoint before it: its own is higher.
    """
    if savepoint is None:
        return 0
    stops = [entry.stop for entry in entries if isinstance(entry, StoppedEntry)]
    stops = [stop for stop in stops if same_snapshot(stop.savepoint, savepoint)]
    numbers = [stop.state.number for stop in stops if stop.state and stop.state.number is not None]
    numbers += filter(None, map(checkpoint_number, (savepoint, *(stop.checkpoint for stop in stops))))
    return next(iter(numbers), None)
