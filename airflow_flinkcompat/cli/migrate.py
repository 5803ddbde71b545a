"""``flinkcompat migrate``, which shows the state that a migration keeps, and writes the savepoint."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from airflow_flinkcompat.cli.arguments import (
    Decorated,
    command_errors,
    format_option,
    job_options,
    master_option,
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
from airflow_flinkcompat.cli.scripts import path_of, read_named, require_one_stdin, required_side
from airflow_flinkcompat.cli.targets import (
    Planner,
    compiled_plans,
    final_savepoint,
    place_of,
    planner_options,
    template_of,
)
from airflow_flinkcompat.compat import Report, Side, check
from airflow_flinkcompat.compat.migration_report import CONDITION_RULE, MIGRATED_LINES, MigrationReport
from airflow_flinkcompat.compat.plan_comparison import SourceOverrides, migrations, require_one_job, stand_ins
from airflow_flinkcompat.exec_graph.migration import OTHER_CONDITION, SAMPLED_KEYS, Accept, Migration, MigrationExtent
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.exec_graph.stand_ins import StandIns
from airflow_flinkcompat.model import Extra, InputError
from airflow_flinkcompat.secrets import mask_secrets

if TYPE_CHECKING:
    from airflow_flinkcompat.history.known_history import KnownHistory
    from airflow_flinkcompat.migration.computed import StateComputer
    from airflow_flinkcompat.migration.workers import Workers

_ACCEPTED = {
    Accept.DROPPED: "state is dropped because no new operator uses it",
    Accept.FILTER: "aggregations resume under a changed condition, although stored rows met the old condition",
    Accept.SOURCE_MOVED: "sources restart because the location of their data may have changed",
    Accept.UNSEEN: "something changed that plans do not show, such as a function's JAR or a setting",
    Accept.HISTORY: "stored state is kept although --history results in different values",
}

_NOT_COMPARED = (
    "Not compared with a savepoint: the stored state is predicted from the plan alone. Add --savepoint to compare "
    "the stored state."
)


@dataclass(frozen=True)
class _MigrationOptions:
    """Options of a migration on the command line, with their help in ``_OPTIONS``."""

    savepoint: str | None = None
    job_id: str | None = None
    template: str | None = None
    to: str | None = None
    history: tuple[str, ...] = ()
    prepare: str | None = None
    prepared: str | None = None
    sample: int = SAMPLED_KEYS
    audit_history: bool = False
    dry_run: bool = False
    accepted: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()
    spark: bool | None = None
    master: str | None = None


_OPTIONS: Mapping[str, Callable[[Decorated], Decorated]] = {
    "savepoint": click.option(
        "--savepoint", metavar="URI", help="Canonical savepoint of OLD's job, which is only read."
    ),
    "job_id": click.option(
        "--job-id", metavar="ID", help="Id of OLD's stopped job, whose final savepoint is used instead of --savepoint."
    ),
    "template": template_option,
    "to": click.option("--to", metavar="URI", help="Folder for the savepoint of NEW; it must not exist."),
    "history": click.option(
        "--history", multiple=True, metavar="TABLE[=URI[#PARTITION,OFFSET|#TIME]]",
        help="Compute state that would start empty with Spark, from the rows of this table that the job has read "
        "(default: from the table's location).",
    ),
    "prepare": click.option(
        "--prepare", metavar="URI",
        help="While OLD's job still runs: compute the state from --history up to --savepoint (any savepoint of the "
        "job) into this folder, and write no savepoint.",
    ),
    "prepared": click.option(
        "--prepared", metavar="URI", help="Folder that migrate prepare wrote; only later rows are read."
    ),
    "sample": sample_option,
    "audit_history": click.option(
        "--audit-history", is_flag=True,
        help="Compare the state of OLD in the savepoint with --history, and write nothing.",
    ),
    "dry_run": click.option("--dry-run", is_flag=True, help="Show which state would be kept, and write nothing."),
    "accepted": click.option(
        "--accept", "accepted", multiple=True, type=click.Choice([each.value for each in Accept]),
        help="Write even if " + ", or ".join(f"({kind.value}) {words}" for kind, words in _ACCEPTED.items()) + ".",
    ),
    "restarted": click.option(
        "--restart-source", "restarted", multiple=True, metavar="TABLE",
        help="Restart this source, and keep all other state.",
    ),
    "renamed": click.option(
        "--source-renamed", "renamed", multiple=True, metavar="OLD=NEW",
        help="Declare that this source was only renamed.",
    ),
    "spark": click.option(
        "--spark/--no-spark", default=None,
        help="Write the savepoint with Spark (default: if the state is 2 GB or more).",
    ),
    "master": master_option,
}  # fmt: skip
_OF_BOTH = (
    "engine_version", "old_engine_version", "settings", "old_settings", "functions", "catalog", "planner", "jars",
    "config", "deployment",
)  # fmt: skip
_PLANNED = ("savepoint", "job_id", "history", "accepted", "restarted", "renamed")


def _migration(*names: str) -> Callable[[Decorated], Decorated]:
    """Add the arguments of a migration command, with these fields of ``_MigrationOptions``."""

    def decorate(command: Decorated) -> Decorated:
        @wraps(command)
        def called(*, given: Given, planner: Planner, old: str, new: str, style: str, **others: Any) -> Any:
            return command(_Migrating(old, new, _MigrationOptions(**others), given, planner, style))

        made: Decorated = planner_options(called)
        for decorator in (
            format_option("text", "json"),
            job_options(
                *_OF_BOTH,
                where="on both sides",
                old_engine_version="Version of Flink that took the savepoint (default: the same version).",
            ),
            *(_OPTIONS[name] for name in reversed(names)),
            click.argument("new"),
            click.argument("old"),
        ):
            made = decorator(made)
        return made

    return decorate


class _Migrations(click.Group):
    """Command group for the steps of a migration, which also accepts the old form ``migrate OLD NEW``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, args) if args[0] in self.commands else ("", _former_command, args)


@click.group("migrate", cls=_Migrations, context_settings={"ignore_unknown_options": True})
def migrate_command() -> None:
    """Rewrite a savepoint of script OLD, so that script NEW resumes from it, on open-source Flink.

    Run plan first, which writes nothing, and then apply. If state is computed from a long history, prepare computes
    most of that state before the job stops.

    The old form, migrate OLD NEW with --dry-run, --prepare or --to, still works.
    """


@migrate_command.command("plan", short_help="Show which state of OLD is kept for NEW.")
@_migration(*_PLANNED, "template", "prepared", "audit_history", "master")
def plan_command(run: _Migrating) -> None:
    """Show which state of OLD a rewritten savepoint keeps for NEW, and write nothing.

    Flink's planner compiles both scripts. The report shows for every state of the old job if it is carried, moved,
    rewritten field by field, dropped or impossible to keep. The scripts are planned on this machine, or by --gateway or
    --target. --planner always selects the planner on this machine. No savepoint is needed. With --savepoint, the stored
    state is compared with the plan.

    With --history, the report includes state that is computed from rows. With --audit-history, the command only
    compares the state of OLD in the savepoint with these rows.

    As for check, options that are not passed are taken from flinkcompat.toml in the folder of NEW or above.

    Exit code 0: migratable, or equal with --audit-history; 1: not migratable, or different; 2: bad input.
    """
    replace(run, asked=replace(run.asked, dry_run=not run.asked.audit_history)).migrate()


@migrate_command.command("prepare", short_help="Compute state from history while OLD runs.")
@click.option("--to", "prepare", required=True, metavar="URI", help="Folder to write the computed state into.")
@_migration(*_PLANNED, "master")
def prepare_command(run: _Migrating) -> None:
    """Compute state from --history into the folder --to, while the job of OLD still runs.

    The command reads the rows up to --savepoint, which may be any savepoint of the job. No savepoint is written. After
    the job has stopped, apply with --prepared reads only later rows.

    Exit code 0: prepared; 1: not migratable; 2: bad input.
    """
    run.migrate()


@migrate_command.command("apply", short_help="Write the savepoint for NEW.")
@_migration(*_PLANNED, "template", "to", "prepared", "sample", "spark", "master")
def apply_command(run: _Migrating) -> None:
    """Write a savepoint from which NEW resumes to the folder --to.

    OperatorIDs and serializers come from a template, which is a savepoint that NEW took before it read any row. Without
    --template, NEW is started on empty input, with muted sinks, and stopped immediately. NEW runs on the cluster of
    --gateway and --jobmanager, or else on a local Flink. The template is cached.

    The written savepoint is read back and compared before the command ends. --savepoint is only read. If the command
    is killed, --to contains a complete savepoint or no savepoint.

    With --spark, each Spark task writes the state file of one range of key groups.

    With --history, state that would start empty is computed from the rows before the positions of the savepoint. Kept
    state is compared with these rows, and if they differ, nothing is written. All rows of history are read while no job
    runs, unless migrate prepare has already read most of them.

    As for check, options that are not passed are taken from flinkcompat.toml in the folder of NEW or above.

    Exit code 0: the savepoint was written; 1: not migratable; 2: bad input.
    """
    run.migrate()


@click.command(None)
@_migration(*_OPTIONS)
def _former_command(run: _Migrating) -> None:
    """Plan with --dry-run or --audit-history, prepare with --prepare, else apply; see migrate --help."""
    run.migrate()


@dataclass(frozen=True)
class _Migrating:
    """One migration, as requested on the command line."""

    old: str
    new: str
    asked: _MigrationOptions
    given: Given
    planner: Planner
    style: str

    def migrate(self) -> None:
        """Plan the migration, show it, and write the requested files."""
        asked, savepoint = self.asked, self.asked.savepoint
        if asked.master and not (asked.spark or asked.history):
            raise InputError("--master needs --spark or --history: add one of them")
        tables = history_of(asked.history)
        _require_named(tables, asked.accepted)
        requested = tuple(map(Accept, asked.accepted))
        known = _known(tables, asked, requested, self.planner.extra) if tables else None
        if asked.job_id:
            savepoint = _savepoint_of_stopped_job(asked.job_id, savepoint, self.planner)
        if asked.prepare or asked.prepared:
            _require_history(tables, savepoint, asked)
        if asked.audit_history:
            _require_audited(tables, savepoint)
        elif not (asked.dry_run or asked.prepare):
            _require_places(savepoint, asked.to)
        require_sql("migrate", self.old, self.new)
        require_one_stdin(self.old, self.new)
        by = judging_flink("migrate", path_of(self.new) or path_of(self.old), self.given)
        before = required_side(read_named(self.old), self.given.old_side(by))
        after = required_side(read_named(self.new), by)
        planner = self.planner.compiling(by)
        plans = compiled_plans("migrate", before, after, planner, savepoint, *(("spark",) if known else ()))
        require_one_job("migrate rewrites", plans)
        overrides = SourceOverrides(asked.restarted, dict(map(_renamed, asked.renamed)))
        (made,) = migrations(before, after, plans, overrides, requested)
        require_predicted(made, savepoint=savepoint)
        if asked.audit_history and savepoint and known:
            _audit(before, savepoint, made, known)
            return
        if known:
            made = _from_history(made, before, after, known)
        _show(made, before, after, self.style, savepoint, asked.dry_run)
        report = replace(check(before, after, plans=plans), migration=MigrationReport.of(made))
        unseen = _unseen(report, {before.version, after.version}, asked.accepted)
        _offer_filter(made, lambda kind: migrations(before, after, plans, overrides, (*requested, kind))[0])
        if made.kept is MigrationExtent.NONE or not _accepted(made, unseen, asked.accepted):
            sys.exit(1)
        require_predicted(made, template=asked.template)
        _preview(before, after, made, known if asked.dry_run else None, savepoint)
        if asked.prepare and known and savepoint:
            _prepare(before, after, savepoint, made, known, asked.prepare)
        elif savepoint and asked.to and not asked.dry_run:
            place = None if asked.template else place_of(planner)
            ids = stand_ins(before, after, plans)[1][StandIns.IDLE]
            with _workers(before, after, savepoint, made, known, asked.spark, asked.master) as (workers, computer):
                made_of = asked.template or template_of(after, savepoint, place, ids, planner.jars)
                write_savepoint(savepoint, made_of, asked.to, made, workers, computer)


def _preview(old: Side, new: Side, made: Migration, known: KnownHistory | None, savepoint: str | None) -> None:
    """Print the tables that the run would read, their row counts, and the inexact parts of the state."""
    with state_errors():
        for line in known.preview(old, new, made, savepoint) if known else ():
            print_progress(line)


def _require_named(tables: Mapping[str, str], accepted: Collection[str]) -> None:
    """Raise InputError if an option needs history, but no table is passed."""
    sampled = click.get_current_context().get_parameter_source("sample") is ParameterSource.COMMANDLINE
    for option, given in (("--accept history", Accept.HISTORY in accepted), ("--sample", sampled)):
        if given and not tables:
            raise InputError(f"{option} applies to state computed from history: add --history TABLE, or leave it out")


def _require_audited(tables: Mapping[str, str], savepoint: str | None) -> None:
    """Raise InputError if the rows or the savepoint for the comparison are missing."""
    if not (tables and savepoint):
        raise InputError("--audit-history needs --history TABLE for each table, and either --savepoint or --job-id")


def _require_history(tables: Mapping[str, str], savepoint: str | None, asked: _MigrationOptions) -> None:
    """Raise InputError if options for ``prepare`` or ``--prepared`` are missing or contradictory."""
    option = "migrate prepare" if asked.prepare else "--prepared"
    if not (tables and savepoint):
        raise InputError(f"{option} needs --history TABLE for each table, and --savepoint or --job-id")
    if asked.prepare and (asked.prepared or asked.to or asked.dry_run or asked.audit_history):
        raise InputError(
            "--prepare writes input for a later run: leave out --prepared, --to, --dry-run and --audit-history"
        )


def _prepare(old: Side, new: Side, savepoint: str, made: Migration, known: KnownHistory, folder: str) -> None:
    if not any(line.from_history for line in made.operators):
        raise InputError("this change needs no state from history, so there is nothing to prepare")
    with state_errors():
        known.prepare(old, new, savepoint, made, folder, print_progress)
    click.echo(f"state prepared in {folder}: pass this folder with --prepared after the job has stopped", err=True)


def _unseen(report: Report, versions: Set[str], accepted: Collection[str]) -> bool:
    """Print the changes that a migration cannot check. Returns True if there is such a change."""
    unseen = [each for each in report.unseen if each.rule != CONDITION_RULE or Accept.FILTER not in accepted]
    for each in unseen:
        found = f"[{each.outcome}] {each.rule}: {each.message}"
        print_progress(f"flinkcompat: a migration cannot check this change, decide yourself: {found}")
    lines = sorted(versions - {*MIGRATED_LINES})
    for line in lines:
        click.echo(
            f"flinkcompat: migration was tested on Flink {' and '.join(MIGRATED_LINES)} only, not on "
            f"{line}; layouts are compared with the template's",
            err=True,
        )
    return bool(unseen or lines)


def _offer_filter(made: Migration, accepting: Callable[[Accept], Migration]) -> None:
    """Suggest ``--accept filter`` if this option would make the migration possible."""
    if made.refused and any(each.reason == OTHER_CONDITION for each in made.operators):
        found = accepting(Accept.FILTER)
        if not found.refused and any(each.accepted is Accept.FILTER for each in found.operators):
            print_progress(f"flinkcompat: with --accept {Accept.FILTER} stored state is kept under the new condition")


def _accepted(made: Migration, unseen: bool, accepted: Collection[str]) -> bool:
    """True if every effect that needs ``--accept`` is accepted; otherwise, the missing values are printed."""
    asked = {
        Accept.DROPPED: (
            any(each.effect is RestoreEffect.DROPPED and not each.loses_nothing for each in made.operators),
            "state is dropped",
        ),
        Accept.UNSEEN: (unseen, "a change that plans do not show may affect the state"),
    }
    missing = {kind: words for kind, (there, words) in asked.items() if there and kind not in accepted}
    for kind, words in missing.items():
        click.echo(f"flinkcompat: {words}; --accept {kind} writes the savepoint nevertheless", err=True)
    return not missing


def _savepoint_of_stopped_job(job_id: str, savepoint: str | None, planner: Planner) -> str:
    """Final savepoint of a stopped job. Raises InputError with --savepoint, or without a cluster."""
    if savepoint:
        raise InputError("--job-id replaces --savepoint: leave one of them out")
    if not (planner.target or planner.jobmanager):
        raise InputError("add --jobmanager, which knows the last savepoint of the job")
    return final_savepoint(job_id, planner.target, planner.gateway, planner.jobmanager)


def _require_places(savepoint: str | None, to: str | None) -> None:
    """Raise InputError if a folder is missing, or ``--to`` is inside ``--savepoint``."""
    if not (savepoint and to):
        raise InputError(
            "add --to, and either --savepoint or --job-id; flinkcompat migrate plan shows the state that would be kept"
        )
    if (into := _parts(savepoint)) == _parts(to)[: len(into)]:
        raise InputError(f"--to {to} is inside --savepoint {savepoint}, which is only read: name a folder next to it")


def _parts(place: str) -> tuple[str, ...]:
    """The parts of a local path with resolved links, or the parts of a URI."""
    scheme, separator, rest = re.sub(r"^s3[an]://", "s3://", re.sub(r"^file:/+", "/", place)).partition("://")
    return (scheme, *rest.rstrip("/").split("/")) if separator else Path(scheme).resolve().parts


def _renamed(text: str) -> tuple[str, str]:
    """Parse ``OLD=NEW`` into the new and the old name."""
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise InputError(f"--source-renamed {text}: write OLD=NEW")
    return new, old


def _show(migration: Migration, old: Side, new: Side, style: str, savepoint: str | None, dry_run: bool) -> None:
    from airflow_flinkcompat.migration.downtime import expected_downtime

    report = MigrationReport.of(migration)
    with state_errors():
        downtime = expected_downtime(migration, savepoint) if dry_run and savepoint and not migration.refused else None
    if style == "json":
        more = {"downtime": downtime.to_dict()} if downtime else {}
        print_json({**report.to_dict(), "compared_with_savepoint": savepoint is not None, **more})
        return
    click.echo(f"{report.headline}\n{old.source} -> {new.source}, open-source Flink {new.version}\n")
    click.echo("\n".join(report.lines()))
    click.echo(f"\n{_NOT_COMPARED if savepoint is None else f'{savepoint} contains the state that the plan predicts.'}")
    if downtime:
        click.echo(str(downtime))


def _known(
    tables: Mapping[str, str], asked: _MigrationOptions, accepted: Collection[Accept], extra: Extra
) -> KnownHistory:
    if not asked.dry_run:
        require_spark("migrate --history", extra)
    with command_errors("migrate --history", extra, "spark"):
        from airflow_flinkcompat.history.known_history import KnownHistory
    return KnownHistory(tables, asked.master, accepted, asked.prepared, asked.sample)


def _from_history(made: Migration, old: Side, new: Side, known: KnownHistory) -> Migration:
    found, reasons = known.extend(made, new, old)
    for operator, reason in reasons.items():
        print_progress(f"flinkcompat: {operator} cannot be computed from history: {reason}")
    return found


def _audit(old: Side, savepoint: str, made: Migration, known: KnownHistory) -> None:
    from airflow_flinkcompat.history.derived_rows import NotComputable

    with state_errors():
        found = known.audit(old, savepoint, made, print_progress)
    for spec, differences in found:
        if isinstance(differences, NotComputable):
            click.echo(f"{spec.name}: not compared: {mask_secrets(str(differences))}")
        elif differences:
            click.echo(f"{spec.name}: DIFFERS from history; keys or windows: {mask_secrets(str(differences))}")
        else:
            click.echo(f"{spec.name}: history equals the savepoint for all {differences.compared} keys or windows")
    if not found or any(differences for _, differences in found):
        sys.exit(1)


@contextmanager
def _workers(
    old: Side,
    new: Side,
    savepoint: str,
    made: Migration,
    known: KnownHistory | None,
    spark: bool | None,
    master: str | None,
) -> Iterator[tuple[Workers | None, StateComputer | None]]:
    """Open the workers of a migration, and the computation of state from history."""
    with command_errors("migrate", "deploy"):
        from airflow_flinkcompat.spark_migration import migration_workers
    with state_errors():
        if known and any(line.from_history for line in made.operators):
            with known.computing(old, new, savepoint, made, print_progress) as computer:
                yield computer.workers, computer
        else:
            with migration_workers(savepoint, spark, master, print_progress) as workers:
                yield workers, None
