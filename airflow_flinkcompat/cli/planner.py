"""``flinkcompat planner``: Flink's own planner on this machine, and the options by which commands ask it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import click

from airflow_flinkcompat.cli.arguments import bare_install, cli_error
from airflow_flinkcompat.cli.project import config_option, require_project
from airflow_flinkcompat.model import PLANNER_MODES, PLANNER_VARIABLE, InputError
from airflow_flinkcompat.model.engine import ENGINE_FACTS

_planner_option = click.option(
    "--planner",
    "ask_planner",
    type=click.Choice(PLANNER_MODES),
    envvar=PLANNER_VARIABLE,
    show_envvar=True,
    help="Ask Flink's own planner on this machine (engine flink); auto: where it is installed for the version "
    "(default: that of the project file, else auto).",
)


def _jars(_context: click.Context, _option: click.Parameter, jars: tuple[Path, ...]) -> tuple[Path, ...]:
    for jar in jars:
        if not is_zipfile(jar):
            raise InputError(f"--jar {jar}: this file is no jar")
    return jars


_jar_option = click.option(
    "--jar",
    "jars",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path),
    callback=_jars,
    help="Jar of a connector, format or function for the Flink on this machine; may be repeated (default: those of the "
    "project file).",
)


def asking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of a command that may ask Flink's planner: ``ask_planner`` and ``jars``."""
    return _planner_option(_jar_option(command))


@click.group("planner")
def planner_command() -> None:
    """Flink's own planner on this machine, which checks ask."""


@planner_command.command("install")
@click.argument("lines", metavar="[LINE]...", nargs=-1)
@config_option
def install_command(lines: tuple[str, ...], config: str | None) -> None:
    """Fetch the planner of a line of Flink, for instance 2.3; it needs Java 17 or 21.

    Without LINE, those of the jobs in the project file.

    Flink's jars come from PyPI unless FLINK_HOME or this environment has that release. Java then archives the classes
    of a planner, which halves the time of a start. All of it is cached, and a check needs no network afterwards.
    """
    try:
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.planner import install, make_archive
    except ImportError as error:
        raise bare_install("planner install", error, "local-flink") from None
    for line in lines or _lines_of_jobs(config):
        try:
            found = install(line)
            make_archive(found)
        except DeployError as error:
            raise cli_error(error) from None
        click.echo(f"Flink {found.line.version} plans: {found.home}")


def _lines_of_jobs(config: str | None) -> list[str]:
    """The lines of Flink in the project file. Raises InputError: there is no file."""
    from airflow_flinkcompat.compat import Side

    jobs = [each.options for each in require_project(config).deployments]
    # Where no engine is named both are judged.
    planned = [each for each in jobs if each.engine is None or ENGINE_FACTS[each.engine].compiles_plans]
    return sorted({Side("", engine="flink", engine_version=each.engine_version).version for each in planned})


@planner_command.command("status")
def status_command() -> None:
    """Show which lines of Flink can plan here, and what the others lack.

    The exit code is 0 if any line can plan, otherwise 1.
    """
    try:
        from airflow_flinkcompat.planner import status
    except ImportError as error:
        raise bare_install("planner status", error, "local-flink") from None
    found, plans = status()
    for name, words in found.items():
        click.echo(f"{name}: {words}")
    if not plans:
        raise SystemExit(1)
