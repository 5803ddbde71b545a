"""``flinkcompat rules``: the catalogue."""

from __future__ import annotations

import json
from pathlib import Path

import click

from airflow_flinkcompat.cli.arguments import format_option
from airflow_flinkcompat.compat.pages import write_pages
from airflow_flinkcompat.compat.reports.catalogue import BY_CODE, as_data, explain, near, overview, select
from airflow_flinkcompat.model import ENGINES, InputError, Outcome
from airflow_flinkcompat.secrets import mask_secrets


@click.command("rules")
@click.argument("code", required=False)
@click.option("--engine", type=click.Choice(tuple(ENGINES)), help="With --outcome: on that engine (default: on any).")
@click.option("--outcome", type=click.Choice([each.value for each in Outcome]), help="Only rules with that outcome.")
@format_option("text", "json")
@click.option("--write", "folder", metavar="DIR", help="Write a page for each rule into DIR instead.")
def rules_command(code: str | None, engine: str | None, outcome: str | None, style: str, folder: str | None) -> None:
    """The catalogue of rules, or one rule explained with its example."""
    if folder is not None:
        try:
            changed = write_pages(Path(folder))
        except OSError as error:
            raise InputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
        click.echo(f"{folder}: {len(changed)} pages changed" if changed else f"{folder}: up to date")
        return
    rules = select(engine, Outcome(outcome) if outcome else None)
    if code is not None:
        if code not in BY_CODE:
            meant = ", ".join(near(code))
            hint = f"did you mean {meant}?" if meant else "`flinkcompat rules` lists them"
            raise InputError(f"there is no rule {mask_secrets(code)!r}; {hint}")
        rules = (BY_CODE[code],)
    if style == "json":
        data = [as_data(rule) for rule in rules]
        click.echo(json.dumps(data[0] if code else data, ensure_ascii=False, indent=2))
    else:
        click.echo(explain(rules[0]) if code else overview(rules), nl=False)
