"""``flinkcompat planner``: install and show Flink's own planner on this machine."""

from __future__ import annotations

import click

from airflow_flinkcompat.cli.arguments import bare_install, cli_error, job_option
from airflow_flinkcompat.cli.project import require_project
from airflow_flinkcompat.model.engine import ENGINE_FACTS


@click.group("planner")
def planner_command() -> None:
    """Flink's own planner on this machine, which checks ask."""


@planner_command.command("install")
@click.argument("lines", metavar="[LINE]...", nargs=-1)
@job_option("config")
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
    """Show the lines of Flink that can plan here, and the missing parts of the others.

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
