"""Reviews of deployments, which compare each proposed script with its baseline or read it alone."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType

from airflow_flinkcompat.compat import Report, ReportContext, Reports, Side, check, check_engines
from airflow_flinkcompat.compat.deployable import UNREADABLE, ObstacleKind, obstacles
from airflow_flinkcompat.compat.gate import (
    ChangeIdentity,
    apply_waivers,
    branch_of,
    is_unchanged,
    is_waivable,
    planner_decides,
    utc_day,
)
from airflow_flinkcompat.compat.reports.sections import engine_label
from airflow_flinkcompat.compat.single_script import added_report, lint, removed_report, undescribed_tables
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.statements import check_settings, prepare
from airflow_flinkcompat.fleet.baselines import Baseline, Baselines, FormerBaseline
from airflow_flinkcompat.fleet.sides import name_from, side_of_deployment, side_of_script, waivers_of
from airflow_flinkcompat.fleet.values import FAILED, DeploymentReview, FleetDiff, InputFault, Status
from airflow_flinkcompat.model import ENGINES, InputError, JobSpec, Outcome, OutOfReachError, Waiver
from airflow_flinkcompat.planner.judgement import PlannerUnavailable, judge, plan_alone, without_notice
from airflow_flinkcompat.project.job_options import FILLED_ELSEWHERE, JobOptions
from airflow_flinkcompat.project.positions import TomlPositions
from airflow_flinkcompat.project.settings import ProjectDeployment, ProjectFile
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.sql import ScriptError

_PLACE = re.compile(r"(?P<line>[0-9]+)(?::(?P<column>[0-9]+))?: ")
_SETTING = re.compile(r"the setting '(?P<key>[^']+)' ")
_ELSEWHERE = (
    f"; if another tool deploys the jobs and fills it in, write {FILLED_ELSEWHERE} = true into the project file"
)
_NOT_DEPLOYED = "fails the check: nothing is deployed"


@dataclass(frozen=True)
class Request:
    """Request for a review of a project's deployments.

    Attributes:
        root: The root of the repository; file names are relative to it.
        given: Options of the command line. Engine, version, planner and jars override the project file.
        names: The requested deployments; empty for all deployments.
        command: ``diff`` or ``plan``.
        today: The current day in UTC, at which waivers may have expired.
        unsaved: Unsaved texts of an editor, by the resolved paths of their files.
        options: Options of the command line that a suggested ``accept`` command repeats.
    """

    project: ProjectFile
    root: Path
    fail_on: str
    given: JobOptions
    names: tuple[str, ...] = ()
    command: str = "diff"
    today: date = field(default_factory=utc_day)
    unsaved: Mapping[Path, str] = field(default_factory=dict, repr=False)
    options: tuple[str, ...] = ()

    def wants(self, name: str) -> bool:
        """True if a deployment is requested."""
        return not self.names or name in self.names


def diff_fleet(request: Request, baselines: Baselines) -> FleetDiff:
    """Compare every requested deployment with its baseline."""
    project = request.project
    file = name_from(project.path, request.root)
    try:
        deleted, notes = baselines.deleted(project), baselines.notes(project)
    except OutOfReachError as error:
        reviews = [
            DeploymentReview(name, Status.UNREACHABLE, file, baselines.words, faults=(InputFault(str(error)),))
            for name in project.names
            if request.wants(name)
        ]
        return FleetDiff(request.command, file, baselines.words, request.fail_on, tuple(reviews))
    known = (*project.names, *deleted)
    if unknown := [name for name in request.names if name not in known]:
        raise InputError(f"{project.path}: there is no deployment {unknown[0]!r}; choose from {', '.join(known)}")
    reviews = [_reviewed(request, each, baselines) for each in project.deployments if request.wants(each.name)]
    reviews += [
        replace(each, action=_NOT_DEPLOYED) for each in broken_reviews(project, file) if request.wants(each.name)
    ]
    reviews += [_removed(request, name, each, file) for name, each in deleted.items() if request.wants(name)]
    order = {name: place for place, name in enumerate(known)}
    reviews.sort(key=lambda review: order[review.name])
    reviews, notices = _without_notices(reviews)
    notes += tuple(f"{review.name}: {note}" for review in reviews for note in review.notes)
    notes += (*_way_out(reviews, request), *notices)
    return FleetDiff(request.command, file, baselines.words, request.fail_on, tuple(reviews), notes)


def _without_notices(reviews: Iterable[DeploymentReview]) -> tuple[list[DeploymentReview], tuple[str, ...]]:
    """Split the notice that no planner is installed from the reviews; each distinct notice appears once."""
    found, notices = list[DeploymentReview](), dict[str, None]()
    for review in reviews:
        split = list(map(without_notice, review.reports))
        found.append(replace(review, reports=tuple(report for report, _ in split)))
        notices.update((notice, None) for _, notice in split if notice)
    return found, tuple(notices)


def _way_out(reviews: Iterable[DeploymentReview], request: Request) -> tuple[str, ...]:
    """Note with a command that waives the first failing finding; empty if no finding can be waived."""
    for review in reviews:
        # findings of a program with several table environments cannot be waived
        several = any(report.environments > 1 for report in review.reports)
        if review.change is None or several or review.exit_code(request.fail_on) != FAILED:
            continue
        for finding in review.findings:
            if is_waivable(finding) and not finding.is_waived and finding.outcome is review.gate_outcome:
                said = shlex.join((review.name, finding.rule, *request.options))
                what = f"{said} --reason '…' --until YYYY-MM-DD"
                return (f"to pass an intended change, waive its failing findings: flinkcompat accept {what}",)
    return ()


def broken_reviews(project: ProjectFile, file: str) -> tuple[DeploymentReview, ...]:
    """Reviews of the deployments that have faults in the project file."""
    return tuple(
        DeploymentReview(name, Status.UNREADABLE, file, faults=_faults_of_file(project, lines, file))
        for name, lines in project.broken.items()
    )


@dataclass(frozen=True)
class LoneScript:
    """A script that is read without a comparison.

    Attributes:
        side: The script, or the error if it cannot be read.
        options: The options of the script; without an engine, each engine judges it.
        deployment: The name of the script's deployment; "" without a deployment.
    """

    name: str
    side: Side | InputError | ScriptError
    options: JobOptions = field(default_factory=JobOptions)
    waivers: tuple[Waiver, ...] = ()
    deployment: str = ""


def lone_script(
    path: Path,
    options: JobOptions,
    folder: Path,
    root: Path,
    *,
    deployment: str = "",
    unsaved: Mapping[Path, str] | None = None,
) -> LoneScript | None:
    """Read a script with its options and waivers; None if the file is missing."""
    name = name_from(path, root)
    try:
        side = side_of_script(path, options, folder, root, unsaved=unsaved)
        if side is None:
            return None
        return LoneScript(name, side, options, waivers_of(path, root), deployment)
    except (ScriptError, InputError) as error:
        return LoneScript(name, error)


_UNDESCRIBED = (
    "Flink may refuse a statement: our catalogue does not describe which changes the connectors of {} emit or accept"
)


def lint_scripts(
    scripts: Iterable[LoneScript],
    fail_on: str,
    project: str,
    positions: TomlPositions | None = None,
    *,
    allow_secrets: bool = False,
) -> FleetDiff:
    """Review every script without a comparison."""
    reviews, notes = list[DeploymentReview](), list[str]()
    for script in scripts:
        name, side = script.name, script.side
        if not isinstance(side, Side):
            reviews.append(_unlintable(name, [str(side)]))
            continue
        unread, exposed = obstacles_of(side)
        if unread:
            review = _unlintable(name, unread + exposed, side.places)
            reviews.append(_settings_in_file(review, project, positions, script.deployment))
            continue
        try:
            engine = script.options.engine
            reports = Reports.of(_linted(side.on(each)) for each in ([engine] if engine else ENGINES))
            ground, note = _plan_alone(side, script.options)
        except (ScriptError, InputError) as error:
            reviews.append(_unlintable(name, [str(error), *exposed], side.places))
            continue
        reports = Reports(tuple(replace(each, ground=ground) for each in reports.each))
        notes += [f"{name}: {note}"] if note else []
        named = (script.deployment, shlex.join((os.devnull, name)))
        judged = apply_waivers(reports.each, script.waivers, ChangeIdentity.of_script(side), utc_day(), named)
        review = DeploymentReview(name, Status.LINTED, name, reports=judged.reports, notes=judged.notes)
        review = replace(review, files=side.places, faults=() if allow_secrets else _faults(exposed, side))
        reviews.append(_settings_in_file(review, project, positions, script.deployment))
        if allow_secrets:
            notes += map(mask_secrets, exposed)
        notes += [f"{name}: {note}" for note in judged.notes]
        if doubted := undescribed_tables(side):
            notes.append(f"{name}: {_UNDESCRIBED.format(', '.join(doubted))}")
        if not exposed and not side.filled_elsewhere and (why := _refused_by_deploy(side)):
            notes.append(f"{name}: the deploy task in Airflow would refuse it: {why}")
    reviews, notices = _without_notices(reviews)
    return FleetDiff("lint", project, "", fail_on, tuple(reviews), (*notes, *notices))


def _plan_alone(side: Side, options: JobOptions) -> tuple[str, str]:
    """Plan one script, if an engine is set. Raises InputError if Flink refuses the script."""
    if options.engine is not None:
        return plan_alone(side, options.planner or "auto", options.jars)
    _require_no_planner(side, options)
    return "", ""


def _require_no_planner(side: Side, options: JobOptions) -> None:
    """Raise InputError if Flink's planner is required, but no engine is set."""
    if options.planner == "always":
        raise PlannerUnavailable(f"{side.source}: --planner always plans on open-source Flink: add --engine flink")


def obstacles_of(side: Side) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Reasons why a side cannot be deployed: unreadable parts, and other obstacles such as secrets."""
    try:
        found = obstacles(side)
    except ScriptError as error:
        return (str(error),), ()
    unread = tuple(str(each) for each in found if each.kind in UNREADABLE)
    others = (each for each in found if each.kind not in UNREADABLE)
    return unread, tuple(f"{each}{_ELSEWHERE if each.kind is ObstacleKind.VARIABLE else ''}" for each in others)


def _reviewed(request: Request, deployment: ProjectDeployment, baselines: Baselines) -> DeploymentReview:
    """Review one deployment of the project file; errors become part of the review."""
    script = name_from(request.project.folder / deployment.script, request.root)
    try:
        baseline = baselines.of(deployment)
        options = judged_options(request.given, deployment.options, baseline if baseline.entry else None)
        deployment = replace(deployment, options=options)
        new = side_of_deployment(deployment, request.project.folder, request.root, unsaved=request.unsaved)
        if new is None:
            raise ScriptError(
                f"{script}: cannot be read: there is no such file; if the deployment was deleted, remove it "
                f"from {request.project.path.name}"
            )
        unread, exposed = obstacles_of(new)
        if unread:
            found = _unreadable(deployment.name, script, unread + exposed, baseline.words, new.places)
        else:
            found = _judged(request, deployment, new, baseline)
        if exposed and not unread:
            found = replace(found, faults=_faults(exposed, new), branch=(), action=_NOT_DEPLOYED)
        file = name_from(request.project.path, request.root)
        return _settings_in_file(found, file, request.project.positions, deployment.name)
    except (ScriptError, InputError) as error:
        return _unreadable(deployment.name, script, str(error).split("\n  "))
    except OutOfReachError as error:
        return DeploymentReview(deployment.name, Status.UNREACHABLE, script, faults=(InputFault(str(error)),))


def judged_options(given: JobOptions, of_file: JobOptions, deployed: Baseline | None = None) -> JobOptions:
    """Options of a script; the engine is from the command line, the project file or the running job.

    Planner and jars of the command line override the project file.
    """
    options, _ = given.over(of_file)
    running = None if deployed is None else deployed.side
    if running is not None:
        options = replace(options, engine=options.engine or running.engine)
    if running is not None and options.engine == running.engine:
        options = replace(options, engine_version=options.engine_version or running.engine_version)
    return options


def _judged(request: Request, deployment: ProjectDeployment, new: Side, baseline: Baseline) -> DeploymentReview:
    engine = deployment.options.engine
    engines = [engine] if engine else [*ENGINES]
    identity = ChangeIdentity.of(baseline.side, new)
    review = DeploymentReview(
        deployment.name, Status.CHANGED, new.source, baseline.words, change=identity, files=new.places
    )
    waivers = waivers_of(request.project.folder / deployment.script, request.root)
    named = (deployment.name, deployment.name)
    known = ReportContext(
        deployment=deployment.name,
        job_id=baseline.job_id,
        entry=baseline.entry,
        backfill=deployment.backfills,
        migrates=deployment.migrates,
    )
    refused = _not_filled_in_airflow(new) or _refused_by_deploy(new)
    if baseline.side is None:
        ground, doubt = _plan_alone(new, deployment.options)
        added = Reports.of(
            replace(added_report(new.on(each), baseline.words), ground=ground, doubt=doubt) for each in engines
        )
        action = f"refuses it: {refused}" if refused else "starts it for the first time"
        judged = apply_waivers(added.each, waivers, identity, request.today, named)
        review = replace(review, status=Status.ADDED, reports=judged.reports, notes=judged.notes)
        return replace(review, known=known, action=action)
    compared = _compared(baseline, new, request.given, deployment.options)
    judged = apply_waivers(compared, waivers, identity, request.today, named)
    reports, review = judged.reports, replace(review, notes=judged.notes)
    if all(map(is_unchanged, reports)):
        return replace(review, status=Status.UNCHANGED, reports=reports, known=known, action="touches nothing")
    if reports[0].outcome is not Outcome.COMPATIBLE or reports[0].sinks_begin_empty:
        from airflow_flinkcompat.backfill.planning import why_refused

        known = replace(known, backfill_refused=why_refused(new))
    if refused:
        return replace(review, reports=reports, known=known, action=f"refuses it: {refused}")
    branches = tuple(branch_of(report, deployment.policy, migrates=deployment.migrates) for report in reports)
    return replace(review, reports=reports, known=known, branch=branches, action=_action(reports, branches, deployment))


def _compared(baseline: Baseline, new: Side, given: JobOptions, options: JobOptions) -> tuple[Report, ...]:
    """The verdict of each engine, worst first. The old side keeps its engine, so a change of it is judged."""
    old, engine = baseline.side, options.engine
    assert old is not None
    if engine is None:
        _require_no_planner(new, options)
    if baseline.engine is None:
        if engine is None:
            return check_engines(old, new).each
        old = old.on(engine)
    if not baseline.entry and old.engine_version is None and old.engine == given.engine:
        old = replace(old, engine_version=given.engine_version)  # the old project file sets no version either
    if engine is not None:
        return (judge(old, new.on(engine), options.planner or "auto", options.jars, job=baseline.job),)
    return Reports.of(check(old, new.on(each)) for each in ENGINES).each


def _linted(side: Side) -> Report:
    findings = lint(side)
    return Report(
        Outcome.worst(each.outcome for each in findings),
        side.engine,
        side.version,
        findings,
        "",
        side.sha256,
        "",
        side.source,
    )


def _removed(request: Request, name: str, baseline: FormerBaseline, file: str) -> DeploymentReview:
    # The cluster is not queried; people who review the project file verify this entry.
    if words := request.project.stopped.get(name):
        return DeploymentReview(name, Status.STOPPED, file, action="has nothing left to do", stopped=words)
    if not isinstance(baseline, Baseline):
        return _unreadable(name, file, str(baseline).split("\n  "))
    assert baseline.side is not None
    engine = request.given.engine or baseline.engine
    message = (
        f"the project file no longer contains {name}, but its job keeps running: stop the job, then write under "
        f'[stopped] of the file: {name} = "when, by whom, with which savepoint"'
    )
    reports = []
    for each in [engine] if engine else ENGINES:
        report = removed_report(baseline.side.on(each), file)
        finding = replace(report.findings[0], message=message)
        reports.append(replace(report, findings=(finding,)))
    known = ReportContext(deployment=name, job_id=baseline.job_id, entry=baseline.entry)
    return DeploymentReview(
        name, Status.DELETED, file, baseline.words, tuple(reports), known=known, action="leaves the job running"
    )


def _unreadable(
    name: str, script: str, messages: Iterable[str], baseline: str = "", files: Mapping[str, str] = MappingProxyType({})
) -> DeploymentReview:
    faults = tuple(_fault(mask_secrets(each), {**files, script: script}) for each in dict.fromkeys(messages))
    return DeploymentReview(name, Status.UNREADABLE, script, baseline, faults=faults, action=_NOT_DEPLOYED)


def _faults(messages: Iterable[str], side: Side) -> tuple[InputFault, ...]:
    return _unreadable("", side.source, messages, files=side.places).faults


def _faults_of_file(project: ProjectFile, lines: Iterable[str], file: str) -> tuple[InputFault, ...]:
    """Faults of the project file, with paths that are equal in every clone of the repository."""
    own = str(project.path)
    return tuple(
        _fault(file + line.removeprefix(own) if line.startswith(own) else line, {file: file}) for line in lines
    )


def _settings_in_file(
    review: DeploymentReview, file: str, positions: TomlPositions | None, deployment: str
) -> DeploymentReview:
    """Report faults of settings at their lines in the project file, not at a place in the script."""
    faults = []
    for fault in review.faults:
        said = fault.message.removeprefix(f"{review.script}: ")
        setting = _SETTING.match(said)
        if positions is None or setting is None or said == fault.message:
            faults.append(fault)
            continue
        line, column = positions.find(f"settings.{setting['key']}", deployment or None) or (1, 1)
        faults.append(InputFault(f"{file}:{line}:{column}: {said}", line, column, file))
    return replace(review, faults=tuple(faults))


def _unlintable(
    script: str, messages: Iterable[str], files: Mapping[str, str] = MappingProxyType({})
) -> DeploymentReview:
    return replace(_unreadable(script, script, messages, files=files), action="")


def _fault(message: str, files: Mapping[str, str]) -> InputFault:
    """Make a fault from a message, with the place from the message if it begins with a name in ``files``."""
    for name, path in files.items():
        rest = message.removeprefix(f"{name}:")
        place = _PLACE.match(rest) if rest != message else None
        if place is not None:
            return InputFault(message, int(place["line"]), int(place["column"] or 1), path)
    return InputFault(message)


def _refused_by_deploy(side: JobSpec) -> str:
    """Reason why the deploy task would refuse a script that the check accepts; "" if it would accept it."""
    if side.language != "sql":
        return ""
    try:
        check_settings(side.settings)
        prepare(side.script, side.source)
    except DeployError as error:
        return str(error)
    return ""


def _not_filled_in_airflow(side: Side) -> str:
    """Placeholder of a job that another tool deploys, which Airflow would refuse; "" without one."""
    left = obstacles(replace(side, filled_elsewhere=False)) if side.filled_elsewhere else ()
    return str(left[0]) if left else ""


_ACTIONS = {
    "resume": "resumes it from a savepoint",
    "migrate": "rewrites the state, then starts from it",
    "restart": "restarts it without state",
    "approve": "asks a person",
    "reject": "rejects it",
}


def _action(reports: tuple[Report, ...], branches: tuple[str, ...], deployment: ProjectDeployment) -> str:
    """The gate's action in words, for each engine if the actions differ."""
    each = [(report, _words(report, branch, deployment)) for report, branch in zip(reports, branches, strict=True)]
    if len({words for _, words in each}) == 1:
        return each[0][1]
    return "; ".join(f"on {engine_label(report)} {words}" for report, words in each)


def _words(report: Report, branch: str, deployment: ProjectDeployment) -> str:
    if planner_decides(report, deployment.policy, migrates=deployment.migrates):
        return "asks Flink's planner about the state that can be kept, or a person if the planner has no answer"
    if deployment.shadow is not None and not deployment.shadow.why_not(str(report.outcome), branch):
        then = "resumes it if they are equal, or asks a person" if branch == "resume" else _ACTIONS[branch]
        return f"compares the rows of both scripts in a shadow run, then {then}"
    if branch == "resume" and deployment.rehearses:
        return "rehearses the restore, then resumes it from a savepoint"
    if branch == "restart" and deployment.backfills:
        return "restarts it without state, then backfills"
    return _ACTIONS[branch]
