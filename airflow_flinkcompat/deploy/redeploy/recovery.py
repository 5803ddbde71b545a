"""Resumption after a dead run: find its result, its unfinished start or the former job's state.

A stopped job leaves a savepoint, and its successor resumes from the savepoint. But the stopped job may run again: a
JobManager may recover it from a checkpoint, or someone may restart it. If the stopped job runs again, the savepoint
lacks the job's reads and writes since then. A start from this savepoint would process rows twice or lose rows.

If the successor neither runs nor may still be accepted, the former job is stopped again. The successor then starts from
the savepoint of the second stop. Otherwise the start is refused, because only a person can decide which of the two jobs
must stay.
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
    """The result that an earlier process of this run recorded before it died. Raises RolledBack.

    The run's name alone does not identify a run, because a cleared task keeps the name. The finished run must have been
    checked against the same deployed version (``checked``). The version, the start and the hand-over of the finished
    run must be the same. A rolled-back run must have ended after the request of this run (``asked_at``).
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
    run.log(f"an earlier attempt of this run deployed job {head.job_id} (entry {head.number})")
    return head


def validated(run: Run, progress: Progress) -> bool:
    """True if an unfinished run has already validated this version."""
    claim = progress.latest(DeployingEntry)
    return progress.unfinished is not None and claim is not None and claim.sha256 == run.side.digest()


def came_back(run: Run, head: HeadEntry | None, begun: StartEntry | None) -> bool:
    """True if the former job runs again after the start ``begun``. Raises DeployRefused if both jobs run."""
    if head is None or not run.runs(head.job_id):
        return False
    if begun is None:
        return True
    status = run.status_of(begun)
    fact = f"job {head.job_id} of {run.ledger.deployment} (entry {head.number}) runs again after its stop"
    if status is not None and not status.terminal:
        raise DeployRefused(
            f"{fact}, and job {begun.job_id} of entry {begun.number}, which resumed from {begun.start.savepoint}, "
            "also runs. Both jobs write to the same sink, so rows since then are written twice. Cancel one of the "
            "jobs, "
            f"then deploy again. If you cancel job {head.job_id}, job {begun.job_id} continues. If you cancel job "
            f"{begun.job_id}, the deployment stops job {head.job_id} again, and the new job resumes from its savepoint"
        )
    age = age_of(begun)
    if status is None and age < IN_FLIGHT_SECONDS:
        raise DeployRefused(
            f"{fact}, and job {begun.job_id} of entry {begun.number} may still be accepted. Deploy again in "
            f"{IN_FLIGHT_SECONDS - age:.0f} s, which stops job {head.job_id} again"
        )
    return True


def unfinished_start(run: Run, progress: Progress) -> StartingEntry | StartedEntry | None:
    """The unfinished start of this version that an earlier run recorded, or None."""
    reached = progress.reached
    if not isinstance(reached, StartingEntry | StartedEntry):
        return None
    if came_back(run, progress.head, reached):
        run.log(
            f"the former job runs again after its stop. The start of entry {reached.number} is abandoned, because its "
            f"savepoint {reached.start.savepoint} lacks the rows since then"
        )
        return None
    status = run.status_of(reached)
    ended = status is not None and status.terminal
    as_wanted = run.starts_as(reached)
    if reached.sha256 == run.side.digest() and (as_wanted or not ended):
        if not as_wanted:
            raise DeployRefused(
                f"entry {reached.number} ({reached.owner}) began a start in mode {reached.start.start_mode}, but this "
                f"run must start in mode {run.mode}. Clear that run, or cancel job {reached.job_id}. Then deploy again"
            )
        run.log(f"resuming the start of job {reached.job_id} that entry {reached.number} began")
        return reached
    if status is not None and not ended:
        raise DeployRefused(
            f"job {reached.job_id} of entry {reached.number} runs a different version ({short(reached.sha256)}) that "
            f"was never verified. Clear the run that started the job ({reached.owner}), or cancel the job. Then "
            "deploy again"
        )
    age = age_of(reached)
    if status is None and age < IN_FLIGHT_SECONDS:
        raise DeployRefused(
            f"job {reached.job_id} of entry {reached.number}, a different version ({short(reached.sha256)}), may "
            f"still be accepted. Wait for {IN_FLIGHT_SECONDS - age:.0f} s, or clear the run that submitted the job "
            f"({reached.owner})"
        )
    return None


def former_state(run: Run, progress: Progress, taken_up: StartEntry | None) -> Stopped | None:
    """The state that the former job left when a redeploy stopped it, or None if it must still be stopped."""
    head = progress.head
    if head is None:
        return Stopped()
    job_id = head.start.job_ref
    status = run.target.status(job_id)
    runs = status is not None and not status.terminal
    stopped = progress.stopped
    if stopped is not None and not runs:
        if taken_up is None:
            run.log(f"entry {stopped.number} stopped job {job_id}; its state is in {stopped.stop.savepoint}")
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
        f"job {job_id} of {run.ledger.deployment} (ledger entry {head.number}) {seen}, and {by}. There is no "
        f"savepoint to resume from{_left_in(left, head)}. Find out why the job ended. Then resume from its last "
        "checkpoint (start mode checkpoint, if checkpoints are retained and the change is compatible), or restart "
        "stateless with ended jobs allowed"
    )


def job_name(run: Run) -> str:
    return prepare(run.side.script, run.side.source).job_name or run.job_settings(run.side.settings)[JOB_NAME]


def check_strangers(run: Run, progress: Progress, taken_up: StartEntry | None) -> None:
    """Raise DeployRefused if a different job with this name runs, or a job that a dead run started."""
    head = progress.head
    name = job_name(run)
    begun = {job for step in progress.steps if (job := run.job_of(step))}
    ours = {job for entry in (head, taken_up) if entry and (job := run.job_of(entry))}
    strangers = sorted({*run.target.running(name), *(job for job in begun - ours if run.runs(job))} - ours)
    if strangers:
        check_overtaken(run)
        raise DeployRefused(
            f"job {', '.join(strangers)} named {name!r} runs on the cluster, but is not the ledger's job "
            f"({head.job_id if head else 'nothing is deployed'}). Two jobs would write to the same sink. Stop the "
            "job, or deploy under a different name"
        )


def anything_runs(run: Run, progress: Progress) -> bool:
    """True if any job in the ledger runs, or if the cluster does not answer."""
    try:
        return any(run.runs(job) for job in {run.job_of(entry) for entry in (progress.head, *progress.steps) if entry})
    except DeployError:
        return True


def check_overtaken(run: Run) -> None:
    """Raise DeployRefused if a run that began after the ledger was read may have caused the mismatch."""
    newer = [entry for entry in run.ledger.entries() if entry.number > run.last and isinstance(entry, StepEntry)]
    if newer:
        raise DeployRefused(
            f"{newer[-1].owner} deploys {run.ledger.deployment} at the same time (entry {newer[-1].number}, "
            f"{newer[-1].kind}). Wait until that run has ended, then check the change again"
        )


def _left_in(savepoint: Snapshot | None, head: HeadEntry) -> str:
    if savepoint is None:
        return ""
    return (
        f", except {savepoint} from a stop outside this deployment. To use this savepoint, start the script of entry "
        f"{head.number} from that savepoint, and record the job with `flinkcompat ledger adopt`"
    )
