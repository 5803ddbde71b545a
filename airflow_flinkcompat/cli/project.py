"""The project file of a command, merged with the command's options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from airflow_flinkcompat.model import PROGRAM_SUFFIXES, InputError, join_ddl
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.model.options import set_network
from airflow_flinkcompat.project.file import FILE_NAME, find_project_file, unknown_key
from airflow_flinkcompat.project.job_options import DEFAULT_GATE, GATE, JobOptions, option
from airflow_flinkcompat.project.settings import ProjectDeployment, ProjectFile, load_project
from airflow_flinkcompat.sql import ScriptError
from airflow_flinkcompat.sql.script import read_script


@dataclass(frozen=True)
class Given:
    """Options of a job from the command line alone, without options of the project file."""

    options: JobOptions = field(default_factory=JobOptions)
    old_settings: Mapping[str, str] = field(
        default_factory=dict,
        metadata=option(
            "A setting for the old side only, which is added to --set or overrides it.",
            "--old-set",
            "K=V",
            repeats=True,
        ),
    )
    old_engine_version: str | None = field(
        default=None,
        metadata=option(
            "The engine version that runs the deployed job.", "--old-engine-version", default="the same version"
        ),
    )
    fail_on: str | None = field(default=None, metadata={"option": GATE["fail_on"]})
    config: str | None = field(
        default=None,
        metadata=option(
            "The project file.", "--config", "FILE",
            default=f"{FILE_NAME} in this folder or above; {os.devnull}: no project file",
        ),
    )  # fmt: skip
    deployment: str | None = field(
        default=None,
        metadata=option(
            "Judge with the options of this deployment in the project file.",
            "--deployment",
            "NAME",
            default="the deployment of the script",
        ),
    )

    def old_side(self, options: JobOptions) -> JobOptions:
        """The options of the old side, derived from the options of the new side."""
        version = self.old_engine_version or options.engine_version
        return replace(options, settings={**options.settings, **self.old_settings}, engine_version=version)


def project_for(config: str | None, near: Path | None) -> ProjectFile | None:
    """Load the project file that applies to a command; None if there is none."""
    if config == os.devnull:
        return None
    found = config if config is not None else (None if near is None else find_project_file(near))
    project = None if found is None else load_project(found)
    set_network(None if project is None else project.network)
    return project


def require_project(config: str | None) -> ProjectFile:
    """Load the project file of this folder or of a parent folder. Raises InputError without such a file."""
    project = project_for(config, Path())
    if project is None:
        raise InputError(f"there is no {FILE_NAME} here or in a folder above: begin with flinkcompat init")
    return project


def named_deployment(project: ProjectFile, name: str) -> ProjectDeployment:
    """Find a deployment of the project file by name. Raises InputError."""
    if name in project.broken:
        raise InputError("\n  ".join(project.broken[name]))
    found = next((each for each in project.deployments if each.name == name), None)
    if found is None:
        raise InputError(f"{project.path}: deployment {name!r} {unknown_key(name, project.names)}")
    return found


@dataclass(frozen=True)
class Judging:
    """Options for judging one script, merged from the command and the project file.

    Attributes:
        options: The merged options; ``catalog`` contains DDL.
        words: Sentence about the options from the project file; "" if there are none.
        deployment: The name of the script's deployment; "" without a deployment.
    """

    options: JobOptions
    fail_on: str
    words: str = ""
    deployment: str = ""

    def print_options(self) -> None:
        """Print the options from the project file to standard error, for commands without a report."""
        if self.words:
            click.echo(f"flinkcompat: {self.words}", err=True)


def judging(project: ProjectFile | None, place: Path | None, given: Given) -> Judging:
    """Merge the options of a command and of the project file for one script."""
    if project is None:
        if given.deployment is not None:
            raise InputError(f"--deployment needs a {FILE_NAME}, but none was found: add --config FILE")
        return Judging(given.options, given.fail_on or DEFAULT_GATE)
    judged_as = _deployment_of(project, place, given.deployment)
    of_file = judged_as.options if judged_as else project.common
    if place is None or not place.name.endswith(PROGRAM_SUFFIXES):
        of_file = replace(of_file, variables={})
    options, taken = given.options.over(of_file)
    if not given.options.catalog:
        options = with_catalog_read(options, project.folder)
    gate = given.fail_on or project.fail_on or DEFAULT_GATE
    if given.fail_on is None and project.fail_on is not None:
        taken = (*taken, f"fail_on {gate}")
    which = "" if judged_as is None else f", deployment {judged_as.name}"
    words = f"By {os.path.relpath(project.path)}{which}: {'; '.join(taken)}." if taken else ""
    return Judging(options, gate, words, judged_as.name if judged_as else "")


def judging_flink(command: str, place: Path | None, given: Given) -> JobOptions:
    """Like :func:`judging`, for a command that has no gate and supports only open-source Flink."""
    by = judging(project_for(given.config, place), place, replace(given, fail_on=DEFAULT_GATE))
    engine = by.options.engine or "flink"
    if not ENGINE_FACTS[engine].compiles_plans:
        raise InputError(
            f"{command} is for open-source Flink, but the project file sets engine {engine} for this script. If that "
            f"is wrong, correct the project file, or ignore it with --config {os.devnull}"
        )
    by.print_options()
    return replace(by.options, engine=engine)


def ledger_roots(project: ProjectFile | None) -> tuple[str, ...]:
    """Locations of the ledgers of the project's deployments, without duplicates."""
    if project is None:
        return ()
    places = [each.ledger for each in project.deployments] or [project.ledger]
    return tuple(dict.fromkeys(each for each in places if each))


def with_catalogs(project: ProjectFile | None) -> ProjectFile | None:
    """Replace every catalog file with its DDL, so that each file is read only once."""
    if project is None:
        return None
    folder, known = project.folder, dict[tuple[str, ...], JobOptions]()

    def read(options: JobOptions) -> JobOptions:
        files = options.catalog_files
        try:
            found = known.get(files) or known.setdefault(files, with_catalog_read(options, folder))
        except ScriptError:  # reported later, for each script with this catalog
            return options
        if not files:
            return options
        return replace(options, catalog=found.catalog, catalog_sources=found.catalog_sources, catalog_files=())

    deployments = tuple(replace(each, options=read(each.options)) for each in project.deployments)
    return replace(project, common=read(project.common), deployments=deployments)


def _deployment_of(project: ProjectFile, script: Path | None, name: str | None) -> ProjectDeployment | None:
    """The deployment with this name, or else with this script; None if no deployment matches."""
    if name is not None:
        return named_deployment(project, name)
    found = () if script is None else project.deployments_of(script)
    if len({(str(each.options), each.policy) for each in found}) > 1:
        names = ", ".join(each.name for each in found)
        raise InputError(
            f"{script}: is the script of several deployments of {project.path} with different options "
            f"({names}): choose one with --deployment"
        )
    if script is not None and not found and project.broken:  # a broken deployment may use this script
        raise InputError("\n  ".join(line for lines in project.broken.values() for line in lines))
    return found[0] if found else None


def with_catalog_read(options: JobOptions, folder: Path) -> JobOptions:
    """Replace catalog files with their DDL. Raises ScriptError if a file cannot be read."""
    if not options.catalog_files:
        return options
    places = [folder / path for path in options.catalog_files]
    ddl, sources = join_ddl((os.path.relpath(place), read_script(place).text) for place in places)
    return replace(options, catalog=ddl, catalog_sources=sources, catalog_files=())


def with_named_catalog(options: JobOptions, files: Sequence[str]) -> JobOptions:
    """Read the files of ``--catalog`` into the options. Raises ScriptError if a file cannot be read."""
    ddl, sources = join_ddl((path, read_script(path).text) for path in files)
    return replace(options, catalog=ddl, catalog_sources=sources)
