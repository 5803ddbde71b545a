"""Taking over a job that already runs: the ledger's first word about it is what a user says it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, ScriptRefused, check_settings, prepare
from airflow_flinkcompat.deploy.ledger.entries import AdoptedEntry, JobStart
from airflow_flinkcompat.deploy.ledger.history import Ledger
from airflow_flinkcompat.deploy.ledger.steps import Progress
from airflow_flinkcompat.deploy.target import TERMINAL, JobRef, JobStatus
from airflow_flinkcompat.plan.nodes import Scan, walk_nodes
from airflow_flinkcompat.secrets import PLACEHOLDER, is_secret_key

_JOB_ID = re.compile(r"[0-9a-f]{32}")
_NOT_FOUND = 404
# How Flink names the tasks of tables: "Source: orders[1] -> Calc[2]", "totals[3]: Writer", "Sink: totals[3]".
_SOURCE = re.compile(r"\bSource: (\w+)\[\d+\]")
_SINK = re.compile(r"\bSink: (\w+)\[\d+\]|\b(\w+)\[\d+\]: Writer\b")


@dataclass(frozen=True)
class Adoption:
    """``compared``: what of the script was held against the job, a line each; ``warnings``: where they differ."""

    entry: AdoptedEntry
    job: JobStatus
    compared: tuple[str, ...]
    warnings: tuple[str, ...]


def adopt(
    jobmanager: JobManager, ledger: Ledger, side: Side, job_id: JobRef, *, owner: str, former_ended: bool = False
) -> Adoption:
    """Record that ``job_id`` is the deployment and runs ``side``, as its user states; the job is not touched.

    ``side`` without an engine version gets the cluster's. Raises DeployRefused (nothing recorded): no such job, it does
    not run or is a batch job, the ledger's own job runs, a redeploy is under way, or (unless ``former_ended`` says that
    it has ended) either's job is not known to this JobManager; ScriptRefused: the script does not make one job, or
    holds a secret; JobManagerError, LedgerError, LedgerConflict.
    """
    name = _job_name(side)
    check_settings(side.settings)
    details, job = _running(jobmanager, job_id)
    progress = Progress.of(ledger.entries())
    _refuse_others(jobmanager, ledger, progress, job_id, former_ended)
    side = _versioned(jobmanager, side)
    compared, warnings = _compared(side, name or side.settings.get(JOB_NAME), job, details)
    entry = AdoptedEntry(
        job=side,
        start=JobStart(job_id=job_id),
        message=f"script as stated by {owner}, not verified",
        owner=owner,
        evidence=(f"job {job.name!r} was {job.state}", *compared, *warnings),
    )
    return Adoption(ledger.append(entry, after=progress.last), job, compared, warnings)


def _job_name(side: Side) -> str | None:
    """The name the script or program gives its job; None where it gives none. Raises ScriptRefused."""
    if side.language == "sql":
        return prepare(side.script, side.source).job_name
    if side.secrets:
        places = ", ".join(f"{secret.key} at {secret.span}" for secret in side.secrets)
        raise ScriptRefused(
            f"the program holds secrets in plain text ({places}), and the ledger keeps its text: take them from the "
            "environment, os.environ['NAME'], and give --var 'NAME=${conn.<connection id>.password}'"
        )
    for name, value in side.variables.items():
        if is_secret_key(name) and value and not PLACEHOLDER.fullmatch(value):
            raise ScriptRefused(
                f"the variable {name!r} holds a secret in plain text: write ${{conn.<connection id>.password}} in its "
                "place"
            )
    side.require_query()
    return dict(side.program.settings).get(JOB_NAME)


def _running(jobmanager: JobManager, job_id: JobRef) -> tuple[Mapping[str, Any], JobStatus]:
    """What the JobManager says of the job. Raises DeployRefused."""
    if not _JOB_ID.fullmatch(job_id):
        raise DeployRefused(f"{job_id!r} is no job id: one has 32 hexadecimal digits, in lower case")
    try:
        details = jobmanager.get(f"jobs/{job_id}")
    except JobManagerError as error:
        if error.status != _NOT_FOUND:
            raise
        running = [job for job in jobmanager.jobs().values() if not job.terminal]
        known = ", ".join(f"{job.job_id} ({job.name}, {job.state})" for job in running) or "none"
        raise DeployRefused(
            f"{jobmanager.endpoint.place} knows no job {job_id}; its jobs that have not ended: {known}"
        ) from None
    # The page above may be seconds old; the bare state never is.
    job = JobStatus(job_id, details["name"], jobmanager.get(f"jobs/{job_id}/status")["status"])
    if job.state != "RUNNING":
        raise DeployRefused(f"job {job_id} ({job.name}) is {job.state}: only a job that is RUNNING can be adopted")
    if details.get("job-type") == "BATCH":
        raise DeployRefused(f"job {job_id} ({job.name}) is a batch job: it has no state to go on from")
    return details, job


def _refuse_others(jobmanager: JobManager, ledger: Ledger, progress: Progress, job_id: str, former_ended: bool) -> None:
    """Refuse while the ledger's job, or one that a redeploy began, runs or may run."""
    if progress.unfinished and not former_ended:
        last = progress.unfinished
        raise DeployRefused(
            f"the redeploy of {last.owner} has not come to its end (entry {last.number} of the ledger of "
            f"{ledger.deployment}: {last.kind}): run it again, it goes on from there; if nobody will, and its job has "
            "ended or is this one, say so: --former-ended"
        )
    for entry in (progress.head, *progress.steps):
        other = entry.job_id if entry else None
        if entry is None or other is None:
            continue
        if other == job_id and entry.is_head:
            raise DeployRefused(
                f"job {job_id} is the one that entry {entry.number} of the ledger of {ledger.deployment} {entry.kind}: "
                "there is nothing to adopt"
            )
        state = None if other == job_id else jobmanager.status(other)
        if state is not None and state.state not in TERMINAL:
            raise DeployRefused(
                f"job {other} of entry {entry.number} of the ledger of {ledger.deployment} is {state.state}: two jobs "
                "of one deployment would write to one sink. Stop one of them, or adopt under another name"
            )
        if other != job_id and state is None and entry.is_head and not former_ended:
            raise DeployRefused(
                f"job {other} of entry {entry.number} of the ledger of {ledger.deployment} is not known to "
                f"{jobmanager.endpoint.place}: it may run elsewhere. If it has ended, say so: --former-ended"
            )


def _versioned(jobmanager: JobManager, side: Side) -> Side:
    """The side with the cluster's version. Raises DeployRefused: it names another one."""
    version = str(jobmanager.get("config")["flink-version"])
    stated = (side.engine_version or "").split(".")
    if stated != [""] and stated != version.split(".")[: len(stated)]:
        raise DeployRefused(f"the engine version is stated as {side.engine_version}, but the cluster runs {version}")
    return replace(side, engine_version=version)


def _compared(
    side: Side, name: str | None, job: JobStatus, details: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What of the script was held against the job, and where they differ."""
    compared, warnings = [], []
    if name is not None:
        compared.append(f"name: the script's {JOB_NAME} is {name!r}, the job's name {job.name!r}")
        if name != job.name:
            warnings.append(f"the job is named {job.name!r}, the script names its job {name!r}")
    tasks = [str(vertex.get("name", "")) for vertex in details.get("vertices", ())]
    in_job = {
        "reads": {found for task in tasks for found in _SOURCE.findall(task)},
        "writes": {found for task in tasks for pair in _SINK.findall(task) for found in pair if found},
    }
    sinks = [pipeline.sink for pipeline in side.program.pipelines]
    in_script = {
        "reads": {node.table.name for sink in sinks for node in walk_nodes(sink) if isinstance(node, Scan)},
        "writes": {sink.name for sink in sinks if sink.name},
    }
    for verb, seen in in_job.items():
        stated = {name.rpartition(".")[2].strip("`") for name in in_script[verb]}
        if not seen or side.program.problems:
            compared.append(f"tables it {verb}: could not be compared")
            continue
        compared.append(f"tables it {verb}: the job's {_list(seen)}, the script's {_list(stated)}")
        # Not the other way about: a table that is looked up makes no source, and files and lakes name their sinks
        # otherwise.
        if more := seen - stated:
            warnings.append(f"the job {verb} {_list(more)}, which the script does not")
    return tuple(compared), tuple(warnings)


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
