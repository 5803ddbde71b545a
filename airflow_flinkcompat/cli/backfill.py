"""``flinkcompat backfill``: history recomputed with Spark."""

from __future__ import annotations

import json
from pathlib import Path

import click

from airflow_flinkcompat.cli.arguments import master_option, parse_settings, parse_variables
from airflow_flinkcompat.cli.project import config_option, deployment_option, judging, project_for
from airflow_flinkcompat.frontends.pyflink.local_files import local_texts
from airflow_flinkcompat.model import ENGINES, InputError, JobSpec, language_of
from airflow_flinkcompat.project import DEFAULT_GATE, JobOptions
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.sql import read_script, read_text


@click.command("backfill")
@click.argument("script", metavar="SCRIPT")
@click.option("--from", "from_", metavar="TS", help="Publish windows from here on.")
@click.option("--to", metavar="TS", help="Publish windows that end by then.")
@click.option("--table", "tables", multiple=True, metavar="NAME=URI", help="Read a table from another place.")
@click.option("--sink", "sinks", multiple=True, metavar="NAME=URI", help="Write a sink to another place instead.")
@click.option(
    "--order-by",
    "orders",
    multiple=True,
    metavar="[TABLE=]COLUMN[,COLUMN]",
    help="Columns that say in which order rows arrived, for row counts and OVER.",
)
@click.option("--set", "settings", multiple=True, metavar="K=V", help="A setting in force before the script's own.")
@click.option("--catalog", metavar="FILE", help="DDL of tables the script does not declare.")
@click.option(
    "--var", "variables", multiple=True, metavar="NAME=VALUE", help="A value only a program's environment knows."
)
@master_option
@click.option(
    "--late",
    type=click.Choice(("include", "drop")),
    default="include",
    show_default=True,
    help="Rows that a live job's watermark would have found too late.",
)
@click.option(
    "--native",
    type=click.Choice(("auto", "off")),
    default="auto",
    show_default=True,
    help="Whether DuckDB may aggregate files inside Spark's tasks, where that is less work.",
)
@click.option("--chunk", metavar="LENGTH", help="Compute the range in parts, as 1d or 6h; a later run takes them up.")
@click.option("--journal", metavar="URI", help="Where finished chunks are kept (default: beside a sink's folder).")
@click.option("--boundary", metavar="TS", help="Where the live job's own windows begin; the backfill ends there.")
@click.option("--allow-incomplete", is_flag=True, help="Run before the source, now quiet, has passed the boundary.")
@click.option("--hand-over", metavar="FILE", help="With --boundary: write what the deployment has to know.")
@click.option("--dry-run", is_flag=True, help="Say what would be read, computed and written; start nothing.")
@config_option
@deployment_option
@click.option("--format", "style", type=click.Choice(("text", "json")), default="text", show_default=True)
def backfill_command(
    script: str,
    from_: str | None,
    to: str | None,
    tables: tuple[str, ...],
    sinks: tuple[str, ...],
    orders: tuple[str, ...],
    settings: tuple[str, ...],
    catalog: str | None,
    variables: tuple[str, ...],
    master: str | None,
    late: str,
    native: str,
    chunk: str | None,
    journal: str | None,
    boundary: str | None,
    allow_incomplete: bool,
    hand_over: str | None,
    dry_run: bool,
    config: str | None,
    deployment: str | None,
    style: str,
) -> None:
    """Recompute SCRIPT over history with Spark: exactly the windows that lie wholly inside [from, to).

    A file that ends in .py is a PyFlink program, one in .table a program in FLIP-11's own notation: they are read, and
    never run. Progress goes to standard error, the reconciliation to standard output. With --boundary the windows of a
    live job begin where these end, and the record of --hand-over (written before anything runs, with --dry-run as well)
    tells where its sources have to start.

    Settings, functions, catalog and variables that are not said here are taken of the project file flinkcompat.toml,
    found upwards from SCRIPT, those of the deployment whose script it is before the common ones.
    """
    if not dry_run:
        try:
            import pyspark  # noqa: F401
        except ImportError:
            raise InputError("backfill needs Spark: pip install 'airflow-flinkcompat[spark]'") from None
    if (hand_over or allow_incomplete) and not boundary:
        raise InputError("--hand-over and --allow-incomplete belong to --boundary: add it")
    if journal and not chunk:
        raise InputError("--journal belongs to --chunk: add it")
    from airflow_flinkcompat.backfill import (
        BackfillError,
        BackfillRequest,
        parse_duration,
        parse_orders,
        parse_time,
        run_backfill,
    )
    from airflow_flinkcompat.backfill import explain as explain_backfill
    from airflow_flinkcompat.backfill import plan as plan_backfill

    try:
        text = read_text(script, program=True)
        given = JobOptions(
            parse_settings(settings),
            catalog=read_script(catalog).text if catalog else "",
            variables=parse_variables(variables, (script,)),
        )
        place = Path(script)
        by = judging(project_for(config, place), place, deployment, given, DEFAULT_GATE)
        by.tell()
        options = by.options
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
                engine=options.engine or next(iter(ENGINES)),
                engine_version=options.engine_version,
            ),
            from_=parse_time(from_) if from_ else None,
            to=parse_time(to) if to else None,
            tables=parse_settings(tables, "table", "NAME=URI"),
            sinks=parse_settings(sinks, "sink", "NAME=URI"),
            order_by=parse_orders(orders),
            master=master,
            late=late,
            native=native,
            boundary=parse_time(boundary) if boundary else None,
            allow_incomplete=allow_incomplete,
            chunk=parse_duration(chunk) if chunk else None,
            journal=journal,
        )
        planned = plan_backfill(request)
        if hand_over and planned.hand_over:
            Path(hand_over).write_text(planned.hand_over.to_json(), encoding="utf-8")
        if dry_run:
            click.echo(explain_backfill(planned, request), nl=False)
            return
        for line in planned.hand_over.lines() if planned.hand_over else ():
            click.echo(line, err=True)
        result = run_backfill(planned, lambda line: click.echo(mask_secrets(line), err=True))
    except BackfillError as error:
        raise InputError(str(error)) from error
    if style == "json":
        click.echo(json.dumps(result.to_dict(), ensure_ascii=False, indent=2))
    else:
        click.echo(mask_secrets("\n".join(result.lines())))
