"""``flinkcompat planner``: Flink's own planner on this machine.

The commands fetch the planner of a line of Flink and show the lines that can plan; ``docs/planner.md`` is the guide.
"""

from __future__ import annotations

import click

from airflow_flinkcompat.cli.arguments import command_errors, job_option
from airflow_flinkcompat.cli.project import require_project
from airflow_flinkcompat.model.engine import ENGINE_FACTS


@click.group("planner")
def planner_command() -> None:
    """Manage Flink's own planner on this machine, which checks use."""


@planner_command.command("install")
@click.argument("lines", metavar="[LINE]...", nargs=-1)
@job_option("config")
def install_command(lines: tuple[str, ...], config: str | None) -> None:
    """Install the planner for each LINE of Flink, such as 2.3. Planners need Java 17 or 21.

    Without LINE, install the planners for all jobs in the project file.

    Flink's jars are downloaded from PyPI, unless FLINK_HOME or the Python environment contains that release. Then Java
    archives the classes of the planner, which halves the start time. All files are cached, so later checks need no
    network.
    """
    with command_errors("planner install", "local-flink"):
        from airflow_flinkcompat.planner.installation import install, make_archive

        for line in lines or _lines_of_jobs(config):
            found = install(line)
            make_archive(found)
            click.echo(f"Flink {found.line.version} plans: {found.home}")


def _lines_of_jobs(config: str | None) -> list[str]:
    """Lines of Flink that jobs of the project file need. Raises InputError without a project file."""
    from airflow_flinkcompat.compat import Side

    jobs = [each.options for each in require_project(config).deployments]
    # Without an engine, both engines are judged.
    planned = [each for each in jobs if each.engine is None or ENGINE_FACTS[each.engine].compiles_plans]
    return sorted({Side("", engine="flink", engine_version=each.engine_version).version for each in planned})


@planner_command.command("status")
def status_command() -> None:
    """Show the lines of Flink with a working planner, and the missing parts of the other lines.

    The exit code is 0 if any line has a working planner, otherwise 1.
    """
    with command_errors("planner status", "local-flink"):
        from airflow_flinkcompat.planner.installation import status
    found, plans = status()
    for name, words in found.items():
        click.echo(f"{name}: {words}")
    if not plans:
        raise SystemExit(1)
