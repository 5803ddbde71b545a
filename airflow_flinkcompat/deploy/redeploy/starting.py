"""Start of the new job, source positions, verification, and rollback from the same savepoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from upath import UPath

from airflow_flinkcompat.compat.hand_over import HandOver
from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused, StateFault
from airflow_flinkcompat.deploy.flink.statements import set_options
from airflow_flinkcompat.deploy.ledger.entries import (
    DeployedEntry,
    FailedEntry,
    HeadEntry,
    JobStart,
    RolledBackEntry,
    RollingBackEntry,
    StartedEntry,
    StartingEntry,
    StepEntry,
)
from airflow_flinkcompat.deploy.offset_choices import Offset
from airflow_flinkcompat.deploy.redeploy.migrating import MigrationFailed, migrate
from airflow_flinkcompat.deploy.redeploy.recovery import came_back, check_overtaken
from airflow_flinkcompat.deploy.redeploy.run import (
    RolledBack,
    Run,
    StartFailed,
    new_id,
)
from airflow_flinkcompat.deploy.redeploy.stopping import Stopped, savepoint_root
from airflow_flinkcompat.deploy.redeploy.submitting import NotYet, StartRefused, proved, submit
from airflow_flinkcompat.deploy.start_offsets import (
    PositionsUnknown,
    StartupOffset,
    check_startup_offsets,
    decide,
    settle,
    trial,
    unknown_startup_offsets,
    with_state,
)
from airflow_flinkcompat.deploy.target import (
    CANNOT_TELL,
    CallerNamesJobs,
    ClusterOptions,
    JobHistories,
    JobRef,
    ManualStart,
    SavepointStore,
    Snapshot,
    Sources,
    SourceTable,
    SourceTables,
    Start,
)
from airflow_flinkcompat.model import JobSpec, StartMode

_NO_STATE = {
    StateFault.GONE: " The savepoint is missing. Restore its files first, or start stateless with ended jobs allowed.",
    StateFault.DAMAGED: (
        " The savepoint cannot be read. Replace it with a complete copy first, or start stateless with ended jobs "
        "allowed."
    ),
}
"""Remedies for a savepoint from which no job can start."""


def start(
    run: Run,
    head: HeadEntry | None,
    stopped: Stopped,
    taken_up: StartingEntry | StartedEntry | None,
    startup_offsets: Sequence[StartupOffset] = (),
) -> DeployedEntry:
    """Start the proposed job or resume a recorded start, and return the ``deployed`` ledger entry.

    ``startup_offsets`` contains the source positions for a start without state. Raises RolledBack, StartFailed, and
    Waiting. Any other DeployError means that the outcome is still unknown. After such an error, repeat the call.
    """
    earlier = taken_up
    if taken_up is None:
        from_nothing = head is None or run.mode is StartMode.STATELESS or stopped.savepoint is None
        resumed = run.mode if run.mode in (StartMode.CHECKPOINT, StartMode.MIGRATED) else StartMode.SAVEPOINT
        wanted = JobStart(str(StartMode.STATELESS if from_nothing else resumed), stopped.savepoint)
        if run.migration is not None and stopped.savepoint is not None:
            try:
                rewritten = migrate(run, run.migration, stopped.savepoint)
            except MigrationFailed as error:
                raise _record_failure(run, wanted, str(error), head) from None
            wanted = replace(wanted, savepoint=rewritten, migrated_from=stopped.savepoint)
        try:
            settled = tuple(each.to_dict() for each in settle(startup_offsets, _location(run, stopped.savepoint)))
        except PositionsUnknown as error:
            raise _record_failure(run, wanted, f"the job was not started: {error}", head) from None
        wanted = replace(wanted, offsets=settled if from_nothing else with_state(wanted.savepoint))
        for row in wanted.offsets:
            run.log(row["words"])
        taken_up = run.append(StartingEntry(**run.attempt, start=_with_request(run, wanted, stopped.request_id)))
    begun = taken_up.start
    try:
        if isinstance(taken_up, StartingEntry):
            begun = replace(begun, job_id=submit(run, run.side, begun, earlier, head))
            run.append(StartedEntry(**run.attempt, start=begun))
        proof = proved(run, begun, stopped, head, earlier)
    except StartRefused as error:
        raise _record_failure(run, begun, str(error), head) from None
    entry = run.append(
        DeployedEntry(
            **run.attempt,
            start=replace(begun, savepoint_bytes=proof.saved.bytes if proof.saved and proof.saved.vertices else None),
            message=f"{proof.status.state}, verified",
            evidence=proof.lines,
            effective_settings=effective_settings(run, begun.job_id),
        )
    )
    run.log(f"deployed: job {entry.job_id} is {proof.status.state}, verified; ledger entry {entry.number}")
    if proof.later and proof.status.terminal and proof.status.state != "FINISHED":
        # Do not roll back. The deployment succeeded, so the former script would write the new job's rows again.
        raise StartFailed(
            f"job {entry.job_id} was deployed (entry {entry.number}), but {'; '.join(proof.later)}. No job of "
            f"{run.ledger.deployment} runs now, and nothing was rolled back. Find out why the job ended, check the "
            "change again, then resume from the job's last checkpoint (start mode checkpoint, if checkpoints are "
            "retained)"
        )
    return entry


def effective_settings(run: Run, job: JobRef | None) -> Mapping[str, Any]:
    """Effective settings of a started job: from the cluster, the session and the script."""
    return {
        "cluster": run.target.cluster_options(job) if isinstance(run.target, ClusterOptions) else {},
        "session": run.job_settings(run.side.settings),
        "script": set_options(run.side.script, run.side.source),
    }


def roll_back(run: Run, head: HeadEntry, failed: FailedEntry, begun: RollingBackEntry | None) -> StartFailed:
    """Restart the script of ``head`` from the state that its job left, and return the error to raise.

    ``failed`` is the entry of the failed start, or of the stop that made the former job itself fail. ``begun`` is the
    rollback that an earlier run recorded.
    """
    if came_back(run, head, begun):
        return _back_by_itself(run, head, failed)
    savepoint = failed.start.way_back
    itself = failed.job_id == head.job_id
    run.log(f"{'' if itself else 'the new job failed: '}{failed.message}\nrolling back to entry {head.number}")
    try:
        left = _end(run, failed, again=True)
    except DeployError as error:
        raise DeployError(
            f"{failed.message}.\nThe rollback to entry {head.number} must wait: {error}\n"
            f"Run this again when the cluster answers. The rollback is recorded and resumes from {savepoint}"
        ) from None
    if left:
        message = (
            f"{failed.message}. The change was not rolled back, because {left}, and two jobs would write to the same "
            "sink"
        )
        known = JobStart(savepoint=savepoint, job_id=failed.job_id)
        run.append(FailedEntry(**run.way_back(head), start=known, message=message))
        return StartFailed(f"{message}.\nCancel that job manually first. {_commands(run, head, savepoint)}")
    earlier = begun
    if begun is None:
        mode = StartMode.CHECKPOINT if itself else StartMode.SAVEPOINT
        asked = _with_request(run, JobStart(str(mode), savepoint, with_state(savepoint)))
        begun = run.append(RollingBackEntry(**run.way_back(head), start=asked, message=failed.message))
    start = begun.start
    try:
        job = replace(head.job, source=f"ledger entry {head.number}")
        start = replace(start, job_id=submit(run, job, start, earlier, head))
        proof = proved(run, start, Stopped(), None, earlier)
    except NotYet as error:  # the restarted former job continues from its own state, so do not cancel it
        message = (
            f"{failed.message}.\nRolled back: the script of entry {head.number} was started again as job "
            f"{start.job_id} from {savepoint} and still runs, but {error}. Check the job manually. "
            f"{_note_on_duplicates(run, head, failed)}"
        )
        run.append(RolledBackEntry(**run.way_back(head), start=start, message=message))
        return RolledBack(message)
    except StartRefused as error:
        # This run may be late: its own retry may already have finished this start, so that Flink refused this run.
        check_overtaken(run)
        left = _end(run, start)
        message = f"{failed.message}. The rollback also failed: {str(error).rstrip('.')}"
        run.append(FailedEntry(**run.way_back(head), start=start, message=message))
        runs = f"{left}, and no other job" if left else "No job"
        gone = _NO_STATE.get(error.fault, "") if error.fault else ""
        commands = _commands(run, head, savepoint, start.start_mode)
        return StartFailed(f"{message}.\n{runs} of {run.ledger.deployment} runs now.{gone}\n{commands}")
    message = (
        f"{failed.message}.\nRolled back: the script of entry {head.number} runs again as job {start.job_id}, "
        f"restored from {savepoint} and verified. {_note_on_duplicates(run, head, failed)}"
    )
    if proof.later:
        message = f"{message} But {'; '.join(proof.later)}."
    run.append(RolledBackEntry(**run.way_back(head), start=start, message=message, evidence=proof.lines))
    return RolledBack(message)


def _back_by_itself(run: Run, head: HeadEntry, failed: FailedEntry) -> StartFailed:
    """Record that the former job runs again by itself, from state that is newer than its savepoint."""
    left = "" if failed.job_id == head.job_id else _end(run, failed, again=True)
    if left:
        raise DeployError(
            f"{failed.message}.\nThe former job {head.job_id} runs again by itself, and {left}, so two jobs write to "
            "the same sink. Cancel the new job manually, then run the redeploy again"
        )
    message = (
        f"{failed.message}.\nThe former job {head.job_id} (entry {head.number}) runs again by itself, so nothing was "
        f"started from {failed.start.way_back}. {_note_on_duplicates(run, head, failed)}"
    )
    known = JobStart(head.start.start_mode, head.start.savepoint, job_id=head.job_id)
    run.append(RolledBackEntry(**run.way_back(head), start=known, message=message))
    return RolledBack(message)


def _record_failure(run: Run, begun: JobStart, reason: str, head: HeadEntry | None) -> StartFailed:
    """Record the failure, and roll back if the former job left state."""
    reason = reason.rstrip(".")
    failed = FailedEntry(**run.attempt, start=begun, message=reason)
    if run.options.roll_back and head is not None and begun.savepoint:
        return roll_back(run, head, run.append(replace(failed, rolls_back_to=head.number)), None)
    left = _end(run, run.append(failed))
    addition = f" {left[0].upper()}{left[1:]}. Cancel the job manually." if left else ""
    return StartFailed(f"{reason}.{addition}\n{rollback_hint(run, begun.way_back, head)}")


def _location(run: Run, savepoint: Snapshot | None) -> str | None:
    """Readable location of a savepoint, or None if there is no savepoint or the target hides locations."""
    if savepoint is None or not isinstance(run.target, SavepointStore):
        return None
    return run.target.location(savepoint)


def _with_request(run: Run, wanted: JobStart, request_id: str | None = None) -> JobStart:
    """Complete a start with a request id, and with the job id if the request id determines it."""
    request_id = request_id or new_id()
    named = run.target.job_of_request(request_id) if isinstance(run.target, CallerNamesJobs) else None
    return replace(wanted, request_id=request_id, job_id=named)


def _end(run: Run, begun: StepEntry | JobStart, again: bool = False) -> str:
    """Cancel a started job. Return the reason on failure, or raise it if unanswered and ``again`` is True."""
    job_id = begun.job_id
    try:
        job_id = run.job_of(begun)
        if job_id is not None and run.runs(job_id):
            run.target.cancel(job_id)
    except DeployError as error:
        if again and error.unanswered:
            raise
        return f"job {job_id or f'of request {begun.request_id}'} could not be cancelled ({error})"
    return ""


def _note_on_duplicates(run: Run, head: HeadEntry, failed: FailedEntry) -> str:
    """Text for messages about rows that may have been written twice."""
    job_id = failed.job_id
    if job_id == head.job_id:
        return (
            "No new job was started. Rows that the former job wrote after that checkpoint may be written again, as "
            "after any failure. A keyed upsert sink overwrites them, and a sink that commits with checkpoints had not "
            "committed them."
        )
    try:
        job_id = run.job_of(failed)
        answer = run.target.ever_ran(job_id) if job_id and isinstance(run.target, JobHistories) else None
        ran = answer if job_id else False
        status = run.target.status(job_id) if ran and job_id else None
    except DeployError:
        ran, status = None, None
    if ran is False:
        return "No task of the new job ever ran, so no row was written twice."
    completed = "an unknown number of"
    if status is not None and status.completed_checkpoints is not None:
        completed = str(status.completed_checkpoints)
    return (
        f"The new job ran before it was cancelled, and completed {completed} checkpoints. The job that runs now may "
        "again write the rows that the new job wrote. A keyed upsert sink overwrites these rows. A sink that commits "
        "with checkpoints committed only rows before the last completed checkpoint."
    )


def rollback_hint(run: Run, savepoint: Snapshot | None, head: HeadEntry | None) -> str:
    """Text about the former job and its state, with the commands that restart the job."""
    name = run.ledger.deployment
    if head is None:
        return f"No job of {name} runs, as before."
    if not savepoint:
        return f"No job of {name} runs now. Its former job {head.job_id} (entry {head.number}) had already ended."
    return (
        f"No job of {name} runs now. The former job {head.job_id} was stopped. Its state is safe in\n  "
        f"{savepoint}\n{_commands(run, head, savepoint)}"
    )


def _commands(run: Run, head: HeadEntry, savepoint: Snapshot | None, mode: str | None = None) -> str:
    by_hand = ""
    if isinstance(run.target, ManualStart) and savepoint is not None:
        statements = f"the statements of {run.ledger.directory / f'{head.number:06d}.json'}"
        by_hand = f". Or start it manually, {run.target.manual_start(savepoint, statements)}"
    return (
        f"To restart the former job, deploy the script of ledger entry {head.number} again with start mode "
        f"'{mode or StartMode.SAVEPOINT}', which uses that state{by_hand}"
    )


def planned(run: Run, head: HeadEntry | None, settings: Mapping[str, str]) -> tuple[StartupOffset, ...]:
    """Validate the script with the requested source positions. Raises DeployRefused and validation errors."""
    job = replace(run.side, settings=settings)
    seen = _sources(run, job)
    if seen.unknown and run.offsets.choices:
        raise DeployRefused(f"source offsets cannot be chosen, because the job's sources are unknown: {seen.unknown}")
    former: tuple[SourceTable, ...] = ()
    if any(choice.kind is Offset.AS_STORED for choice in run.offsets.choices):
        former = _former_sources(run, head)
    record = HandOver.from_dict(run.hand_over) if run.hand_over else None
    found = unknown_startup_offsets(seen.unknown) if seen.unknown else decide(seen.tables, run.offsets, record, former)
    if record is not None:
        check_startup_offsets(record, run.offsets, found)
    if options := trial(found):
        run.validate(job, Start(tables=options))
    return found


def _former_sources(run: Run, head: HeadEntry | None) -> tuple[SourceTable, ...]:
    """The former job's sources. Raises DeployRefused if its savepoint cannot be read from here."""
    if head is None:
        raise DeployRefused(f"{_NO_SAVEPOINT}: {run.ledger.deployment} was never deployed")
    _require_reach(run)
    settings = run.job_settings(head.job.settings)
    return _sources(run, replace(head.job, settings=settings, source=f"ledger entry {head.number}")).tables


def _sources(run: Run, job: JobSpec) -> Sources:
    """Validate the job and return its sources, if the target reports them."""
    if isinstance(run.target, SourceTables):
        return run.target.sources(job)
    run.validate(job, Start())
    return Sources(unknown=f"the sources of a job {CANNOT_TELL}")


def require_savepoint(
    startup_offsets: Sequence[StartupOffset], head: HeadEntry | None, stopped: Stopped | None
) -> None:
    """Raise DeployRefused if stored offsets are requested but the former job left no savepoint."""
    ended = head is not None and stopped is not None and stopped.savepoint is None
    if head is not None and ended and any(each.stored for each in startup_offsets):
        raise DeployRefused(
            f"{_NO_SAVEPOINT}: job {head.job_id} of ledger entry {head.number} ended without a savepoint"
        )


_NO_SAVEPOINT = (
    "as-stored source offsets are read from the savepoint of the former job's stop, but there is none (choose "
    "earliest, latest, a time, or script)"
)


def _require_reach(run: Run) -> None:
    """Raise DeployRefused if this machine cannot read savepoints."""
    if not isinstance(run.target, SavepointStore):
        raise DeployRefused(
            f"as-stored source offsets are read from the savepoint, but its path {CANNOT_TELL} ({run.target}). Choose "
            "earliest, latest, a time, or script"
        )
    root = savepoint_root(run)
    if root is None:
        return
    try:
        UPath(root).exists()
    except Exception as error:  # each kind of store raises errors of its own library
        raise DeployRefused(
            f"as-stored source offsets are read from the savepoint, but this machine cannot access {root} "
            f"({type(error).__name__}: {error}). Install a client for this store, or choose earliest, latest, a time, "
            "or script"
        ) from None
