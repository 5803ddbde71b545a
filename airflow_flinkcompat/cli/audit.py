"""``flinkcompat audit``, which judges the effect of one change on all jobs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from airflow_flinkcompat.cli.arguments import (
    command_errors,
    format_option,
    job_options,
    jobs_ledger_option,
    output_files,
    output_option,
    require_engine,
)
from airflow_flinkcompat.cli.jobs import AskedJobs, read_jobs
from airflow_flinkcompat.cli.project import Given, project_for, with_catalogs
from airflow_flinkcompat.model import InputError, JobSpec
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.project.file import FILE_NAME
from airflow_flinkcompat.project.job_options import DEFAULT_GATE
from airflow_flinkcompat.project.revisions import repository_of

if TYPE_CHECKING:
    from airflow_flinkcompat.fleet.audit.changed_tables import ReplacementTable
    from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditRow
    from airflow_flinkcompat.project.upgrade import FleetUpgrade

FORMAT_NAMES = ("text", "markdown", "json", "html")


@click.command("audit")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@click.option(
    "--git",
    "revisions",
    metavar="RANGE",
    help="Judge each change of a script in these commits, such as v1..main, or HEAD for the whole history.",
)
@jobs_ledger_option
@click.option(
    "--change-table",
    "changed",
    metavar="FILE",
    help="File with the future DDL of tables and views, which replaces their DDL in every job.",
)
@job_options(
    "engine",
    "engine_version",
    "old_engine_version",
    "settings",
    "functions",
    "catalog",
    "config",
    "fail_on",
    "planner",
    "jars",
    where="in all jobs",
    engine_version="The future engine version, for instance 2.3 (default: that of [upgrade] in the project file).",
    old_engine_version="The engine version that runs the jobs now (default: the version in the ledger or the project "
    "file).",
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of processes that judge jobs in parallel.",
)
@click.option(
    "--spark",
    "master",
    metavar="MASTER",
    help="Judge on the workers of this Spark master, such as local[4] or spark://host:7077.",
)
@format_option(*FORMAT_NAMES)
@output_option("html=audit.html")
def audit_command(
    paths: tuple[Path, ...],
    revisions: str | None,
    ledger: str | None,
    changed: str | None,
    processes: int,
    master: str | None,
    given: Given,
    style: str,
    outputs: tuple[str, ...],
) -> None:
    """Judge all jobs on a different version, with a changed table, or for each change in a Git history.

    By default, the jobs are the deployments of the project file. With PATH, the jobs are the *.sql and *.table files in
    each folder, and each file that is passed. With --ledger, the jobs are the deployed versions. With --git, each
    change of a script in a history is judged. As for check, options that are not passed are read from the project file,
    for each script.

    \b
      flinkcompat audit jobs/ --engine flink --old-engine-version 1.20 --engine-version 2.3
      flinkcompat audit --ledger s3://bucket/ledger --engine flink --engine-version 2.3 --output html=audit.html
      flinkcompat audit jobs/ --change-table ddl/orders.sql
      flinkcompat audit --git v1..main jobs/

    Each job is judged as by check. The summary counts jobs by result and by deciding rule. A job that cannot be judged
    is shown in a separate row, and the other jobs are still judged. A script with a literal secret is judged, too.
    A job that is compatible on a condition, such as the key of an undeclared sink, is counted as conditional, and
    treated by the gate as unknown.

    \b
    Exit code, the worst of all jobs:
      0  passed
      1  a job fails the gate
      2  bad input: a job cannot be judged, there are no jobs, or no job uses a changed table
      3  the ledger is out of reach
    """  # noqa: D301  # click looks for the character itself
    with command_errors("audit", "deploy"):
        from airflow_flinkcompat.fleet.audit.changed_tables import read_changed_tables
        from airflow_flinkcompat.fleet.audit.document import writer
        from airflow_flinkcompat.fleet.audit.values import AuditSubject, AuditSummary

    engine, versions = given.options.engine, (given.options.engine_version, given.old_engine_version)
    require_engine(engine, engine_version=versions[0], old_engine_version=versions[1])
    if engine is not None:
        for option, version in zip(("--engine-version", "--old-engine-version"), versions, strict=True):
            JobSpec("", engine=engine, engine_version=version, source=option)
    project = with_catalogs(project_for(given.config, paths[0] if paths else Path()))
    if project is not None and project.upgrade is not None and not (revisions or changed or versions[0]):
        given = _planned(given, project.upgrade)
    asked = AskedJobs(
        paths,
        revisions,
        ledger,
        project,
        repository_of(Path()) or Path().resolve(),
        # The version is part of the audit's question, and must not override the version of a script.
        replace(given, options=replace(given.options, engine_version=None)),
        given.old_engine_version,
        given.options.engine_version,
    )
    tables = read_changed_tables(changed) if changed else ()
    _require_question(asked, tables)
    gate = given.fail_on or (project.fail_on if project else None) or DEFAULT_GATE
    with command_errors("audit", "deploy"):
        jobs = read_jobs(asked)
    subject = AuditSubject(jobs.words, _question(asked, tables), gate, tuple(table.name for table in tables))
    summary = AuditSummary(subject)
    with output_files(style, outputs, FORMAT_NAMES) as files:
        writers = [writer(name, file) for name, file in files]
        for row in _rows(jobs, tables, processes, master):
            summary.add(row)
            for each in writers:
                each.add(row)
        summary.notes += jobs.notes
        for each in writers:
            each.end(summary)
    sys.exit(summary.exit_code)


def _planned(given: Given, upgrade: FleetUpgrade) -> Given:
    """The options with the engine and the versions of ``[upgrade]``, unless another engine is passed."""
    engine = given.options.engine
    if engine is not None and not ENGINE_FACTS[engine].compiles_plans:
        return given
    options = replace(given.options, engine="flink", engine_version=upgrade.new)
    return replace(given, options=options, old_engine_version=given.old_engine_version or upgrade.old)


def _require_question(asked: AskedJobs, tables: tuple[ReplacementTable, ...]) -> None:
    """Raise InputError if options contradict each other, or if no change is requested."""
    if asked.ledger is not None and (asked.paths or asked.revisions):
        raise InputError("--ledger judges the deployed versions: leave out --git and every PATH")
    given = asked.given.options
    if asked.ledger is not None and (given.settings or given.functions or given.catalog):
        raise InputError(
            "--set, --function and --catalog: the ledger contains the settings, functions and catalog "
            "of each job; leave the options out"
        )
    if asked.revisions is not None:
        if tables:
            raise InputError("--change-table is about the present scripts, --git about past changes: leave one out")
        return
    if not (tables or asked.new_version):
        raise InputError("nothing would change, so no job would fail: add --engine-version, --change-table or --git")
    if asked.paths and asked.new_version and not asked.old_version and asked.project is None:
        raise InputError(
            "--engine-version: the version that runs the jobs now is unknown: add --old-engine-version, "
            f"or engine_version = … to a {FILE_NAME}"
        )


def _question(asked: AskedJobs, tables: tuple[ReplacementTable, ...]) -> str:
    """Description of the assumed change."""
    parts = []
    if asked.new_version or asked.old_version:
        label = ENGINE_FACTS[asked.given.options.engine or ""].label
        versions = [asked.old_version or "", asked.new_version or asked.old_version or ""]
        parts.append(f"{label} {' to '.join(each for each in dict.fromkeys(versions) if each)}")
    if tables:
        parts.append(f"changed {', '.join(table.name for table in tables)}")
    return "; ".join(parts) or "each change"


def _rows(
    pairs: Iterable[AuditPair], tables: tuple[ReplacementTable, ...], processes: int, master: str | None
) -> Iterator[AuditRow]:
    if master is not None:
        if processes > 1:
            raise InputError("--processes uses this machine, --spark uses Spark's workers: leave one out")
        from airflow_flinkcompat.fleet.audit.spark import audit_on_spark

        # A planner may be missing on workers, so only the mode ``always`` asks a planner there.
        pairs = (replace(pair, planner="never") if pair.planner == "auto" else pair for pair in pairs)
        return audit_on_spark(pairs, tables, master)
    from airflow_flinkcompat.fleet.audit.judging import audit_here, audit_in_processes

    return audit_here(pairs, tables) if processes == 1 else audit_in_processes(pairs, tables, processes)
