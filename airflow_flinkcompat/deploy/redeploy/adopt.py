"""Takeover of a running job: the first entry of the ledger records the script that its user states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, ScriptRefused, check_settings, prepare
from airflow_flinkcompat.deploy.ledger.entries import AdoptedEntry, JobStart
from airflow_flinkcompat.deploy.ledger.ledger import Ledger
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.redeploy.preconditions import difference, differences
from airflow_flinkcompat.deploy.target import (
    CANNOT_TELL,
    JobDescriptions,
    JobRef,
    JobStatus,
    JobVertex,
    ReadsBack,
    Target,
)
from airflow_flinkcompat.plan.nodes import Scan
from airflow_flinkcompat.secrets.spellings import PLACEHOLDER, is_secret_key

# How Flink names the tasks of tables: "Source: orders[1] -> Calc[2]", "totals[3]: Writer", "Sink: totals[3]".
_SOURCE = re.compile(r"\bSource: (\w+)\[\d+\]")
_SINK = re.compile(r"\bSink: (\w+)\[\d+\]|\b(\w+)\[\d+\]: Writer\b")


@dataclass(frozen=True)
class Adoption:
    """Comparison of script and job: ``compared`` parts, a line each, and differences as ``warnings``."""

    entry: AdoptedEntry
    job: JobStatus
    compared: tuple[str, ...]
    warnings: tuple[str, ...]


def adopt(
    target: Target, ledger: Ledger, side: Side, job_id: JobRef, *, owner: str, former_ended: bool = False
) -> Adoption:
    """Record that ``job_id`` is the deployment and runs ``side``, as its user states.

    The job is not touched. ``side`` gets the target's engine, and its version if it has none. Nothing is recorded if it
    raises. DeployRefused: no such job; it does not run or is a batch job; the platform reports another script; the
    ledger's own job runs; a redeploy is under way; or this target does not know either job (unless ``former_ended``
    states that the former has ended). ScriptRefused: the script does not make one job, or holds a secret. DeployError,
    LedgerError, LedgerConflict.
    """
    name = _job_name(side)
    check_settings(side.settings)
    job, vertices = _running(target, job_id)
    job_id = job.job_id  # as the target names it itself
    progress = Progress.of(ledger.entries())
    verified = _verified(target, job, side)
    _refuse_others(target, ledger, progress, job_id, former_ended)
    head = progress.head
    # A job whose script others have changed can be adopted again.
    changed = verified and head is not None and (head.job.script, head.job.settings) != (side.script, side.settings)
    if head is not None and head.job_id == job_id and not changed:
        raise DeployRefused(
            f"job {job_id} is already recorded by entry {head.number} of the ledger of {ledger.deployment} "
            f"({head.kind}): there is nothing to adopt"
        )
    side = _versioned(target, side)
    compared, warnings = _compared(side, name or side.settings.get(JOB_NAME), job, vertices)
    entry = AdoptedEntry(
        job=side,
        start=JobStart(job_id=job_id),
        message=f"script supplied by {owner}, {'confirmed by the platform' if verified else 'not verified'}",
        owner=owner,
        evidence=(f"job {job.name!r} was {job.state}", *compared, *warnings),
    )
    return Adoption(ledger.append(entry, after=progress.last), job, compared, warnings)


def _job_name(side: Side) -> str | None:
    """Name of the job in the script or program; None without one. Raises ScriptRefused."""
    if side.language == "sql":
        return prepare(side.script, side.source).job_name
    if side.secrets:
        places = ", ".join(f"{secret.key} at {secret.span}" for secret in side.secrets)
        raise ScriptRefused(
            f"the program contains secrets in plain text ({places}), and the ledger stores its text: read "
            "them from the environment, os.environ['NAME'], and pass --var 'NAME=${conn.<connection "
            "id>.password}'"
        )
    for name, value in side.variables.items():
        if is_secret_key(name) and value and not PLACEHOLDER.fullmatch(value):
            raise ScriptRefused(
                f"the variable {name!r} contains a secret in plain text: write ${{conn.<connection "
                "id>.password} in its place"
            )
    side.require_query()
    return dict(side.program.settings).get(JOB_NAME)


def _running(target: Target, job_id: JobRef) -> tuple[JobStatus, Sequence[JobVertex] | None]:
    """The job, and its vertices if the target shows them. Raises DeployRefused."""
    described = target.describe(job_id) if isinstance(target, JobDescriptions) else None
    job = target.status(job_id)
    if job is None:
        running = [job for job in target.jobs() if not job.terminal] if isinstance(target, JobDescriptions) else None
        known = ", ".join(f"{job.job_id} ({job.name}, {job.state})" for job in running or ()) or "none"
        others = CANNOT_TELL if running is None else known
        raise DeployRefused(f"{target} has no job {job_id}; its jobs that have not ended: {others}")
    if job.state != "RUNNING":
        raise DeployRefused(f"job {job_id} ({job.name}) is {job.state}: only a job that is RUNNING can be adopted")
    if described is not None and not described.streaming:
        raise DeployRefused(f"job {job_id} ({job.name}) is a batch job: it has no state to resume from")
    return job, None if described is None else described.vertices


def _verified(target: Target, job: JobStatus, side: Side) -> bool:
    """True if the platform stores the stated script and settings; raises DeployRefused if they differ."""
    found = target.deployed(job.name) if isinstance(target, ReadsBack) else None
    if found is None or found.script is None or side.language != "sql":
        return False
    if found.job not in (None, job.job_id):
        raise DeployRefused(f"on {target}, {job.name!r} is job {found.job}, not {job.job_id}: adopt job {found.job}")
    if differs := difference(found, side):
        raise DeployRefused(
            f"on {target}, job {job.job_id} runs {differs} than {side.source} and its options: adopt it with "
            f"the script and options that it runs{differences(found, side, side.source)}"
        )
    return True


def _refuse_others(target: Target, ledger: Ledger, progress: Progress, job_id: str, former_ended: bool) -> None:
    """Refuse while the ledger's job, or one that a redeploy began, runs or may run."""
    if progress.unfinished and not former_ended:
        last = progress.unfinished
        raise DeployRefused(
            f"the redeploy of {last.owner} has not ended (entry {last.number} of the ledger of "
            f"{ledger.deployment}: {last.kind}): run it again, and it resumes from there; if nobody will, "
            "and its job has ended or is this one, pass --former-ended"
        )
    for entry in (progress.head, *progress.steps):
        other = entry.job_id if entry else None
        if entry is None or other is None:
            continue
        state = None if other == job_id else target.status(other)
        if state is not None and not state.terminal:
            raise DeployRefused(
                f"job {other} of entry {entry.number} of the ledger of {ledger.deployment} is {state.state}: "
                "two jobs of one deployment would write to the same sink. Stop one of them, or adopt under "
                "another name"
            )
        if other != job_id and state is None and entry.is_head and not former_ended:
            raise DeployRefused(
                f"job {other} of entry {entry.number} of the ledger of {ledger.deployment} is unknown to "
                f"{target}: it may run elsewhere. If it has ended, pass --former-ended"
            )


def _versioned(target: Target, side: Side) -> Side:
    """The side with the target's engine and version. Raises DeployRefused if it names another one."""
    found = target.engine()
    stated = (side.engine_version or "").split(".")
    if stated != [""] and stated != found.version.split(".")[: len(stated)]:
        raise DeployRefused(f"--engine-version is {side.engine_version}, but the cluster runs {found.version}")
    return replace(side, engine=found.engine, engine_version=found.version)


def _compared(
    side: Side, name: str | None, job: JobStatus, vertices: Sequence[JobVertex] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parts of the script that were compared with the job, and their differences."""
    compared, warnings = [], []
    if name is not None:
        compared.append(f"name: the script's {JOB_NAME} is {name!r}, the job's name {job.name!r}")
        if name != job.name:
            warnings.append(f"the job is named {job.name!r}, and the script names it {name!r}")
    if vertices is None:
        return (*compared, f"tables that it reads and writes: {CANNOT_TELL}"), tuple(warnings)
    tasks = [vertex.name for vertex in vertices]
    in_job = {
        "reads": {found for task in tasks for found in _SOURCE.findall(task)},
        "writes": {found for task in tasks for pair in _SINK.findall(task) for found in pair if found},
    }
    sinks = [pipeline.sink for pipeline in side.program.pipelines]
    in_script = {
        "reads": {node.table.name for sink in sinks for node in sink.nodes if isinstance(node, Scan)},
        "writes": {sink.name for sink in sinks if sink.name},
    }
    for verb, seen in in_job.items():
        stated = {name.rpartition(".")[2].strip("`") for name in in_script[verb]}
        if not seen or side.program.problems:
            compared.append(f"tables that it {verb}: could not be compared")
            continue
        compared.append(f"tables that it {verb}: the job's {_list(seen)}, the script's {_list(stated)}")
        # Not the other way about: a table that is looked up makes no source, and files and lakes name their sinks
        # otherwise.
        if more := seen - stated:
            warnings.append(f"the job {verb} {_list(more)}, which the script does not")
    return tuple(compared), tuple(warnings)


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
