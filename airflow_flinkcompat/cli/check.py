"""``flinkcompat check``, which judges one change."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from dataclasses import replace

import click

from airflow_flinkcompat.cli.arguments import (
    coloured,
    fails_gate,
    format_option,
    job_options,
    parse_settings,
    require_engine,
    require_program,
)
from airflow_flinkcompat.cli.project import Given, judging, project_for
from airflow_flinkcompat.cli.scripts import path_of, read_pair, side_of, waivers_beside
from airflow_flinkcompat.cli.targets import Planner, compiled_plans, deployed_job, planner_options
from airflow_flinkcompat.compat import (
    Report,
    ReportContext,
    Reports,
    Side,
    check,
    check_engines,
    render_markdown,
    render_markdown_of_engines,
    render_text,
    render_text_of_engines,
)
from airflow_flinkcompat.compat.deployable import ObstacleKind, bad_input, obstacles
from airflow_flinkcompat.compat.gate import ChangeIdentity, apply_waivers, utc_day
from airflow_flinkcompat.compat.reports.render import WIDTH
from airflow_flinkcompat.compat.single_script import added_report, removed_report
from airflow_flinkcompat.model import ENGINES, PROGRAM_SUFFIXES, InputError, Outcome, Waiver
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.planner.judgement import DeployedJob, PlannerUnavailable, judge, plan_alone
from airflow_flinkcompat.project.job_options import JobOptions
from airflow_flinkcompat.sql.script import read_script


@click.command("check")
@click.argument("old")
@click.argument("new", required=False, default="", metavar="NEW")
@job_options(
    "engine",
    "engine_version",
    "old_engine_version",
    "settings",
    "old_settings",
    "functions",
    "catalog",
    "variables",
    "fail_on",
    "planner",
    "jars",
    "config",
    "deployment",
    where="on both sides",
)
@click.option(
    "--file",
    "others",
    multiple=True,
    metavar="PATH=FILE",
    help="The content of the file that a program opens as PATH, on both sides.",
)
@format_option("text", "json", "markdown")
@click.option(
    "--verbose", is_flag=True, help="Show each operator, every command and the basis of each finding (format text)."
)
@click.option(
    "--allow-secrets",
    is_flag=True,
    help="Accept literal secrets in NEW (default: exit code 2, because NEW cannot be deployed).",
)
@click.option(
    "--explain-plan", is_flag=True, help="Like --planner always, or plan with the Flink of --gateway or --target."
)
@planner_options
@click.option(
    "--savepoint",
    metavar="URI",
    help="Savepoint of the deployed job, which replaces the state that the plan of OLD predicts.",
)
def check_command(
    old: str,
    new: str,
    others: tuple[str, ...],
    style: str,
    verbose: bool,
    given: Given,
    allow_secrets: bool,
    explain_plan: bool,
    planner: Planner,
    savepoint: str | None,
) -> None:
    """Check the change from script OLD to script NEW.

    OLD and NEW may each be a file, - for standard input, or REV:path for a file of a Git revision. /dev/null as OLD
    means a new deployment, which is only read. /dev/null as NEW means a deleted deployment, whose job must be stopped.
    If OLD and NEW have the same path and the file exists on only one side, the other side is treated as /dev/null.

    A .py file is a PyFlink program. A .table file is a program in FLIP-11's own notation. Programs are read, and never
    run. Pass the program's environment variables and arguments with --var. Pass a file that is elsewhere with --file.

    Without an engine, both engines are judged. The report shows both verdicts, and the worse verdict decides the exit
    code.

    A finding with a waiver next to NEW (flinkcompat accept) stays in the report, and does not fail the gate.

    A script with syntax errors is bad input and results in exit code 2. If NEW contains literal secrets, it is judged,
    but the exit code is also 2, because NEW cannot be deployed.

    Options that are not passed are taken from flinkcompat.toml in the folder of NEW or above: engine and version,
    settings, functions, catalog and gate. Options of the deployment with this script override the common options.

    Settings of --set apply to both sides. Settings of --old-set apply to the old side, where they override --set.

    On engine flink, Flink's own planner is asked if flinkcompat planner install has installed it. If Flink refuses NEW,
    the message shows line and column, and the exit code is 2. If Flink refuses the restore, the report names the
    operator. No job is started. Cluster settings of --jobmanager (or --target) are used for planning, but settings of
    the scripts override them.
    """
    if not new:
        hint = f"to compare the file with its last commit, run flinkcompat check {shlex.join((f'HEAD:{old}', old))}"
        raise click.UsageError(f"Missing argument 'NEW'; {hint}")
    require_program("--var", given.options.variables, old, new)
    place = path_of(new) or path_of(old)
    by = judging(project_for(given.config, place), place, given)
    job, engine = by.options, by.options.engine
    if explain_plan and (engine is None or not ENGINE_FACTS[engine].compiles_plans):
        raise InputError("--explain-plan compares plans of open-source Flink: add --engine flink")
    require_engine(engine, engine_version=job.engine_version, old_engine_version=given.old_engine_version)
    elsewhere_planned = explain_plan and bool(planner.target or planner.gateway)
    _require_use(planner, savepoint, explain_plan, elsewhere_planned, job)
    if explain_plan:
        job = replace(job, planner="always")
    files = parse_settings(others, "file", "PATH=FILE")
    require_program("--file", files, old, new)
    elsewhere = {name: read_script(path).text for name, path in files.items()}
    programs = [path for path in (old, new) if path.endswith(PROGRAM_SUFFIXES)]
    if explain_plan and programs:
        raise InputError(f"{programs[0]}: --explain-plan compiles SQL scripts, not programs")

    deployed, proposed = read_pair(old, new)
    before = side_of(deployed, given.old_side(job), elsewhere)
    after = side_of(proposed, job, elsewhere)
    malformed = _malformed(before, after, engine)
    if malformed and not _planners_decide(before, after, job):
        raise InputError("\n  ".join(malformed))
    report: Report | Reports
    if elsewhere_planned and before is not None and after is not None:
        plans = compiled_plans("--explain-plan", before, after, replace(planner, mode=None), None)
        report = check(before, after, with_other_engine=True, plans=plans)
    else:
        runs = deployed_job("check", planner, savepoint) if planner.target or planner.jobmanager or savepoint else None
        report = judged((before, after), (deployed.source, proposed.source), job, runs)
    if malformed and not (isinstance(report, Report) and report.is_planned):
        raise InputError("\n  ".join(malformed))
    exposed = _exposed(after)
    called = (by.deployment, by.deployment or shlex.join((old, new)))
    report, notes = with_waivers(report, waivers_beside(new), (before, after), called)
    report = _with_warnings(report, notes)
    # JSON contains no advice, so it needs no context.
    known = ReportContext() if style == "json" else replace(_circumstances(report, after), project=by.words)
    shown = render(report, style, known, verbose=verbose)
    click.echo(coloured(shown) if style == "text" else shown, nl=False)
    if exposed and not allow_secrets:
        remedy = "with --allow-secrets the verdict alone decides the exit code"
        raise InputError("\n  ".join((*exposed, f"{proposed.source} cannot be deployed; {remedy}")))
    if fails_gate(report.gate_outcome, by.fail_on):
        sys.exit(1)


def _require_use(
    planner: Planner, savepoint: str | None, explain_plan: bool, elsewhere_planned: bool, job: JobOptions
) -> None:
    """Raise InputError if an option would have no effect."""
    if not explain_plan and (planner.plan_dir or (planner.gateway and not planner.target)):
        raise InputError("--gateway and --plan-dir need --explain-plan: add it")
    if elsewhere_planned and savepoint:
        raise InputError("--savepoint is for the planner on this machine: leave out --gateway and --target")
    asked = job.engine is not None and ENGINE_FACTS[job.engine].compiles_plans and job.planner != "never"
    if (planner.target or planner.jobmanager or savepoint) and not (explain_plan or asked):
        raise InputError(
            "--target, --jobmanager and --savepoint are for Flink's planner: add --engine flink --planner auto"
        )


def judged(
    sides: tuple[Side | None, Side | None],
    sources: tuple[str, str],
    options: JobOptions,
    job: DeployedJob | None = None,
) -> Report | Reports:
    """Judge two sides on one engine, or on both engines if none is set. One side may be missing."""
    before, after = sides
    if before is None or after is None:
        return _one_sided(before, after, *sources, options)
    if options.engine is not None:
        return judge(before, after, options.planner or "auto", options.jars, with_other_engine=True, job=job)
    if options.planner == "always":
        raise PlannerUnavailable("--planner always plans on open-source Flink: add --engine flink")
    return check_engines(before, after)


def with_waivers(
    report: Report | Reports,
    waivers: tuple[Waiver, ...],
    sides: tuple[Side | None, Side | None],
    named: tuple[str, str],
) -> tuple[Report | Reports, tuple[str, ...]]:
    """Apply the waivers of the proposed script to a verdict."""
    each = report.each if isinstance(report, Reports) else (report,)
    judged = apply_waivers(each, waivers, ChangeIdentity.of(*sides), utc_day(), named)
    return Reports(judged.reports) if isinstance(report, Reports) else judged.reports[0], judged.notes


def _with_warnings(report: Report | Reports, notes: tuple[str, ...]) -> Report | Reports:
    if isinstance(report, Report):
        return replace(report, warnings=(*report.warnings, *notes))
    first, *others = report.each
    return Reports((replace(first, warnings=(*first.warnings, *notes)), *others))


def _one_sided(
    old: Side | None, new: Side | None, old_source: str, new_source: str, options: JobOptions
) -> Report | Reports:
    """Report on an added or deleted script for one engine, or for both engines if none is set."""
    engine = options.engine

    def on(name: str) -> Report:
        if new is not None:
            return added_report(new.on(name), old_source)
        assert old is not None
        return removed_report(old.on(name), new_source)

    if engine is None:
        return Reports.of(map(on, reversed(ENGINES)))
    if new is None:
        return on(engine)
    ground, doubt = plan_alone(new, options.planner or "auto", options.jars)
    return replace(on(engine), ground=ground, doubt=doubt)


def _planners_decide(old: Side | None, new: Side | None, options: JobOptions) -> bool:
    """True if the planners of two versions judge an unchanged script, which this package need not parse."""
    if old is None or new is None or options.engine is None or options.planner == "never":
        return False
    return ENGINE_FACTS[options.engine].compiles_plans and new.upgrades(old)


def _malformed(old: Side | None, new: Side | None, engine: str | None) -> list[str]:
    """Messages about faults for which this package cannot judge a side."""
    if new is None:  # the script was deleted, so nothing will be deployed
        return []
    errors = bad_input(new if old is None else replace(new, beside=old), engine)
    if old is not None:
        errors += (
            f"{each}, or pass the script that is really deployed" for each in bad_input(old, engine, deployed=True)
        )
    return errors


def _exposed(new: Side | None) -> tuple[str, ...]:
    """Messages about literal secrets in the proposed side.

    Secrets in the deployed side are ignored, because a change that removes them must pass.
    """
    if new is None:
        return ()
    kinds = (ObstacleKind.SECRET, ObstacleKind.VARIABLE)
    return tuple(dict.fromkeys(str(each) for each in obstacles(new) if each.kind in kinds))


def _circumstances(report: Report | Reports, new: Side | None) -> ReportContext:
    """Context for the advice in a report: the reason why the new script cannot be backfilled."""
    each = report.each if isinstance(report, Reports) else (report,)
    if new is None or (report.outcome is Outcome.COMPATIBLE and not any(one.sinks_begin_empty for one in each)):
        return ReportContext()
    from airflow_flinkcompat.backfill.planning import why_refused

    return ReportContext(backfill_refused=why_refused(new))


def render(report: Report | Reports, style: str, known: ReportContext, *, verbose: bool = False) -> str:
    """Render the report of one or both engines as text, JSON or Markdown, with a final line break."""
    if style == "json":
        return json.dumps(report.to_dict(), ensure_ascii=False, indent=2) + "\n"
    if style == "markdown":
        if isinstance(report, Reports):
            return render_markdown_of_engines(report, known)
        return render_markdown(report, known)
    width = min(max(shutil.get_terminal_size((WIDTH, 24)).columns, 72), 120)
    if isinstance(report, Reports):
        return render_text_of_engines(report, width, known, verbose=verbose)
    return render_text(report, width, known, verbose=verbose)
