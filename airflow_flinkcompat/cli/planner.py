"""``flinkcompat planner``: Flink's own planner on this machine, and the option by which a check asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from airflow_flinkcompat.cli.arguments import bare_install, cli_error
from airflow_flinkcompat.compat import Report, Side
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.checker import READ, check, check_planned
from airflow_flinkcompat.compat.planned_jobs import PlannedScript
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.model.engine import ENGINE_FACTS

PLANNER_VARIABLE = "FLINKCOMPAT_PLANNER"
AUTO, ALWAYS, NEVER = "auto", "always", "never"
planner_option = click.option(
    "--planner",
    "ask_planner",
    type=click.Choice((AUTO, ALWAYS, NEVER)),
    default=NEVER,
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
    All of it is cached, and a check needs no network afterwards.
    """
    try:
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.planner import install
    except ImportError as error:
        raise bare_install("planner install", error, "local-flink") from None
    try:
        found = install(line)
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


def report_of_planner(mode: str, old: Side, new: Side, jars: Sequence[Path]) -> Report | None:
    """The verdict on a change with what Flink's planner says of it.

    Args:
        mode: When it is asked, a value of ``--planner``.
        old: What is deployed.
        new: What is proposed.
        jars: Jars of connectors, formats and functions.

    Returns:
        The report; None where the planner is not to be asked.

    Raises:
        InputError: Flink refuses a script; or the planner must be asked, and cannot.
    """
    if mode == NEVER:
        return None
    if not ENGINE_FACTS[new.engine].compiles_plans or any(side.language != "sql" for side in (old, new)):
        if mode == ALWAYS:
            raise InputError("--planner always plans SQL scripts on open-source Flink: add --engine flink")
        return None
    if mode == AUTO and Change(old, replace(new, beside=old)).unchanged:
        return None
    try:
        from airflow_flinkcompat.planner import PlannerFailure, PlannerMissing, find, predict
    except ImportError as error:
        if mode == ALWAYS:
            raise bare_install("--planner", error, "local-flink") from None
        return _not_asked(old, new, str(bare_install("Flink's planner", error, "local-flink")))
    try:
        planned = predict(old, new, find(old.version, jars), find(new.version, jars))
    except (PlannerMissing, PlannerFailure) as error:
        if mode == ALWAYS:
            raise cli_error(error, "--planner always") from None
        return _not_asked(old, new, str(error))
    _require_planned(new, planned.new, "")
    deployed = "; name the script that is really deployed, or its Flink with --old-engine-version"
    _require_planned(old, planned.old, deployed)
    return check_planned(old, new, planned.prediction, planned.plans)


def _not_asked(old: Side, new: Side, why: str) -> Report:
    report = check(old, new, with_other_engine=True)
    return replace(report, ground=READ, warnings=(*report.warnings, f"Flink's planner was not asked: {why}"))


def _require_planned(side: Side, script: PlannedScript, remedy: str) -> None:
    refusal = script.refusal
    if refusal is not None and refusal.conclusive:
        raise InputError(f"{refusal.place or side.source}: Flink {script.flink} refuses it: {refusal.message}{remedy}")
