"""``flinkcompat bootstrap``, which writes a savepoint for a new job from past rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from airflow_flinkcompat.cli.arguments import (
    command_errors,
    format_option,
    job_options,
    master_option,
    parse_settings,
    print_json,
    print_progress,
    require_spark,
)
from airflow_flinkcompat.cli.project import Given, judging_flink
from airflow_flinkcompat.cli.savepoints import (
    history_of,
    require_predicted,
    require_sql,
    sample_option,
    state_errors,
    template_option,
    write_savepoint,
)
from airflow_flinkcompat.cli.scripts import path_of, read_named, required_side
from airflow_flinkcompat.cli.targets import Planner, compiled_plans, place_of, planner_options, template_of
from airflow_flinkcompat.compat.plan_comparison import migrations, require_one_job, stand_ins
from airflow_flinkcompat.exec_graph.stand_ins import StandIns
from airflow_flinkcompat.model import Extra, InputError
from airflow_flinkcompat.secrets import mask_secrets

if TYPE_CHECKING:
    from airflow_flinkcompat.history.sources import Until
    from airflow_flinkcompat.history.warm_start import WarmStart


@click.command("bootstrap")
@click.argument("script", metavar="NEW")
@click.option("--to", "to", metavar="URI", help="Folder for the savepoint; it must not exist.")
@click.option(
    "--until",
    "until",
    multiple=True,
    metavar="TABLE=POSITIONS|TIME",
    help=(
        "End of a table's past rows: excluded offsets by partition, such as 0:1200,1:800, or a time, such as "
        "2026-01-31T00:00:00Z (default: all rows that exist now). The job resumes after these rows."
    ),
)
@click.option(
    "--history",
    "history",
    multiple=True,
    metavar="TABLE[=URI[#PARTITION,OFFSET|#TIME]]",
    help="Compute state from the rows of this table; required for each table that NEW reads.",
)
@sample_option
@template_option
@click.option("--dry-run", is_flag=True, help="Show which state would be computed, and write nothing.")
@job_options("engine_version", "settings", "functions", "catalog", "planner", "jars", "config", "deployment")
@planner_options
@master_option
@format_option("text", "json")
def bootstrap_command(
    script: str,
    to: str | None,
    until: tuple[str, ...],
    history: tuple[str, ...],
    sample: int,
    template: str | None,
    dry_run: bool,
    given: Given,
    planner: Planner,
    master: str | None,
    style: str,
) -> None:
    """Write a savepoint for script NEW, which has never run, with the state of all past rows.

    Spark computes all state of NEW from the rows of its tables. The sources of NEW resume after these rows. If any
    state cannot be computed, nothing is written. OperatorIDs and serializers come from a template, as for migrate.

    NEW does not emit results of windows that have already ended. Standard error lists these windows; recompute them
    with backfill.

    As for check, options that are not passed are taken from flinkcompat.toml in the folder of NEW or above.

    Exit code 0: the savepoint was written, or can be written (--dry-run); 1: it cannot be written, and the reasons are
    printed; 2: bad input.
    """
    require_sql("bootstrap", script)
    if not (to or dry_run):
        raise InputError("add --to FOLDER, or add --dry-run to show the state that would be computed")
    if not dry_run:
        require_spark("bootstrap", planner.extra)
    tables, ends = history_of(history), _ends(until, planner.extra)
    by = judging_flink("bootstrap", path_of(script), given)
    side = required_side(read_named(script), by)
    planner = planner.compiling(by)
    plans = compiled_plans("bootstrap", side, side, planner, None, "spark")
    require_one_job("bootstrap writes", plans)
    with command_errors("bootstrap", planner.extra, "spark"):
        from airflow_flinkcompat.history.known_history import KnownHistory
        from airflow_flinkcompat.history.warm_start import WarmStart
    (own,), ((plan,), _) = migrations(side, side, plans), plans
    start = WarmStart.of(own, side, plan, KnownHistory(tables, master, sample=sample), ends)
    _show(start, style)
    if not _possible(start):
        sys.exit(1)
    require_predicted(start.state, template=template)
    if dry_run:
        for line in start.preview():
            print_progress(line)
    if to and not dry_run:
        ids = stand_ins(side, side, plans)[1][StandIns.IDLE]
        made_of = template or template_of(side, None, place_of(planner), ids, planner.jars)
        with state_errors(), start.computing(made_of, print_progress) as (origin, computer):
            write_savepoint(origin, made_of, to, start.state, computer.workers, computer)


def _ends(texts: Iterable[str], extra: Extra) -> Mapping[str, Until]:
    """Parse the end of each table's history. Raises InputError for a malformed text."""
    with command_errors("bootstrap", extra, "spark"):
        from airflow_flinkcompat.history.sources import Until
    found = parse_settings(texts, "--until", "TABLE=POSITIONS or TABLE=TIME")
    return {table: Until.of(table, text) for table, text in found.items()}


def _possible(start: WarmStart) -> bool:
    """True if a savepoint can be written; otherwise, print the reasons."""
    for name, reason in start.reasons.items():
        click.echo(f"flinkcompat: a warm start is not possible, because of {name}: {mask_secrets(reason)}", err=True)
    return not start.reasons


def _show(start: WarmStart, style: str) -> None:
    report = start.report
    if style == "json":
        print_json(report.to_dict())
        return
    click.echo(f"{start.headline}\n{start.side.source}, open-source Flink {start.side.version}\n")
    click.echo("\n".join(report.lines()))
