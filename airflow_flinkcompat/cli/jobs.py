"""The jobs of a command that reads many: from files, a Git history, ledgers or the project file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_flinkcompat.cli.project import Given, judging, ledger_roots
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.model.options import LEDGER_VARIABLE
from airflow_flinkcompat.project.file import FILE_NAME
from airflow_flinkcompat.project.job_options import JobOptions
from airflow_flinkcompat.project.revisions import repository_of
from airflow_flinkcompat.project.settings import ProjectFile

if TYPE_CHECKING:
    from airflow_flinkcompat.fleet.audit.sources import Jobs


@dataclass(frozen=True)
class AskedJobs:
    """The options that select jobs, before any job is read."""

    paths: tuple[Path, ...]
    revisions: str | None
    ledger: str | None
    project: ProjectFile | None
    root: Path
    given: Given
    old_version: str | None
    new_version: str | None


def read_jobs(asked: AskedJobs) -> Jobs:
    """Read the selected jobs, each on its present and its future version.

    Args:
        asked: The options that select jobs.

    Returns:
        An iterator of pairs.

    Raises:
        InputError: No source of jobs is named, or a source cannot be read.
    """
    from airflow_flinkcompat.fleet.audit import sources

    versions = sources.Versions(asked.given.options.engine, asked.old_version, asked.new_version)
    project = asked.project

    def options_of(path: Path) -> JobOptions:
        return judging(project, path, asked.given).options

    if asked.ledger is not None:
        given = asked.given.options
        asking = given if project is None else given.over(project.common)[0]
        return sources.jobs_of_ledgers(_roots(asked), versions, asking)
    if asked.revisions is not None:
        repository = repository_of(Path())
        if repository is None:
            raise InputError("--git: this folder is not in a Git repository, or git is not installed")
        places = [os.path.relpath(path.resolve(), repository) for path in asked.paths]
        if outside := [path for path, place in zip(asked.paths, places, strict=True) if place.startswith("..")]:
            raise InputError(f"{outside[0]}: is outside of the Git repository {repository}")
        return sources.jobs_of_history(repository, asked.revisions, places, options_of, versions)
    if asked.paths:
        return sources.jobs_of_files(asked.paths, asked.root, options_of, versions)
    if project is None:
        raise InputError(
            f"there is no {FILE_NAME} here or in a folder above: name a PATH, --git or --ledger, or begin with "
            "flinkcompat init"
        )
    if not project.names:
        raise InputError(f"{project.path}: names no deployment: add [deployments.NAME] with its script")
    return sources.jobs_of_project(project, asked.root, lambda of_file: asked.given.options.over(of_file)[0], versions)


def _roots(asked: AskedJobs) -> tuple[str, ...]:
    """Locations of the ledgers. Raises InputError if no location is set."""
    named = asked.ledger or os.environ.get(LEDGER_VARIABLE)
    if named:
        return (named,)
    roots = ledger_roots(asked.project)
    if not roots:
        raise InputError(
            f"--ledger: the location of the ledger is unknown: pass its URI, set {LEDGER_VARIABLE}, or write ledger "
            "= … into a "
            f"{FILE_NAME}"
        )
    return roots
