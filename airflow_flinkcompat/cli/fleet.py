"""``flinkcompat diff``, ``plan``, ``lint``, ``lsp``: reviews of deployments and of single scripts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from airflow_flinkcompat.cli.arguments import (
    Decorated,
    coloured,
    command_errors,
    format_option,
    job_options,
    output_option,
    parse_outputs,
    require_engine,
)
from airflow_flinkcompat.cli.project import Given, judging, project_for, require_project
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.file import FILE_NAME
from airflow_flinkcompat.project.job_options import DEFAULT_GATE
from airflow_flinkcompat.project.revisions import root_of
from airflow_flinkcompat.project.settings import ProjectFile
from airflow_flinkcompat.sql import ScriptError

if TYPE_CHECKING:
    from airflow_flinkcompat.fleet.values import FleetDiff

FORMAT_NAMES = ("text", "markdown", "json", "sarif", "junit", "github", "gitlab")


def _reporting(*more: str) -> Callable[[Decorated], Decorated]:
    """Add options for the engine, the gate and the output."""

    def decorate(command: Decorated) -> Decorated:
        for each in (
            output_option("sarif=out.sarif"),
            format_option(*FORMAT_NAMES),
            job_options("config", "engine", "planner", "jars", "engine_version", "fail_on", *more),
        ):
            command = each(command)
        return command

    return decorate


def against_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option ``--against``."""
    return click.option(
        "--against",
        metavar="ledger[:URI]|git:REF",
        help="Version to compare with: the deployed version in a ledger, or a Git revision (default: the ledger if "
        "one is set, else the commit at which this branch left its target branch).",
    )(command)


@click.command("diff")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@against_option
@_reporting()
def diff_command(names: tuple[str, ...], against: str | None, **options: Any) -> None:
    """Compare the working tree with the deployed version of each NAME, or of all deployments.

    The ledger is set by --against ledger:URI, by FLINKCOMPAT_LEDGER or by the project file. A deployment that the
    ledger lacks is only read. A deployment that was removed from the project file fails, because its job keeps running.
    A deployment stays the same if its script is moved.

    \b
    Exit code, the worst of all deployments:
      0  passed
      1  a deployment fails the gate, or was deleted
      2  bad input: a script cannot be read or deployed, or the project file has a mistake
      3  the ledger is out of reach
    """  # noqa: D301
    _diff("diff", names, against, **options)


@click.command("plan")
@click.argument("name")
@against_option
@_reporting()
def plan_command(name: str, against: str | None, **options: Any) -> None:
    """Show the branch of the gate in Airflow for deployment NAME, with the diff and the next steps."""
    _diff("plan", (name,), against, **options)


@click.command("lint")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@_reporting("catalog")
@click.option("--allow-secrets", is_flag=True, help="Accept literal secrets, and report them as notes.")
def lint_command(
    files: tuple[str, ...], allow_secrets: bool, given: Given, style: str, outputs: tuple[str, ...]
) -> None:
    """Read each FILE, or each script of the project file, without a comparison.

    Syntax errors, refusals of Flink's planner, and literal secrets result in exit code 2. Refusals by the engine's
    rules, unreadable or unresolvable parts, and undeclared tables and functions result in exit code 1, unless --fail-on
    allows them. A script with a literal secret is still read.
    """
    with command_errors("lint", "deploy"):
        from airflow_flinkcompat.fleet.review import LoneScript, broken_reviews, lint_scripts, lone_script
        from airflow_flinkcompat.fleet.sides import name_from

    targets = parse_outputs(outputs, FORMAT_NAMES)
    project = project_for(given.config, Path(files[0]) if files else Path())
    if not files and project is None:
        raise InputError(
            f"there is no {FILE_NAME} here or in a folder above: name a FILE, or begin with flinkcompat init"
        )
    scripts = [Path(each) for each in files]
    if not files and project is not None:
        _require_deployments(project)
        scripts = [project.folder / each.script for each in project.deployments]
    root = root_of(project.folder if project else Path())
    gate, read = given.fail_on or DEFAULT_GATE, list[LoneScript]()
    for script in dict.fromkeys(scripts):
        by = judging(project, script, given)
        require_engine(by.options.engine, engine_version=by.options.engine_version)
        gate, name = by.fail_on, name_from(script, root)
        missing = LoneScript(name, ScriptError(f"{name}: cannot be read: there is no such file"))
        options = by.options
        sources = tuple((name_from(Path(path), root), lines) for path, lines in options.catalog_sources)
        options = replace(options, catalog_sources=sources)
        read.append(lone_script(script, options, Path(), root, deployment=by.deployment) or missing)
    file = name_from(project.path, root) if project else ""
    fleet = lint_scripts(read, gate, file, project.positions if project else None, allow_secrets=allow_secrets)
    if not files and project is not None:
        fleet = replace(fleet, deployments=(*fleet.deployments, *broken_reviews(project, file)))
    _answer(fleet, style, targets)


def _diff(
    command: str, names: tuple[str, ...], against: str | None, given: Given, style: str, outputs: tuple[str, ...]
) -> None:
    with command_errors(command, "deploy"):
        from airflow_flinkcompat.fleet.baselines import baselines_for
        from airflow_flinkcompat.fleet.review import Request, diff_fleet

    targets = parse_outputs(outputs, FORMAT_NAMES)
    context = click.get_current_context()
    # accept reads the environment variable, too
    is_written = context.get_parameter_source("planner") is ParameterSource.COMMANDLINE
    options = given.options
    written = [
        ("--config", given.config),
        ("--against", against),
        ("--engine", options.engine),
        ("--engine-version", options.engine_version),
        ("--planner", options.planner if is_written else None),
        *(("--jar", str(jar)) for jar in options.jars),
    ]
    project = require_project(given.config)
    _require_deployments(project)
    if options.engine_version is not None and options.engine is None:
        engines = {each.options.engine for each in project.deployments}
        options = replace(options, engine=engines.pop() if len(engines) == 1 else None)
    require_engine(options.engine, engine_version=options.engine_version)
    root = root_of(project.folder)
    request = Request(
        project,
        root,
        given.fail_on or project.fail_on or DEFAULT_GATE,
        options,
        names,
        command,
        options=tuple(word for option, value in written if value is not None for word in (option, value)),
    )
    with command_errors(command, "deploy"), baselines_for(project, against) as baselines:
        fleet = diff_fleet(request, baselines)
    _answer(fleet, style, targets)


def _require_deployments(project: ProjectFile) -> None:
    """Raise InputError if the project file declares no deployment."""
    if not project.names and not project.stopped:
        raise InputError(f"{project.path}: names no deployment: add [deployments.NAME] with its script")


def _answer(fleet: FleetDiff, style: str, targets: Iterable[tuple[str, Path]]) -> None:
    """Write the requested files, print the report, and exit."""
    from airflow_flinkcompat.fleet.formats import FORMATS

    for name, path in targets:
        path.write_text(FORMATS[name](fleet), encoding="utf-8")
    shown = FORMATS[style](fleet)
    click.echo(coloured(shown) if style == "text" else shown, nl=False)
    sys.exit(fleet.exit_code)


@click.command("lsp")
@against_option
@job_options("engine")
def lsp_command(against: str | None, given: Given) -> None:
    """Run a language server on standard input and output, which judges a script while you type.

    An editor starts the server; docs/editors.md describes the setup. Each script is compared with its deployed version,
    as by flinkcompat diff. Options are taken from flinkcompat.toml in the folder of the script or above. A script that
    no deployment uses is only read.
    """
    with command_errors("lsp", "lsp"):
        from airflow_flinkcompat.fleet.baselines import require_against
        from airflow_flinkcompat.lsp.projects import Projects
        from airflow_flinkcompat.lsp.server import serve
    require_against(against)
    serve(Projects(given.options, against))
