"""Preconditions of a change: a current check, a matching hand-over, and an unchanged platform.

The change must have been checked against the deployed version. A hand-over must belong to the change: a backfill with a
boundary records its script and the time at which the live job takes over. If the platform's own record differs from
the ledger, someone deployed without the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from upath import UPath

from airflow_flinkcompat.compat.hand_over import BoundaryError, HandOver
from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, NO_PROGRAMS, ScriptRefused
from airflow_flinkcompat.deploy.ledger.entries import HeadEntry, PlannedEntry, StartEntry
from airflow_flinkcompat.deploy.ledger.listing import part_diff
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.redeploy.recovery import check_overtaken, job_name
from airflow_flinkcompat.deploy.redeploy.run import Run, age_of, short
from airflow_flinkcompat.deploy.target import CANNOT_TELL, Deployed, EngineInfo, ReadsBack
from airflow_flinkcompat.model import JobSpec, StartMode
from airflow_flinkcompat.model.engine import is_of_line, line_of


def check_languages(run: Run, head: HeadEntry | None) -> None:
    """Refuse to start a program, even as a rollback, because targets run only SQL.

    Raises ScriptRefused, DeployRefused.
    """
    name = run.ledger.deployment
    if run.side.language != "sql":
        raise ScriptRefused(NO_PROGRAMS.format(source=run.side.source, deployment=name, target=run.target))
    if head is not None and head.job.language != "sql" and run.options.roll_back:
        raise DeployRefused(
            f"entry {head.number} of the ledger of {name} deployed a program, which {run.target} cannot restart if "
            "the new script fails. Set roll_back=False, and be ready to start the program manually"
        )


def check_mode(run: Run, head: HeadEntry | None, outcome: str | None) -> None:
    """Check that the start mode is possible for the deployed job. Raises DeployRefused."""
    if (run.mode is StartMode.MIGRATED) != (run.migration is not None):
        raise DeployRefused(
            f"start mode {StartMode.MIGRATED} requires a migration, and no other start mode accepts a migration"
        )
    if head is None and run.mode in (StartMode.SAVEPOINT, StartMode.CHECKPOINT, StartMode.MIGRATED):
        raise DeployRefused(
            f"{run.ledger.deployment} was never deployed, so there is no savepoint to start from. Use start mode "
            f"{StartMode.AUTO_FIRST}"
        )
    if head is not None and run.mode is not StartMode.STATELESS:
        run.offsets.require_stored()
    if run.mode is StartMode.CHECKPOINT and outcome != "compatible":
        raise DeployRefused(
            f"start mode {run.mode} is only for compatible changes (a checkpoint allows no rollback), but the outcome "
            f"of this change is {outcome or 'unknown'}. Use start mode {StartMode.SAVEPOINT}"
        )


def check_head(run: Run, head: HeadEntry | None, checked: str | None) -> None:
    """Check that the old side of the compatibility check was the deployed version. Raises DeployRefused."""
    name = run.ledger.deployment
    if head is None and checked is not None:
        raise DeployRefused(
            f"the change was checked against a deployed side ({short(checked)}), but the ledger of {name} "
            "contains no deployment. Make sure that this is the right ledger, then check the change again"
        )
    if head is not None and head.sha256 != checked:
        seen = f"against {short(checked)}" if checked else "while nothing was deployed"
        raise DeployRefused(
            f"the change was checked {seen}, but entry {head.number} of the ledger of {name} deployed "
            f"{short(head.sha256)} at {head.at}. Check the change again, against the deployed version"
        )


def check_claim(run: Run, progress: Progress) -> None:
    """Check that no other run is active according to the ledger. Raises DeployRefused."""
    last = progress.unfinished
    if last is None or last.owner == run.owner:
        return
    age, claimed = age_of(last), run.options.claimed(last)
    if age < claimed:
        raise DeployRefused(
            f"{last.owner} is deploying {run.ledger.deployment} (entry {last.number}, {last.kind}, {age:.0f} s ago). "
            f"Wait until the run of {last.owner} has ended. If that run died, this run can take over in "
            f"{claimed - age:.0f} s"
        )
    run.log(f"taking over the unfinished run of {last.owner} (entry {last.number}, {last.kind})")


def check_engine(run: Run, engine: EngineInfo) -> None:
    """Check that the target runs the engine of the checked change. Raises DeployRefused."""
    wanted = line_of(run.side.engine_version)
    if run.side.engine == engine.engine and wanted and not is_of_line(engine.version, wanted):
        raise DeployRefused(
            f"the change was checked for {run.side.engine} {run.side.engine_version}, but the target is "
            f"{engine.engine} {engine.version}. Check the change again for {engine.version}"
        )


def check_line(run: Run, head: HeadEntry | None, engine: EngineInfo) -> None:
    """Check that the target is not older than the deployed job. Raises DeployRefused."""
    if head is None or head.job.engine != engine.engine:
        return
    lines = [re.findall(r"\d+", version or "")[:2] for version in (head.job.engine_version, engine.version)]
    deployed, present = (tuple(map(int, line)) for line in lines)
    if deployed > present:
        raise DeployRefused(
            f"entry {head.number} of the ledger of {run.ledger.deployment} deployed job {head.job_id} on "
            f"{engine.engine} {head.job.engine_version}, but {run.target} is {engine.engine} {engine.version}, which "
            "cannot read that job's state. Redeploy with the connection and the engine_version of the cluster that "
            "runs the job"
        )


def read_hand_over(record: str | Mapping[str, Any]) -> HandOver:
    """Read a hand-over record from JSON values, JSON text or a path. Raises BoundaryError."""
    if isinstance(record, Mapping):
        return HandOver.from_dict(dict(record))
    if record.lstrip().startswith("{"):
        return HandOver.from_json(record)
    try:
        return HandOver.from_json(UPath(record).read_text(encoding="utf-8"))
    except (OSError, ValueError, ImportError) as error:
        if isinstance(error, BoundaryError):
            raise
        raise BoundaryError(
            f"the hand-over record {record} cannot be read ({error}). To write a record, run backfill --dry-run "
            "--boundary … --hand-over FILE"
        ) from None


def check_hand_over(record: HandOver, job: JobSpec, resumes: bool) -> None:
    """Raise DeployRefused if the job is not the stateless successor of the backfill in ``record``."""
    try:
        record.check(job)
    except BoundaryError as error:
        raise DeployRefused(str(error)) from None
    if resumes:
        raise DeployRefused(
            f"the hand-over at {record.boundary} is for a job that starts without state, but this job resumes from a "
            "savepoint. Deploy with start mode stateless, or omit the hand-over"
        )


# Maximum number of diff lines in a message.
_MOST_LINES = 60


def check_read_back(run: Run, progress: Progress) -> None:
    """Check that the platform's own record, if any, matches the ledger. Raises DeployRefused."""
    if not isinstance(run.target, ReadsBack):
        return
    head = progress.head
    status = run.status_of(head) if head else None
    name = status.name if status else job_name(run)
    found = run.target.deployed(name)
    if found is None:
        return
    plans = tuple(step for step in progress.steps if isinstance(step, PlannedEntry))
    steps = tuple(step for step in progress.steps if step not in plans)
    # A stop entry names the head's job but contains the proposed script. The head comes last, so the head wins.
    known = {job: entry for entry in (*steps, head) if entry and (job := run.job_of(entry))}
    if found.job:
        entries = [known[found.job]] if found.job in known else []
    else:  # the platform may store the request of a dead run before it knows the job
        entries = [entry for entry in (head, *steps) if isinstance(entry, HeadEntry | StartEntry)]
    differing = [difference(found, entry.job) if entry.job.language == "sql" else "" for entry in entries]
    if "" in differing:
        return
    if plan := carried_out_by(run, head, plans, found):
        raise DeployRefused(
            f"job {found.job} runs the version that entry {plan.number} of the ledger of "
            f"{run.ledger.deployment} planned, but the ledger does not record its execution yet. Check the change "
            "again, which verifies and records the job, or record the job yourself (`flinkcompat ledger adopt "
            f"{run.ledger.deployment} --job-id {found.job} --script FILE`)"
        )
    if entries:
        what = f"job {found.job} runs" if found.job else f"{name!r} is deployed with"
        differs = f"{what} {differing[-1]} than entry {entries[-1].number} records"
    else:
        differs = f"job {found.job} runs under the name {name!r}" if found.job else f"{name!r} is deployed"
    check_overtaken(run)
    ledger = run.ledger.deployment
    recorded = f"records job {head.job_id} (entry {head.number})" if head else "records no deployment"
    held = entries[-1] if entries else head
    back = f", or restore the version of entry {held.number} on the platform" if held else ""
    raise DeployRefused(
        f"on {run.target}, {differs}, but the ledger of {ledger} {recorded}: someone else deployed. Nothing was "
        f"changed. Record the running version (`flinkcompat ledger adopt {ledger} --job-id "
        f"{found.job or 'ID'} --script FILE`){back}. Then check the change "
        f"again{differences(found, held.job, f'entry {held.number}') if held else ''}"
    )


def carried_out_by(
    run: Run, head: HeadEntry | None, plans: Sequence[PlannedEntry], found: Deployed
) -> PlannedEntry | None:
    """The plan that matches a platform's record, by request id or as the only plan with the same content."""
    if found.job is None or (head is not None and found.job == head.job_id):
        return None
    if asked := next((plan for plan in plans if run.job_of(plan) == found.job), None):
        return asked
    alike = [plan for plan in plans if found.script is not None and not difference(found, plan.job)]
    return alike[0] if len(alike) == 1 else None


def difference(found: Deployed, job: JobSpec) -> str:
    """Difference between a platform's record and a job, without the job's name. "" if equal or unknown."""
    settings = job.settings
    if found.script is not None and found.script != job.script:
        return "a different script"
    stated = job.engine_version
    if found.engine is not None and found.engine.engine == job.engine and stated:
        version = found.engine.version
        if not is_of_line(version, stated):
            return f"a different engine version ({version}, not {stated})"
    if found.settings is None:
        return ""
    keys = {*found.settings, *settings} - {JOB_NAME}
    others = sorted(key for key in keys if found.settings.get(key) != settings.get(key))
    return f"different settings ({', '.join(others)})" if others else ""


def differences(found: Deployed, job: JobSpec, name: str) -> str:
    """Text about the differences between a platform's record and a job, shortened, with secrets masked."""
    if job.language != "sql" or (found.script is None and found.settings is None):
        return ""
    rows = job.to_dict(), job.to_dict()
    for row, settings in zip(rows, (job.settings, found.settings or job.settings), strict=True):
        row["settings"] = {key: value for key, value in settings.items() if key != JOB_NAME}
    rows[1]["script"] = job.script if found.script is None else found.script
    lines = [line for part in ("script", "settings") for line in part_diff(part, *rows, (name, "the running version"))]
    if not lines:
        equal = [rows[0][part] == rows[1][part] for part in ("script", "settings")]
        untold = [part for part, value in (("script", found.script), ("settings", found.settings)) if value is None]
        but = f"; its {untold[0]} {CANNOT_TELL}" if untold else ""
        same = (
            "script and settings are the same"
            if all(equal)
            else "script and settings differ only in a secret, which is not shown"
        )
        return f"\n(compared with {name}: {same}{but})"
    more = len(lines) - _MOST_LINES
    return "\n".join(["", *lines[:_MOST_LINES], *([f"… and {more} more lines"] if more > 0 else [])])
