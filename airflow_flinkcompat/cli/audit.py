"""``flinkcompat audit``: what would happen to all jobs at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from airflow_flinkcompat.cli.arguments import DEFAULT_GATE, bare_install, engine_option, parse_function, parse_settings, require_engine
from airflow_flinkcompat.cli.project import config_option, judging, project_for
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.project import FAIL_ON, FILE_NAME, JobOptions, ProjectFile
from airflow_flinkcompat.project.revisions import repository_of
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.sql import read_script

if TYPE_CHECKING:
    from airflow_flinkcompat.fleet.audit.sources import Jobs, Versions

_LEDGER_VARIABLE = "FLINKCOMPAT_LEDGER"
FORMAT_NAMES = ("text", "markdown", "json", "html")


@click.command("audit")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@config_option
@engine_option
@click.option("--engine-version", help="Version that would run the jobs, for instance 2.3.")
@click.option(
    "--old-engine-version", help="Version that runs them now (default: what the ledger or the project file says)."
)
@click.option("--fail-on", type=click.Choice(tuple(FAIL_ON)), help="Exit with 1 for this outcome and worse.")
@click.option("--format", "style", type=click.Choice(FORMAT_NAMES), default="text", show_default=True)
def audit_command(
    paths: tuple[Path, ...],
    config: str | None,
    engine: str | None,
    engine_version: str | None,
    old_engine_version: str | None,
    fail_on: str | None,
    style: str,
) -> None:
    """What would happen to all jobs."""
    from airflow_flinkcompat.fleet.audit.judging import audit_pair
    from airflow_flinkcompat.fleet.audit.sources import Versions, jobs_of_files
    from airflow_flinkcompat.fleet.audit.text import render_audit_text
    from airflow_flinkcompat.fleet.audit.values import AuditSubject, AuditSummary

    require_engine(engine, engine_version=engine_version, old_engine_version=old_engine_version)
    project = project_for(config, paths[0] if paths else Path())
    root = repository_of(Path()) or Path().resolve()
    given = JobOptions(engine=engine)
    jobs = jobs_of_files(paths, root, lambda path: judging(project, path, None, given, None).options, Versions(engine, old_engine_version, engine_version))
    summary = AuditSummary(AuditSubject(jobs.words, f"{old_engine_version} to {engine_version}", fail_on or DEFAULT_GATE))
    for pair in jobs:
        summary.add(audit_pair(pair))
    summary.notes += jobs.notes
    click.echo(render_audit_text(summary), nl=False)
    sys.exit(summary.exit_code)
