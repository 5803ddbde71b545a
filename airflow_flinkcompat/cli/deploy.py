"""``flinkcompat deploy``, which checks and redeploys one deployment without Airflow.

The steps are those of a DAG: the gate (``fleet.gate``), the branch of the policy, and the redeploy sequence
(``deploy.redeploy``). A decision that Airflow leaves to a person requires ``--approve`` here. Parts of a deployment
that only Airflow can run are refused by name, before anything is stopped.
"""

from __future__ import annotations

import os
import pwd
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from airflow_flinkcompat.cli.arguments import coloured, command_errors, job_option, job_options, print_progress
from airflow_flinkcompat.cli.project import Given, named_deployment, require_project
from airflow_flinkcompat.cli.targets import location, target_option
from airflow_flinkcompat.compat import Report, render_text
from airflow_flinkcompat.compat.reports.advice import metrics_from_zero
from airflow_flinkcompat.model import PROGRAM_SUFFIXES, InputError, JobSpec, Outcome, StartMode
from airflow_flinkcompat.model.options import LEDGER_VARIABLE
from airflow_flinkcompat.model.text import misspelling
from airflow_flinkcompat.project.settings import TEMPLATE, ProjectDeployment, ProjectFile
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.secrets.placeholders import placeholders, placeholders_in_script

if TYPE_CHECKING:
    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.deploy import Ledger, Target
    from airflow_flinkcompat.deploy.ledger.entries import (
        CheckedEntry,
        DeployedEntry,
        HeadEntry,
        LedgerEntry,
        Origin,
        Review,
        ShadowedEntry,
    )
    from airflow_flinkcompat.deploy.rehearsal.place import Cluster
    from airflow_flinkcompat.model.shadow import ShadowPolicy
    from airflow_flinkcompat.project.job_options import JobOptions

_CHOICES = {"resume": "Resume from savepoint", "restart": "Restart without state"}
"""Decisions, and their names in the ledger, as in Airflow."""
_NUMBER = (int, float)
_KINDS: Mapping[str, Any] = {
    "savepoint_directory": str, "settle_seconds": _NUMBER, "stop_timeout": _NUMBER, "start_timeout": _NUMBER,
    "roll_back": bool, "keep_savepoints": int, "allow_ended": bool, "source_offsets": (str, Mapping),
}  # fmt: skip
"""Keys of the table ``deploy`` that apply without Airflow, with the types of their values."""
_TABLES: tuple[tuple[str, type[Any], str], ...] = (
    ("deploy", dict, "table"), ("approve", dict, "table"), ("approvers", list, "list"), ("target", str, "text"),
)  # fmt: skip
"""Keys of a deployment that are read here, with their types."""
_DEFAULTS = {"keep_savepoints": 5}
_TEMPLATE = "is a template, which only Airflow renders: write the rendered value"
_AIRFLOW_RUNS = "which only a DAG in Airflow runs"


@click.command("deploy")
@click.argument("name")
@job_option("ledger", argument="root")
@target_option(None, show_default="the target in the project file, else sql-gateway")
@click.option("--gateway", metavar="URL", help="SQL Gateway, http://host:8083.")
@click.option("--jobmanager", metavar="URL", help="JobManager's REST API, http://host:8081.")
@click.option(
    "--start-mode",
    type=click.Choice([StartMode.SAVEPOINT.value, StartMode.CHECKPOINT.value]),
    help="State of a job that resumes: a new savepoint (default), or the former job's last retained checkpoint.",
)
@click.option(
    "--approve", "choice", type=click.Choice(list(_CHOICES)), help="Your decision, if the gate asks a person."
)
@click.option(
    "--entry", "number", type=click.IntRange(1), metavar="N", help="Ledger entry of the check on which you decide."
)
@click.option("--reason", help="Reason for your decision, which the ledger stores.")
@job_options("config", "planner")
def deploy_command(
    name: str,
    root: str | None,
    target: str | None,
    gateway: str | None,
    jobmanager: str | None,
    start_mode: str | None,
    choice: str | None,
    number: int | None,
    reason: str | None,
    given: Given,
) -> None:
    """Check deployment NAME against its deployed version, and redeploy it by the policy, without Airflow.

    The check, the policy, the ledger and the redeploy are those of the DAG. If the policy resumes the job, the former
    job is stopped with a savepoint, and the new job is started from it and verified, or rolled back. If a person must
    decide, nothing is deployed: the output contains the report, and the command that records your decision. After a
    kill, run the same command again to resume.

    \b
    Exit code:
      0  deployed and verified, or unchanged
      1  refused, rolled back, or a decision is needed
      2  bad input: script, project file or option
      3  the ledger, SQL Gateway, JobManager or platform is out of reach
    """  # noqa: D301
    with command_errors("deploy", "deploy"):
        from airflow_flinkcompat.deploy import Ledger
        from airflow_flinkcompat.deploy.rehearsal.place import Cluster
        from airflow_flinkcompat.deploy.targets import DEFAULT
    if (choice is None) != (number is None):
        raise InputError("--approve and --entry belong together: pass both, or neither")
    project = require_project(given.config)
    deployment = named_deployment(project, name)
    table = _deploy_table(project, deployment)
    root = root or deployment.ledger
    if root is None:
        raise InputError(
            f"deployment {name!r} has no ledger: pass --ledger URI, set {LEDGER_VARIABLE}, or write ledger = … into "
            f"{project.path}"
        )
    named = target or deployment.table.get("target") or DEFAULT
    _refuse_parts_of_airflow(deployment, named)
    with command_errors("deploy", "deploy"):
        ledger = Ledger(root, name)
        head = ledger.head()
        where = location(named, gateway, jobmanager)
        with where.open() as opened:
            redeploy = _Redeploy(Cluster(opened, where), ledger, head, deployment, table)
            decision = None if choice is None or number is None else _Decision(choice, number, reason)
            entry = redeploy.run(project, given.options, start_mode, decision)
    if entry is None:
        click.echo(f"unchanged: {name}: nothing that affects the running job changed")
        return
    click.echo(f"deployed: job {entry.job_id} as {name}, entry {entry.number}")
    for line in entry.evidence:
        click.echo(f"  {mask_secrets(line)}")


def _deploy_table(project: ProjectFile, deployment: ProjectDeployment) -> dict[str, Any]:
    """Values of the table ``deploy``. Raises InputError for wrong values, templates and misspelled keys."""

    def wrong(key: str, words: str) -> InputError:
        place = project.positions.place(key, deployment.name)
        return InputError(f"{place}: deployment {deployment.name!r}: {key}: {words}")

    for key, kind, words in _TABLES:
        if not isinstance(deployment.table.get(key, kind()), kind):
            raise wrong(key, f"a {words} is needed")
    found = deployment.table.get("deploy", {})
    for key, value in found.items():
        if key not in _KINDS:
            if words := misspelling(key, _KINDS):
                raise wrong(f"deploy.{key}", words)
        elif not isinstance(value, _KINDS[key]) or (isinstance(value, bool) and _KINDS[key] is not bool):
            raise wrong(f"deploy.{key}", "has a value of a wrong type")
        elif any(mark in str(value) for mark in TEMPLATE):
            raise wrong(f"deploy.{key}", _TEMPLATE)
    if deployment.shadow and any(mark in str(deployment.shadow.savepoint_directory) for mark in TEMPLATE):
        raise wrong("shadow.savepoint_directory", _TEMPLATE)
    return {**_DEFAULTS, **{key: value for key, value in found.items() if key in _KINDS}}


def _refuse_parts_of_airflow(deployment: ProjectDeployment, target: str) -> None:
    """Refuse a deployment that is never deployed without Airflow."""
    from airflow_flinkcompat.deploy.flink.statements import NO_PROGRAMS

    name = deployment.name
    if any(mark in target for mark in TEMPLATE):
        raise InputError(f"deployment {name!r}: target is a template, which only Airflow renders: pass --target NAME")
    if deployment.script.endswith(PROGRAM_SUFFIXES):
        _refuse(NO_PROGRAMS.format(source=deployment.script, deployment=name, target=target))
    if deployment.table.get("plan_only"):
        _refuse(
            f"{name}: plan_only is set, so another platform carries out plans, {_AIRFLOW_RUNS}. Nothing was changed"
        )
    if deployment.options.filled_elsewhere:
        _refuse(f"{name}: placeholders_filled_elsewhere is set, so another tool deploys this job. Nothing was changed")


def _refuse(message: str) -> NoReturn:
    """Print a refusal, and exit with code 1."""
    click.echo(f"flinkcompat: {mask_secrets(message)}", err=True)
    sys.exit(1)


@dataclass(frozen=True)
class _Decision:
    """A person's decision on the change that a ledger entry checked."""

    choice: str
    number: int
    reason: str | None


@dataclass
class _Redeploy:
    """The gated redeploy of one deployment; ``table`` contains the values of the table ``deploy``."""

    cluster: Cluster
    ledger: Ledger
    head: HeadEntry | None
    deployment: ProjectDeployment
    table: Mapping[str, Any]

    @property
    def target(self) -> Target:
        return self.cluster.target

    @property
    def name(self) -> str:
        return self.deployment.name

    @property
    def owner(self) -> str:
        """Name of this run in the ledger. A killed command resumes under it; the next redeploy has a new name."""
        from airflow_flinkcompat.deploy.ledger.store import this_process

        return f"{this_process().rpartition(':')[0]}#{self.head.number if self.head else 0}"

    def run(
        self, project: ProjectFile, given: JobOptions, start_mode: str | None, decision: _Decision | None
    ) -> DeployedEntry | None:
        """Check and deploy; None if nothing is to deploy."""
        from airflow_flinkcompat.deploy.ledger.entries import DeployingEntry
        from airflow_flinkcompat.deploy.ledger.status import Progress, begun_mode
        from airflow_flinkcompat.fleet.gate import DeploymentGate

        gate = DeploymentGate(
            self.target, self.ledger, self.head, project, self.deployment, given, self.owner, print_progress
        )
        new = gate.proposed()
        self._refuse_placeholders(new)
        progress = Progress.of(self.ledger.entries())
        claim, mode = progress.latest(DeployingEntry), begun_mode(progress, new.sha256)
        if claim is not None and mode is not None and claim.owner == self.owner:
            print_progress(f"resuming the redeploy that entry {claim.number} began")
            return self._deploy(new, mode, claim.review, claim.origin)
        review = gate.review(new)
        branch = gate.branch(review)
        if branch == "unchanged" and self.head is not None and self.head.sha256 == new.sha256:
            return None
        checked, review = gate.record(new, review, branch, gate.origin())
        found = checked.review
        if branch == "unchanged":
            return None
        if branch != "first":
            click.echo(coloured(mask_secrets(render_text(review.reports[0], known=review.known, verbose=False))))
        self._refuse_unless_possible(branch)
        asked: CheckedEntry | ShadowedEntry = checked
        if self.head is not None and (policy := self._shadow_policy(checked)):
            asked = self._shadowed(self.head, checked, new, policy, decision)
            branch = str(asked.branch)
        if branch == "reject":
            _refuse(f"{self.name}: the policy rejects the change, which is {found.outcome}. Nothing was changed")
        if branch == "approve":
            self._refuse_unless_possible(branch)
            if decision is None:
                self._ask(asked)
            self._refuse_unless_possible(decision.choice)
            found, branch = self._approved(decision, asked, review.reports[0]), decision.choice
        elif decision is not None:
            _refuse(
                f"{self.name}: nobody needs to decide on this change (branch {branch}): omit --approve and --entry. "
                "Nothing was changed"
            )
        if branch == "resume":
            return self._deploy(new, start_mode or StartMode.SAVEPOINT, found, checked.origin)
        if start_mode is not None:
            _refuse(f"{self.name}: the new job starts without state: omit --start-mode. Nothing was changed")
        return self._deploy(new, StartMode.STATELESS, found, checked.origin)

    # -- the shadow run

    def _shadow_policy(self, checked: CheckedEntry) -> ShadowPolicy | None:
        """Choices about the shadow run that follows the check; None if none follows."""
        policy = self.deployment.shadow
        if policy is None:
            if self.deployment.table.get("shadow"):
                print_progress('the table shadow has no effect without start_mode = "shadow"')
            return None
        # Rows are compared for a resume only; a person can still restart the job.
        if why := policy.why_not(checked.review.outcome, str(checked.branch)) or self._why_not("resume"):
            print_progress(f"no shadow run: {why}")
            return None
        return policy

    def _shadowed(
        self, head: HeadEntry, checked: CheckedEntry, new: Side, policy: ShadowPolicy, decision: _Decision | None
    ) -> ShadowedEntry:
        """Make the shadow run; after a decision, return the run on which the person decided."""
        with command_errors("deploy", "state"):
            from airflow_flinkcompat.deploy.ledger.entries import ShadowedEntry
            from airflow_flinkcompat.deploy.shadow.gating import run_for_gate
            from airflow_flinkcompat.deploy.shadow.report import render_text
            from airflow_flinkcompat.planner.judgement import compile_plans
        if decision is not None:
            about = self._entry(decision.number)
            if not isinstance(about, ShadowedEntry) or about.version != checked.version:
                _refuse(
                    f"{self.name}: entry {decision.number} is not a shadow run of this change. Nothing was changed. "
                    "Run the command without --approve and --entry, then decide on its result"
                )
            return about
        entry, report = run_for_gate(
            self.cluster,
            self.ledger,
            head,
            checked,
            new,
            policy,
            plan=partial(compile_plans, jars=self.deployment.options.jars),
            owner=self.owner,
            log=print_progress,
        )
        click.echo(render_text(report), nl=False)
        return entry

    def _entry(self, number: int) -> LedgerEntry | None:
        return next((each for each in self.ledger.in_force() if each.number == number), None)

    # -- the decision

    def _ask(self, checked: CheckedEntry | ShadowedEntry) -> NoReturn:
        """Print the possible decisions, each with its command, and exit with code 1."""
        from airflow_flinkcompat.deploy.ledger.entries import ShadowedEntry
        from airflow_flinkcompat.deploy.shadow.question import finding, headline

        lines = [
            f"flinkcompat {shlex.join(_words_of_command(each))} --approve {each} --entry {checked.number} --reason '…'"
            for each in _CHOICES
            if not self._why_not(each)
        ]
        lines += [f"{each} is not possible here: {reason}" for each in _CHOICES if (reason := self._why_not(each))]
        why = f"the change is {checked.review.outcome}"
        if isinstance(checked, ShadowedEntry) and finding(checked) != "equal":
            why = f"the result of the shadow run is: {headline(checked)}"
        _refuse(
            f"{self.name}: a person must decide, because {why}. Nothing was changed. "
            "Read the report, then correct the script, or record your decision and deploy:\n  " + "\n  ".join(lines)
        )

    def _approved(self, decision: _Decision, checked: CheckedEntry | ShadowedEntry, report: Report) -> Review:
        """Record the decision, and return the review with the approver."""
        from airflow_flinkcompat.deploy.ledger.entries import ApprovedEntry, CheckedEntry, ShadowedEntry
        from airflow_flinkcompat.deploy.ledger.gating import append_once

        who = _login()
        approvers = self.deployment.table.get("approvers", [])
        names = [each.values() if isinstance(each, Mapping) else (each,) for each in approvers]
        if names and who.casefold() not in {str(each).casefold() for person in names for each in person}:
            _refuse(f"{self.name}: {who} is not one of the approvers in the project file. Nothing was changed")
        about = self._entry(decision.number)
        seen = isinstance(about, CheckedEntry | ShadowedEntry) and (about.version, about.branch, about.review.outcome)
        if seen != (checked.version, "approve", checked.review.outcome):
            _refuse(
                f"{self.name}: entry {decision.number} is not a check of this change. Nothing was changed. Read the "
                f"report, then decide again with --entry {checked.number}"
            )
        zero = metrics_from_zero(report) if decision.choice == "resume" and report.outcome is Outcome.PARTIAL else ()
        words = f"{who} chose {_CHOICES[decision.choice]!r}" + f"; from zero start {', '.join(zero)}" * bool(zero)
        reason = mask_secrets(decision.reason).strip() if decision.reason else None
        review = replace(checked.review, approved_by=who, reason=reason or None)
        message = mask_secrets(words)
        append_once(
            self.ledger, ApprovedEntry(version=checked.version, review=review, message=message, owner=self.owner)
        )
        return review

    # -- the redeploy

    def _refuse_placeholders(self, new: JobSpec) -> None:
        """Refuse values of Airflow's connections in the new script, and in the former script for a rollback."""
        jobs = (new, *([self.head.job] if self.head else []))
        found = [each for job in jobs for each in placeholders_in_script(job.script)]
        found += [each for job in jobs for value in job.settings.values() for each in placeholders(value)]
        if found:
            _refuse(
                f"{self.name}: a connection of Airflow fills in {found[0]}, so deploy in Airflow. Nothing was changed"
            )

    def _refuse_unless_possible(self, branch: str) -> None:
        """Refuse a branch with a step that only Airflow runs."""
        if why := self._why_not(branch):
            _refuse(f"{self.name}: {why}. Nothing was changed")

    def _why_not(self, branch: str) -> str:
        """Reason why a branch needs Airflow; "" if it runs here."""
        one = self.deployment
        if branch == "migrate":
            return f"the policy migrates the state, {_AIRFLOW_RUNS}"
        if branch == "resume" and one.rehearses:
            return f"rehearse is set, {_AIRFLOW_RUNS}"
        if one.backfills and (branch == "restart" or (branch == "first" and one.backfill.get("boundary"))):
            return f"a backfill belongs to this start, {_AIRFLOW_RUNS}"
        if branch != "approve":
            return ""
        table = one.table.get("approve", {})
        if table.get("approvers_needed", 1) != 1 or table.get("author_may_approve", True) is not True:
            return f"approve requires a second person or excludes the author, {_AIRFLOW_RUNS}"
        reasons = [*map(self._why_not, _CHOICES)]
        return "; ".join(reasons) if all(reasons) else ""

    def _deploy(self, new: Side, start_mode: str, review: Review, origin: Origin) -> DeployedEntry:
        from airflow_flinkcompat.deploy import (
            DeployError,
            LedgerConflict,
            LedgerError,
            Options,
            ScriptRefused,
            TargetError,
            deploy,
        )
        from airflow_flinkcompat.deploy.ledger.entries import FailedVersionEntry, JobVersion

        options = dict(self.table)
        offsets = options.pop("source_offsets", None)
        # A savepoint contains the sources' offsets; before the first start of a job, no offsets are stored.
        if start_mode != StartMode.STATELESS or (self.head is None and "as-stored" in str(offsets)):
            offsets = None
        try:
            return deploy(
                self.target,
                self.ledger,
                new,
                start_mode=start_mode,
                checked_old_sha256=self.head.sha256 if self.head else None,
                review=review,
                origin=origin,
                owner=self.owner,
                offsets=offsets,
                options=Options(**options),
                log=print_progress,
            )
        except DeployError as error:
            if isinstance(error, ScriptRefused | TargetError) and not error.unanswered:  # the version itself is faulty
                version = JobVersion.of(new)
                self.ledger.append(FailedVersionEntry(version=version, message=str(error), owner=self.owner))
            of_ledger = isinstance(error, LedgerError) and not isinstance(error, LedgerConflict)
            if error.unanswered or of_ledger or isinstance(error, ScriptRefused):
                raise
            _refuse(f"{self.name}: {error}")


def _login() -> str:
    """Login name of the user of this process, regardless of the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in a container, the user id may have no user name
        return str(os.getuid())


def _words_of_command(choice: str) -> Iterator[str]:
    """Words of the present command line for a choice, without an earlier decision."""
    omitted = ("choice", "number", "reason", *(["start_mode"] if choice == "restart" else []))
    context = click.get_current_context()
    yield from ("deploy", context.params["name"])
    for each in context.command.params:
        written = context.get_parameter_source(str(each.name)) is ParameterSource.COMMANDLINE
        if isinstance(each, click.Option) and written and each.name not in omitted:
            yield from (each.opts[0], str(context.params[str(each.name)]))
