"""Resumption after a dead run: its result, its unfinished start, the former job, or a refusal.

A stopped job ends with its savepoint, and its successor resumes from there. It may still come back: a JobManager
recovers it from a checkpoint, or somebody restarts it. From then on its reads and writes are in no earlier savepoint.
Starting from the first savepoint would then process rows twice or lose them. As long as its successor neither runs nor
may still be accepted, the former job is stopped once more, and the start begins again from the savepoint of that last
stop. Otherwise the start is refused, because only a person can decide which of the two stays.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, prepare
from airflow_flinkcompat.deploy.ledger.entries import (
    DeployedEntry,
    DeployingEntry,
    FailedEntry,
    HeadEntry,
    LedgerEntry,
    RolledBackEntry,
    StartedEntry,
    StartEntry,
    StartingEntry,
    StepEntry,
    StoppedEntry,
    StoppingEntry,
)
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.redeploy.run import IN_FLIGHT_SECONDS, RolledBack, Run, age_of, short
from airflow_flinkcompat.deploy.redeploy.stopping import Stopped, last_checkpoint
from airflow_flinkcompat.deploy.target import SavepointStore, Snapshot
from airflow_flinkcompat.model import StartMode


def previous_result(
    run: Run, entries: Sequence[LedgerEntry], checked: str | None, asked_at: datetime | None
) -> DeployedEntry | None:
    """Result that this run reached before it died. Raises RolledBack.

    The name of a run is not enough to identify it: a cleared task keeps it. The finished run must have been checked
    against the same side (``checked``), with the same version, start and hand-over, and a failure must not have been
    retried since (``asked_at``).
    """
    progress = Progress.of(entries)
    head = progress.head
    if head is None or head.owner != run.owner or progress.steps:
        return None
    before = Progress.of([entry for entry in entries if entry.number < head.number])
    former = before.head.sha256 if before.head else None
    if former != checked:
        return None
    if isinstance(head, RolledBackEntry):
        failed = before.failed_start
        again = asked_at is not None and head.written < asked_at
        if failed is None or failed.sha256 != run.side.digest() or again:
            return None
        raise RolledBack(head.message)
    if not isinstance(head, DeployedEntry):
        return None
    handed = {json.dumps(each, sort_keys=True) for each in (head.hand_over, run.hand_over)}
    same = run.starts_as(head) and head.sha256 == run.side.digest() and len(handed) == 1
    if not same:
        return None
    status = run.target.status(head.start.job_ref)
    if status is None or (status.terminal and status.state != "FINISHED"):
        return None
    run.log(f"job {head.job_id} was deployed by an earlier attempt of this run (entry {head.number})")
    return head


def validated(run: Run, progress: Progress) -> bool:
    """True if an unfinished run has validated this version before it touched anything."""
    claim = progress.latest(DeployingEntry)
    return progress.unfinished is not None and claim is not None and claim.sha256 == run.side.digest()


def came_back(run: Run, head: HeadEntry | None, begun: StartEntry | None) -> bool:
    """True if the former job runs although ``begun`` followed it. Raises DeployRefused if both run."""
    if head is None or not run.runs(head.job_id):
        return False
    if begun is None:
        return True
    status = run.status_of(begun)
    fact = f"job {head.job_id} of {run.ledger.deployment} (entry {head.number}) runs again after its stop"
    if status is not None and not status.terminal:
        raise DeployRefused(
            f"{fact}, and job {begun.job_id} of entry {begun.number}, which resumed from "
            f"{begun.start.savepoint}, runs too: both write to the same sink, so rows since then are written "
            f"twice. Cancel one of them, then deploy again: without job {head.job_id}, the other one "
            f"continues; without job {begun.job_id}, the former one is stopped again, and its successor "
            "resumes from there"
        )
    age = age_of(begun)
    if status is None and age < IN_FLIGHT_SECONDS:
        raise DeployRefused(
            f"{fact}, and job {begun.job_id} of entry {begun.number} may still be accepted next to it: "
            f"deploy again in {IN_FLIGHT_SECONDS - age:.0f} s to stop it again"
        )
    return True


def unfinished_start(run: Run, progress: Progress) -> StartingEntry | StartedEntry | None:
    """The unfinished start that an earlier run of this version recorded."""
    reached = progress.reached
    if not isinstance(reached, StartingEntry | StartedEntry):
        return None
    if came_back(run, progress.head, reached):
        run.log(
            f"the former job runs again after its stop: the start of entry {reached.number} from "
            f"{reached.start.savepoint} is abandoned, because its savepoint lacks the rows since then"
        )
        return None
    status = run.status_of(reached)
    ended = status is not None and status.terminal
    as_wanted = run.starts_as(reached)
    if reached.sha256 == run.side.digest() and (as_wanted or not ended):
        if not as_wanted:
            raise DeployRefused(
                f"entry {reached.number} ({reached.owner}) began a start in mode {reached.start.start_mode}, and this "
                f"run is to start in mode {run.mode}: clear that run, or cancel job {reached.job_id}; then deploy again"
            )
        run.log(f"entry {reached.number} began to start job {reached.job_id}: resuming that start")
        return reached
    if status is not None and not ended:
        raise DeployRefused(
            f"job {reached.job_id} of entry {reached.number} runs another version ({short(reached.sha256)}) that was "
            f"never verified: clear the run that started it ({reached.owner}), or cancel the job; then deploy again"
        )
    age = age_of(reached)
    if status is None and age < IN_FLIGHT_SECONDS:
        raise DeployRefused(
            f"job {reached.job_id} of entry {reached.number}, another version ({short(reached.sha256)}), may still be "
            f"accepted: wait for {IN_FLIGHT_SECONDS - age:.0f} s, or clear the run that began it ({reached.owner})"
        )
    return None


def former_state(run: Run, progress: Progress, taken_up: StartEntry | None) -> Stopped | None:
    """State that the former job left when a redeploy stopped it; None while it must still be stopped."""
    head = progress.head
    if head is None:
        return Stopped()
    job_id = head.start.job_ref
    status = run.target.status(job_id)
    runs = status is not None and not status.terminal
    stopped = progress.stopped
    if stopped is not None and not runs:
        if taken_up is None:
            run.log(f"job {job_id} was stopped by entry {stopped.number}; its state is in {stopped.stop.savepoint}")
        return Stopped.of(stopped, progress.steps)
    last = progress.latest(StoppingEntry, StoppedEntry, FailedEntry)
    if runs or isinstance(last, StoppingEntry):
        return None
    if taken_up is not None or (run.options.allow_ended and run.mode is StartMode.STATELESS):
        return Stopped()
    if run.mode is StartMode.CHECKPOINT and status is not None:
        taken = last_checkpoint(run, job_id, status.state)
        return Stopped(taken.path, taken)
    seen = f"is {status.state}" if status else "is unknown to the cluster"
    check_overtaken(run)
    left = run.target.final_savepoint(job_id) if status and isinstance(run.target, SavepointStore) else None
    once = progress.latest(StoppedEntry) is not None
    by = "no deployment stopped its last run" if once else "no deployment stopped it"
    raise DeployRefused(
        f"job {job_id} of {run.ledger.deployment} (ledger entry {head.number}) {seen}, and {by}: there is no "
        f"savepoint to resume from{_left_in(left, head)}. Find out why it ended; then resume from its last "
        "checkpoint (start mode checkpoint, if checkpoints are retained and the change is compatible), or "
        "restart it stateless with ended jobs allowed"
    )


def job_name(run: Run) -> str:
    return prepare(run.side.script, run.side.source).job_name or run.job_settings(run.side.settings)[JOB_NAME]


def check_strangers(run: Run, progress: Progress, taken_up: StartEntry | None) -> None:
    """Raise DeployRefused if another job of this name runs, or one that an earlier run began."""
    head = progress.head
    name = job_name(run)
    begun = {job for step in progress.steps if (job := run.job_of(step))}
    ours = {job for entry in (head, taken_up) if entry and (job := run.job_of(entry))}
    strangers = sorted({*run.target.running(name), *(job for job in begun - ours if run.runs(job))} - ours)
    if strangers:
        check_overtaken(run)
        raise DeployRefused(
            f"job {', '.join(strangers)} named {name!r} runs on the cluster and is not the job of the ledger "
            f"({head.job_id if head else 'nothing is deployed'}): two jobs would write to the same sink. "
            "Stop it, or deploy under another name"
        )


def anything_runs(run: Run, progress: Progress) -> bool:
    """True if any job that the ledger names runs, or if this is unknown."""
    try:
        return any(run.runs(job) for job in {run.job_of(entry) for entry in (progress.head, *progress.steps) if entry})
    except DeployError:
        return True


def check_overtaken(run: Run) -> None:
    """Check that no run that began after the ledger was read started the observed job."""
    newer = [entry for entry in run.ledger.entries() if entry.number > run.last and isinstance(entry, StepEntry)]
    if newer:
        raise DeployRefused(
            f"{newer[-1].owner} deploys {run.ledger.deployment} at the same time (entry {newer[-1].number}, "
            f"{newer[-1].kind}): wait for its end, then check the change again"
        )


def _left_in(savepoint: Snapshot | None, head: HeadEntry) -> str:
    if savepoint is None:
        return ""
    return (
        f", except {savepoint}, left by whoever stopped it: start the script of entry {head.number} from "
        "that savepoint, and record the job with `flinkcompat ledger adopt`"
    )
