"""Adoption of a running job: the ledger records the job with the script that the user supplies."""

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
from airflow_flinkcompat.model.engine import is_of_line
from airflow_flinkcompat.plan.nodes import Scan
from airflow_flinkcompat.secrets.spellings import PLACEHOLDER, is_secret_key

# Flink's task names of tables, such as "Source: orders[1] -> Calc[2]", "totals[3]: Writer" or "Sink: totals[3]".
_SOURCE = re.compile(r"\bSource: (\w+)\[\d+\]")
_SINK = re.compile(r"\bSink: (\w+)\[\d+\]|\b(\w+)\[\d+\]: Writer\b")


@dataclass(frozen=True)
class Adoption:
    """Result of an adoption; ``compared`` has a line for each compared part, ``warnings`` the differences."""

    entry: AdoptedEntry
    job: JobStatus
    compared: tuple[str, ...]
    warnings: tuple[str, ...]


def adopt(
    target: Target, ledger: Ledger, side: Side, job_id: JobRef, *, owner: str, former_ended: bool = False
) -> Adoption:
    """Record that ``job_id`` is the deployment's job and runs ``side``, as the user claims.

    The running job is not changed. The target supplies the engine of ``side`` and, if missing, the engine version. If
    an error is raised, nothing is recorded.

    Raises DeployRefused if the job does not exist, does not run, or is a batch job. Also raises DeployRefused if the
    platform shows a different script, the ledger's job still runs, or a redeploy is unfinished. If the target does
    not know the ledger's job, ``former_ended`` must confirm the end of that job. Raises ScriptRefused if the script
    does not define one job or contains a secret. Also raises DeployError, LedgerError and LedgerConflict.
    """
    name = _job_name(side)
    check_settings(side.settings)
    job, vertices = _running(target, job_id)
    job_id = job.job_id  # the id in the target's own form
    progress = Progress.of(ledger.entries())
    verified = _verified(target, job, side)
    _refuse_others(target, ledger, progress, job_id, former_ended)
    head = progress.head
    # A job can be adopted again if someone else has changed its script.
    changed = verified and head is not None and (head.job.script, head.job.settings) != (side.script, side.settings)
    if head is not None and head.job_id == job_id and not changed:
        raise DeployRefused(
            f"entry {head.number} of the ledger of {ledger.deployment} ({head.kind}) already records job {job_id}, so "
            "there is nothing to adopt"
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
    """The job name that the script or program sets, or None if it sets no name. Raises ScriptRefused."""
    if side.language == "sql":
        return prepare(side.script, side.source).job_name
    if side.secrets:
        places = ", ".join(f"{secret.key} at {secret.span}" for secret in side.secrets)
        raise ScriptRefused(
            f"the program contains secrets in plain text ({places}), but the ledger would store the secrets. Read the "
            "secrets from the environment (os.environ['NAME']) and pass --var 'NAME=${conn.<connection id>.password}'"
        )
    for name, value in side.variables.items():
        if is_secret_key(name) and value and not PLACEHOLDER.fullmatch(value):
            raise ScriptRefused(
                f"the variable {name!r} contains a secret in plain text. Write "
                "${conn.<connection id>.password} instead"
            )
    side.require_query()
    return dict(side.program.settings).get(JOB_NAME)


def _running(target: Target, job_id: JobRef) -> tuple[JobStatus, Sequence[JobVertex] | None]:
    """The job's status, and its vertices if the target shows them. Raises DeployRefused."""
    described = target.describe(job_id) if isinstance(target, JobDescriptions) else None
    job = target.status(job_id)
    if job is None:
        running = [job for job in target.jobs() if not job.terminal] if isinstance(target, JobDescriptions) else None
        known = ", ".join(f"{job.job_id} ({job.name}, {job.state})" for job in running or ()) or "none"
        others = CANNOT_TELL if running is None else known
        raise DeployRefused(f"{target} has no job {job_id}. Jobs that have not ended: {others}")
    if job.state != "RUNNING":
        raise DeployRefused(f"job {job_id} ({job.name}) is {job.state}, but only a RUNNING job can be adopted")
    if described is not None and not described.streaming:
        raise DeployRefused(f"job {job_id} ({job.name}) is a batch job, which has no state to resume from")
    return job, None if described is None else described.vertices


def _verified(target: Target, job: JobStatus, side: Side) -> bool:
    """True if the platform's own record confirms the script and the settings of the job.

    Raises DeployRefused for a difference.
    """
    found = target.deployed(job.name) if isinstance(target, ReadsBack) else None
    if found is None or found.script is None or side.language != "sql":
        return False
    if found.job not in (None, job.job_id):
        raise DeployRefused(
            f"on {target}, {job.name!r} is job {found.job}, not {job.job_id}. Adopt job {found.job} instead"
        )
    if differs := difference(found, side):
        raise DeployRefused(
            f"on {target}, job {job.job_id} runs {differs} than {side.source} and its options. Adopt the job with the "
            f"script and options that it runs{differences(found, side, side.source)}"
        )
    return True


def _refuse_others(target: Target, ledger: Ledger, progress: Progress, job_id: str, former_ended: bool) -> None:
    """Refuse the adoption while another job of this deployment runs or may run."""
    if progress.unfinished and not former_ended:
        last = progress.unfinished
        raise DeployRefused(
            f"the redeploy of {last.owner} is unfinished (entry {last.number} of the ledger of {ledger.deployment}: "
            f"{last.kind}). Run the redeploy again to resume it. If you do not want to resume it, and its job has "
            "ended or is the job to adopt, pass --former-ended"
        )
    for entry in (progress.head, *progress.steps):
        other = entry.job_id if entry else None
        if entry is None or other is None:
            continue
        state = None if other == job_id else target.status(other)
        if state is not None and not state.terminal:
            raise DeployRefused(
                f"job {other} of entry {entry.number} of the ledger of {ledger.deployment} is {state.state}: "
                "two jobs of one deployment would write to the same sink. Stop one of the jobs, or adopt the job "
                "under a different name"
            )
        if other != job_id and state is None and entry.is_head and not former_ended:
            raise DeployRefused(
                f"job {other} of entry {entry.number} of the ledger of {ledger.deployment} is unknown to {target} and "
                "may run elsewhere. If the job has ended, pass --former-ended"
            )


def _versioned(target: Target, side: Side) -> Side:
    """The side with the target's engine and version.

    Raises DeployRefused if the script's version differs from the target's.
    """
    found = target.engine()
    if side.engine_version and not is_of_line(found.version, side.engine_version):
        raise DeployRefused(f"--engine-version is {side.engine_version}, but the cluster runs {found.version}")
    return replace(side, engine=found.engine, engine_version=found.version)


def _compared(
    side: Side, name: str | None, job: JobStatus, vertices: Sequence[JobVertex] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts about the compared parts of script and job, and about the differences between them."""
    compared, warnings = [], []
    if name is not None:
        compared.append(f"name: the script's {JOB_NAME} is {name!r}, the job's name {job.name!r}")
        if name != job.name:
            warnings.append(f"the job's name is {job.name!r}, but the script names it {name!r}")
    if vertices is None:
        return (*compared, f"tables that the job reads and writes: {CANNOT_TELL}"), tuple(warnings)
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
            compared.append(f"tables that the job {verb}: cannot be compared")
            continue
        compared.append(f"tables that the job {verb}: {_list(seen)} on the cluster, {_list(stated)} in the script")
        # Do not warn about additional tables of the script. Lookup tables have no source task, and the sinks of files
        # and data lakes have different names.
        if more := seen - stated:
            warnings.append(f"the job {verb} {_list(more)}, but the script does not")
    return tuple(compared), tuple(warnings)


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
