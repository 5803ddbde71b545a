"""Deploying: the first start, and the resumable sequence that replaces a running job by its successor.

Validate → claim in the ledger → stop with savepoint → start → verify → ledger; when the start fails, the former script
goes on from the same savepoint, and when the stop fails the job, from its last checkpoint. Every step is an entry,
written before and after it is done, so a run that dies in between is taken up where it stopped, by what the cluster
says became of it: never a second stop, a second job, or a lost savepoint.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from airflow_flinkcompat.compat.handover import HandOver, fingerprint
from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.flink.execution import TargetError
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, NO_GATEWAY, ScriptRefused, prepare
from airflow_flinkcompat.deploy.handover import check_hand_over
from airflow_flinkcompat.deploy.ledger.history import Ledger, LedgerEntry
from airflow_flinkcompat.deploy.ledger.steps import (
    DEPLOYED,
    DEPLOYING,
    FAILED,
    ROLLED_BACK,
    ROLLING_BACK,
    STARTED,
    STARTING,
    STOPPED,
    STOPPING,
    Progress,
    is_step,
)
from airflow_flinkcompat.deploy.ledger.store import this_process
from airflow_flinkcompat.deploy.redeploy import retention
from airflow_flinkcompat.deploy.redeploy.run import (
    IN_FLIGHT_SECONDS,
    Deployable,
    Options,
    RolledBack,
    Run,
    Wait,
    age_of,
    as_mapping,
)
from airflow_flinkcompat.deploy.redeploy.sourcing import planned, require_savepoint
from airflow_flinkcompat.deploy.redeploy.starting import roll_back, start, way_back
from airflow_flinkcompat.deploy.redeploy.stopping import Ended, Stopped, last_checkpoint, stop
from airflow_flinkcompat.deploy.sources.choices import SourceOffsets
from airflow_flinkcompat.deploy.target import EngineInfo, StartMode, Target

_log = logging.getLogger(__name__)


def deploy(
    target: Target,
    ledger: Ledger,
    side: Deployable,
    *,
    start_mode: StartMode | str = StartMode.AUTO_FIRST,
    checked_old_sha256: str | None,
    outcome: str | None = None,
    report_path: str | None = None,
    approved_by: str | None = None,
    owner: str | None = None,
    hand_over: HandOver | None = None,
    offsets: SourceOffsets | str | Mapping[str, str] | None = None,
    options: Options | None = None,
    resumed: Wait | None = None,
    log: Callable[[str], None] = _log.info,
) -> LedgerEntry:
    """Deploy ``side`` and return its ``deployed`` ledger entry.

    ``checked_old_sha256`` is the hash of the old side that the change was checked against; None: nothing was deployed
    then. ``owner`` names this run: the same name may take up its own unfinished run at once, and is told what its
    finished one came to; None: this process, for every call a new run. With nothing deployed the start is stateless;
    ``savepoint`` is refused then. A stateless restart stops with a savepoint too, so that nothing is lost.
    ``checkpoint`` is for a compatible change only.
    ``hand_over`` is the record of the backfill this job goes on from: its start is stateless, and the record, kept in
    the ledger, is of this very script. ``offsets``: where the sources begin, one choice for all or by table:
    ``as-stored`` (the only one with state), ``earliest``, ``latest``, a moment in ISO 8601 with its zone, or
    ``script``, by the script's own options, which is what a stateless start does by default. ``resumed`` is the wait
    that an earlier call of this run ended in.

    Raises DeployRefused (nothing touched), RolledBack (the former script runs again), StartFailed (nothing runs),
    Waiting (see ``Options.patience``), or another DeployError (call again: what was begun is taken up).
    """
    context = {
        "outcome": outcome,
        "report_path": report_path,
        "approved_by": approved_by,
        "hand_over": None if hand_over is None else hand_over.to_dict(),
    }
    run = Run(
        target,
        ledger,
        side,
        StartMode(start_mode),
        context,
        owner or this_process(),
        options or Options(),
        log,
        resumed,
        SourceOffsets.of(offsets),
    )
    progress = Progress.of(ledger.entries())
    _check_languages(run, progress.head)
    run.last = progress.last
    # A run that takes up another one's start resolves nothing, and is told of that job's failure all the same.
    target.learn_secrets(side.script, side.settings)
    if progress.head is not None:
        target.learn_secrets(progress.head.script, progress.head.settings)
    if owner is not None and (done := _done(run, progress)):
        return done
    if hand_over is not None:
        _check_hand_over(run, progress.head, hand_over)
    _check_mode(run, progress.head, outcome)
    _check_head(run, progress.head, checked_old_sha256)
    _check_claim(run, progress)
    try:
        entry = _deploy(run, progress)
    except (TargetError, ScriptRefused, DeployRefused) as error:
        if (stopped := progress.latest(STOPPED)) is None or progress.head is None:
            raise
        raise type(error)(f"{error}\n{way_back(run, stopped.savepoint, progress.head)}") from None
    retention.dispose_old(run)
    return entry


def _deploy(run: Run, progress: Progress) -> LedgerEntry:
    head, reached = progress.head, progress.reached
    if head is not None and (failed := progress.failed_start) is not None:
        run.append(replace(run.template(), kind=DEPLOYING))
        raise roll_back(run, head, failed, reached if reached and reached.kind == ROLLING_BACK else None)
    engine = run.target.engine()
    _check_engine(run, engine)
    settings = run.job_settings(run.side.settings)
    taken_up = _unfinished_start(run, reached)
    begins = taken_up is None and (head is None or run.mode is StartMode.STATELESS)
    if begins or not _validated(run, progress):
        run.log(f"validating {run.side.source} on {engine.engine} {engine.version}")
    beginnings = planned(run, head, settings) if begins else ()
    if not begins and not _validated(run, progress):
        run.target.validate(run.side.script, settings, source=run.side.source)
    stopped = _old_state(run, progress, taken_up)
    require_savepoint(beginnings, head, stopped)
    if taken_up is None:
        _check_strangers(run, settings, progress)
    template = run.template()
    if run.resumed is None:  # a claim: whoever else holds this run's name goes no further
        run.append(replace(template, kind=DEPLOYING))
    if head is not None and stopped is None:
        try:
            stopped = stop(run, template, head, progress)
        except Ended as ended:
            raise roll_back(run, head, ended.failed, None) from None
    return start(run, template, head, stopped or Stopped(), taken_up, beginnings)


def _done(run: Run, progress: Progress) -> LedgerEntry | None:
    """What this very run has come to before, should it have died before it could say so. Raises RolledBack."""
    head = progress.head
    if head is None or head.owner != run.owner or progress.steps:
        return None
    if head.kind == ROLLED_BACK:
        raise RolledBack(head.message)
    if head.kind != DEPLOYED or head.sha256 != run.side.sha256:
        return None
    status = run.target.status(str(head.job_id))
    if status is None or (status.terminal and status.state != "FINISHED"):
        return None
    run.log(f"job {head.job_id} was deployed by an earlier try of this run (entry {head.number})")
    return head


# ---------------------------------------------------------------------- what must hold before anything is touched
def _check_languages(run: Run, head: LedgerEntry | None) -> None:
    """The SQL Gateway runs SQL: neither a program, nor the way back to one."""
    name = run.ledger.deployment
    if run.side.language != "sql":
        raise ScriptRefused(NO_GATEWAY.format(source=run.side.source, deployment=name))
    if head is not None and head.language != "sql" and run.options.roll_back:
        raise DeployRefused(
            f"entry {head.number} of the ledger of {name} deployed a program, which the SQL Gateway could not start "
            "again if the new script does not run: say roll_back=False, and be ready to start it yourself"
        )


def _check_mode(run: Run, head: LedgerEntry | None, outcome: str | None) -> None:
    if head is None and run.mode in (StartMode.SAVEPOINT, StartMode.CHECKPOINT):
        raise DeployRefused(
            f"{run.ledger.deployment} was never deployed: there is no savepoint to start from; use start mode "
            f"{StartMode.AUTO_FIRST}"
        )
    if head is not None and run.mode is not StartMode.STATELESS:
        run.offsets.require_stored()
    if run.mode is StartMode.CHECKPOINT and outcome != "compatible":
        raise DeployRefused(
            f"start mode {run.mode} is for compatible changes only (a checkpoint is no way back), and the outcome of "
            f"this one is {outcome or 'not known'}: use start mode {StartMode.SAVEPOINT}"
        )


def _check_hand_over(run: Run, head: LedgerEntry | None, hand_over: HandOver) -> None:
    functions = [as_mapping(function) for function in run.side.functions]
    first = run.mode is StartMode.AUTO_FIRST and head is None
    resumes = run.mode is not StartMode.STATELESS and not first
    sha256 = fingerprint(run.side.script, run.side.settings, functions, run.side.catalog)
    check_hand_over(hand_over, sha256, resumes)
    for line in hand_over.lines():
        run.log(line)


def _check_head(run: Run, head: LedgerEntry | None, checked: str | None) -> None:
    name = run.ledger.deployment
    if head is None and checked is not None:
        raise DeployRefused(
            f"the change was checked against a deployed side ({_short(checked)}), but the ledger of {name} "
            "holds no deployment: is it the right ledger? Check again"
        )
    if head is not None and head.sha256 != checked:
        seen = f"against {_short(checked)}" if checked else "while nothing was deployed"
        raise DeployRefused(
            f"the change was checked {seen}, but entry {head.number} of the ledger of {name} deployed "
            f"{_short(head.sha256)} at {head.at}: check the change again, against what is deployed now"
        )


def _check_claim(run: Run, progress: Progress) -> None:
    last = progress.unfinished
    if last is None or last.owner == run.owner:
        return
    age, claimed = age_of(last), run.options.claimed(last)
    if age < claimed:
        raise DeployRefused(
            f"{last.owner} is deploying {run.ledger.deployment} (entry {last.number}, {last.kind}, "
            f"{age:.0f} s ago): wait for it; should it have died, its run can be taken over in "
            f"{claimed - age:.0f} s"
        )
    run.log(f"taking over the unfinished run of {last.owner} (entry {last.number}, {last.kind})")


def _check_overtaken(run: Run) -> None:
    """What is seen of the cluster may be the work of a run that began after the ledger was read."""
    newer = [entry for entry in run.ledger.entries() if entry.number > run.last and is_step(entry)]
    if newer:
        raise DeployRefused(
            f"{newer[-1].owner} deploys {run.ledger.deployment} at the same time (entry {newer[-1].number}, "
            f"{newer[-1].kind}): wait for it, then check the change again"
        )


def _check_engine(run: Run, engine: EngineInfo) -> None:
    wanted = (run.side.engine_version or "").split(".")[:2]
    if run.side.engine == engine.engine and wanted != [""] and wanted != engine.version.split(".")[: len(wanted)]:
        raise DeployRefused(
            f"the change was checked for {run.side.engine} {run.side.engine_version}, the target is "
            f"{engine.engine} {engine.version}: check it again for that version"
        )


def _check_strangers(run: Run, settings: Mapping[str, str], progress: Progress) -> None:
    """No other job of this deployment runs: none of its name, and none that an earlier run began under another."""
    head = progress.head
    name = prepare(run.side.script, run.side.source).job_name or settings[JOB_NAME]
    begun = {step.job_id for step in progress.steps if step.job_id}
    ours = head.job_id if head else None
    strangers = sorted({*run.target.running(name), *(job for job in begun if _runs(run, job))} - {ours})
    if strangers:
        _check_overtaken(run)
        raise DeployRefused(
            f"job {', '.join(strangers)} named {name!r} runs on the cluster and is not the one of the ledger "
            f"({head.job_id if head else 'nothing is deployed'}): two would write to one sink. Stop it, or "
            "deploy under another name"
        )


# ------------------------------------------------------------------------------ what earlier runs have left behind
def _validated(run: Run, progress: Progress) -> bool:
    """Whether an unfinished run has validated this version before it touched anything."""
    claim = progress.latest(DEPLOYING)
    return progress.unfinished is not None and claim is not None and claim.sha256 == run.side.sha256


def _unfinished_start(run: Run, reached: LedgerEntry | None) -> LedgerEntry | None:
    """The start that an earlier run of this version wrote down and did not see through."""
    if reached is None or reached.kind not in (STARTING, STARTED):
        return None
    status = run.target.status(str(reached.job_id))
    ended = status is not None and status.terminal
    stateless = reached.start_mode == StartMode.STATELESS
    as_wanted = run.mode is StartMode.AUTO_FIRST or stateless == (run.mode is StartMode.STATELESS)
    if reached.sha256 == run.side.sha256 and (as_wanted or not ended):
        if not as_wanted:
            raise DeployRefused(
                f"entry {reached.number} ({reached.owner}) began a start in mode {reached.start_mode}, and this run is "
                f"to start in mode {run.mode}: clear that run, or cancel job {reached.job_id}; then deploy again"
            )
        run.log(f"entry {reached.number} began to start job {reached.job_id}: taking it up")
        return reached
    if status is not None and not ended:
        raise DeployRefused(
            f"job {reached.job_id} of entry {reached.number} runs another version ({_short(reached.sha256)}) that was "
            f"never verified: clear the run that started it ({reached.owner}), or cancel the job; then deploy again"
        )
    age = age_of(reached)
    if status is None and age < IN_FLIGHT_SECONDS:
        raise DeployRefused(
            f"job {reached.job_id} of entry {reached.number}, another version ({_short(reached.sha256)}), may still be "
            f"accepted: wait for {IN_FLIGHT_SECONDS - age:.0f} s, or clear the run that began it ({reached.owner})"
        )
    return None


def _old_state(run: Run, progress: Progress, taken_up: LedgerEntry | None) -> Stopped | None:
    """What the former job left when a redeploy stopped it; None when it is still to be stopped."""
    head = progress.head
    if head is None:
        return Stopped()
    job_id = str(head.job_id)
    status = run.target.status(job_id)
    runs = status is not None and not status.terminal
    stopped = progress.latest(STOPPED)
    if stopped is not None and stopped.job_id == job_id and not runs:
        if taken_up is None:
            run.log(f"job {job_id} was stopped by entry {stopped.number}; its state is in {stopped.savepoint}")
        return Stopped.of(stopped)
    last = progress.latest(STOPPING, STOPPED, FAILED)
    if runs or (last is not None and last.kind == STOPPING):
        return None
    if taken_up is not None or (run.options.allow_ended and run.mode is StartMode.STATELESS):
        return Stopped()
    if run.mode is StartMode.CHECKPOINT and status is not None:
        taken = last_checkpoint(run, job_id, status.state)
        return Stopped(taken.path, taken)
    seen = f"is {status.state}" if status else "is unknown to the cluster"
    _check_overtaken(run)
    left = run.target.final_savepoint(job_id) if status else None
    raise DeployRefused(
        f"job {job_id} of {run.ledger.deployment} (ledger entry {head.number}) {seen}, and no deployment has stopped "
        f"it: there is no savepoint to go on from{_left_in(left, head)}. Find out why it ended; "
        "then go on from its last checkpoint (start mode checkpoint, where checkpoints are retained and the change is "
        "compatible), or restart it stateless with ended jobs allowed"
    )


def _left_in(savepoint: str | None, head: LedgerEntry) -> str:
    if savepoint is None:
        return ""
    return (
        f", but the one of whoever stopped it, {savepoint}: start the script of entry {head.number} from it again, and "
        "`flinkcompat ledger adopt` that job"
    )


def _runs(run: Run, job_id: str) -> bool:
    status = run.target.status(job_id)
    return status is not None and not status.terminal


def _short(sha256: str | None) -> str:
    return (sha256 or "?")[:12]
