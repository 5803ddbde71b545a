"""Verification that a started job runs from the requested state. State RUNNING alone is no proof.

Measured on Flink 2.3: a job whose state is refused at restore is RUNNING for about half a second before it fails. With
a restart strategy, the job restarts forever. If a start was long ago, only events within its settle time count. Since
then, Flink may have restarted the job from the job's own checkpoint. A rollback would then write all rows since the
savepoint again.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_flinkcompat.deploy.errors import DeployError, StateFault
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.ledger.entries import LedgerEntry, StoppedEntry
from airflow_flinkcompat.deploy.target import (
    CANNOT_TELL,
    CheckpointStatistics,
    JobHistory,
    JobRef,
    JobStatus,
    OffsetStatistics,
    SnapshotStats,
    Start,
    Strength,
    Target,
    VertexState,
    checkpoint_number,
    same_snapshot,
)

# Seconds to wait until the job takes a checkpoint by itself. After this time, a checkpoint is requested.
_OWN_CHECKPOINT_SECONDS = 4.0
# Maximum seconds between a failure and its reason in REST answers (web.refresh-interval is 3 s by default).
_REASON_SECONDS = 6.0
_BAD_STATES = frozenset({"FAILING", "FAILED", "CANCELLING", "CANCELED", "RESTARTING", "SUSPENDED"})


class VerificationFailed(DeployError):
    """A job does not run from the requested state; ``fault`` is the reported fault of the state."""

    def __init__(self, message: str, fault: StateFault | None = None) -> None:
        super().__init__(message)
        self.fault = fault


class Unproven(VerificationFailed):
    """A start was not proved in time; ``proven_since`` is set if only the settle time was missing."""

    def __init__(self, message: str, missing: str, proven_since: float | None) -> None:
        super().__init__(message)
        self.missing = missing
        self.proven_since = proven_since


@dataclass(frozen=True)
class Verified:
    """A verified job: last status, evidence ``lines``, later events, and the former job's state ``saved``."""

    status: JobStatus
    lines: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    saved: SnapshotStats | None = None


def verify_start(
    target: Target,
    job_id: JobRef,
    start: Start,
    *,
    settle_seconds: float,
    timeout: float,
    log: Callable[[str], None],
    state: Callable[[], SnapshotStats | None] | None = lambda: None,
    offsets: Mapping[str, int] | None = None,
    proven_since: float | None = None,
    history: StartHistory | None = None,
    clock: Callable[[], float] = time.time,
) -> Verified:
    """Wait until the start of the job is proved.

    The proof of a start has several conditions. Every task runs, and the job completed a checkpoint. The path from
    which Flink restored the job is the savepoint (or none for a stateless start). The job then ran without failure
    for ``settle_seconds``. No operator's state was dropped, and no source is behind its stored offset. A job with
    bounded input may also end by itself (FINISHED).

    ``state`` is a function that returns the state of the stopped former job, or None if that state is unknown. It is
    called only after all other conditions hold. If the state was rewritten, ``state`` itself is None. ``offsets``
    contains the former job's next offset by source partition. ``proven_since`` is the time at which an earlier call
    began to wait for the settle time. ``history`` judges a start that an earlier call began. Raises
    VerificationFailed, Unproven after ``timeout`` seconds, and DeployError.
    """
    watch = _Watch(target, job_id, start, settle_seconds, log, clock, history, proven_since=proven_since)
    try:
        status = poll(watch.look, lambda seen: seen is None, timeout=timeout)
    except Overdue:
        raise Unproven(
            f"job {job_id} was not verified within {timeout:.0f} s: {watch.missing}",
            watch.missing,
            watch.proven_since,
        ) from None
    assert status is not None
    lines = [_began(start, watch.strength)]
    completed = f"checkpoints: {CANNOT_TELL}"
    if status.completed_checkpoints is not None:
        completed = f"{status.completed_checkpoints} checkpoints completed"
    lines.append(f"{completed}, no failure for {settle_seconds:g} s")
    lines += watch.later
    if start.savepoint:
        found = (_compared_state(target, job_id, state), _compared_offsets(target, job_id, offsets or {}))
        lines += [line for words, _ in found for line in words]
        if wrong := "; ".join(wrong for _, wrong in found if wrong):
            raise VerificationFailed(f"job {job_id} is {status.state}, but {wrong}")
    for line in lines:
        log(line)
    return Verified(status, tuple(lines), watch.later)


def _began(start: Start, strength: Strength) -> str:
    """Text about the job's initial state, which depends on the strength of the evidence."""
    state = start.savepoint or "an empty state"
    if strength is Strength.UNKNOWN:
        return f"requested start from {state}; the restored state {CANNOT_TELL}"
    words = f"restored from {state}" if start.savepoint else f"started from {state}"
    return words if strength is Strength.OBSERVED else f"{words}, as declared by the platform (not observed)"


def _compared_state(
    target: Target, job_id: JobRef, state: Callable[[], SnapshotStats | None] | None
) -> tuple[tuple[str, ...], str]:
    if state is None:
        return ("state sizes: not compared, because the former job's state was rewritten",), ""
    if not isinstance(target, CheckpointStatistics):
        return (f"state sizes: {CANNOT_TELL}",), ""
    return compare_state(state(), target.snapshot_stats(job_id, "completed"))


def _compared_offsets(target: Target, job_id: JobRef, before: Mapping[str, int]) -> tuple[tuple[str, ...], str]:
    if not isinstance(target, OffsetStatistics):
        return (f"source offsets: {CANNOT_TELL}",), ""
    return compare_offsets(before, target.source_offsets(job_id))


@dataclass
class _Watch:
    """A verification in progress."""

    target: Target
    job_id: JobRef
    start: Start
    settle_seconds: float
    log: Callable[[str], None]
    clock: Callable[[], float]
    history: StartHistory | None = None
    later: tuple[str, ...] = ()
    missing: str = "the cluster never listed it"
    running_since: float | None = None
    proven_since: float | None = None
    failed_since: float | None = None
    # If a job's history proves the start, the target observed this history.
    strength: Strength = Strength.OBSERVED
    asked: bool = False

    def look(self) -> JobStatus | None:
        """The job's status if its start is proved, or None while it is not. Raises VerificationFailed."""
        status = self.target.status(self.job_id)
        if status is None:
            return None
        # A job that failed and restarted by itself counts as failed, even if REST shows the reason later.
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
            self.log(f"job {self.job_id} is {status.state}, restored from {restored}; watching the job")
        if status.state == "FINISHED" or self.clock() - self.proven_since >= self.settle_seconds:
            return status
        self.missing = "the settle time has not passed yet"
        return None

    def _proved_before(self, status: JobStatus) -> bool:
        """True if the start was proved before the last status. Raises DeployError if this is unknown."""
        if self.history is not None:
            self.later = self.history.proved(status) or ()
        return bool(self.later)

    def _fail(self, status: JobStatus) -> None:
        """Raise VerificationFailed if Flink reports the failure's reason, or no reason for several seconds."""
        if self.failed_since is None:
            self.failed_since = self.clock()
        if status.failure or self.clock() - self.failed_since >= _REASON_SECONDS:
            why = status.failure or "no reason reported"
            raise VerificationFailed(f"job {self.job_id} is {status.state} after its start: {why}", status.fault)
        self.missing = f"it is {status.state}"

    def _lacks(self, status: JobStatus) -> str:
        """The missing part of the proof, or "" if the proof is complete."""
        if status.state != "FINISHED":
            if not status.tasks_running:
                return f"it is {status.state}, but not every task runs (check that the cluster has enough task slots)"
            if self.running_since is None:
                self.running_since = self.clock()
            if status.completed_checkpoints == 0:
                self._ask_for_checkpoint()
                return "its tasks run, but no checkpoint has completed"
        proof = self.target.restored_from(self.job_id)
        self.strength = proof.strength
        if proof.strength is Strength.UNKNOWN or same_snapshot(proof.snapshot, self.start.savepoint):
            return ""
        if not self._proved_before(status):
            raise VerificationFailed(
                f"job {self.job_id} was restored from {proof.snapshot or 'nothing'} instead of "
                f"{self.start.savepoint or 'nothing'}"
            )
        return ""

    def _ask_for_checkpoint(self) -> None:
        assert self.running_since is not None
        if not isinstance(self.target, CheckpointStatistics):
            return
        if self.asked or self.clock() - self.running_since < _OWN_CHECKPOINT_SECONDS:
            return
        self.asked = True
        try:
            self.target.request_checkpoint(self.job_id)
        except DeployError as error:  # without this request, the job's own interval still triggers a checkpoint
            self.log(f"no checkpoint could be triggered: {error}")


_NUMBER = re.compile(r"\[\d+\]")


def compare_state(saved: SnapshotStats | None, first: SnapshotStats | None) -> tuple[tuple[str, ...], str]:
    """Compare a savepoint with the first checkpoint after its restore. Return lines, and a fault or "".

    Sizes are sums over all subtasks, so they are comparable at any parallelism. If the new job lacks a vertex that had
    state, state was dropped. The reason is that operators of the same topology keep their ids (measured on Flink 2.3).
    Without planner-generated ids (``table.exec.uid.generation``), a change of operator chaining changes vertex ids.
    Therefore a missing vertex is also searched by its operator names if the two jobs differ in parallelism.
    """
    if saved is None or first is None or not saved.vertices or not first.vertices:
        return ("state sizes: not compared, because the target does not show them",), ""
    lines = [f"state: {first.bytes:,} bytes in the first checkpoint, {saved.bytes:,} in the savepoint"]
    kept = [(before, first.vertices[key]) for key, before in saved.vertices.items() if key in first.vertices]
    missing = [before for key, before in saved.vertices.items() if before.bytes and key not in first.vertices]
    for before, after in kept:
        if before.bytes:
            now, then = _subtasks(after, before), _subtasks(before, after)
            lines.append(f"  {before.name}: {after.bytes:,} bytes{now}, {before.bytes:,}{then} before")
    if not missing:
        return tuple(lines), ""
    dropped = ", ".join(f"{before.name} ({before.bytes:,} bytes)" for before in missing)
    places = _elsewhere(missing, [before for before, _ in kept], list(first.vertices.values()))
    if not any(place.bytes for place in places):
        return tuple(lines), f"state was dropped: no operator of the new job restored the state of {dropped}"
    found = ", ".join(f"{place.name} ({place.bytes:,} bytes)" for place in places)
    return (*lines, f"  chained differently at this parallelism: {found}; before: {dropped}"), ""


def _subtasks(vertex: VertexState, other: VertexState) -> str:
    """Number of subtasks, or "" if it is the same in both vertices."""
    count = vertex.parallelism
    return f" in {count} subtask{'s' * (count != 1)}" if count != other.parallelism else ""


def _elsewhere(
    missing: Sequence[VertexState], kept: Sequence[VertexState], now: Sequence[VertexState]
) -> list[VertexState]:
    """The new job's vertices that contain all operators of missing vertices; empty at equal parallelism."""
    if len({vertex.parallelism for vertex in (*missing, *kept, *now)}) == 1:
        return []
    wanted = sum((_operators(vertex) for vertex in missing), Counter[str]())
    spare = sum((_operators(vertex) for vertex in now), Counter[str]())
    spare -= sum((_operators(vertex) for vertex in kept), Counter[str]())
    return [vertex for vertex in now if _operators(vertex) & wanted] if wanted <= spare else []


def _operators(vertex: VertexState) -> Counter[str]:
    """Operator names in a vertex name such as ``Source: s[1] -> (Calc[2] -> k[3]: Writer)``."""
    names = (_NUMBER.sub("", name).strip() for name in re.split(r" -> |, |[()]", vertex.name))
    return Counter(filter(None, names))


def compare_offsets(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[tuple[str, ...], str]:
    """Compare source positions before the stop with current positions.

    Return lines of evidence, and a fault or "".
    """
    known = {key: (before[key], offset) for key, offset in after.items() if offset >= 0 and before.get(key, -1) >= 0}
    if not known:
        return ("source offsets: not compared, because no connector shows them before and after the stop",), ""
    back = [f"{key} from {old} to {new}" for key, (old, new) in sorted(known.items()) if new < old]
    if back:
        return (), f"a source moved back: {', '.join(back)}"
    return (f"source offsets: {len(known)} partition{'s' * (len(known) != 1)} resumed, none moved back",), ""


@dataclass(frozen=True)
class StartHistory:
    """Data to judge a start that an earlier call began.

    ``since`` is the time at which the start was recorded, in seconds since the epoch. ``start_seconds`` is the time
    limit of the start. ``number`` returns the checkpoint number of the initial state: 0 for a start without state, or
    None if unknown. ``job_history`` queries the target, and returns None if the target shows no history of the job.
    ``exact`` is True if the job started at ``since``, and False if it may have started later. ``otherwise`` is the
    remedy if the job runs from the wrong state.
    """

    job_id: str
    savepoint: str | None
    number: Callable[[], int | None]
    since: float
    start_seconds: float
    settle_seconds: float
    job_history: Callable[[], JobHistory | None]
    exact: bool = True
    otherwise: str = "cancel the job, and deploy again"

    def proved(self, status: JobStatus) -> tuple[str, ...] | None:
        """Events after the proof of the start, one line each. None if history does not prove the start.

        History proves the start under two conditions. The first restore used the requested state. Before its first
        failure, the job had a complete checkpoint for the settle time, or the time limit of the start had passed.
        Raises DeployError if the conditions cannot be determined.
        """
        seen = self.job_history()
        if seen is None:
            raise self._inconclusive(status, f"the job's history since then {CANNOT_TELL}")
        began_as_given = same_snapshot(seen.restored, self.savepoint)
        own = seen.restored_own
        events = list(seen.failures)
        if (
            own and not events and seen.restored_at is not None
        ):  # the JobManager restarted and recovered the job, but lost its list of failures
            events = [seen.restored_at]
        if not events or not seen.completed or not (began_as_given or own):
            return None
        if not seen.all_failures:
            raise self._inconclusive(status, "the job failed so often that Flink no longer shows its first failures")
        first = min(events)
        settled = seen.checkpoint is not None and first >= seen.checkpoint + self.settle_seconds
        if not settled and first < self.since + self.start_seconds + self.settle_seconds:
            return None
        if not settled and not self.exact:
            raise self._inconclusive(
                status,
                "the job's start time is unknown, and Flink does not show the checkpoints before the first failure",
            )
        if not began_as_given and not self._began_with_it(status, seen):
            raise self._inconclusive(
                status,
                f"the job was last restored from its own checkpoint {seen.restored}, and its history does not prove "
                f"that it started from {self.savepoint or 'an empty state'}",
            )
        times = len(seen.failures)
        failed = f"failed {times} time{'s' * (times != 1)}, first" if times else "was recovered"
        at = datetime.fromtimestamp(first, UTC).isoformat(timespec="seconds")
        last = f": {status.failure}" if status.failure else ""
        return (
            f"after its settle time, the job {failed} at {at}, and is {status.state} now"
            f"{'' if began_as_given else f', restored from its own checkpoint {seen.restored}'}{last}",
        )

    def _began_with_it(self, status: JobStatus, seen: JobHistory) -> bool:
        """True if a job that restored its own checkpoint began with the requested state.

        Flink numbers a job's checkpoints from the number of its initial state (from 1 without state). So the count of
        checkpoint numbers that the job did not use reveals the number of the initial state. Flink also counts all
        restores, including the first. The checkpoint numbers and the count of restores must both match the requested
        state.
        """
        number = self.number()
        pending = 0 if status.tasks_running else 1  # the restore after the last failure may still be missing
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
            f"the outcome of the start of job {self.job_id} can no longer be determined, because {why}. The job is "
            f"{status.state}. Nothing was stopped or started. Check the job's rows and its log. If the job is "
            f"correct, record it with `flinkcompat ledger adopt --job-id {self.job_id} --former-ended`. Otherwise "
            f"{self.otherwise}"
        )


def number_of(savepoint: str | None, entries: Sequence[LedgerEntry]) -> int | None:
    """Flink's number of a savepoint or checkpoint, 0 for no state, or None if unknown.

    For a savepoint without statistics, the result is the lower number of an earlier checkpoint.
    """
    if savepoint is None:
        return 0
    stops = [entry.stop for entry in entries if isinstance(entry, StoppedEntry)]
    stops = [stop for stop in stops if same_snapshot(stop.savepoint, savepoint)]
    numbers = [stop.state.number for stop in stops if stop.state and stop.state.number is not None]
    numbers += filter(None, map(checkpoint_number, (savepoint, *(stop.checkpoint for stop in stops))))
    return next(iter(numbers), None)
