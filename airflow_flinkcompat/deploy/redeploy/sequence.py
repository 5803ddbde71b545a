"""Deployment of a job: the first start, and the resumable sequence that replaces a running job.

Validate → claim in the ledger → stop with savepoint (→ rewrite the savepoint) → start → verify → record. If the new
job does not start, the former script resumes from the same savepoint. If the stop makes the job fail, the job resumes
from its last checkpoint.

A ledger entry is written before and after each step. If a run dies, a later call resumes it from the ledger and the
cluster's reports. So a retry never causes a second stop, a second job or a lost savepoint. There is one exception: if
the former job runs again after its stop, the former job is stopped again, and the new job starts from the last
savepoint (``recovery``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from airflow_flinkcompat.compat.hand_over import HandOver
from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused, SnapshotGone, TargetError
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused
from airflow_flinkcompat.deploy.ledger.entries import (
    DeployedEntry,
    DeployingEntry,
    DisposedEntry,
    HeadEntry,
    LedgerEntry,
    MigratedEntry,
    Origin,
    Review,
    RollingBackEntry,
    StoppedEntry,
)
from airflow_flinkcompat.deploy.ledger.ledger import Ledger
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.ledger.store import this_process
from airflow_flinkcompat.deploy.offset_choices import SourceOffsets
from airflow_flinkcompat.deploy.redeploy.migrating import prepare
from airflow_flinkcompat.deploy.redeploy.preconditions import (
    check_claim,
    check_engine,
    check_hand_over,
    check_head,
    check_languages,
    check_line,
    check_mode,
    check_read_back,
)
from airflow_flinkcompat.deploy.redeploy.recovery import (
    anything_runs,
    check_strangers,
    former_state,
    previous_result,
    unfinished_start,
    validated,
)
from airflow_flinkcompat.deploy.redeploy.run import (
    Options,
    Run,
    StateMigration,
    Wait,
)
from airflow_flinkcompat.deploy.redeploy.starting import planned, require_savepoint, roll_back, rollback_hint, start
from airflow_flinkcompat.deploy.redeploy.stopping import Ended, Stopped, stop
from airflow_flinkcompat.deploy.target import CANNOT_TELL, MasksSecrets, SavepointStore, Snapshot, Start, Target
from airflow_flinkcompat.model import JobSpec, StartMode

_log = logging.getLogger(__name__)


def deploy(
    target: Target,
    ledger: Ledger,
    side: JobSpec,
    *,
    start_mode: StartMode | str = StartMode.AUTO_FIRST,
    checked_old_sha256: str | None,
    review: Review | None = None,
    origin: Origin | None = None,
    owner: str | None = None,
    hand_over: HandOver | None = None,
    offsets: SourceOffsets | str | Mapping[str, str] | None = None,
    migration: StateMigration | None = None,
    options: Options | None = None,
    resumed: Wait | None = None,
    asked_at: datetime | None = None,
    log: Callable[[str], None] = _log.info,
) -> DeployedEntry:
    """Deploy ``side``: stop the running job, start the new job and verify it.

    The first start of a deployment is stateless. A stateless restart also stops the former job with a savepoint, so
    that nothing is lost.

    Args:
        target: The target that runs the job.
        ledger: The ledger of the deployment.
        side: The job to deploy.
        start_mode: The initial state of the new job. ``savepoint`` is refused if nothing is deployed. ``checkpoint``
            uses the former job's latest retained checkpoint, and is allowed only for a compatible change.
            ``migrated`` uses the former job's savepoint, which ``migration`` rewrites for the new script.
            ``stateless`` starts the job without state. ``auto-first`` is stateless if nothing is deployed, or else
            savepoint.
        checked_old_sha256: The digest of the check's old side. None means that no job was deployed at the time of the
            check.
        review: The check's outcome, report, waivers and approval, to be stored in the ledger.
        origin: The source of the version and the owners of the deployment, to be stored in the ledger.
        owner: The name of this run. A call with the same name resumes the unfinished run immediately, or returns the
            result of the finished run. If None, the run is named after this process, so that every call is a new run.
        hand_over: The record of the backfill after which this job continues. A hand-over requires a stateless start,
            and must belong to exactly this script. The ledger stores the hand-over record.
        offsets: Starting positions of the sources, for all tables or by table. A position is ``as-stored``,
            ``earliest``, ``latest``, ``script``, or a time in ISO 8601 with time zone. A start with state allows only
            ``as-stored``. By default, a stateless start uses ``script``, the startup options in the script.
        migration: Rewriter of the savepoint, for start mode ``migrated``.
        options: Timeouts and other options. None means default options.
        resumed: The wait with which an earlier call of this run ended.
        asked_at: The time of the last manual request of this run, such as a cleared task. A version whose rollback
            was before this time is deployed again.
        log: Function that receives each progress message.

    Returns:
        The ``deployed`` entry of the ledger.

    Raises:
        DeployRefused: The deployment was not changed, unless the message describes a rollback.
        RolledBack: The new job did not start, and the former script runs again.
        StartFailed: The redeploy failed. The error message shows which job runs, if any.
        Waiting: A wait exceeds ``Options.patience``.
        DeployError: A different step failed. To resume the deployment, call the function again.
    """
    review = review or Review()
    run = Run(
        target,
        ledger,
        side,
        StartMode(start_mode),
        review,
        None if hand_over is None else hand_over.to_dict(),
        owner or this_process(),
        options or Options(),
        log,
        resumed,
        SourceOffsets.of(offsets),
        migration,
        origin or Origin(),
    )
    entries = ledger.entries()
    progress = Progress.of(entries)
    check_languages(run, progress.head)
    run.last = progress.last
    # A run that resumes a start resolves no placeholders, but its messages may show the job's failure.
    if isinstance(target, MasksSecrets):
        target.register_secrets(side)
        if progress.head is not None:
            target.register_secrets(progress.head.job)
    if owner is not None and (finished := previous_result(run, entries, checked_old_sha256, asked_at)):
        return finished
    if hand_over is not None:
        _require_hand_over(run, progress.head, hand_over)
    check_mode(run, progress.head, review.outcome)
    check_head(run, progress.head, checked_old_sha256)
    check_claim(run, progress)
    check_read_back(run, progress)
    try:
        entry = _deploy(run, progress)
    except (TargetError, ScriptRefused, DeployRefused) as error:
        if (stopped := progress.stopped) is None or progress.head is None or anything_runs(run, progress):
            raise
        raise type(error)(f"{error}\n{rollback_hint(run, stopped.stop.savepoint, progress.head)}") from None
    dispose_old(run)
    return entry


def _deploy(run: Run, progress: Progress) -> DeployedEntry:
    head, reached = progress.head, progress.reached
    claim = DeployingEntry(**run.attempt, start_mode=str(run.mode))
    if head is not None and (failed := progress.failed_start) is not None:
        run.append(claim)
        raise roll_back(run, head, failed, reached if isinstance(reached, RollingBackEntry) else None)
    engine = run.target.engine()
    check_engine(run, engine)
    check_line(run, head, engine)
    settings = run.job_settings(run.side.settings)
    taken_up = unfinished_start(run, progress)
    begins = taken_up is None and (head is None or run.mode is StartMode.STATELESS)
    if begins or not validated(run, progress):
        run.log(f"validating {run.side.source} on {engine.engine} {engine.version}")
    startup_offsets = planned(run, head, settings) if begins else ()
    if not begins and not validated(run, progress):
        run.validate(replace(run.side, settings=settings), Start())
    stopped = former_state(run, progress, taken_up)
    require_savepoint(startup_offsets, head, stopped)
    check_strangers(run, progress, taken_up)
    if run.migration is not None and stopped is None and run.resumed is None:
        claim = replace(claim, prepared=prepare(run, run.migration))
    if run.resumed is None:  # for a second process with the same run name, this append fails
        run.append(claim)
    if head is not None and stopped is None:
        try:
            stopped = stop(run, head, progress)
        except Ended as ended:
            raise roll_back(run, head, ended.failed, None) from None
    return start(run, head, stopped or Stopped(), taken_up, startup_offsets)


def _require_hand_over(run: Run, head: HeadEntry | None, hand_over: HandOver) -> None:
    first = run.mode is StartMode.AUTO_FIRST and head is None
    resumes = run.mode is not StartMode.STATELESS and not first
    check_hand_over(hand_over, run.side, resumes)
    for line in hand_over.lines():
        run.log(line)


def dispose_old(run: Run) -> None:
    """Delete old savepoints of this deployment's stops, but never the last. Failures are only logged."""
    keep = run.options.keep_savepoints
    if keep is None:
        return
    if not isinstance(run.target, SavepointStore):
        run.log(f"old savepoints were not deleted: their paths {CANNOT_TELL}")
        return
    try:
        for savepoint in surplus(run.ledger.entries(), keep):
            with suppress(SnapshotGone):  # an earlier run deleted the savepoint, but died before it recorded that
                run.target.dispose(savepoint)
            run.append(DisposedEntry(savepoint=savepoint, owner=run.owner))
            run.log(f"deleted the savepoint {savepoint}; the latest {keep} savepoints are kept")
    except DeployError as error:
        run.log(f"old savepoints were not deleted: {error}")


def surplus(entries: tuple[LedgerEntry, ...], keep: int) -> tuple[Snapshot, ...]:
    """Savepoints beyond the latest ``keep`` (at least 1), with their migrated copies, oldest first."""
    gone = {entry.savepoint for entry in entries if isinstance(entry, DisposedEntry)}
    stops = (entry.stop for entry in entries if isinstance(entry, StoppedEntry))
    taken = dict.fromkeys(stop.savepoint for stop in stops if stop.request_id and stop.savepoint)
    head = next((entry for entry in reversed(entries) if isinstance(entry, HeadEntry)), None)
    kept = {*list(taken)[-max(keep, 1) :], *((head.start.savepoint, head.start.migrated_from) if head else ())}
    migrated = [entry for entry in entries if isinstance(entry, MigratedEntry)]
    every = (
        path
        for savepoint in taken
        for path in (savepoint, *(Snapshot(each.migrated_to) for each in migrated if each.savepoint == savepoint))
        if savepoint not in kept
    )
    return tuple(path for path in every if path not in {*gone, *kept})
