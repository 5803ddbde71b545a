"""``flinkcompat planner``: Flink's own planner on this machine, and the option by which a check asks it."""

from __future__ import annotations

from pathlib import Path

import click

from airflow_flinkcompat.cli.arguments import bare_install, cli_error
from airflow_flinkcompat.cli.project import config_option, project_for
from airflow_flinkcompat.model import PLANNER_MODES, PLANNER_VARIABLE

planner_option = click.option(
    "--planner",
    "ask_planner",
    type=click.Choice(PLANNER_MODES),
    default="never",
    show_default=True,
    envvar=PLANNER_VARIABLE,
    show_envvar=True,
    help="Ask Flink's own planner on this machine (engine flink); auto: where it is installed for the version.",
)


@click.group("planner")
def planner_command() -> None:
    """Flink's own planner on this machine, which check --planner asks."""


@planner_command.command("install")
@click.argument("lines", metavar="[LINE]...", nargs=-1)
@config_option
def install_command(lines: tuple[str, ...], config: str | None) -> None:
    """Fetch the planner of a line of Flink, for instance 2.3; it needs Java 17 or 21.

    Without LINE, those of the jobs in the project file.

    Flink's jars come from PyPI unless FLINK_HOME or this environment has that release, test jars from Maven Central.
    Java then archives the classes of a planner, with which one starts in half of the time. All of it is cached, and a
    check needs no network afterwards.
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
    from airflow_flinkcompat.cli.diff import require_project
    from airflow_flinkcompat.compat import Side

    jobs = [each.options for each in require_project(project_for(config, Path())).deployments]
    planned = [each for each in jobs if each.engine != "vvr"]  # where none is named both are judged
    return sorted({Side("", engine="flink", engine_version=each.engine_version).version for each in planned})


@planner_command.command("status")
def status_command() -> None:
    """Say which lines of Flink can plan here, and what the others lack."""
    try:
        from airflow_flinkcompat.planner import status
    except ImportError as error:
        raise bare_install("planner status", error, "local-flink") from None
    for line, words in status().items():
        click.echo(f"{line}: {words}")
