"""``flinkcompat rehearse`` and ``shadow``, which run a changed script next to the running job."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

import click

from airflow_flinkcompat.cli.arguments import (
    Decorated,
    command_errors,
    format_option,
    job_options,
    output_files,
    output_option,
    print_json,
    print_progress,
)
from airflow_flinkcompat.cli.project import Given, judging_flink
from airflow_flinkcompat.cli.scripts import path_of, read_named, require_one_stdin, required_side
from airflow_flinkcompat.cli.targets import local_flink, location, target_option
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.model.durations import parse_duration
from airflow_flinkcompat.planner.judgement import compile_plans

if TYPE_CHECKING:
    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.deploy.migration import SavepointMigration
    from airflow_flinkcompat.deploy.rehearsal.place import Cluster


def _next_to_the_job(command: Decorated) -> Decorated:
    """Add the arguments and options of a command that runs scripts next to the live job."""
    options = (
        click.argument("old"),
        click.argument("new"),
        click.option("--job-id", required=True, metavar="ID", help="Id of the running job, whose script is OLD."),
        target_option("sql-gateway"),
        click.option("--gateway", metavar="URL", help="SQL Gateway, http://host:8083."),
        click.option("--jobmanager", metavar="URL", help="JobManager's REST API, http://host:8081."),
        job_options("settings", "old_settings", "config", "deployment", where="on both sides"),
        click.option(
            "--savepoint-directory", metavar="URI", help="Folder for savepoints (default: the cluster's folder)."
        ),
    )
    return reduce(lambda made, option: option(made), reversed(options), command)


def _sides(command: str, old: str, new: str, given: Given) -> tuple[Side, Side]:
    require_one_stdin(old, new)
    by = judging_flink(command, path_of(new) or path_of(old), given)
    return required_side(read_named(old), given.old_side(by)), required_side(read_named(new), by)


@click.command("rehearse")
@_next_to_the_job
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
    sides = _sides("rehearse", old, new, given)
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


@click.command("shadow")
@_next_to_the_job
@click.option(
    "--for",
    "length",
    default="5min",
    show_default=True,
    metavar="DURATION",
    help="Time whose rows both scripts read, such as 30s, 10min or 1h.",
)
@click.option(
    "--until-rows",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of rows of all sources after which the time --for ends early.",
)
@click.option(
    "--expect",
    "expected",
    multiple=True,
    metavar="COLUMN",
    help="Column, or SINK.COLUMN, in which the rows may differ; or changed, for all columns that the change names. May "
    "be repeated.",
)
@click.option("--rows", type=click.Path(path_type=Path), help="Folder for all differing rows, as Parquet files.")
@click.option(
    "--timeout",
    default="30min",
    show_default=True,
    metavar="DURATION",
    help="Longest time in which each script must read the rows.",
)
@click.option(
    "--from-earliest",
    is_flag=True,
    help="Compare the state, too: both scripts also run without state from the earliest rows of the sources.",
)
@click.option("--migrate", is_flag=True, help="Start NEW from a migrated savepoint, as migrate apply writes it.")
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    type=click.Choice(["filter"]),
    help="With --migrate: keep aggregated state under a changed condition, as in migrate apply.",
)
@click.option(
    "--plan-dir", metavar="URI", help="Folder to which the Gateway writes plans, and which this machine can read."
)
@format_option("text", "json", "html")
@output_option("html=shadow.html")
def shadow_command(
    old: str,
    new: str,
    job_id: str,
    target: str,
    gateway: str | None,
    jobmanager: str | None,
    given: Given,
    savepoint_directory: str | None,
    length: str,
    until_rows: int | None,
    expected: tuple[str, ...],
    rows: Path | None,
    timeout: str,
    from_earliest: bool,
    migrate: bool,
    accepted: tuple[str, ...],
    plan_dir: str | None,
    style: str,
    outputs: tuple[str, ...],
) -> None:
    """Compare the rows of OLD and NEW, which run next to OLD's job from the same state and input.

    The running job takes two savepoints, and keeps running. From the first savepoint, OLD and then NEW read the rows
    up to the second savepoint. With --migrate, NEW starts from a migrated savepoint. The sinks write into files, which
    are compared and then deleted. With --from-earliest, the rows of NEW are also compared with those that NEW would
    write if it had always run. OLD and NEW may each be a file, - for standard input, or REV:path for a file of a Git
    revision. Progress is printed to standard error.
    Exit code 0: the rows are equal, or differ only in the columns of --expect; 1: rows or state differ otherwise, NEW
    is refused, or no conclusion; 2: bad input; 3: Gateway or JobManager out of reach.
    """
    with command_errors("shadow", "deploy", "state"):
        from airflow_flinkcompat.deploy.rehearsal.place import Cluster
        from airflow_flinkcompat.deploy.shadow.report import RENDERERS
        from airflow_flinkcompat.deploy.shadow.sequence import ShadowOptions, shadow
    if accepted and not migrate:
        raise InputError("--accept applies to a migration: add --migrate, or leave it out")
    sides = _sides("shadow", old, new, given)
    options = ShadowOptions(
        _seconds("--for", length),
        _seconds("--timeout", timeout),
        expected,
        savepoint_directory,
        rows,
        plan_dir,
        from_earliest,
        until_rows,
    )
    formats = tuple(RENDERERS)
    with output_files(style, outputs, formats) as files, command_errors("shadow", "deploy"), _term_as_interrupt():
        where = location(target, gateway, jobmanager)
        with where.open() as opened, ExitStack() as stack:
            cluster = Cluster(opened, where)

            def planner() -> Cluster:
                return stack.enter_context(local_flink(sides[1].version, given.options.jars))

            if rows is not None:
                rows.mkdir(parents=True, exist_ok=True)
            migration = _migration(cluster, job_id, *sides, accepted, plan_dir, planner) if migrate else None
            plan = partial(compile_plans, jars=given.options.jars)
            found = shadow(cluster, job_id, *sides, options, print_progress, migration, plan)
        for name, file in files:
            file.write(RENDERERS[name](found))
    if not found.accepted:
        sys.exit(1)


def _migration(
    cluster: Cluster,
    job_id: str,
    old: Side,
    new: Side,
    accepted: tuple[str, ...],
    plan_dir: str | None,
    planner: Callable[[], Cluster],
) -> SavepointMigration:
    """Migration of a running job's savepoint, which keeps as much state as possible."""
    from airflow_flinkcompat.deploy.migration import SavepointMigration
    from airflow_flinkcompat.deploy.target import JobRef
    from airflow_flinkcompat.exec_graph.migration import Accept, MigrationExtent
    from airflow_flinkcompat.spark_migration import migration_workers

    return SavepointMigration(
        old,
        new,
        cluster,
        JobRef(job_id),
        at_least=MigrationExtent.PARTIAL,
        plan_dir=plan_dir,
        rehearsed=False,
        log=print_progress,
        accepted=tuple(map(Accept, accepted)),
        workers=lambda savepoint: migration_workers(savepoint, None, None, print_progress),
        planner=planner,
    )


def _seconds(option: str, text: str) -> float:
    """Parse a duration. Raises InputError."""
    try:
        return parse_duration(text).total_seconds()
    except InputError as error:
        raise InputError(f"{option}: {error}") from None


@contextmanager
def _term_as_interrupt() -> Iterator[None]:
    """Treat the signal TERM like Ctrl-C, so that started jobs are stopped."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
