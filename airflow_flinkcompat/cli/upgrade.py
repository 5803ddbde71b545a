"""``flinkcompat upgrade``: edits of scripts for a newer line of Flink, and a report on each job."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from airflow_flinkcompat.cli.arguments import (
    command_errors,
    format_option,
    job_options,
    jobs_ledger_option,
    output_files,
    output_option,
)
from airflow_flinkcompat.cli.jobs import AskedJobs, read_jobs
from airflow_flinkcompat.cli.project import Given, project_for, with_catalogs
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.file import FILE_NAME
from airflow_flinkcompat.project.revisions import repository_of

if TYPE_CHECKING:
    from airflow_flinkcompat.fleet.upgrades import JobUpgrade

FORMAT_NAMES = ("text", "markdown", "json", "html")


@click.command("upgrade")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@jobs_ledger_option
@click.option(
    "--write",
    "folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the edited scripts to this folder, under their own names.",
)
@job_options(
    "engine_version",
    "old_engine_version",
    "settings",
    "functions",
    "catalog",
    "config",
    "jars",
    where="in all jobs",
    engine_version="The new version of Flink, for instance 2.3 (default: that of [upgrade] in the project file).",
    old_engine_version="The version that runs the jobs now (default: the version in the ledger or the project file).",
)
@format_option(*FORMAT_NAMES)
@output_option("html=upgrade.html")
def upgrade_command(
    paths: tuple[Path, ...],
    ledger: str | None,
    folder: Path | None,
    given: Given,
    style: str,
    outputs: tuple[str, ...],
) -> None:
    """Edit scripts until a newer Flink plans them, and report how each job moves.

    The jobs are those of audit: the deployments of the project file, the scripts in each PATH, or the deployed versions
    with --ledger. The planner of the new version finds each place that needs an edit. Then the planners of both
    versions judge the edited script over the state of the present one. Originals are never changed.

    \b
      flinkcompat upgrade jobs/ --old-engine-version 1.20 --engine-version 2.3
      flinkcompat upgrade --engine-version 2.3 --write upgraded/ --output html=upgrade.html

    \b
    Exit code:
      0  every job keeps its state if its script, or the edited script, is redeployed
      1  a job needs a migrated savepoint, loses its state, moves on a condition, or is not decided
      2  bad input, or a planner is not installed
      3  the ledger is out of reach
    """  # noqa: D301  # click looks for the character itself
    with command_errors("upgrade", "deploy"):
        from airflow_flinkcompat.fleet.upgrade_report import RENDERERS
        from airflow_flinkcompat.fleet.upgrades import UpgradeSummary, upgrades

    project = with_catalogs(project_for(given.config, paths[0] if paths else Path()))
    planned = None if project is None else project.upgrade
    new_version = given.options.engine_version or (planned.new if planned else None)
    old_version = given.old_engine_version or (planned.old if planned else None)
    if new_version is None:
        raise InputError(f"the new version is unknown: add --engine-version 2.3, or [upgrade] to a {FILE_NAME}")
    if paths and old_version is None and project is None:
        raise InputError(
            f"the version that runs the jobs now is unknown: add --old-engine-version, or engine_version = … to a "
            f"{FILE_NAME}"
        )
    asked = AskedJobs(
        paths, None, ledger, project, repository_of(Path()) or Path().resolve(),
        replace(given, options=replace(given.options, engine="flink", engine_version=None)), old_version, new_version,
    )  # fmt: skip
    with command_errors("upgrade", "deploy"):
        jobs = read_jobs(asked)
    fleet = UpgradeSummary(jobs.words, (old_version or "", new_version))
    written: dict[Path, str] = {}
    with output_files(style, outputs, FORMAT_NAMES) as files:
        for job in upgrades(jobs):
            if folder is not None and job.edited is not None and job.edited.edits:
                _write(folder, job, asked.root, written)
            fleet.add(job)
        fleet.notes += jobs.notes
        if not fleet.jobs:
            raise InputError(f"no job was found in {jobs.words}")
        for name, file in files:
            file.write(RENDERERS[name](fleet))
    sys.exit(fleet.exit_code)


def _write(folder: Path, job: JobUpgrade, root: Path, written: dict[Path, str]) -> None:
    """Write an edited script under its path in the project, inside of the folder."""
    assert job.edited is not None
    name = PurePosixPath(job.edited.job.source)
    if name.is_absolute() or ".." in name.parts:
        name = PurePosixPath(name.name)
    path = folder / (name if name.suffix else name.with_suffix(".sql"))
    if path.resolve() == (root / name).resolve():
        raise InputError(f"--write {folder}: would replace the original script {name}: name another folder")
    script = job.edited.job.script
    if written.setdefault(path, script) != script:
        raise InputError(
            f"--write {folder}: {path} would contain two different scripts: upgrade them in separate runs, each with a "
            "folder of its own"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
