"""``flinkcompat accept``: a waiver of a finding until a day.

A waiver is stored next to the script, with its reason. The option ``migrate --accept`` is unrelated: it allows effects
that a migration otherwise refuses.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import click

from airflow_flinkcompat.cli.arguments import command_errors, job_options, require_engine
from airflow_flinkcompat.cli.check import judged
from airflow_flinkcompat.cli.fleet import against_option
from airflow_flinkcompat.cli.project import Given, judging, named_deployment, project_for, require_project
from airflow_flinkcompat.cli.scripts import path_of, read_pair, side_of
from airflow_flinkcompat.compat import Finding, Report, Reports
from airflow_flinkcompat.compat.gate import ChangeIdentity, finding_digest, is_waivable, may_restore_wrongly, utc_day
from airflow_flinkcompat.compat.reports.catalogue import BY_CODE
from airflow_flinkcompat.compat.single_script import NO_SCRIPT, REMOVED
from airflow_flinkcompat.model import InputError, OutOfReachError, Waiver
from airflow_flinkcompat.project.file import FILE_NAME, unknown_key
from airflow_flinkcompat.project.revisions import committer, root_of
from airflow_flinkcompat.project.waivers import waivers_path, with_waiver, without_waivers
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.sql.script import decode_script

_FORM = "flinkcompat accept NAME RULE, or OLD NEW RULE"


@dataclass(frozen=True)
class _Change:
    """The change that contains the finding; ``called`` is the name of the change on the command line."""

    reports: tuple[Report, ...]
    identity: ChangeIdentity
    script: Path
    deployment: str
    called: str


@click.command("accept")
@click.argument("what", nargs=-1, metavar="NAME|OLD NEW")
@click.argument("rule")
@click.option("--subject", metavar="TEXT", help="The operator or sink of the finding, as shown in the report.")
@click.option("--reason", metavar="TEXT", help="The reason why the finding is acceptable; required.")
@click.option("--until", metavar="DATE", help="The last day of the waiver, such as 2026-12-31; required.")
@click.option("--by", metavar="WHO", help="The author of the waiver (default: user.name and user.email of Git).")
@click.option(
    "--even-silently-wrong",
    is_flag=True,
    help="Required if Flink may keep running with wrong rows and no error.",
)
@click.option("--remove", is_flag=True, help="Remove the waivers of RULE.")
@against_option
@job_options(
    "engine",
    "engine_version",
    "settings",
    "catalog",
    "planner",
    "jars",
    "config",
    settings="With OLD and NEW: a setting that applies on both sides.",
    catalog="With OLD and NEW: DDL of tables that the scripts do not declare. Several files are read as one.",
)
def accept_command(
    what: tuple[str, ...],
    rule: str,
    subject: str | None,
    reason: str | None,
    until: str | None,
    by: str | None,
    even_silently_wrong: bool,
    remove: bool,
    against: str | None,
    given: Given,
) -> None:
    """Waive the finding RULE on the change of deployment NAME, or on the change from script OLD to NEW.

    If OLD is /dev/null or the deployment is new, the finding is about NEW alone. Its waiver also applies to lint.

    The waiver is written to SCRIPT.waivers.toml next to the script. Commit this file with the change. The verdict stays
    the same, and every report shows the waiver and its author. The gate passes the finding until the day of --until.
    The waiver applies to this finding on this deployed version only. It covers no other change, and ends when the
    change is deployed.
    """
    if len(what) not in (1, 2):
        raise InputError(f"name one deployment or two scripts, then the rule: {_FORM}")
    if rule not in BY_CODE:
        raise InputError(f"rule {rule!r} {_unknown_rule(rule)}; flinkcompat rules lists them")
    if rule == REMOVED.code:
        raise InputError(
            f"{rule} cannot be waived: stop the job, then write under [stopped] of {FILE_NAME}: "
            'NAME = "when, by whom, with which savepoint"'
        )
    if len(what) == 1 and (given.options.settings or given.options.catalog_sources):
        raise InputError(
            "--set and --catalog need two scripts; a deployment uses the settings and catalog of the project file"
        )
    if len(what) == 2 and against is not None:
        raise InputError("--against needs a deployment; two scripts are compared with each other")
    if remove:
        script, deployment = _place(what, given.config)
        _remove(script, deployment, rule, subject)
        return
    reason, day = _reason_and_day(reason, until)
    change = _of_deployment(what[0], given, against) if len(what) == 1 else _of_scripts(what[0], what[1], given)
    found = _selected(change, rule, subject)
    dangerous = [finding for _, finding in found if may_restore_wrongly(finding)]
    if dangerous and not even_silently_wrong:
        raise InputError(
            f"{dangerous[0].rule} ({dangerous[0].subject}): the restored job may run with wrong rows and no error; "
            "to waive the finding nevertheless, add --even-silently-wrong"
        )
    by = by or committer(change.script.absolute().parent)
    if not by:
        raise InputError(
            "the author of the waiver is unknown: add --by WHO, or set your name in Git (git config user.name)"
        )
    place = _path_from_here(waivers_path(change.script))
    text = _read(place)
    for report_engine, finding in found:
        waiver = Waiver(
            rule=finding.rule,
            subject=finding.subject,
            engine=report_engine,
            outcome=finding.outcome.value,
            finding=mask_secrets(finding.message),
            reason=reason,
            by=by,
            until=day,
            deployed_sha256=change.identity.deployed,
            finding_sha256=finding_digest(finding, report_engine, change.identity),
            deployment=change.deployment,
            even_silently_wrong=even_silently_wrong and may_restore_wrongly(finding),
        )
        text = with_waiver(text, waiver, str(place))
        said = f"{finding.rule} ({finding.subject}), {waiver.outcome} on {report_engine}"
        click.echo(f"{place}: waived until {day}: {said}")
    place.write_text(text, encoding="utf-8")
    until_then = "script changes" if change.identity.deployed == NO_SCRIPT else "change is deployed"
    click.echo(
        f"Commit the file with the change. Reports continue to show the finding. The waiver ends once the {until_then}."
    )


def _unknown_rule(rule: str) -> str:
    message = unknown_key(rule, tuple(BY_CODE))
    return message if "did you mean" in message else "is not known"


def _reason_and_day(reason: str | None, until: str | None) -> tuple[str, date]:
    """Check the reason and the last day of a waiver. Raises InputError if one is missing or invalid."""
    if reason is None or not reason.strip():
        raise InputError("--reason is missing: explain to reviewers why the finding is acceptable")
    if until is None:
        raise InputError("--until is missing: name the last day of the waiver, such as --until 2026-12-31")
    try:
        reason.encode()
        day = date.fromisoformat(until)
    except UnicodeEncodeError:
        raise InputError("--reason is not UTF-8 text") from None
    except ValueError:
        raise InputError(f"--until {until!r} is not a date: write a date such as 2026-12-31") from None
    if mask_secrets(reason) != reason:
        raise InputError("--reason seems to contain a secret, and is stored next to the script: leave the secret out")
    if day < utc_day():
        raise InputError(f"--until {day} is in the past: name today ({utc_day()}, UTC) or a later day")
    return reason.strip(), day


def _place(what: tuple[str, ...], config: str | None) -> tuple[Path, str]:
    """The script of the waiver, and its deployment; the deployment is "" if two scripts were passed."""
    if len(what) == 1:
        project = require_project(config)
        deployment = named_deployment(project, what[0])
        return project.folder / deployment.script, deployment.name
    return _script_file(what[1]), ""


def _script_file(name: str) -> Path:
    if path_of(name) is None or not Path(name).is_file():
        raise InputError(
            f"{name}: there is no such file, but the waiver is written next to the proposed script: "
            "pass an existing file as NEW"
        )
    return Path(name)


def _remove(script: Path, deployment: str, rule: str, subject: str | None) -> None:
    place = _path_from_here(waivers_path(script))

    def goes(waiver: Waiver) -> bool:
        known = not deployment or waiver.deployment in ("", deployment)
        return known and waiver.rule == rule and subject in (None, waiver.subject)

    left, gone = without_waivers(_read(place), goes, str(place))
    if not gone:
        about = "" if subject is None else f" ({subject})"
        raise InputError(f"{place}: contains no waiver of {rule}{about}: there is nothing to remove")
    if "[[" in left:
        place.write_text(left, encoding="utf-8")
    else:
        place.unlink()
    for each in gone:
        click.echo(f"{place}: removed: {each.rule} ({each.subject}), by {each.by} until {each.until}")


def _path_from_here(place: Path) -> Path:
    """Path of a file relative to the working directory, for messages."""
    return Path(os.path.relpath(place))


def _read(place: Path) -> str:
    if place.exists() and not place.is_file():  # reading a pipe may never end
        raise InputError(f"{place}: cannot be read: it is not a regular file")
    try:
        return decode_script(place.read_bytes(), str(place))
    except FileNotFoundError:
        return ""


def _of_deployment(name: str, given: Given, against: str | None) -> _Change:
    with command_errors("accept", "deploy"):
        from airflow_flinkcompat.fleet.baselines import baselines_for
        from airflow_flinkcompat.fleet.review import Request, diff_fleet
        from airflow_flinkcompat.fleet.values import Status

    project, options = require_project(given.config), given.options
    deployment = named_deployment(project, name)
    require_engine(options.engine or deployment.options.engine, engine_version=options.engine_version)
    request = Request(project, root_of(project.folder), "unknown", options, (name,))
    with command_errors("accept", "deploy"), baselines_for(project, against) as baselines:
        (review,) = diff_fleet(request, baselines).deployments
    if review.faults:
        said = "\n  ".join(each.message for each in review.faults)
        raise OutOfReachError(said) if review.status is Status.UNREACHABLE else InputError(said)
    if review.change is None:
        raise InputError(f"{name}: {review.sentence}: there is nothing to waive")
    return _Change(review.reports, review.change, project.folder / deployment.script, name, name)


def _of_scripts(old: str, new: str, given: Given) -> _Change:
    script = _script_file(new)
    by = judging(project_for(given.config, script), script, given)
    require_engine(by.options.engine, engine_version=by.options.engine_version)
    named = read_pair(old, new)
    sides = tuple(side_of(each, by.options) for each in named)
    before, after = sides
    report = judged((before, after), (named[0].source, named[1].source), by.options)
    reports = report.each if isinstance(report, Reports) else (report,)
    return _Change(reports, ChangeIdentity.of(before, after), script, by.deployment, shlex.join((old, new)))


def _selected(change: _Change, rule: str, subject: str | None) -> list[tuple[str, Finding]]:
    """The findings of a rule, each with its engine. Raises InputError if they have several subjects."""
    if any(report.environments > 1 for report in change.reports):
        raise InputError(
            f"{change.called}: the program has conditions that depend on its environment. It is judged for each "
            "combination of their results, and only the worst verdict is reported. Its findings cannot be waived"
        )
    every = [(report.engine, each) for report in change.reports for each in report.findings if is_waivable(each)]
    found = [pair for pair in every if pair[1].rule == rule and subject in (None, pair[1].subject)]
    if not found:
        about = "" if subject is None else f" about {subject!r}"
        raise InputError(f"{change.called}: there is no finding {rule}{about} in the change; {_listed(every)}")
    subjects = dict.fromkeys(finding.subject for _, finding in found)
    if len(subjects) > 1:
        raise InputError(
            f"{change.called}: {rule} was found for {len(subjects)} subjects: choose one with --subject: "
            + ", ".join(map(shlex.quote, subjects))
        )
    distinct = {finding_digest(each, engine, change.identity): (engine, each) for engine, each in found}
    return list(distinct.values())


def _listed(every: Iterable[tuple[str, Finding]]) -> str:
    there = dict.fromkeys(f"{finding.rule} ({finding.subject})" for _, finding in every)
    return f"there are {', '.join(there)}" if there else "no finding of the change needs a waiver"
