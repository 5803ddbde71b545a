"""Stopping the former job with its state, or finding out the result of an earlier attempt."""

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
# Seconds between two looks at a stop; from its end until the next look, no job of the deployment runs.
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Stopped:
    """State that the former job left: its place, REST statistics, and source positions before the stop.

    ``request_id``: the id for its successor's start, which is that of its stop; None if a start was already requested
    under it, or the job was cancelled.
    """

    savepoint: Snapshot | None = None
    state: SnapshotStats | None = None
    offsets: Mapping[str, int] = field(default_factory=dict)
    request_id: str | None = None

    @classmethod
    def of(cls, entry: StoppedEntry, steps: Sequence[StepEntry]) -> Stopped:
        """Build the result from the job's ledger entry among these steps."""
        left = entry.stop
        spent = any(step.request_id == left.request_id for step in steps)
        return cls(left.savepoint, left.state, left.offsets, None if spent else left.request_id)


def stop(run: Run, head: HeadEntry, progress: Progress) -> Stopped:
    """Stop the job of ``head``. Raises StartFailed, DeployRefused, and Ended if the stop made it fail."""
    job_id = head.start.job_ref
    _settle(run, job_id)
    stopping = progress.latest(StoppingEntry, StoppedEntry, FailedEntry)
    if isinstance(stopping, StoppingEntry) and stopping.stop.job_id == job_id and _fits(run, stopping.stop):
        run.log(f"entry {stopping.number} began to stop job {job_id}: finding out whether it stopped")
    else:
        stopping = _intent(run, job_id)
    if stopping.stop.request_id is None:
        run.log(f"cancelling job {job_id}: the next job resumes from its latest retained checkpoint")
        stopped = _cancelled(run, stopping.stop)
    else:
        run.log(f"stopping job {job_id} with a savepoint (open windows stay open)")
        stopped = _stopped(run, stopping.stop, head)
    run.append(
        StoppedEntry(
            owner=run.owner,
            job=stopping.job,
            review=stopping.review,
            origin=stopping.origin,
            hand_over=stopping.hand_over,
            start_mode=stopping.start_mode,
            stop=_left_by(stopping.stop, stopped),
        )
    )
    run.log(f"stopped; its state is in {stopped.savepoint}")
    return replace(stopped, offsets=stopping.stop.offsets, request_id=stopping.stop.request_id)


def _left_by(asked: JobStop, stopped: Stopped) -> JobStop:
    """The stop with its result; a savepoint without a time gets the time of the job's end."""
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


def _fits(run: Run, begun: JobStop) -> bool:
    """True if an earlier intent fits this run: cancelling a running job requires its start mode."""
    return begun.request_id is not None or run.mode is StartMode.CHECKPOINT or not run.runs(begun.job_id)


def last_checkpoint(run: Run, job_id: JobRef, state: str = "CANCELED") -> SnapshotStats:
    """The checkpoint that outlives a job which ends, or ended, in this state. Raises DeployRefused."""
    if not isinstance(run.target, RetainedCheckpoints):
        raise DeployRefused(
            f"the retained checkpoint of job {job_id} {CANNOT_TELL}: use start mode {StartMode.SAVEPOINT} this time"
        )
    taken = snapshot_stats(run, job_id, "completed")
    if taken is None or not taken.path or not run.target.keeps_checkpoints(job_id, state):
        raise DeployRefused(
            f"job {job_id} does not retain checkpoints when cancelled: set "
            "'execution.checkpointing.externalized-checkpoint-retention' = 'RETAIN_ON_CANCELLATION' in its "
            f"script, and use start mode {StartMode.SAVEPOINT} this time"
        )
    return taken


def snapshot_stats(run: Run, job_id: JobRef, kind: str) -> SnapshotStats | None:
    """The latest ``completed`` checkpoint or ``savepoint`` of a job, if the target shows it."""
    return run.target.snapshot_stats(job_id, kind) if isinstance(run.target, CheckpointStatistics) else None


def _intent(run: Run, job_id: JobRef) -> StoppingEntry:
    """Record the intention to stop, under an id by which the cluster can later be queried."""
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


def _stopped(run: Run, asked: JobStop, head: HeadEntry) -> Stopped:
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
            f"{run.options.stop_timeout:.0f} s and is still writing to "
            f"{directory or 'the savepoint directory of the cluster'}: nothing else was done. Run this again "
            "to wait for the same stop"
        ) from None
    except StopFailed as error:
        raise _not_stopped(run, asked, head, str(error)) from None
    return Stopped(savepoint, saved_state(run, job_id, savepoint))


def _settle(run: Run, job_id: JobRef) -> None:
    """Wait until all tasks of the job run or never will, because a starting job refuses to stop."""

    def begins(status: JobStatus | None) -> bool:
        return status is not None and status.starting

    with suppress(Overdue):  # the cluster's own error gives the reason
        poll(lambda: run.target.status(job_id), begins, timeout=min(run.options.stop_timeout, _BEGIN_SECONDS))


def saved_state(run: Run, job_id: JobRef, savepoint: str | None) -> SnapshotStats | None:
    """Statistics of the savepoint that ended a job; None while the cluster's statistics are older."""
    taken = snapshot_stats(run, job_id, "savepoint")
    return taken if taken is not None and same_snapshot(taken.path, savepoint) else None


class Ended(Exception):
    """The former job failed while it was stopped, and left a checkpoint: that entry begins its rollback."""

    def __init__(self, failed: FailedEntry) -> None:
        super().__init__(failed.message)
        self.failed = failed


def _not_stopped(run: Run, asked: JobStop, head: HeadEntry, reason: str) -> StartFailed | Ended:
    """Record that the former job could not be stopped, and return the error that describes it."""
    status = run.target.status(asked.job_id)
    state = status.state if status else "unknown to the cluster"
    message = f"job {asked.job_id} could not be stopped with a savepoint and is {state}: {reason}"
    former = JobStart(str(run.mode), job_id=asked.job_id)
    failed = FailedEntry(**run.attempt, start=former, message=message.rstrip("."))
    if status is not None and not status.terminal:
        run.append(failed)
        return StartFailed(
            f"{message}\nIt keeps running as before; nothing was started. Remove the cause, then deploy again"
        )
    checkpoint, words = _left(run, asked, status)
    # A cancellation is intended: only a failed job is started again, as Flink would restart it.
    if checkpoint is not None and state == "FAILED" and run.options.roll_back:
        left = replace(former, savepoint=checkpoint)
        return Ended(run.append(replace(failed, start=left, rolls_back_to=head.number)))
    run.append(failed)
    message = (
        f"{message}\nNo job of {run.ledger.deployment} runs now, and no savepoint of the stop was found; {words}. "
    )
    if checkpoint is None:
        return StartFailed(f"{message}The only choice left is a stateless start, with ended jobs allowed")
    by_hand = "start the script that `flinkcompat ledger show` prints"
    if isinstance(run.target, ManualStart):
        by_hand = run.target.manual_start(checkpoint, "the statements that `flinkcompat ledger show` prints")
    return StartFailed(
        f"{message}To resume from it by hand, {by_hand}; then record the job with `flinkcompat ledger adopt`"
    )


def _left(run: Run, asked: JobStop, status: JobStatus | None) -> tuple[Snapshot | None, str]:
    """The checkpoint left by a job that ended without a savepoint, with the known facts about it."""
    job_id = asked.job_id
    if status is None:  # the cluster has forgotten it
        if asked.checkpoint is None:
            return None, "it had no checkpoint before the stop"
        return asked.checkpoint, f"its latest checkpoint was {asked.checkpoint} (look next to it for a later one)"
    if not isinstance(run.target, RetainedCheckpoints):
        return None, f"the list of its remaining checkpoints {CANNOT_TELL}"
    if not run.target.keeps_checkpoints(job_id, status.state):
        option = "execution.checkpointing.externalized-checkpoint-retention"
        return None, f"its checkpoints were deleted with it, because '{option}' does not retain them"
    taken = run.target.last_checkpoint(job_id)
    return (taken.path, f"its latest checkpoint is {taken.path}") if taken else (None, "it had no checkpoint")


def _cancelled(run: Run, asked: JobStop) -> Stopped:
    job_id = asked.job_id
    if run.runs(job_id):
        run.target.cancel(job_id)
    taken = run.target.last_checkpoint(job_id) if isinstance(run.target, RetainedCheckpoints) else None
    if taken is None:  # the cluster has forgotten it, so the recorded one counts
        return Stopped(asked.checkpoint)
    return Stopped(taken.path, taken)


def savepoint_root(run: Run) -> str | None:
    """Folder of this deployment's savepoints; None if the cluster names none."""
    if run.options.savepoint_directory is not None:
        return run.options.savepoint_directory
    return run.target.savepoint_root() if isinstance(run.target, SavepointStore) else None


def _directory(run: Run, request_id: str) -> str | None:
    """A folder for one stop, which contains only its savepoint; None if the cluster names none."""
    root = savepoint_root(run)
    return f"{root.rstrip('/')}/{run.ledger.deployment}/{request_id}" if root else None
