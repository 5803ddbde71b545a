"""Starting the new job and proving it; and the way back: the former script from the same savepoint."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.evidence import TakenState
from airflow_flinkcompat.deploy.flink.execution import SubmissionUnknown
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.rest import ApiError
from airflow_flinkcompat.deploy.flink.statements import set_options
from airflow_flinkcompat.deploy.ledger.history import LedgerEntry
from airflow_flinkcompat.deploy.ledger.steps import DEPLOYED, FAILED, ROLLED_BACK, ROLLING_BACK, STARTED, STARTING
from airflow_flinkcompat.deploy.redeploy.run import (
    IN_FLIGHT_SECONDS,
    RolledBack,
    Run,
    StartFailed,
    Wait,
    Waiting,
    age_of,
    new_id,
)
from airflow_flinkcompat.deploy.redeploy.stopping import Stopped, saved_state
from airflow_flinkcompat.deploy.redeploy.verify import Proof, Unproven, VerificationFailed, verify_start
from airflow_flinkcompat.deploy.sources.offsets import Beginning, settle, tables, with_state
from airflow_flinkcompat.deploy.sources.positions import PositionsUnknown
from airflow_flinkcompat.deploy.target import Start, StartMode

# Between two submissions of one job; the client itself has tried several times before.
_PAUSE_SECONDS = 2.0
# What Flink says where the job does not fit the state: it would say so to every submission of that job.
_STATE_REFUSED = re.compile(r"Cannot map checkpoint/savepoint state|Max parallelism mismatch")
_GONE = " The savepoint is not where it was: put it back first, or start stateless with ended jobs allowed."


def start(
    run: Run,
    template: LedgerEntry,
    head: LedgerEntry | None,
    stopped: Stopped,
    taken_up: LedgerEntry | None,
    beginnings: Sequence[Beginning] = (),
) -> LedgerEntry:
    """Start the proposed job, or take up the start an earlier run wrote down; its ``deployed`` entry.

    ``beginnings``: where its sources begin when it starts without state. Raises RolledBack, StartFailed, Waiting, and
    other DeployErrors where nobody knows yet: call again.
    """
    earlier = taken_up
    if taken_up is None:
        from_nothing = head is None or run.mode is StartMode.STATELESS or stopped.savepoint is None
        resumed = StartMode.CHECKPOINT if run.mode is StartMode.CHECKPOINT else StartMode.SAVEPOINT
        template = replace(
            template, start_mode=str(StartMode.STATELESS if from_nothing else resumed), savepoint=stopped.savepoint
        )
        try:
            begun = tuple(each.to_dict() for each in settle(beginnings, stopped.savepoint))
        except PositionsUnknown as error:
            raise _failed(run, template, f"the job was not started: {error}", head) from None
        template = replace(template, offsets=begun if from_nothing else with_state(stopped.savepoint))
        for row in template.offsets:
            run.log(row["words"])
        taken_up = run.append(replace(template, kind=STARTING, job_id=new_id()))
    taken = {name: getattr(taken_up, name) for name in ("start_mode", "savepoint", "job_id", "offsets")}
    template = replace(template, **taken)
    try:
        if taken_up.kind == STARTING:
            _submit(run, template, run.side.source, earlier)
            template = replace(run.append(replace(template, kind=STARTED)), number=0, at="")
        proof = _proved(run, template, stopped, head)
    except _Refused as error:
        raise _failed(run, template, str(error), head) from None
    settings = {
        "cluster": run.target.cluster_options(),
        "session": run.job_settings(run.side.settings),
        "script": set_options(run.side.script, run.side.source),
    }
    done = replace(template, kind=DEPLOYED, message=f"{proof.status.state}, verified", evidence=proof.lines)
    entry = run.append(replace(done, effective_settings=settings))
    run.log(f"deployed: job {entry.job_id} is {proof.status.state}, verified; ledger entry {entry.number}")
    return entry


def roll_back(run: Run, head: LedgerEntry, failed: LedgerEntry, begun: LedgerEntry | None) -> StartFailed:
    """Start the script of ``head`` again where it stopped; the error to raise, which says how that went.

    ``failed`` is the entry of the start that failed, or of the stop that failed the former job itself; ``begun`` the
    way back that an earlier run wrote down.
    """
    itself = failed.job_id == head.job_id
    run.log(f"{'' if itself else 'the new job failed: '}{failed.message}\nrolling back to entry {head.number}")
    try:
        left = _end(run, failed.job_id, again=True)
    except ApiError as error:
        raise DeployError(
            f"{failed.message}.\nRolling back to entry {head.number} has to wait: {error}\n"
            f"Run this again when it answers: the way back is written down, and goes on from {failed.savepoint}"
        ) from None
    if left:
        message = f"{failed.message}. It was not rolled back, because {left}: two jobs would write to one sink"
        template = replace(run.template_of(head), savepoint=failed.savepoint)
        run.append(replace(template, kind=FAILED, job_id=failed.job_id, message=message))
        return StartFailed(f"{message}.\nCancel it by hand first. {_commands(run, template, head)}")
    mode = str(StartMode.CHECKPOINT if itself else StartMode.SAVEPOINT)
    template = replace(run.template_of(head), start_mode=mode, savepoint=failed.savepoint)
    template = replace(template, offsets=with_state(failed.savepoint))
    earlier = begun
    if begun is None:
        begun = run.append(replace(template, kind=ROLLING_BACK, job_id=new_id(), message=failed.message))
    template = replace(template, job_id=begun.job_id)
    try:
        _submit(run, template, f"ledger entry {head.number}", earlier)
        proof = _proved(run, template, Stopped(), None)
    except _NotYet as error:  # it is the job that ran before, from its own state: ending it would help nobody
        message = (
            f"{failed.message}.\nRolled back: the script of entry {head.number} was started again as job "
            f"{template.job_id} from {template.savepoint} and goes on, but {error}: look at it. "
            f"{_doubled(run, head, failed)}"
        )
        run.append(replace(template, kind=ROLLED_BACK, message=message))
        return RolledBack(message)
    except _Refused as error:
        left = _end(run, template.job_id)
        message = f"{failed.message}. Rolling back failed too: {str(error).rstrip('.')}"
        run.append(replace(template, kind=FAILED, message=message))
        runs = f"{left}, beside it nothing" if left else "Nothing"
        gone = _GONE if "FileNotFoundException" in str(error) else ""
        return StartFailed(
            f"{message}.\n{runs} of {run.ledger.deployment} runs now.{gone}\n{_commands(run, template, head)}"
        )
    message = (
        f"{failed.message}.\nRolled back: the script of entry {head.number} runs again as job {template.job_id}, "
        f"restored from {template.savepoint} and verified. {_doubled(run, head, failed)}"
    )
    run.append(replace(template, kind=ROLLED_BACK, message=message, evidence=proof.lines))
    return RolledBack(message)


class _Refused(DeployError):
    """The job does not run from the state it was given, for certain."""


class _NotYet(_Refused):
    """The time is over, and the job neither proved itself nor failed."""


def _given(entry: LedgerEntry) -> Start:
    stateless = entry.start_mode == StartMode.STATELESS
    return Start(None if stateless else entry.savepoint, tables(entry.offsets))


def _submit(run: Run, template: LedgerEntry, source: str, earlier: LedgerEntry | None) -> None:
    """Have the job of an entry accepted, unless the cluster knows it already. Raises _Refused.

    ``earlier``: the entry by which another run began it, None where its id was made a moment ago. While a submission
    without an answer may still be at work, a refusal of the next one is none, or that job would come beside another:
    only what the state itself is refused for holds for both.
    """
    job_id = str(template.job_id)
    given = _given(template)
    settings = run.job_settings(template.settings)
    asked = earlier is not None
    at_work = 0.0 if earlier is None else IN_FLIGHT_SECONDS + run.options.submit_timeout - age_of(earlier)
    at_work_until = time.time() + at_work

    def submitted() -> DeployError | None:
        """None once the cluster has the job; else why that is not known."""
        nonlocal asked, at_work_until
        if asked and run.target.status(job_id) is not None:
            return None
        asked = True
        run.log(f"starting job {job_id} from {given.savepoint or 'an empty state'}")
        try:
            run.target.submit(template.script, settings, given, job_id=job_id, source=source)
        except DeployError as error:
            unanswered = isinstance(error, SubmissionUnknown) or (isinstance(error, ApiError) and error.unanswered)
            over = time.time() >= at_work_until or _STATE_REFUSED.search(str(error))
            if not unanswered and over and _answers(run):
                raise _Refused(f"the job was refused: {error}") from None
            if unanswered:
                at_work_until = time.time() + IN_FLIGHT_SECONDS
            run.log(f"{'no answer' if unanswered else 'an earlier submission may still be at work'}: {error}")
            return error
        return None

    try:
        poll(submitted, lambda unknown: unknown is not None, timeout=run.options.submit_timeout, every=_PAUSE_SECONDS)
    except Overdue as overdue:
        raise DeployError(
            f"{overdue.last}\nWhether job {job_id} was accepted is not known yet, so nothing else is started. The "
            f"state of {run.ledger.deployment} is safe in {template.savepoint or 'no savepoint (an empty start)'}. "
            "Run this again when the SQL Gateway answers: the same job is submitted under the same id, so there is "
            "never a second one"
        ) from None


def _answers(run: Run) -> bool:
    """Whether the cluster can be asked. While it cannot, a refusal may mean no more than that."""
    try:
        run.target.running(run.ledger.deployment)
    except DeployError:
        return False
    return True


def _proved(run: Run, template: LedgerEntry, former: Stopped, head: LedgerEntry | None) -> Proof:
    """Wait for the job's proof. Raises _Refused, Waiting."""

    def state() -> TakenState | None:
        # Right after the stop the cluster may have shown older statistics.
        if former.state is not None or head is None:
            return former.state
        return saved_state(run, str(head.job_id), template.savepoint)

    job_id = str(template.job_id)
    given = _given(template)
    wait = Wait(job_id, time.time(), 0)
    left, patience = run.left(run.options.start_timeout, wait), run.options.patience
    resumed = run.resumed
    try:
        return verify_start(
            run.target,
            job_id,
            given,
            state=state,
            offsets=former.offsets,
            settle_seconds=run.options.settle_seconds,
            timeout=left if patience is None else min(left, patience),
            log=run.log,
            proven_since=resumed.proven_since if resumed and resumed.job_id == job_id else None,
        )
    except Unproven as error:
        if patience is None or left <= patience:
            whole = run.options.start_timeout
            raise _NotYet(f"it did not prove itself within {whole:.0f} s: {error.missing}") from None
        until = time.time() + left
        raise Waiting(
            str(error), replace(wait, since=run.since(wait), until=until, proven_since=error.proven_since)
        ) from None
    except VerificationFailed as error:
        raise _Refused(str(error)) from None


def _failed(run: Run, template: LedgerEntry, reason: str, head: LedgerEntry | None) -> StartFailed:
    """Record the failure and go back where there is something to go back to."""
    rolls_back = run.options.roll_back and head is not None and bool(template.savepoint)
    reason = reason.rstrip(".")
    entry = run.append(
        replace(template, kind=FAILED, message=reason, rolls_back_to=head.number if rolls_back and head else None)
    )
    if rolls_back and head is not None:
        return roll_back(run, head, entry, None)
    left = _end(run, template.job_id)
    addition = f" {left[0].upper()}{left[1:]}: cancel it by hand." if left else ""
    return StartFailed(f"{reason}.{addition}\n{way_back(run, template.savepoint, head)}")


def _end(run: Run, job_id: str | None, again: bool = False) -> str:
    """End a job that must not go on; what is left of it when that fails, else empty.

    With ``again`` raises ApiError where the cluster does not answer: it can be asked again later.
    """
    if job_id is None:
        return ""
    try:
        status = run.target.status(job_id)
        if status is not None and not status.terminal:
            run.target.cancel(job_id)
    except DeployError as error:
        if again and isinstance(error, ApiError) and error.unanswered:
            raise
        return f"job {job_id} could not be cancelled ({error})"
    return ""


def _doubled(run: Run, head: LedgerEntry, failed: LedgerEntry) -> str:
    """Whether rows may have been emitted twice."""
    job_id = failed.job_id
    if job_id == head.job_id:
        return (
            "No new job was started. What the former one wrote after that checkpoint may be written a second time, as "
            "after any failure that Flink restarts it from: a keyed upsert sink hides that, and a sink that commits "
            "with checkpoints had not committed it."
        )
    try:
        ran = run.target.ever_ran(str(job_id)) if job_id else False
        status = run.target.status(str(job_id)) if ran else None
    except DeployError:
        ran, status = None, None
    if ran is False:
        return "No task of the new job ever ran, so no row was written twice."
    completed = status.completed_checkpoints if status else "an unknown number of"
    return (
        f"The new job ran before it was ended, and completed {completed} checkpoints: what it wrote after the "
        "savepoint may be written a second time by the job that runs now. A keyed upsert sink hides that; a sink that "
        "commits with checkpoints did so for the completed ones only."
    )


def way_back(run: Run, savepoint: str | None, head: LedgerEntry | None) -> str:
    """What runs now, where the state is, and what to type."""
    name = run.ledger.deployment
    if head is None:
        return f"Nothing of {name} runs, as before."
    if not savepoint:
        return f"Nothing of {name} runs now; its former job {head.job_id} (entry {head.number}) had ended before."
    return (
        f"Nothing of {name} runs now. The former job {head.job_id} was stopped; its state is safe in\n  {savepoint}\n"
        f"{_commands(run, replace(run.template_of(head), savepoint=savepoint), head)}"
    )


def _commands(run: Run, template: LedgerEntry, head: LedgerEntry) -> str:
    return (
        f"To bring it back, deploy the script of ledger entry {head.number} again with start mode "
        f"'{template.start_mode or StartMode.SAVEPOINT}' "
        "(it starts from there); or by hand, in one session of the SQL Gateway:\n"
        f"  SET 'execution.state-recovery.path' = '{template.savepoint}';\n"
        "  SET 'execution.state-recovery.claim-mode' = 'NO_CLAIM';\n"
        f"  and the statements of {run.ledger.directory / f'{head.number:06d}.json'}"
    )
