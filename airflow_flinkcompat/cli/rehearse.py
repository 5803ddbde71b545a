"""``flinkcompat rehearse``, which restores a changed script next to the running job."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from airflow_flinkcompat.cli.arguments import command_errors, format_option, job_options, print_json, print_progress
from airflow_flinkcompat.cli.project import Given, judging_flink
from airflow_flinkcompat.cli.scripts import path_of, read_named, require_one_stdin, required_side
from airflow_flinkcompat.cli.targets import location, target_option


@click.command("rehearse")
@click.argument("old")
@click.argument("new")
@click.option("--job-id", required=True, metavar="ID", help="Id of the running job, whose script is OLD.")
@target_option("sql-gateway")
@click.option("--gateway", metavar="URL", help="SQL Gateway, http://host:8083.")
@click.option("--jobmanager", metavar="URL", help="JobManager's REST API, http://host:8081.")
@job_options("settings", "old_settings", "config", "deployment", where="on both sides")
@click.option("--savepoint-directory", metavar="URI", help="Folder for savepoints (default: the cluster's folder).")
@click.option(
    "--settle",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Seconds to observe each restored job.",
)
@click.option("--timeout", type=click.FloatRange(min=1), default=180.0, show_default=True, help="Seconds for a start.")
@format_option("text", "json")
def rehearse_command(
    old: str,
    new: str,
    job_id: str,
    target: str,
    gateway: str | None,
    jobmanager: str | None,
    given: Given,
    savepoint_directory: str | None,
    settle: float,
    timeout: float,
    style: str,
) -> None:
    """Restore script NEW from a savepoint of OLD's running job, next to that job, with stand-in sinks.

    OLD and NEW may each be a file, - for standard input, or REV:path for a file of a Git revision. The running job
    takes a savepoint, and keeps running. OLD is restored first, as a control. Progress is printed to standard error.
    Settings, functions and catalog that are not passed are taken from flinkcompat.toml in the folder of NEW or above.
    Exit code 0: restored (which does not prove correct rows); 1: refused, or no conclusion; 2: bad input; 3: Gateway or
    JobManager out of reach.
    """
    with command_errors("rehearse", "deploy"):
        from airflow_flinkcompat.deploy.rehearsal.place import Cluster
        from airflow_flinkcompat.deploy.rehearsal.restoring import Timeouts
        from airflow_flinkcompat.deploy.rehearsal.sequence import RehearsalOptions, rehearse
        from airflow_flinkcompat.model import RehearsalFinding
    require_one_stdin(old, new)
    by = judging_flink("rehearse", path_of(new) or path_of(old), given)
    sides = required_side(read_named(old), given.old_side(by)), required_side(read_named(new), by)
    options = RehearsalOptions(savepoint_directory, Timeouts(settle=settle, start=timeout))
    with command_errors("rehearse", "deploy"), _term_as_interrupt():
        where = location(target, gateway, jobmanager)
        with where.open() as opened:
            found = rehearse(Cluster(opened, where), job_id, *sides, options, print_progress)
    if style == "json":
        print_json(found.to_dict())
    else:
        click.echo("\n".join(found.lines()))
    if found.finding is not RehearsalFinding.RESTORED:
        sys.exit(1)


@contextmanager
def _term_as_interrupt() -> Iterator[None]:
    """Treat the signal TERM like Ctrl-C, so that started jobs are stopped."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
