"""Whether a started job really runs from the state it was given. RUNNING alone proves nothing.

Measured on Flink 2.3: a job whose state is refused at restore reads RUNNING for about half a second before it fails,
and with a restart strategy it goes on restarting for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.evidence import TakenState, compare_offsets, compare_state, same_place
from airflow_flinkcompat.deploy.flink.jobmanager import JobStatus
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.redeploy.past import Past
from airflow_flinkcompat.deploy.target import Start, Target

# A job whose interval is longer than this is asked for a checkpoint, instead of being waited for.
_OWN_CHECKPOINT_SECONDS = 4.0
# How long the reason of a failure may come after the failure itself (web.refresh-interval is 3 s by default).
_REASON_SECONDS = 6.0
_BAD_STATES = frozenset({"FAILING", "FAILED", "CANCELLING", "CANCELED", "RESTARTING", "SUSPENDED"})


class VerificationFailed(DeployError):
    """The job does not run from the state it was given; the message says what was seen."""


class Unproven(VerificationFailed):
    """The time is over and nothing is proved. ``proven_since``: only the settle time was not over yet."""

    def __init__(self, message: str, missing: str, proven_since: float | None) -> None:
        super().__init__(message)
        self.missing = missing
        self.proven_since = proven_since


@dataclass(frozen=True)
class Proof:
    """How the job was last seen, what was compared with what its predecessor left, a line each, and what came later."""

    status: JobStatus
    lines: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


def verify_start(
    target: Target,
    job_id: str,
    start: Start,
    *,
    settle_seconds: float,
    timeout: float,
    log: Callable[[str], None],
    state: Callable[[], TakenState | None] = lambda: None,
    offsets: Mapping[str, int] | None = None,
    proven_since: float | None = None,
    past: Past | None = None,
    clock: Callable[[], float] = time.time,
) -> Proof:
    """Wait until the job has proved itself.

    Proof: every task runs, a checkpoint of its own completed, the restored path is the savepoint (or there is none for
    a stateless start), nothing failed for ``settle_seconds`` after that, no operator's ``state`` (asked for last) was
    dropped and no source stands before ``offsets``. A job over bounded input may end by itself (FINISHED).
    ``proven_since`` (since the epoch) is when an earlier call saw the settle time begin; ``past`` judges a start of an
    earlier call that is not as it was any more: failures after its settle time do not undo it. Raises
    VerificationFailed (Unproven: the time is over); other DeployErrors mean that the target could not be asked.
    """
    watch = _Watch(target, job_id, start, settle_seconds, log, clock, past, proven_since=proven_since)
    try:
        status = poll(watch.look, lambda seen: seen is None, timeout=timeout)
    except Overdue:
        raise Unproven(
            f"the job {job_id} did not prove itself within {timeout:.0f} s: {watch.missing}",
            watch.missing,
            watch.proven_since,
        ) from None
    assert status is not None
    lines = [f"restored from {start.savepoint}" if start.savepoint else "started from an empty state"]
    lines.append(f"{status.completed_checkpoints} checkpoints completed, no failure for {settle_seconds:g} s")
    lines += watch.later
    if start.savepoint:
        found = (
            compare_state(state(), target.taken_state(job_id, "completed")),
            compare_offsets(offsets or {}, target.source_offsets(job_id)),
        )
        lines += [line for said, _ in found for line in said]
        if wrong := "; ".join(wrong for _, wrong in found if wrong):
            raise VerificationFailed(f"the job {job_id} is {status.state}, but {wrong}")
    for line in lines:
        log(line)
    return Proof(status, tuple(lines), watch.later)


@dataclass
class _Watch:
    """One verification as it goes on."""

    target: Target
    job_id: str
    start: Start
    settle_seconds: float
    log: Callable[[str], None]
    clock: Callable[[], float]
    past: Past | None = None
    later: tuple[str, ...] = ()
    missing: str = "it was never seen"
    running_since: float | None = None
    proven_since: float | None = None
    failed_since: float | None = None
    asked: bool = False

    def look(self) -> JobStatus | None:
        """The job's status once it has proved itself, None while it has not. Raises VerificationFailed."""
        status = self.target.status(self.job_id)
        if status is None:
            return None
        # A job that failed once and came back by itself did fail; the reason is only late.
        if status.failure or status.state in _BAD_STATES or self.failed_since is not None:
            if self._proved_before(status):
                return status
            self._fail(status)
            return None
        self.missing = self._lacks(status)
        if self.later:
            return status
        if self.missing:
            self.proven_since = None
            return None
        if self.proven_since is None:
            self.proven_since = self.clock()
            restored = self.start.savepoint or "nothing"
            self.log(f"job {self.job_id} is {status.state}, restored from {restored}; watching it")
        if status.state == "FINISHED" or self.clock() - self.proven_since >= self.settle_seconds:
            return status
        self.missing = "it has not been watched for long enough"
        return None

    def _proved_before(self, status: JobStatus) -> bool:
        """Whether it proved itself before it became what it is now. Raises DeployError: that cannot be told."""
        if self.past is not None:
            self.later = self.past.proved(status) or ()
        return bool(self.later)

    def _fail(self, status: JobStatus) -> None:
        """Raises VerificationFailed, at once when the reason is known."""
        if self.failed_since is None:
            self.failed_since = self.clock()
        if status.failure or self.clock() - self.failed_since >= _REASON_SECONDS:
            why = status.failure or "no reason is given"
            raise VerificationFailed(f"the job {self.job_id} is {status.state} after its start: {why}")
        self.missing = f"it is {status.state}"

    def _lacks(self, status: JobStatus) -> str:
        """What is not proved yet; empty when all is."""
        if status.state != "FINISHED":
            if not status.tasks_running:
                return f"it is {status.state}, and not every task runs (are there slots for all of them?)"
            if self.running_since is None:
                self.running_since = self.clock()
            if not status.completed_checkpoints:
                self._ask_for_checkpoint()
                return "its tasks run, and no checkpoint has completed"
        restored = self.target.restored_from(self.job_id)
        if not same_place(restored, self.start.savepoint) and not self._proved_before(status):
            raise VerificationFailed(
                f"the job {self.job_id} was restored from {restored or 'nothing'} instead of "
                f"{self.start.savepoint or 'nothing'}"
            )
        return ""

    def _ask_for_checkpoint(self) -> None:
        assert self.running_since is not None
        if self.asked or self.clock() - self.running_since < _OWN_CHECKPOINT_SECONDS:
            return
        self.asked = True
        try:
            self.target.request_checkpoint(self.job_id)
        except DeployError as error:  # the job's own interval still comes
            self.log(f"no checkpoint could be asked for: {error}")
