"""``flinkcompat backfill``, which recomputes history with Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from airflow_flinkcompat.cli.arguments import (
    format_option,
    job_options,
    master_option,
    parse_settings,
    print_json,
    print_progress,
    require_program,
    require_spark,
)
from airflow_flinkcompat.cli.project import Given, judging, named_deployment, project_for
from airflow_flinkcompat.frontends.pyflink.reader import local_texts
from airflow_flinkcompat.model import ENGINES, InputError, JobSpec, language_of
from airflow_flinkcompat.project.job_options import DEFAULT_GATE
from airflow_flinkcompat.project.settings import TEMPLATE
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.sql.script import read_text


@click.command("backfill")
@click.argument("script", metavar="SCRIPT")
@click.option("--from", "from_", metavar="TS", help="Publish only windows that start at this time or later.")
@click.option("--to", metavar="TS", help="Publish only windows that end by this time.")
@click.option("--table", "tables", multiple=True, metavar="NAME=URI", help="Read a table from a different location.")
@click.option("--sink", "sinks", multiple=True, metavar="NAME=URI", help="Write a sink to a different location.")
@click.option(
    "--order-by",
    "orders",
    multiple=True,
    metavar="[TABLE=]COLUMN[,COLUMN]",
    help="Columns that define the arrival order of rows, for row counts and OVER.",
)
@job_options("settings", "catalog", "variables", "config", "deployment")
@master_option
@click.option(
    "--late",
    type=click.Choice(("include", "drop")),
    help="Include or drop rows that a live job would have dropped as late (default: include).",
)
@click.option(
    "--native",
    type=click.Choice(("auto", "off")),
    help="Let DuckDB aggregate files inside Spark's tasks if that is less work, or never (default: auto).",
)
@click.option(
    "--chunk",
    metavar="LENGTH",
    help="Compute the range in chunks, such as 1d or 6h. A later run skips finished chunks.",
)
@click.option(
    "--journal", metavar="URI", help="Location of the record of finished chunks (default: next to a sink's folder)."
)
@click.option("--boundary", metavar="TS", help="Time at which the backfill ends and the windows of the live job begin.")
@click.option(
    "--allow-incomplete", is_flag=True, help="Run even if a source without recent rows has not passed the boundary."
)
@click.option(
    "--hand-over", metavar="FILE", help="With --boundary: write the settings that the deployment needs to this file."
)
@click.option("--dry-run", is_flag=True, help="Show the planned reads, computations and writes, and start nothing.")
@format_option("text", "json")
def backfill_command(
    script: str,
    from_: str | None,
    to: str | None,
    tables: tuple[str, ...],
    sinks: tuple[str, ...],
    orders: tuple[str, ...],
    master: str | None,
    late: str | None,
    native: str | None,
    chunk: str | None,
    journal: str | None,
    boundary: str | None,
    allow_incomplete: bool,
    hand_over: str | None,
    dry_run: bool,
    given: Given,
    style: str,
) -> None:
    """Recompute the windows of SCRIPT that lie wholly inside [from, to), with Spark.

    A .py file is a PyFlink program. A .table file is a program in FLIP-11's own notation. Programs are read, and never
    run. Progress is printed to standard error, and the reconciliation to standard output. With --boundary, the windows
    of a live job begin where the recomputed windows end. The file of --hand-over contains the starting positions of the
    job's sources. It is written before the backfill runs, also with --dry-run.

    Settings, functions, catalog and variables that are not passed are taken from flinkcompat.toml in the folder of
    SCRIPT or above. Options of the deployment with this script override the common options. The deployment's table
    backfill sets locations, range, order, chunks and boundary, under the argument names of the Airflow task.
    """
    if not dry_run:
        require_spark("backfill")
    from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, run_backfill
    from airflow_flinkcompat.backfill import explain as explain_backfill
    from airflow_flinkcompat.backfill import plan as plan_backfill
    from airflow_flinkcompat.backfill.request import parse_orders, parse_time
    from airflow_flinkcompat.model.durations import parse_duration

    try:
        text = read_text(script, program=True)
        require_program("--var", given.options.variables, script)
        place = Path(script)
        project = project_for(given.config, place)
        by = judging(project, place, replace(given, fail_on=DEFAULT_GATE))
        by.print_options()
        options = by.options
        asked: dict[str, Any] = {
            "tables": parse_settings(tables, "table", "NAME=URI"),
            "sinks": parse_settings(sinks, "sink", "NAME=URI"),
            "order_by": parse_orders(orders),
            "from_": from_,
            "to": to,
            "late": late,
            "native": native,
            "chunk": chunk,
            "journal": journal,
            "boundary": boundary,
            "allow_incomplete": allow_incomplete,
        }
        if project is not None and by.deployment:
            table = named_deployment(project, by.deployment).backfill
            name = f"{os.path.relpath(project.path)}: deployment {by.deployment!r}: backfill"
            if words := ", ".join(set_by_file(asked, table)):
                click.echo(f"flinkcompat: By {name}: {words}.", err=True)
            asked = over_backfill_table(asked, table, name)
        if (hand_over or asked["allow_incomplete"]) and not asked["boundary"]:
            raise InputError("--hand-over and --allow-incomplete need --boundary: add it")
        if asked["journal"] and not asked["chunk"]:
            raise InputError("--journal needs --chunk: add it")
        request = BackfillRequest(
            JobSpec(
                text,
                source=script,
                language=language_of(script),
                variables=options.variables,
                files=local_texts(script, text, options.variables),
                settings=options.settings,
                functions=options.functions,
                catalog=options.catalog,
                engine=options.engine or ENGINES[0],
                engine_version=options.engine_version,
            ),
            from_=parse_time(asked["from_"]) if asked["from_"] else None,
            to=parse_time(asked["to"]) if asked["to"] else None,
            tables=asked["tables"],
            sinks=asked["sinks"],
            order_by=asked["order_by"],
            master=master,
            late=asked["late"] or "include",
            native=asked["native"] or "auto",
            boundary=parse_time(asked["boundary"]) if asked["boundary"] else None,
            allow_incomplete=asked["allow_incomplete"],
            chunk=parse_duration(asked["chunk"]) if asked["chunk"] else None,
            journal=asked["journal"],
        )
        planned = plan_backfill(request)
        if hand_over and planned.hand_over:
            Path(hand_over).write_text(planned.hand_over.to_json(), encoding="utf-8")
        if dry_run:
            click.echo(explain_backfill(planned, request), nl=False)
            return
        for line in planned.hand_over.lines() if planned.hand_over else ():
            click.echo(line, err=True)
        result = run_backfill(planned, print_progress)
    except BackfillError as error:
        raise InputError(str(error)) from error
    if style == "json":
        print_json(result.to_dict())
    else:
        click.echo(mask_secrets("\n".join(result.lines())))


_OPTIONS = {
    "tables": "--table",
    "sinks": "--sink",
    "order_by": "--order-by",
    "from_": "--from",
    "to": "--to",
    "late": "--late",
    "native": "--native",
    "chunk": "--chunk",
    "journal": "--journal",
    "boundary": "--boundary",
    "allow_incomplete": "--allow-incomplete",
}
_TABLES, _SWITCH = ("tables", "sinks", "order_by"), "allow_incomplete"
_INSTEAD = {"to": "boundary", "boundary": "to"}
"""Two ways to set the end of the backfill; an option for one discards the file's value for the other."""


def over_backfill_table(given: Mapping[str, Any], table: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Merge the command's options over the table of the project file. Nested tables are merged by key."""
    found = dict(given)
    for key in _OPTIONS:
        of_file = table.get(key)
        if of_file is None or given.get(_INSTEAD.get(key, "")):
            continue
        if key in _TABLES:
            if not isinstance(of_file, Mapping):
                raise InputError(f"{place}.{key}: a table is needed")
            merged = {**of_file, **(given[key] or {})}
            found[key] = {name: _text(merged[name], key, f"{place}.{key}.{name}") for name in merged}
        elif not given[key]:
            found[key] = _switch(of_file, f"{place}.{key}") if key == _SWITCH else _text(of_file, key, f"{place}.{key}")
    return found


def set_by_file(given: Mapping[str, Any], table: Mapping[str, Any]) -> Iterator[str]:
    """The names of the arguments that the project file sets, without their values."""
    for key in _OPTIONS:
        if table.get(key) is not None and (key in _TABLES or not (given[key] or given.get(_INSTEAD.get(key, "")))):
            yield key


def _text(value: Any, key: str, place: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{place}: a text is needed")
    if any(mark in value for mark in TEMPLATE):
        raise InputError(f"{place}: is a template, which only Airflow renders: pass its value with {_OPTIONS[key]}")
    return value


def _switch(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{place}: true or false is needed")
    return value
