"""``flinkcompat planner``: Flink's own planner on this machine, and the option by which a check asks it."""

from __future__ import annotations

import click

from airflow_flinkcompat.cli.arguments import bare_install, cli_error
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
@click.argument("line", metavar="LINE")
def install_command(line: str) -> None:
    """Fetch the planner of a line of Flink, for instance 2.3; it needs Java 17 or 21.

    Flink's jars come from PyPI unless FLINK_HOME or this environment has that release, test jars from Maven Central.
    Java then archives the classes of a planner, with which one starts in half of the time. All of it is cached, and a
    check needs no network afterwards.
    """
    try:
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.planner import install, make_archive
    except ImportError as error:
        raise bare_install("planner install", error, "local-flink") from None
    try:
        found = install(line)
        make_archive(found)
    except DeployError as error:
        raise cli_error(error) from None
    click.echo(f"Flink {found.line.version} plans: {found.home}")


@planner_command.command("status")
def status_command() -> None:
    """Say which lines of Flink can plan here, and what the others lack."""
    try:
        from airflow_flinkcompat.planner import status
    except ImportError as error:
        raise bare_install("planner status", error, "local-flink") from None
    for line, words in status().items():
        click.echo(f"{line}: {words}")
