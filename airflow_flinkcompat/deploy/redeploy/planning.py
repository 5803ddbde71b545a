"""Planned changes for deployments whose resources someone else writes, and their verification.

Planning does not change the running job. The plan goes to the authors of the resources, for example by a
pull request to a repository that Argo CD or Flux follows. The ledger records the plan's request id. The platform
itself then upgrades the job in one step, so the change can be verified only afterwards. A job that runs the plan is
recorded as deployed as soon as its restore is verified. Verification requires that the job was restored from the
savepoint with which the platform stopped the former job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.ledger.entries import (
    DeployedEntry,
    FailedVersionEntry,
    HeadEntry,
    JobStart,
    JobVersion,
    LedgerEntry,
    Origin,
    PlannedEntry,
    Review,
)
from airflow_flinkcompat.deploy.ledger.ledger import Ledger
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.redeploy.preconditions import (
    carried_out_by,
    check_engine,
    check_head,
    check_languages,
    check_mode,
    check_read_back,
)
from airflow_flinkcompat.deploy.redeploy.recovery import job_name
from airflow_flinkcompat.deploy.redeploy.run import Options, Run, new_id
from airflow_flinkcompat.deploy.redeploy.starting import effective_settings
from airflow_flinkcompat.deploy.redeploy.submitting import job_history
from airflow_flinkcompat.deploy.redeploy.verify import (
    StartHistory,
    Unproven,
    VerificationFailed,
    number_of,
    verify_start,
)
from airflow_flinkcompat.deploy.target import (
    ChangePlan,
    Deployed,
    JobRef,
    JobStatus,
    MasksSecrets,
    PlansChanges,
    ReadsBack,
    Snapshot,
    Start,
    Target,
    checkpoint_number,
    same_snapshot,
)
from airflow_flinkcompat.model import JobSpec, StartMode

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Planned:
    """A plan and its ledger entry."""

    entry: PlannedEntry
    plan: ChangePlan


def plan_change(
    target: Target,
    ledger: Ledger,
    side: JobSpec,
    *,
    start_mode: StartMode | str = StartMode.AUTO_FIRST,
    checked_old_sha256: str | None,
    review: Review | None = None,
    origin: Origin | None = None,
    owner: str,
    log: Callable[[str], None] = _log.info,
) -> Planned:
    """Plan the change to ``side``. A repeated call returns the same plan and ledger entry."""
    run = _run(target, ledger, side, StartMode(start_mode), review or Review(), origin or Origin(), owner, log)
    entries = ledger.entries()
    progress = Progress.of(entries)
    run.last = progress.last
    _register_secrets(target, side, progress.head)
    if not isinstance(target, PlansChanges):
        raise DeployRefused(
            f"plan_only does not apply to {target}, which is not configured by a repository. Remove plan_only to deploy"
        )
    check_languages(run, progress.head)
    if run.mode not in (StartMode.SAVEPOINT, StartMode.STATELESS, StartMode.AUTO_FIRST):
        raise DeployRefused(
            f"start mode {run.mode} cannot be planned, because the platform itself resumes from a savepoint. Use "
            f"start mode {StartMode.SAVEPOINT} or {StartMode.STATELESS}"
        )
    check_mode(run, progress.head, None)
    check_head(run, progress.head, checked_old_sha256)
    if (last := progress.unfinished) is not None:
        raise DeployRefused(
            f"the redeploy of {last.owner} is unfinished (entry {last.number}, {last.kind}). Run the redeploy again "
            "first"
        )
    check_engine(run, target.engine())
    check_read_back(run, progress)
    stateless = run.mode is StartMode.STATELESS or progress.head is None
    _check_runs(run, progress.head, stateless)
    mode = StartMode.STATELESS if stateless else StartMode.SAVEPOINT
    same = (plan for plan in pending_plans(entries) if plan.sha256 == side.digest())
    earlier = next((plan for plan in same if plan.start.start_mode == mode), None)
    request = earlier.start.asked_under if earlier is not None else new_id()
    plan = target.plan(replace(side, settings=run.job_settings(side.settings)), mode, request)
    if earlier is not None:
        log(f"entry {earlier.number} already planned this change, and the plan was not carried out yet")
        return Planned(earlier, plan)
    entry = PlannedEntry(
        owner=owner,
        job=side,
        review=run.review,
        origin=run.origin,
        start=JobStart(str(mode), request_id=request),
        message=f"planned for {plan.place}; nothing was changed",
        evidence=plan.notes,
        savepoint_before=None
        if stateless or progress.head is None
        else target.carried_over(progress.head.start.job_ref),
    )
    return Planned(run.append(entry), plan)


def pending_plans(entries: Sequence[LedgerEntry]) -> tuple[PlannedEntry, ...]:
    """Plans that were not carried out as far as the ledger knows, latest first."""
    steps = Progress.of(entries).steps
    failed = [entry for entry in entries if isinstance(entry, FailedVersionEntry)]
    return tuple(
        plan
        for plan in reversed(steps)
        if isinstance(plan, PlannedEntry)
        and not any(each.number > plan.number and each.version.sha256 == plan.sha256 for each in failed)
    )


def carried_out(target: Target, ledger: Ledger, plan: PlannedEntry) -> JobStatus | None:
    entries = ledger.entries()
    found = _find(target, ledger, Progress.of(entries).head, pending_plans(entries), "", _log.info)
    if found is None or found[1].number != plan.number:
        return None
    return target.status(found[2])


def record_carried_out(
    target: Target,
    ledger: Ledger,
    *,
    owner: str,
    options: Options | None = None,
    log: Callable[[str], None] = _log.info,
) -> DeployedEntry | None:
    """Record the plan that was carried out, if its job passes verification."""
    entries = ledger.entries()
    progress = Progress.of(entries)
    if progress.unfinished is not None or not isinstance(target, PlansChanges):
        return None
    found = _find(target, ledger, progress.head, pending_plans(entries), owner, log)
    if found is None:
        return None
    run, plan, job = found
    run.last, run.options = progress.last, options or Options()
    log(f"job {job} runs the version that entry {plan.number} planned")
    return _verify_and_record(run, target, progress.head, plan, job)


def _run(
    target: Target,
    ledger: Ledger,
    side: JobSpec,
    mode: StartMode,
    review: Review,
    origin: Origin,
    owner: str,
    log: Callable[[str], None],
) -> Run:
    # A plan restarts no job, so the preconditions of a rollback need no check.
    return Run(target, ledger, side, mode, review, None, owner, Options(roll_back=False), log, origin=origin)


def _register_secrets(target: Target, job: JobSpec, head: HeadEntry | None) -> None:
    """Mask placeholder values, because Flink may show them in job descriptions."""
    if isinstance(target, MasksSecrets):
        target.register_secrets(job)
        if head is not None:
            target.register_secrets(head.job)


def _check_runs(run: Run, head: HeadEntry | None, stateless: bool) -> None:
    """Raise DeployRefused if no job runs from which the platform could take a savepoint."""
    if head is None or stateless or run.runs(head.job_id):
        return
    raise DeployRefused(
        f"job {head.job_id} of {run.ledger.deployment} (ledger entry {head.number}) does not run, so the platform "
        "cannot take a savepoint of the job. Find out why the job ended, then plan a stateless start"
    )


def _find(
    target: Target,
    ledger: Ledger,
    head: HeadEntry | None,
    plans: Sequence[PlannedEntry],
    owner: str,
    log: Callable[[str], None],
) -> tuple[Run, PlannedEntry, JobRef] | None:
    """The plan that was carried out, with its job. A job found by its request id may have ended already."""
    runs = {
        plan.number: _run(target, ledger, plan.job, StartMode.AUTO_FIRST, plan.review, plan.origin, owner, log)
        for plan in plans
    }
    for plan in plans:
        _register_secrets(target, plan.job, head)
    kept: dict[str, Deployed | None] = {}
    for plan in plans:
        run = runs[plan.number]
        name = job_name(run)
        if name not in kept:
            kept[name] = target.deployed(name) if isinstance(target, ReadsBack) else None
        found = kept[name]
        if found is None and (job := run.job_of(plan)) is not None:
            return run, plan, job
        by = None if found is None else carried_out_by(run, head, plans, found)
        if by is not None and found is not None and found.job is not None:
            return runs[by.number], by, found.job
    return None


def _verify_and_record(
    run: Run, target: PlansChanges, head: HeadEntry | None, plan: PlannedEntry, job: JobRef
) -> DeployedEntry:
    options, stateless = run.options, plan.start.start_mode == StartMode.STATELESS
    what = f"the plan of entry {plan.number} was carried out as job {job}"
    try:
        _await_up(run, job)
        _check_as_planned(run, target, plan, job)
        savepoint = None if stateless else _savepoint_of_former_job(target, head, plan, job)
        verified = verify_start(
            run.target,
            job,
            Start(savepoint),
            settle_seconds=options.settle_seconds,
            timeout=options.start_timeout,
            log=run.log,
            history=_history(run, plan, job, savepoint),
        )
        _edits(target, plan, job)
    except Unproven as error:
        raise DeployError(f"{what}, but the job is not verified yet: {error}") from None
    except VerificationFailed as error:
        reason = f"{what}, but the job failed its verification: {str(error).rstrip('.')}"
        _edits(target, plan, job)
        run.append(FailedVersionEntry(version=JobVersion.of(plan.job), message=reason, owner=run.owner))
        former = f" (the script of entry {head.number})" if head is not None else ""
        raise DeployRefused(
            f"{reason}. Nothing was changed. Revert the merge{former}, or record the job if it is correct "
            f"(`flinkcompat ledger adopt {run.ledger.deployment} --job-id {job} --script FILE`)"
        ) from None
    except DeployError:
        _edits(
            target, plan, job
        )  # if the job was replaced, raise the error of _edits, because the target knows little about the job
        raise
    entry = run.append(
        DeployedEntry(
            **run.attempt,
            start=replace(plan.start, savepoint=savepoint, job_id=job),
            message=(
                f"{verified.status.state}, verified; the change that entry {plan.number} planned was carried out "
                "outside this deployment"
            ),
            evidence=verified.lines,
            effective_settings=effective_settings(run, job),
        )
    )
    run.log(f"deployed: job {job} is {verified.status.state}, verified; ledger entry {entry.number}")
    return entry


def _check_as_planned(run: Run, target: PlansChanges, plan: PlannedEntry, job: JobRef) -> None:
    """Raise VerificationFailed if the merged resource or the engine differs from the plan."""
    if edits := _edits(target, plan, job):
        raise VerificationFailed(f"job {job} was not written as planned: {edits}")
    try:
        check_engine(run, run.target.engine())
    except DeployRefused as error:
        raise VerificationFailed(str(error)) from None


def _edits(target: PlansChanges, plan: PlannedEntry, job: JobRef) -> str:
    """Manual edits to the plan. Raises DeployError if the job was replaced or removed."""
    found = target.edits(job)
    if found is None:
        raise DeployError(
            f"job {job}, which carried out the plan of entry {plan.number}, was replaced or removed during its "
            "verification. Nothing was recorded. Check the change again, against the job that runs now"
        )
    return found


def _history(run: Run, plan: PlannedEntry, job: JobRef, savepoint: Snapshot | None) -> StartHistory:
    """The job's history, used to judge an unobserved start that was hours or days ago."""
    return StartHistory(
        job,
        savepoint,
        lambda: number_of(savepoint, run.ledger.entries()),
        since=plan.written.timestamp(),
        start_seconds=run.options.start_timeout,
        settle_seconds=run.options.settle_seconds,
        job_history=lambda: job_history(run, job),
        exact=False,
        otherwise="revert the merge",
    )


def is_to_be_judged(seen: JobStatus | None) -> bool:
    """True if a job has started or failed, so that the plan's result can be recorded."""
    return seen is not None and (seen.tasks_running or seen.terminal or bool(seen.failure))


def _await_up(run: Run, job: JobRef) -> None:
    """Wait until the platform has started the job. Raises DeployError, VerificationFailed."""
    try:
        poll(lambda: run.target.status(job), lambda seen: not is_to_be_judged(seen), timeout=run.options.start_timeout)
    except Overdue:
        raise DeployError(
            f"job {job} does not run after {run.options.start_timeout:.0f} s, so the plan is not verified yet"
        ) from None


def _savepoint_of_former_job(target: PlansChanges, head: HeadEntry | None, plan: PlannedEntry, job: JobRef) -> Snapshot:
    """The savepoint of the former job's stop. Raises VerificationFailed if missing or too old."""
    found = target.carried_over(job)
    if found is None:
        raise VerificationFailed(
            f"the platform reports no savepoint from the stop before job {job}, or only a savepoint that the plan "
            "named. Rows since the former savepoint are lost or written twice"
        )
    if checkpoint_number(found) is not None:
        raise VerificationFailed(
            f"the platform started job {job} from the former job's checkpoint {found} instead of a savepoint"
        )
    began = head.start.savepoint if head is not None else None
    older = {"the former job started from": began, "existed when this was planned": plan.savepoint_before}
    if reason := next(
        (words for words, each in older.items() if each is not None and same_snapshot(found, each)), None
    ):
        raise VerificationFailed(
            f"the platform took no savepoint of the job before job {job}. The platform reports {found}, which "
            f"{reason}, so rows "
            "since then are lost or written twice"
        )
    return found
