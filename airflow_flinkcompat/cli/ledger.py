"""``flinkcompat ledger``, which shows deployed versions and their history, and adopts running jobs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airflow_flinkcompat.cli.arguments import (
    command_errors,
    format_option,
    job_option,
    job_options,
    print_json,
    print_progress,
    require_program,
)
from airflow_flinkcompat.cli.project import Given, judging, ledger_roots, named_deployment, project_for
from airflow_flinkcompat.cli.targets import location, target_option
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.deploy.ledger.listing import indented, part_diff, part_lines
from airflow_flinkcompat.frontends.pyflink.reader import local_texts
from airflow_flinkcompat.model import InputError, OutOfReachError, language_of
from airflow_flinkcompat.model.options import LEDGER_VARIABLE
from airflow_flinkcompat.project.file import FILE_NAME
from airflow_flinkcompat.project.job_options import DEFAULT_GATE
from airflow_flinkcompat.project.settings import ProjectFile
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.sql.script import read_text

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy import Ledger, LedgerEntry, LedgerError
    from airflow_flinkcompat.deploy.ledger.status import DeploymentRow, EntryRow
    from airflow_flinkcompat.deploy.targets import OpenTarget

_WIDTH = 80
# Width of output that is not a terminal, so that its lines are not shortened.
_UNBOUNDED = 10_000
_COMPARED = ("script", "files", "variables", "settings", "functions", "catalog", "engine")


@click.group("ledger")
def ledger_command() -> None:
    """Show deployed versions and their history, and adopt a job that already runs."""


def _place(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that locate the ledgers and choose the format."""
    for decorate in (format_option("text", "json"), job_option("ledger", argument="root"), job_option("config")):
        command = decorate(command)
    return command


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """Add the argument for the deployment, and the options for its ledger and the format."""
    return click.argument("deployment")(_place(command))


@ledger_command.command("list")
@_place
@click.option("--no-index", is_flag=True, help="Read every ledger instead of the index.")
def list_command(root: str | None, config: str | None, style: str, no_index: bool) -> None:
    """List all deployments with their deployed version, its time and author, and unfinished redeploys.

    The index next to the ledgers is read. --no-index also finds damaged ledgers, and entries of a release without an
    index. If a ledger cannot be read, its line shows the error, the other deployments are listed, and the exit code is
    3.
    """
    with command_errors("ledger", "deploy"):
        from airflow_flinkcompat.deploy.ledger.listing import deployment_rows, listed

        root = _root(root, config)
        rows = deployment_rows(root, by_index=not no_index)
    _require_any(root, rows)
    if style == "json":
        print_json({"ledger": mask_secrets(root), "deployments": [listed(name, row) for name, row in rows.items()]})
    else:
        cells: list[tuple[str, ...]] = [("deployment", "#", "since (UTC)", "kind", "job", "outcome", "by")]
        cells += [(name, *_head_cells(row)) for name, row in rows.items()]
        widths = [max(len(row[i]) for row in cells) for i in range(6)]
        for name, *rest in cells:
            line = " ".join(cell.ljust(width) for cell, width in zip((name, *rest), widths, strict=False))
            click.echo(f"{line} {rest[-1]}".rstrip())
            for note in _notes(rows[name]) if name in rows else ():
                click.echo(f"  {note}")
    _exit_if_unreadable(rows)


@ledger_command.command("index")
@_place
def index_command(root: str | None, config: str | None, style: str) -> None:
    """Rebuild the index that `ledger list` reads.

    Run this command for ledgers of a release without an index, and after ledgers were moved or restored from a backup.
    If a ledger cannot be read, the error is shown, and the exit code is 3.
    """
    with command_errors("ledger", "deploy"):
        from airflow_flinkcompat.deploy.ledger.listing import rebuild_index

        root = _root(root, config)
        rows = rebuild_index(root)
    _require_any(root, rows)
    errors = {name: mask_secrets(str(row)) for name, row in rows.items() if isinstance(row, Exception)}
    if style == "json":
        print_json({"ledger": mask_secrets(root), "deployments": len(rows) - len(errors), "errors": errors})
    else:
        click.echo(f"the index has a row for each of {len(rows) - len(errors)} deployments")
        for name, error in errors.items():
            click.echo(f"{name} has no row, because its ledger cannot be read\n  {error}")
    _exit_if_unreadable(rows)


@ledger_command.command("show")
@_common
@click.option(
    "--entry", "number", type=click.IntRange(1), metavar="N", help="Entry to show instead of the deployed version."
)
def show_command(deployment: str, root: str | None, config: str | None, style: str, number: int | None) -> None:
    """Show the deployed version of DEPLOYMENT, and its unfinished redeploy if there is one."""
    with command_errors("ledger", "deploy"):
        from airflow_flinkcompat.deploy.ledger.listing import masked_entry
        from airflow_flinkcompat.deploy.ledger.status import Progress

        ledger, entries = _opened(_root(root, config, deployment), deployment)
        progress = Progress.of(entries)
        shown = progress.head if number is None else _entry(ledger, entries, number)
        unfinished = progress.unfinished if number is None else None
    if style == "json":
        entries_by_key = {"entry": shown, "unfinished": unfinished}
        masked = {key: None if each is None else masked_entry(each) for key, each in entries_by_key.items()}
        print_json({"deployment": deployment, **masked})
        return
    head = [f"{deployment}: nothing is deployed"]
    if shown:
        head = [*_field_lines(deployment, shown), *_state_lines(ledger, shown)]
    if unfinished:
        head += ["", "a redeploy has not ended:", *_summary(unfinished)]
    elif number is None and entries[-1] is not shown:
        head += ["", "the last entry:", *_summary(entries[-1]), *_state_lines(ledger, entries[-1])]
    click.echo("\n".join(head + (_texts(shown) if shown else [])))


@ledger_command.command("history")
@_common
def history_command(deployment: str, root: str | None, config: str | None, style: str) -> None:
    """List all ledger entries of DEPLOYMENT, oldest first, one per line."""
    with command_errors("ledger", "deploy"):
        from airflow_flinkcompat.deploy.ledger.listing import masked_entry
        from airflow_flinkcompat.secrets.redact import shortened

        _, entries = _opened(_root(root, config, deployment), deployment)
    if style == "json":
        print_json({"deployment": deployment, "entries": [masked_entry(entry) for entry in entries]})
        return
    rows = [("#", "when (UTC)", "kind", "job", "start", "outcome", "by"), *map(_row, entries)]
    wide = max(_WIDTH, shutil.get_terminal_size((_UNBOUNDED, 24)).columns)
    widths = [max(len(row[i]) for row in rows) for i in range(1, 6)]
    for number, *cells in rows:
        line = " ".join([f"{number:>5}", *(cell.ljust(width) for cell, width in zip(cells, widths, strict=False))])
        click.echo(f"{line} {shortened(cells[-1], wide - len(line) - 1)}".rstrip())


@ledger_command.command("diff")
@_common
@click.argument("old", type=click.IntRange(1), required=False, metavar="[A]")
@click.argument("new", type=click.IntRange(1), required=False, metavar="[B]")
def diff_command(
    deployment: str, root: str | None, config: str | None, style: str, old: int | None, new: int | None
) -> None:
    """Compare entries A and B of DEPLOYMENT: script, files, settings, functions, catalog.

    Without B, A is compared with the deployed version. Without A and B, the two last deployed versions are compared.
    """
    with command_errors("ledger", "deploy"):
        from airflow_flinkcompat.deploy.ledger.entries import StepEntry

        ledger, entries = _opened(_root(root, config, deployment), deployment)
        heads = [entry for entry in entries if entry.is_head]
        if len(heads) < (2 if old is None else 1) and new is None:
            raise InputError(
                f"{deployment} was deployed {'once' if heads else 'never'}: name two entries to compare "
                f"(flinkcompat ledger history {deployment})"
            )
        before = heads[-2] if old is None else _entry(ledger, entries, old)
        after = heads[-1] if new is None else _entry(ledger, entries, new)
        for entry in (before, after):
            if not isinstance(entry, StepEntry):
                raise InputError(f"entry {entry.number} of {deployment} ({entry.kind}) contains no script")
    rows, names = (before.to_dict(), after.to_dict()), (f"entry {before.number}", f"entry {after.number}")
    parts = {name: part_diff(name, *rows, names) for name in _COMPARED}
    if style == "json":
        print_json({"deployment": deployment, "old": before.number, "new": after.number, **parts})
        return
    lines = [line for lines in parts.values() for line in lines]
    click.echo("\n".join(lines or [f"entries {before.number} and {after.number} of {deployment} do not differ"]))


@ledger_command.command("adopt")
@_common
@click.option(
    "--job-id", required=True, metavar="ID", help="The job's id on its target (Flink: 32 hexadecimal digits)."
)
@click.option(
    "--script",
    metavar="FILE",
    help="Script or program (.py, .table) that the job runs (default: the script in the project file).",
)
@job_options(
    "variables",
    "settings",
    "functions",
    "catalog",
    "engine_version",
    engine_version="Flink version, which must be the version of the cluster.",
)
@click.option("--jobmanager", metavar="URL", default="http://localhost:8081", show_default=True)
@click.option("--gateway", metavar="URL", help="SQL Gateway, for a target that needs one.")
@target_option("jobmanager")
@click.option(
    "--former-ended",
    is_flag=True,
    help="Confirm that the job of the ledger, or the job of an unfinished start, has ended.",
)
@click.pass_obj
def adopt_command(
    connect: Callable[[], OpenTarget] | None,
    deployment: str,
    root: str | None,
    config: str | None,
    style: str,
    job_id: str,
    script: str | None,
    jobmanager: str,
    gateway: str | None,
    target: str,
    given: Given,
    former_ended: bool,
) -> None:
    """Record a running job and its script as DEPLOYMENT in the ledger.

    The job is not changed. The job's name and tables are compared with the script, if the target shows them. A
    JobManager is sufficient, even if the job was started in a different way. If flinkcompat.toml in this folder or
    above has this deployment, options that are not passed are taken from there.
    """
    with command_errors("ledger", "deploy"):
        from airflow_flinkcompat.deploy import JobRef, Ledger
        from airflow_flinkcompat.deploy.ledger.listing import masked_entry
        from airflow_flinkcompat.deploy.ledger.store import this_process
        from airflow_flinkcompat.deploy.redeploy.adopt import adopt

        project = project_for(config, Path())
        script = script or _script_of(project, deployment)
        require_program("--var", given.options.variables, script)
        known = deployment if project and deployment in project.names else None
        by = judging(project, Path(script), replace(given, deployment=known, fail_on=DEFAULT_GATE))
        by.print_options()
        options, text = by.options, read_text(script, program=True)
        side = Side(
            text,
            options.settings,
            options.functions,
            options.catalog,
            options.engine or "flink",
            options.engine_version,
            script,
            language_of(script),
            options.variables,
            local_texts(script, text, options.variables),
        )
        side.require_query()
        ledger = Ledger(_root(root, config, deployment), deployment)
        # Another program that calls this command may pass a function that opens the target.
        with (connect or location(target, gateway, jobmanager).open)() as opened:
            done = adopt(opened, ledger, side, JobRef(job_id), owner=this_process(), former_ended=former_ended)
    for warning in done.warnings:
        print_progress(f"warning: {warning}")
    if style == "json":
        print_json({"deployment": deployment, "entry": masked_entry(done.entry), "warnings": list(done.warnings)})
        return
    job = f"job {job_id} ({mask_secrets(done.job.name)}, {done.job.state})"
    click.echo(f"adopted: {job} as {deployment}, entry {done.entry.number}")
    for line in done.compared:
        click.echo(f"  {mask_secrets(line)}")
    click.echo(f"  {done.entry.message}")


def _root(root: str | None, config: str | None, deployment: str | None = None) -> str:
    """Location of the ledgers: from the option or the environment, else from the project file.

    Raises InputError if no location is known, or if the project file sets several.
    """
    if root:
        return root
    project = project_for(config, Path())
    found = ledger_roots(project)
    if project is not None and deployment is not None:
        own = named_deployment(project, deployment).ledger if deployment in project.names else project.ledger
        found = (own,) if own else ()
    if not found:
        raise InputError(
            f"the location of the ledger is unknown: name its URI with --ledger, set {LEDGER_VARIABLE}, or write "
            "ledger = … into a "
            f"{FILE_NAME}"
        )
    if len(found) > 1:
        raise InputError(f"{project.path if project else ''}: names several ledgers ({', '.join(found)}): add --ledger")
    return found[0]


def _script_of(project: ProjectFile | None, deployment: str) -> str:
    """The script of a deployment in the project file. Raises InputError."""
    if project is None or deployment not in project.names:
        raise InputError(
            f"the script of the job is unknown: add --script FILE, or name {deployment} and its script in a {FILE_NAME}"
        )
    return os.path.relpath(project.folder / named_deployment(project, deployment).script)


def _opened(root: str, deployment: str) -> tuple[Ledger, tuple[LedgerEntry, ...]]:
    """The ledger and its entries. Raises InputError if the ledger is empty."""
    from airflow_flinkcompat.deploy import Ledger

    ledger = Ledger(root, deployment)
    entries = ledger.entries()
    if not entries:
        raise InputError(f"no entry in {ledger.directory}: check the name {deployment!r} and the address {root}")
    return ledger, entries


def _require_any(root: str, rows: Mapping[str, DeploymentRow | LedgerError]) -> None:
    """Raise OutOfReachError if there is no deployment, because the address is probably wrong."""
    if not rows:
        raise OutOfReachError(f"no deployment in {root}: check that this folder or address contains the ledgers")


def _exit_if_unreadable(rows: Mapping[str, DeploymentRow | LedgerError]) -> None:
    if any(isinstance(row, Exception) for row in rows.values()):
        sys.exit(3)


def _entry(ledger: Ledger, entries: Sequence[LedgerEntry], number: int) -> LedgerEntry:
    found = next((entry for entry in entries if entry.number == number), None)
    if found is None:
        raise InputError(f"{ledger.directory} has no entry {number}: its last entry is {entries[-1].number}")
    return found


# ------------------------------------------------------------------------------------------------------------- output
def _head_cells(row: DeploymentRow | LedgerError) -> tuple[str, ...]:
    """Cells of a deployment's row in ``ledger list``."""
    head = None if isinstance(row, Exception) else row.head
    if head is None:
        return ("-", "-", "not readable" if isinstance(row, Exception) else "not deployed", "-", "-", "")
    by = mask_secrets(head.approved_by or head.owner)
    return (str(head.number), _when(head), head.kind, (head.job_id or "-")[:8], head.outcome or "-", by)


def _notes(row: DeploymentRow | LedgerError) -> Iterator[str]:
    """Notes that follow a deployment's row in ``ledger list``."""
    if isinstance(row, Exception):
        yield mask_secrets(str(row))
        return
    if step := row.unfinished:
        by = f", by {mask_secrets(step.owner)}" if step.owner else ""
        yield f"a redeploy has not ended: entry {step.number}, {step.kind} at {_when(step)} UTC{by}"
    if asked := row.pending:
        yield f"a change waits for a decision: entry {asked.number}, {asked.outcome} at {_when(asked)} UTC"


def _when(entry: LedgerEntry | EntryRow) -> str:
    return entry.at[:16].replace("T", " ")


def _summary(entry: LedgerEntry) -> list[str]:
    """Lines about the unfinished or last entry, which follow the deployed version."""
    lines = [
        f"entry {entry.number}, {entry.kind} at {_when(entry)} UTC" + (f", by {entry.owner}" if entry.owner else "")
    ]
    row = entry.to_dict()
    parts = (("job", "job_id"), ("savepoint", "savepoint"), ("reason:", "reason"))
    lines += [f"{name} {row[key]}" for name, key in parts if row[key]]
    return [f"  {line}" for line in mask_secrets("\n".join([*lines, entry.message]).strip()).splitlines()]


def _field_lines(deployment: str, entry: LedgerEntry) -> list[str]:
    """Lines with the fields of an entry, except for its texts."""
    from airflow_flinkcompat.deploy.ledger.entries import ShadowedEntry
    from airflow_flinkcompat.deploy.shadow.question import finding

    row = entry.to_dict()
    shadowed = finding(entry) if isinstance(entry, ShadowedEntry) else None
    rows = {
        "job": row["job_id"],
        "engine": part_lines("engine", row)[0],
        "language": row["language"] if row["language"] != "sql" else "",
        "start mode": row["start_mode"],
        "sources": "; ".join(each["words"] for each in row["offsets"] if "words" in each),
        "savepoint": row["savepoint"],
        "its size": "" if row["savepoint_bytes"] is None else f"{row['savepoint_bytes']:,} bytes",
        "taken": row["savepoint_at"],
        "made of": row["migrated_from"],
        "migrated to": row["migrated_to"],
        "checkpoint": row["checkpoint"],
        "outcome": row["outcome"],
        "branch": row["branch"],
        "report": row["report_path"],
        "approved by": row["approved_by"],
        "reason": row["reason"],
        "waived": "; ".join(f"{each['rule']} ({each['subject']}) by {each['by']}" for each in row["waivers"]),
        "commit": row["commit"],
        "author": row["author"],
        "team": row["team"],
        "owned by": row["owned_by"],
        "from": row["range_from"],
        "to": row["range_to"],
        "written to": ", ".join(f"{sink}: {place}" for sink, place in row["sinks"].items()),
        "counts": ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in row["counts"].items()),
        "finding": row["rehearsal"].get("finding") or shadowed,
        "sinks": "; ".join(map(_compared_sink, row["shadow"].get("sinks", ()))),
        "cause": row["shadow"].get("reason"),
        "written by": entry.owner,
        "side": row["sha256"],
        "message": entry.message,
    }
    lines = [f"{deployment}: entry {entry.number}, {entry.kind} at {_when(entry)} UTC"]
    lines += [f"  {name:<12} {mask_secrets(value)}" for name, value in rows.items() if value]
    lines += [f"  {'seen' if i == 0 else '':<12} {mask_secrets(line)}" for i, line in enumerate(row["evidence"])]
    if row["migration"]:
        report = MigrationReport.from_dict(row["migration"])
        lines += ["", report.headline, *report.lines()]
    return lines


def _compared_sink(sink: Mapping[str, Any]) -> str:
    """Result of a shadow run for one sink, on one line."""
    what = "keys" if sink["by_key"] else "rows"
    return f"{sink['sink']} {sink['finding']}" + f" ({sink['differing']} {what})" * bool(sink["differing"])


def _state_lines(ledger: Ledger, entry: LedgerEntry) -> list[str]:
    """Lines about stored state that a change keeps or loses, from the report on the change."""
    from airflow_flinkcompat.deploy import LedgerError
    from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry, DecisionEntry

    if not isinstance(entry, (CheckedEntry, DecisionEntry)) or not entry.review.report_path:
        return []
    try:
        report, _ = ledger.read_report(entry.review.report_path)
    except LedgerError:
        return []
    stored = report.get("context", {}).get("stored")
    lines = ["", f"Stored state: {stored}"] if stored else []
    if "migration" in report:
        kept = MigrationReport.from_dict(report["migration"])
        lines += ["", kept.headline, *kept.lines()]
    return lines


def _texts(entry: LedgerEntry) -> list[str]:
    """Lines with the settings, functions, catalog, files and script of an entry, under headings."""
    lines: list[str] = []
    row = entry.to_dict()
    for name in ("settings", "variables", "functions", "catalog", "files", "script"):
        if part := part_lines(name, row):
            lines += ["", f"{name}:", *indented("\n".join(part))]
    return lines


def _row(entry: LedgerEntry) -> tuple[str, ...]:
    row = entry.to_dict()
    return (
        str(entry.number),
        _when(entry),
        entry.kind,
        (row["job_id"] or "")[:8],
        row["start_mode"] or "",
        row["outcome"] or "",
        row["approved_by"] or entry.owner,
    )
