"""The verdict on a change from Flink's planner, or from the rules alone if the planner is unavailable."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Self, TypeVar

from airflow_flinkcompat.compat import Finding, Report, Side, check
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.checker import WithHistory, check_planned
from airflow_flinkcompat.compat.report import PLANNED, PROPOSED_ALONE, READ
from airflow_flinkcompat.compat.rules.statements import statement_not_read as NOT_READ
from airflow_flinkcompat.exec_graph.from_planner import PlannedScript, PlannerRefusal
from airflow_flinkcompat.exec_graph.migration import Accept
from airflow_flinkcompat.exec_graph.prediction import Prediction
from airflow_flinkcompat.model import InputError, Outcome, PlannerMode, Reason, install_command, missing_packages
from airflow_flinkcompat.model.engine import ENGINE_FACTS

if TYPE_CHECKING:
    from airflow_flinkcompat.compat.plan_comparison import Plans
    from airflow_flinkcompat.deploy import Ledger, Target
    from airflow_flinkcompat.deploy.ledger.entries import HeadEntry
    from airflow_flinkcompat.exec_graph.from_savepoint import StoredJob
    from airflow_flinkcompat.planner.installation import Installation

T = TypeVar("T")
_WITHOUT = f"{READ}, without Flink's planner"


class PlannerUnavailable(InputError):
    """Flink's planner is unavailable or did not answer.

    Attributes:
        ground: The basis of a verdict without the planner's answer.
        doubt: The reason why the planner did not answer; "" if no planner was asked.
    """

    def __init__(self, text: str, ground: str = "", doubt: str = "") -> None:
        super().__init__(text)
        self.ground, self.doubt = ground, doubt


class NoJob(InputError):
    """Neither script of a change runs a job, as Flink's planner shows."""


@dataclass(frozen=True)
class DeployedJob:
    """Facts about the deployed job, from its cluster or its savepoint.

    Attributes:
        options: Options of the cluster, which options of a script override.
        operators: OperatorIDs of the job. If Flink plans different OperatorIDs for the deployed script, the planner
            cannot decide.
        stored: The job as described by its savepoint's headers; None without a known savepoint.
        unread: The reason why a known savepoint was not read; "" if it was read.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    operators: Collection[str] = ()
    stored: StoredJob | None = None
    unread: str = ""

    @classmethod
    def of(cls, target: Target, ledger: Ledger, head: HeadEntry, new: Side) -> Self:
        """Facts from the target, and from the last savepoint if the script changes. Raises DeployError."""
        from airflow_flinkcompat.deploy.plans import planning_options, stored_job
        from airflow_flinkcompat.deploy.target import JobDescriptions

        found = target.describe(head.job_id) if isinstance(target, JobDescriptions) and head.job_id else None
        ids = {each.id for each in found.vertices} if found else ()
        job = cls(planning_options(target, head.job_id), ids)
        if not head.job_id or head.sha256 == new.sha256:  # nothing is restored
            return job
        stored, unread = stored_job(target, head.job_id, ledger.entries())
        return replace(job, stored=stored, unread=unread)


def judge(
    old: Side,
    new: Side,
    mode: PlannerMode = "auto",
    jars: Sequence[Path] = (),
    *,
    accepted: Collection[Accept] = (),
    history: WithHistory | None = None,
    with_other_engine: bool = False,
    job: DeployedJob | None = None,
) -> Report:
    """Judge a change with Flink's planner, or else by the rules alone.

    ``mode`` is ``always``, ``never`` or ``auto``. With ``auto``, the planner is asked if one is installed for the
    version and the scripts differ in more than layout. If ``auto`` finds no planner, the basis of the report names the
    missing parts (:func:`without_notice`). If Flink refuses the deployed script, the outcome is *unknown* or worse. If
    only the new version of Flink refuses an unchanged script, the outcome is *incompatible*. Raises InputError if Flink
    refuses the proposed script otherwise, if the old version refuses an unchanged script, or if a script contains no
    query. Raises PlannerUnavailable if the mode is ``always`` and the planner does not answer.
    """

    def read() -> Report:
        return check(old, new, with_other_engine=with_other_engine, accepted=accepted, history=history)

    if mode == "never":
        return read()
    known = job or DeployedJob()
    try:
        _require_plannable(old, new)
        if mode == "auto" and known.stored is None and Change(old, replace(new, beside=old)).unchanged:
            return read()
        before, after = _installed(old, jars), _installed(new, jars)
        sides = _on_cluster(old, known), _on_cluster(new, known)
        operators = {*known.operators, *(known.stored.stateful if known.stored else ())}
        planned = _answer_to(lambda: _questions().predict(*sides, before, after, operators, known.stored))
    except PlannerUnavailable as error:
        if mode == "always":
            raise
        return replace(read(), ground=error.ground, doubt=error.doubt)
    refusal = planned.old.refusal
    if refusal is not None and refusal.conclusive and new.upgrades(old):
        raise InputError(_not_deployed(old, refusal, planned.old.flink))
    if not planned.prediction.refuses_script:
        _require_planned(new, planned.new)
    scripts = (planned.old, planned.new)
    if not planned.prediction.unproven and not any(each.jobs or each.refusal for each in scripts):
        raise NoJob(f"{new.source}: contains no INSERT and no SELECT")
    if refusal is not None and refusal.conclusive:
        return _of_another_version(read(), refusal, planned.old.flink, planned.new.flink)
    report = check_planned(
        old, new, planned.prediction, planned.plans,
        with_other_engine=with_other_engine, accepted=accepted, history=history,
    )  # fmt: skip
    return replace(report, warnings=(*report.warnings, known.unread)) if known.unread else report


def plan_alone(side: Side, mode: PlannerMode = "auto", jars: Sequence[Path] = ()) -> tuple[str, str]:
    """Ask Flink to plan one script, without a comparison.

    Returns the basis of the verdict ("" without a planner) and the reason if the planner failed ("" otherwise). Raises
    InputError if Flink refuses the script. See :func:`judge` for ``mode``.
    """
    if mode == "never":
        return "", ""
    try:
        _require_plannable(side)
        installation = _installed(side, jars)
        planned = _answer_to(lambda: _questions().plan(side, installation))
    except PlannerUnavailable as error:
        if mode == "always":
            raise
        return error.ground, error.doubt
    _require_planned(side, planned)
    if (refusal := planned.refusal) is not None:
        return READ, f"Flink {planned.flink} cannot plan {refusal.place or side.source} here: {refusal.message}"
    return f"{PLANNED} {planned.flink}", ""


def compile_plans(old: Side, new: Side, jars: Sequence[Path] = (), job: DeployedJob | None = None) -> Plans:
    """Compile every job of each side with the planner for the version of that side.

    Pass the same side twice to compile a single script. Raises InputError if Flink refuses a script, if a jar is
    missing, or if the job's operators are not those of the old script. Raises PlannerUnavailable without a planner or
    an answer.
    """
    _require_plannable(old, new)
    installation, known = _installed(new, jars), job or DeployedJob()
    if old is new:
        old = new = _on_cluster(new, known)
    else:
        old, new = _on_cluster(old, known), _on_cluster(new, known)
    before = _plan_of_old_side(old, known.operators, jars, other_version=old.version != new.version)
    if before is None:
        fault = _questions().OTHER_SETTINGS_OF_SCRIPT if old is new else _questions().OTHER_SETTINGS
        raise InputError(f"{old.source}: {fault}")
    after = before if old is new else _answer_to(lambda: _questions().plan(new, installation))
    for side, script in ((old, before), (new, after)):
        _require_whole(side, script, new.version)
    plans: Plans | None = _questions().compiled(old, new, _questions().PlannedChange(before, after, Prediction("")))
    if plans is None:
        raise InputError(f"{new.source}: Flink {after.flink} cannot compile a plan of it")
    return plans


def _plan_of_old_side(
    old: Side, operators: Collection[str], jars: Sequence[Path], *, other_version: bool
) -> PlannedScript | None:
    """The plan of the deployed script, without jars that only another version of Flink can load."""
    found: PlannedScript | None = _answer_to(lambda: _questions().plan_of_job(old, _installed(old, jars), operators))
    refused = found is not None and found.refusal is not None and not found.refusal.conclusive
    if refused and other_version and jars:
        alone = _plan_of_old_side(old, operators, (), other_version=False)
        if alone is not None and alone.refusal is None and (operators or not alone.guessed):
            return replace(alone, stand_ins={})
    return found


def without_notice(report: Report) -> tuple[Report, str]:
    """Remove the notice that no planner is installed from a report, so that a command can show it once.

    Returns the report without the notice, and the notice ("" if the report has none).
    """
    if not report.ground.startswith(_WITHOUT):
        return report, ""
    return replace(report, ground=""), report.ground


def _on_cluster(side: Side, job: DeployedJob) -> Side:
    """Add the options of the cluster to a side; options of the side take precedence."""
    return replace(side, settings={**job.options, **side.settings})


def _require_plannable(*sides: Side) -> None:
    """Raise PlannerUnavailable unless all sides are SQL scripts and the engine is ``flink``."""
    for side in sides:
        if side.language != "sql":
            raise PlannerUnavailable(
                f"{side.source}: Flink's planner plans SQL scripts, not programs: add --planner auto"
            )
    if not ENGINE_FACTS[sides[-1].engine].compiles_plans:
        raise PlannerUnavailable("--planner always plans on open-source Flink: add --engine flink, or --planner auto")


def _installed(side: Side, jars: Sequence[Path]) -> Installation:
    """Find the planner for the version of a side. Raises PlannerUnavailable."""
    try:
        from airflow_flinkcompat.planner.installation import PlannerMissing, find
    except ImportError as error:
        missing = ", ".join(missing_packages("local-flink") or (str(error.name),))
        raise _not_installed(
            f"these packages are not installed: {missing}; run {install_command('local-flink')}"
        ) from None
    try:
        return find(side.version, jars)
    except PlannerMissing as error:
        raise _not_installed(str(error)) from None


def _not_installed(why: str) -> PlannerUnavailable:
    return PlannerUnavailable(why, f"{_WITHOUT} ({why})")


def _questions() -> ModuleType:
    from airflow_flinkcompat.planner import questions

    return questions


def _answer_to(question: Callable[[], T]) -> T:
    """Return the planner's answer to a question. Raises PlannerUnavailable if the planner fails."""
    from airflow_flinkcompat.planner.daemon import PlannerFailure

    try:
        return question()
    except PlannerFailure as error:
        raise PlannerUnavailable(str(error), READ, str(error)) from None


def _require_planned(side: Side, script: PlannedScript) -> None:
    refusal = script.refusal
    if refusal is not None and refusal.conclusive:
        raise InputError(f"{refusal.place or side.source}: Flink {script.flink} refuses it: {refusal.message}")


def _not_deployed(side: Side, refusal: PlannerRefusal, flink: str) -> str:
    return (
        f"{refusal.place or side.source}: Flink {flink} refuses it, so no job of this version runs it: "
        f"{refusal.message}; pass the version that runs the job (--old-engine-version)"
    )


def _require_whole(side: Side, script: PlannedScript, line: str) -> None:
    """Raise InputError if Flink refuses the script, or if a jar of a connector or format is missing."""
    from airflow_flinkcompat.connectors.artifacts import artifacts

    for table, absent in script.stand_ins.items():
        named = artifacts(absent, line)
        jar = f"{' and '.join(named)} (Maven coordinates)" if named else "the jar that contains its connector or format"
        raise InputError(f"{side.source}: table {table} needs {jar}: name its file with --jar FILE")
    if (refusal := script.refusal) is not None:
        how = "refuses it" if refusal.conclusive else "cannot plan it here"
        raise InputError(f"{refusal.place or side.source}: Flink {script.flink} {how}: {refusal.message}")


def _of_another_version(report: Report, refusal: PlannerRefusal, flink: str, proposed: str) -> Report:
    """Report on a change whose deployed script is refused by this version of Flink."""
    message = (
        f"Flink {flink} refuses the deployed script: {refusal.message}. Its job runs on a different version or from "
        f"a different script: pass that version (--old-engine-version) or the script that is really deployed"
    )
    ground = f"{PLANNED} {proposed}{PROPOSED_ALONE}"
    if report.outcome.rank > Outcome.UNKNOWN.rank:
        return replace(report, ground=ground, warnings=(*report.warnings, message))
    finding = Finding(
        NOT_READ.code, NOT_READ.title, Outcome.UNKNOWN, message, reason=Reason.NOT_READ, before_span=refusal.place
    )
    others = tuple(
        each if each.outcome is Outcome.UNKNOWN else replace(each, overruled_by=each.overruled_by or NOT_READ.code)
        for each in report.findings
    )
    return replace(
        report,
        outcome=Outcome.UNKNOWN,
        findings=(finding, *others),
        ground=ground,
        sinks=tuple((name, Outcome.worst((outcome, Outcome.UNKNOWN))) for name, outcome in report.sinks),
        read_outcome=None if report.outcome is Outcome.UNKNOWN else report.outcome,
    )
