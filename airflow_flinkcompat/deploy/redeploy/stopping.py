"""Ending the former job so that its state is kept, or finding out what became of an earlier attempt to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused, StopFailed
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.ledger.history import LedgerEntry
from airflow_flinkcompat.deploy.ledger.steps import FAILED, STOPPED, STOPPING, Progress
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
    TakenState,
    Verb,
    same_snapshot,
)
from airflow_flinkcompat.model import StartMode

_BEGIN_SECONDS = 60.0
# Between two looks at a stop: nothing of the deployment runs from its end on, until somebody sees that.
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Stopped:
    """What the former job left: where its state is, what REST showed of it, and where its sources stood before."""

    savepoint: Snapshot | None = None
    state: TakenState | None = None
    offsets: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {**(self.state.to_dict() if self.state else {}), "offsets": dict(self.offsets)}

    @classmethod
    def of(cls, entry: LedgerEntry) -> Stopped:
        """As an entry holds it."""
        state = dict(entry.state)
        state.pop("directory", None)
        return cls(entry.savepoint, offsets=state.pop("offsets", {}), state=TakenState.from_dict(state))


def stop(run: Run, template: LedgerEntry, head: LedgerEntry, progress: Progress) -> Stopped:
    """Stop the job of ``head``.

    Raises StartFailed: it could not be stopped; Ended: it failed over that; DeployRefused: it keeps no checkpoint.
    """
    job_id = head.job_ref
    _settle(run, job_id)
    before = progress.latest(STOPPING, STOPPED, FAILED)
    if before is not None and before.kind == STOPPING and before.job_id == job_id and _fits(run, before):
        run.log(f"entry {before.number} began to stop job {job_id}: finding out what became of it")
        stopping = before
    else:
        stopping = _intent(run, template, job_id)
    if stopping.trigger_id is None:
        run.log(f"cancelling job {job_id}: its latest retained checkpoint is what goes on")
        stopped = _cancelled(run, stopping)
    else:
        run.log(f"stopping job {job_id} with a savepoint (open windows stay open)")
        stopped = _stopped(run, template, stopping, head)
    stopped = replace(stopped, offsets=stopping.state.get("offsets", {}))
    done = replace(stopping, kind=STOPPED, savepoint=stopped.savepoint, state=stopped.to_dict(), owner=run.owner)
    run.append(replace(done, at=""))
    run.log(f"stopped; its state is in {stopped.savepoint}")
    return stopped


def _fits(run: Run, stopping: LedgerEntry) -> bool:
    """Whether an earlier intent is one of this run: to cancel a job that still runs takes its start mode."""
    return stopping.trigger_id is not None or run.mode is StartMode.CHECKPOINT or not run.runs(stopping.job_id)


def last_checkpoint(run: Run, job_id: JobRef, state: str = "CANCELED") -> TakenState:
    """The checkpoint that outlives a job which ends, or ended, in this state. Raises DeployRefused."""
    if not isinstance(run.target, RetainedCheckpoints):
        raise DeployRefused(
            f"which checkpoint outlives job {job_id} {CANNOT_TELL}: use start mode {StartMode.SAVEPOINT} this time"
        )
    taken = taken_state(run, job_id, "completed")
    if taken is None or not taken.path or not run.target.keeps_checkpoints(job_id, state):
        raise DeployRefused(
            f"job {job_id} keeps no checkpoint that outlives it: set "
            "'execution.checkpointing.externalized-checkpoint-retention' = 'RETAIN_ON_CANCELLATION' in its script, "
            f"and use start mode {StartMode.SAVEPOINT} this time"
        )
    return taken


def taken_state(run: Run, job_id: JobRef, kind: str) -> TakenState | None:
    """The latest ``completed`` checkpoint or ``savepoint`` of a job, where the target shows them."""
    return run.target.taken_state(job_id, kind) if isinstance(run.target, CheckpointStatistics) else None


def _intent(run: Run, template: LedgerEntry, job_id: JobRef) -> LedgerEntry:
    """Write down what is about to be done, under an id by which the cluster can be asked about it."""
    if run.mode is StartMode.CHECKPOINT:
        taken: TakenState | None = last_checkpoint(run, job_id)
        trigger_id = None
    else:
        taken, trigger_id = taken_state(run, job_id, "completed"), new_id()
    offsets = run.target.source_offsets(job_id) if isinstance(run.target, OffsetStatistics) else {}
    known = {
        "offsets": dict(offsets),
        "directory": _directory(run, trigger_id) if trigger_id else None,
    }
    entry = replace(template, kind=STOPPING, job_id=job_id, trigger_id=trigger_id, state=known)
    return run.append(replace(entry, checkpoint=(taken.path or None) if taken else None))


def _stopped(run: Run, template: LedgerEntry, stopping: LedgerEntry, head: LedgerEntry) -> Stopped:
    job_id, trigger_id = stopping.job_ref, str(stopping.trigger_id)
    directory = stopping.state.get("directory")
    operation = Operation(Verb.STOP, trigger_id, job_id, directory=directory)
    try:
        if run.runs(job_id):
            run.target.stop(job_id, trigger_id, directory)
        wait = Wait(job_id, time.time(), 0, trigger_id)
        timeout = run.options.stop_timeout
        savepoint = run.wait(
            lambda: run.target.poll(operation).snapshot, lambda s: s is None, timeout, wait, _LOOK_SECONDS
        )
    except Overdue:
        raise DeployError(
            f"the stop of job {job_id} with a savepoint did not complete within {run.options.stop_timeout:.0f} s and "
            f"is still at work, into {directory or 'the place the cluster is set to'}: nothing else was done. Run this "
            "again to wait for it (the same stop, not a second one)"
        ) from None
    except StopFailed as error:
        raise _not_stopped(run, template, stopping, head, str(error)) from None
    return Stopped(savepoint, saved_state(run, job_id, savepoint))


def _settle(run: Run, job_id: JobRef) -> None:
    """Wait until all tasks of the job run, or none will: one that only begins (recovered, say) refuses to stop."""

    def begins(status: JobStatus | None) -> bool:
        return status is not None and status.starting

    with suppress(Overdue):  # the cluster says itself why it cannot be stopped
        poll(lambda: run.target.status(job_id), begins, timeout=min(run.options.stop_timeout, _BEGIN_SECONDS))


def saved_state(run: Run, job_id: JobRef, savepoint: str | None) -> TakenState | None:
    """What the cluster shows of the savepoint by which a job ended; None while its statistics are older than that."""
    taken = taken_state(run, job_id, "savepoint")
    return taken if taken is not None and same_snapshot(taken.path, savepoint) else None


class Ended(Exception):
    """The former job failed while it was stopped, and left a checkpoint: that entry begins its way back."""

    def __init__(self, failed: LedgerEntry) -> None:
        super().__init__(failed.message)
        self.failed = failed


def _not_stopped(
    run: Run, template: LedgerEntry, stopping: LedgerEntry, head: LedgerEntry, reason: str
) -> StartFailed | Ended:
    """Record that the former job could not be stopped, and say what is to be known of it."""
    status = run.target.status(stopping.job_ref)
    state = status.state if status else "unknown to the cluster"
    message = f"job {stopping.job_id} could not be stopped with a savepoint and is {state}: {reason}"
    failed = replace(template, kind=FAILED, job_id=stopping.job_id, message=message.rstrip("."))
    if status is not None and not status.terminal:
        run.append(failed)
        return StartFailed(f"{message}\nIt goes on as before; nothing was started. Mend the cause, then deploy again")
    checkpoint, words = _left(run, stopping, status)
    # Whoever cancelled it meant to: only a job that failed, as Flink would restart it, is started again.
    if checkpoint is not None and state == "FAILED" and run.options.roll_back:
        return Ended(run.append(replace(failed, savepoint=checkpoint, rolls_back_to=head.number)))
    run.append(failed)
    message = (
        f"{message}\nNothing of {run.ledger.deployment} runs now, and no savepoint of the stop was found; {words}. "
    )
    if checkpoint is None:
        return StartFailed(f"{message}What is left is a stateless start, with ended jobs allowed")
    by_hand = "start the script that `flinkcompat ledger show` prints"
    if isinstance(run.target, ManualStart):
        by_hand = run.target.manual_start(checkpoint, "the statements that `flinkcompat ledger show` prints")
    return StartFailed(f"{message}To go on from it by hand, {by_hand}; then `flinkcompat ledger adopt` the job")


def _left(run: Run, stopping: LedgerEntry, status: JobStatus | None) -> tuple[Snapshot | None, str]:
    """The checkpoint left by a job that ended without a savepoint, and what is known of it."""
    job_id = stopping.job_ref
    if status is None:  # the cluster has forgotten it
        if stopping.checkpoint is None:
            return None, "it had no checkpoint before the stop"
        return stopping.checkpoint, f"its latest checkpoint was {stopping.checkpoint} (a later one would lie beside it)"
    if not isinstance(run.target, RetainedCheckpoints):
        return None, f"which of its checkpoints are left {CANNOT_TELL}"
    if not run.target.keeps_checkpoints(job_id, status.state):
        option = "execution.checkpointing.externalized-checkpoint-retention"
        return None, f"its checkpoints went with it, because '{option}' does not keep them"
    taken = run.target.last_checkpoint(job_id)
    return (taken.path, f"its latest checkpoint is {taken.path}") if taken else (None, "it had no checkpoint")


def _cancelled(run: Run, stopping: LedgerEntry) -> Stopped:
    """Cancel the job and take its latest retained checkpoint."""
    job_id = stopping.job_ref
    if run.runs(job_id):
        run.target.cancel(job_id)
    taken = run.target.last_checkpoint(job_id) if isinstance(run.target, RetainedCheckpoints) else None
    if taken is None:  # forgotten by the cluster: the one that was written down
        return Stopped(stopping.checkpoint)
    return Stopped(taken.path, taken)


def savepoint_root(run: Run) -> str | None:
    """Where this deployment's savepoints go; None: the cluster names no place."""
    if run.options.savepoint_directory is not None:
        return run.options.savepoint_directory
    return run.target.savepoint_root() if isinstance(run.target, SavepointStore) else None


def _directory(run: Run, trigger_id: str) -> str | None:
    """A folder for this one stop, so that a savepoint found there is its own; None: the cluster names no place."""
    root = savepoint_root(run)
    return f"{root.rstrip('/')}/{run.ledger.deployment}/{trigger_id}" if root else None
