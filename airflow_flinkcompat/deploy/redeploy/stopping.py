"""Stop of the former job with its state, or detection of an earlier stop's result."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused, StopFailed
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.ledger.entries import (
    FailedEntry,
    HeadEntry,
    JobStart,
    JobStop,
    StepEntry,
    StoppedEntry,
    StoppingEntry,
)
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.redeploy.run import Run, StartFailed, Wait, new_id
from airflow_flinkcompat.deploy.target import (
    CANNOT_TELL,
    CheckpointStatistics,
    JobRef,
    JobStatus,
    ManualStart,
    OffsetStatistics,
    Operation,
    RetainedCheckpoints,
    SavepointStore,
    Snapshot,
    SnapshotStats,
    Verb,
    same_snapshot,
)
from airflow_flinkcompat.model import StartMode

_BEGIN_SECONDS = 60.0
# Seconds between two polls of a stop. From the end of the stop to the next poll, no job of the deployment runs.
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Stopped:
    """State that the former job left: its location, statistics, and source positions before the stop.

    ``request_id`` is the stop's request id, which the successor's start also uses. ``request_id`` is None if a start
    with this id was already requested, or if the former job was cancelled.
    """

    savepoint: Snapshot | None = None
    state: SnapshotStats | None = None
    offsets: Mapping[str, int] = field(default_factory=dict)
    request_id: str | None = None

    @classmethod
    def of(cls, entry: StoppedEntry, steps: Sequence[StepEntry]) -> Stopped:
        """The result of a recorded stop. ``steps`` shows if the request id is already used."""
        left = entry.stop
        spent = any(step.request_id == left.request_id for step in steps)
        return cls(left.savepoint, left.state, left.offsets, None if spent else left.request_id)


def stop(run: Run, head: HeadEntry, progress: Progress) -> Stopped:
    """Stop the job that ``head`` deployed. Raises StartFailed, DeployRefused, and Ended if the job failed."""
    job_id = head.start.job_ref
    _settle(run, job_id)
    stopping = progress.latest(StoppingEntry, StoppedEntry, FailedEntry)
    if isinstance(stopping, StoppingEntry) and stopping.stop.job_id == job_id and _can_continue(run, stopping.stop):
        run.log(f"entry {stopping.number} began to stop job {job_id}; checking if it has stopped")
    else:
        stopping = _intent(run, job_id)
    if stopping.stop.request_id is None:
        run.log(f"cancelling job {job_id}; the next job resumes from its latest retained checkpoint")
        stopped = _cancel(run, stopping.stop)
    else:
        run.log(f"stopping job {job_id} with a savepoint (open windows stay open)")
        stopped = _stop_with_savepoint(run, stopping.stop, head)
    run.append(
        StoppedEntry(
            owner=run.owner,
            job=stopping.job,
            review=stopping.review,
            origin=stopping.origin,
            hand_over=stopping.hand_over,
            start_mode=stopping.start_mode,
            stop=_with_result(stopping.stop, stopped),
        )
    )
    run.log(f"stopped; its state is in {stopped.savepoint}")
    return replace(stopped, offsets=stopping.stop.offsets, request_id=stopping.stop.request_id)


def _with_result(asked: JobStop, stopped: Stopped) -> JobStop:
    """The requested stop with its result. If the savepoint's time is unknown, use the current time."""
    state = stopped.state
    taken = state.taken if state else None
    if taken is None and asked.request_id is not None:
        taken = time.time()
    return replace(
        asked,
        directory=None,
        savepoint=stopped.savepoint,
        state=state,
        savepoint_bytes=state.bytes if state and state.vertices else None,
        savepoint_at=datetime.fromtimestamp(taken, UTC).isoformat(timespec="milliseconds") if taken else None,
    )


def _can_continue(run: Run, begun: JobStop) -> bool:
    """True if this run can continue a stop that an earlier run began. Only mode checkpoint cancels a job."""
    return begun.request_id is not None or run.mode is StartMode.CHECKPOINT or not run.runs(begun.job_id)


def last_checkpoint(run: Run, job_id: JobRef, state: str = "CANCELED") -> SnapshotStats:
    """The checkpoint that is retained if the job ends in ``state``. Raises DeployRefused."""
    if not isinstance(run.target, RetainedCheckpoints):
        raise DeployRefused(
            f"the retained checkpoint of job {job_id} {CANNOT_TELL}. Use start mode {StartMode.SAVEPOINT} this time"
        )
    taken = snapshot_stats(run, job_id, "completed")
    if taken is None or not taken.path or not run.target.keeps_checkpoints(job_id, state):
        raise DeployRefused(
            f"job {job_id} does not retain checkpoints when cancelled. Set "
            "'execution.checkpointing.externalized-checkpoint-retention' = 'RETAIN_ON_CANCELLATION' in its script, "
            f"and use start mode {StartMode.SAVEPOINT} this time"
        )
    return taken


def snapshot_stats(run: Run, job_id: JobRef, kind: str) -> SnapshotStats | None:
    """Statistics of a job's latest ``completed`` checkpoint or ``savepoint``, if the target shows them."""
    return run.target.snapshot_stats(job_id, kind) if isinstance(run.target, CheckpointStatistics) else None


def _intent(run: Run, job_id: JobRef) -> StoppingEntry:
    """Record the intention to stop, with a request id that identifies the stop later."""
    if run.mode is StartMode.CHECKPOINT:
        taken: SnapshotStats | None = last_checkpoint(run, job_id)
        request_id = None
    else:
        taken, request_id = snapshot_stats(run, job_id, "completed"), new_id()
    asked = JobStop(
        job_id,
        request_id,
        checkpoint=(taken.path or None) if taken else None,
        offsets=dict(run.target.source_offsets(job_id)) if isinstance(run.target, OffsetStatistics) else {},
        directory=_directory(run, request_id) if request_id else None,
    )
    return run.append(StoppingEntry(**run.attempt, start_mode=str(run.mode), stop=asked))


def _stop_with_savepoint(run: Run, asked: JobStop, head: HeadEntry) -> Stopped:
    job_id, request_id, directory = asked.job_id, str(asked.request_id), asked.directory
    operation = Operation(Verb.STOP, request_id, job_id, directory=directory)
    try:
        if run.runs(job_id):
            run.target.stop(job_id, request_id, directory)
        wait = Wait(job_id, time.time(), 0, request_id)
        timeout = run.options.stop_timeout
        savepoint = run.wait(
            lambda: run.target.poll(operation).snapshot, lambda s: s is None, timeout, wait, _LOOK_SECONDS
        )
    except Overdue:
        raise DeployError(
            f"the stop of job {job_id} with a savepoint did not complete within "
            f"{run.options.stop_timeout:.0f} s and still writes to "
            f"{directory or 'the savepoint directory of the cluster'}. Nothing else was done. Run the redeploy again "
            "to wait for the same stop"
        ) from None
    except StopFailed as error:
        raise _not_stopped(run, asked, head, str(error)) from None
    return Stopped(savepoint, saved_state(run, job_id, savepoint))


def _settle(run: Run, job_id: JobRef) -> None:
    """Wait while the job is starting, because Flink does not stop a starting job."""

    def begins(status: JobStatus | None) -> bool:
        return status is not None and status.starting

    with suppress(Overdue):  # after the wait, the cluster's refusal of the stop gives the reason
        poll(lambda: run.target.status(job_id), begins, timeout=min(run.options.stop_timeout, _BEGIN_SECONDS))


def saved_state(run: Run, job_id: JobRef, savepoint: str | None) -> SnapshotStats | None:
    """Statistics of the savepoint with which a job stopped, or None if the cluster shows older statistics."""
    taken = snapshot_stats(run, job_id, "savepoint")
    return taken if taken is not None and same_snapshot(taken.path, savepoint) else None


class Ended(Exception):
    """The former job failed during its stop and left a checkpoint; entry ``failed`` begins the rollback."""

    def __init__(self, failed: FailedEntry) -> None:
        super().__init__(failed.message)
        self.failed = failed


def _not_stopped(run: Run, asked: JobStop, head: HeadEntry, reason: str) -> StartFailed | Ended:
    """Record that the former job could not be stopped, and return the error to raise."""
    status = run.target.status(asked.job_id)
    state = status.state if status else "unknown to the cluster"
    message = f"job {asked.job_id} could not be stopped with a savepoint and is {state}: {reason}"
    former = JobStart(str(run.mode), job_id=asked.job_id)
    failed = FailedEntry(**run.attempt, start=former, message=message.rstrip("."))
    if status is not None and not status.terminal:
        run.append(failed)
        return StartFailed(
            f"{message}\nThe job keeps running, and nothing was started. Remove the cause, then deploy again"
        )
    checkpoint, words = _remaining_checkpoint(run, asked, status)
    # Roll back only if the job failed, because Flink would also restart it. A CANCELED job was cancelled on purpose.
    if checkpoint is not None and state == "FAILED" and run.options.roll_back:
        left = replace(former, savepoint=checkpoint)
        return Ended(run.append(replace(failed, start=left, rolls_back_to=head.number)))
    run.append(failed)
    message = (
        f"{message}\nNo job of {run.ledger.deployment} runs now, and no savepoint of the stop was found; {words}. "
    )
    if checkpoint is None:
        return StartFailed(f"{message}The only remaining choice is a stateless start, with ended jobs allowed")
    by_hand = "start the script that `flinkcompat ledger show` prints"
    if isinstance(run.target, ManualStart):
        by_hand = run.target.manual_start(checkpoint, "the statements that `flinkcompat ledger show` prints")
    return StartFailed(
        f"{message}To resume from this checkpoint manually, {by_hand}. Then record the job with `flinkcompat ledger "
        "adopt`"
    )


def _remaining_checkpoint(run: Run, asked: JobStop, status: JobStatus | None) -> tuple[Snapshot | None, str]:
    """The checkpoint that a job left when it ended, and a text about the checkpoint."""
    job_id = asked.job_id
    if status is None:  # the cluster has forgotten the job
        if asked.checkpoint is None:
            return None, "the job had no checkpoint before the stop"
        return asked.checkpoint, (
            f"the job's latest known checkpoint is {asked.checkpoint} (look for a later checkpoint in the same folder)"
        )
    if not isinstance(run.target, RetainedCheckpoints):
        return None, f"the list of the job's remaining checkpoints {CANNOT_TELL}"
    if not run.target.keeps_checkpoints(job_id, status.state):
        option = "execution.checkpointing.externalized-checkpoint-retention"
        return None, f"the job's checkpoints were deleted at its end, because '{option}' does not retain them"
    taken = run.target.last_checkpoint(job_id)
    return (
        (taken.path, f"the job's latest checkpoint is {taken.path}") if taken else (None, "the job had no checkpoint")
    )


def _cancel(run: Run, asked: JobStop) -> Stopped:
    job_id = asked.job_id
    if run.runs(job_id):
        run.target.cancel(job_id)
    taken = run.target.last_checkpoint(job_id) if isinstance(run.target, RetainedCheckpoints) else None
    if taken is None:  # the cluster has forgotten the job, so use the recorded checkpoint
        return Stopped(asked.checkpoint)
    return Stopped(taken.path, taken)


def savepoint_root(run: Run) -> str | None:
    """Folder of the deployment's savepoints, or None if neither options nor cluster set a folder."""
    if run.options.savepoint_directory is not None:
        return run.options.savepoint_directory
    return run.target.savepoint_root() if isinstance(run.target, SavepointStore) else None


def _directory(run: Run, request_id: str) -> str | None:
    """A separate folder for the savepoint of one stop, or None if no savepoint folder is set."""
    root = savepoint_root(run)
    return f"{root.rstrip('/')}/{run.ledger.deployment}/{request_id}" if root else None
