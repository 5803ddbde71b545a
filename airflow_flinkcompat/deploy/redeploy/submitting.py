"""Submission of a job under a recorded request id, and the wait for the proof of its start."""

from __future__ import annotations

import time
from dataclasses import replace

from airflow_flinkcompat.deploy.errors import DeployError, StateFault, StateRefused
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.ledger.entries import HeadEntry, JobStart, StartEntry
from airflow_flinkcompat.deploy.redeploy.run import IN_FLIGHT_SECONDS, Run, Wait, Waiting, age_of
from airflow_flinkcompat.deploy.redeploy.stopping import Stopped, saved_state
from airflow_flinkcompat.deploy.redeploy.verify import (
    StartHistory,
    Unproven,
    VerificationFailed,
    Verified,
    number_of,
    verify_start,
)
from airflow_flinkcompat.deploy.start_offsets import tables
from airflow_flinkcompat.deploy.target import (
    JobHistories,
    JobHistory,
    JobRef,
    Operation,
    SnapshotStats,
    Start,
    StartOutcomes,
    Verb,
)
from airflow_flinkcompat.model import JobSpec, StartMode

# Seconds between two submissions of the same job. The client has already retried each submission.
_PAUSE_SECONDS = 2.0


class StartRefused(DeployError):
    """A job certainly does not run from the requested state; ``fault`` is the fault of that state."""

    def __init__(self, message: str, fault: StateFault | None = None) -> None:
        super().__init__(message)
        self.fault = fault


class NotYet(StartRefused):
    """Within the time limit, a job neither passed its verification nor failed."""


def _start_of(start: JobStart) -> Start:
    stateless = start.start_mode == StartMode.STATELESS
    return Start(None if stateless else start.savepoint, tables(start.offsets))


def submit(run: Run, job: JobSpec, begun: JobStart, earlier: StartEntry | None, head: HeadEntry | None) -> JobRef:
    """Submit a job unless the cluster already knows this start. Return the job. Raises StartRefused.

    ``earlier`` is the entry of an earlier run that began this start. While an unanswered submission may still
    succeed, the refusal of a repeated submission is not final. Otherwise two jobs could run. Only a refusal of the
    savepoint or checkpoint is final, because it applies to all submissions.
    """
    operation = Operation(Verb.START, begun.asked_under)
    name = f"job {begun.job_id}" if begun.job_id else f"the job of request {begun.asked_under}"
    start = _start_of(begun)
    job = replace(job, settings=run.job_settings(job.settings))
    asked = earlier is not None
    at_work = 0.0 if earlier is None else IN_FLIGHT_SECONDS + run.options.submit_timeout - age_of(earlier)
    at_work_until = time.time() + at_work

    def submitted() -> JobRef | DeployError:
        """The job if the cluster knows it, or else the reason why the outcome of its start is unknown."""
        nonlocal asked, at_work_until
        if asked and (known := run.target.poll(operation).job) is not None:
            return known
        if asked:  # meanwhile the former job may have been restarted
            _check_former(run, head, name)
        asked = True
        run.log(f"starting {name} from {start.savepoint or 'an empty state'}")
        try:
            started = run.target.start(job, start, operation.request_id).job
        except DeployError as error:
            fault = error.fault if isinstance(error, StateRefused) else None
            # If the state does not fit the job, every submission is refused.
            over = time.time() >= at_work_until or fault is StateFault.MISFIT
            if not error.unanswered and over and _answers(run):
                raise StartRefused(f"the job was refused: {error}", fault) from None
            if error.unanswered:
                at_work_until = time.time() + IN_FLIGHT_SECONDS
            run.log(f"{'no answer' if error.unanswered else 'an earlier submission may still be in progress'}: {error}")
            return error
        return started or DeployError(f"{name} was submitted, but the target does not list it yet")

    try:
        found = poll(
            submitted,
            lambda seen: isinstance(seen, DeployError),
            timeout=run.options.submit_timeout,
            every=_PAUSE_SECONDS,
        )
    except Overdue as overdue:
        raise DeployError(
            f"{overdue.last}\nIt is unknown if {name} was accepted, so nothing else is started. The state of "
            f"{run.ledger.deployment} is safe in {begun.savepoint or 'no savepoint (an empty start)'}. Run the "
            "redeploy again when the cluster answers. The job is then submitted under the same id, so there is never "
            "a second job"
        ) from None
    assert not isinstance(found, DeployError)
    return found


def _check_former(run: Run, head: HeadEntry | None, successor: str) -> None:
    """Raise DeployError if the former job runs again, for example because a JobManager recovered it."""
    if head is not None and run.runs(head.job_id):
        raise DeployError(
            f"job {head.job_id} of {run.ledger.deployment} (entry {head.number}) runs again after its stop, "
            f"so {successor} was not submitted. Run the redeploy again. The former job is then stopped again, and the "
            "new job "
            "starts from its last savepoint"
        )


def _answers(run: Run) -> bool:
    """True if the cluster answers. Otherwise a refusal may only mean that the cluster is unavailable."""
    try:
        run.target.running(run.ledger.deployment)
    except DeployError:
        return False
    return True


def proved(run: Run, begun: JobStart, former: Stopped, head: HeadEntry | None, earlier: StartEntry | None) -> Verified:
    """Wait until the job is verified; ``earlier`` is an earlier run's entry of this start.

    Raises StartRefused, Waiting.
    """
    saved = former.state

    def state() -> SnapshotStats | None:
        nonlocal saved
        # Read the statistics again, because the cluster may have shown older ones immediately after the stop.
        if saved is None and head is not None:
            saved = saved_state(run, head.start.job_ref, begun.savepoint)
        return saved

    job_id, start = begun.job_ref, _start_of(begun)
    wait = Wait(job_id, time.time(), 0)
    left, patience = run.left(run.options.start_timeout, wait), run.options.patience
    resumed = run.resumed
    history = None if earlier is None else _start_history(run, begun, start, earlier)
    try:
        verified = verify_start(
            run.target,
            job_id,
            start,
            state=state if begun.migrated_from is None else None,
            offsets=former.offsets,
            settle_seconds=run.options.settle_seconds,
            timeout=left if patience is None else min(left, patience),
            log=run.log,
            proven_since=resumed.proven_since if resumed and resumed.job_id == job_id else None,
            history=history,
        )
        return replace(verified, saved=saved)
    except Unproven as error:
        if patience is None or left <= patience:
            whole = run.options.start_timeout
            raise NotYet(f"the job was not verified within {whole:.0f} s: {error.missing}") from None
        until = time.time() + left
        raise Waiting(
            str(error), replace(wait, since=run.since(wait), until=until, proven_since=error.proven_since)
        ) from None
    except VerificationFailed as error:
        raise StartRefused(str(error), error.fault) from None


def _start_history(run: Run, begun: JobStart, start: Start, earlier: StartEntry) -> StartHistory:
    """Data to judge a start that an earlier call began, based on the job's history."""
    job_id = begun.job_ref
    return StartHistory(
        job_id,
        start.savepoint,
        # A migrated savepoint has the checkpoint number of the original savepoint.
        lambda: number_of(begun.migrated_from or start.savepoint, run.ledger.entries()),
        since=earlier.written.timestamp(),
        start_seconds=run.options.start_timeout,
        settle_seconds=run.options.settle_seconds,
        job_history=lambda: job_history(run, job_id),
    )


def job_history(run: Run, job_id: JobRef) -> JobHistory | None:
    if isinstance(run.target, JobHistories):
        return run.target.job_history(job_id)
    never_up = isinstance(run.target, StartOutcomes) and run.target.came_up(job_id) is False
    return JobHistory() if never_up else None
