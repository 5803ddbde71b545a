"""The gate, which checks the proposed script against the deployed script and branches."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, BranchMixIn

from airflow_flinkcompat.airflow.links import FlinkChangeLink, FlinkJobLink
from airflow_flinkcompat.airflow.operators import summary as summaries
from airflow_flinkcompat.airflow.operators.summary import Summary
from airflow_flinkcompat.airflow.tasks import telemetry
from airflow_flinkcompat.airflow.tasks.base import (
    ScriptOperator,
    TaskRole,
    UnmappedMixin,
    known_tables,
    readable_errors,
    record_failure,
    run_name,
    side_of,
    takes,
    task_ids,
    wrong_choice,
)
from airflow_flinkcompat.model import (
    ACCEPTED,
    PLANNER_MODES,
    PLANNER_VARIABLE,
    Outcome,
    PlannerMode,
    PlannerNetwork,
    Policy,
)
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.project.job_options import NETWORK

if TYPE_CHECKING:
    from airflow.sdk import Context
    from typing_extensions import Unpack

    from airflow_flinkcompat.airflow.tasks.arguments import Engine, PolicyTable, ScriptArguments, Template
    from airflow_flinkcompat.compat import Report, ReportContext, Side
    from airflow_flinkcompat.compat.gate import ChangeIdentity
    from airflow_flinkcompat.deploy import Ledger
    from airflow_flinkcompat.deploy.ledger.entries import HeadEntry, Origin
    from airflow_flinkcompat.deploy.target import JobRef, Target
    from airflow_flinkcompat.model import AcceptName
    from airflow_flinkcompat.planner.judgement import DeployedJob

REQUIRED_BRANCHES = ("first", "resume", "restart", "approve")
OPTIONAL_BRANCHES = ("migrate", "unchanged", "reject")
_NOT_PLANNED = 'Flink\'s planner plans SQL scripts on engine flink: omit explain_plan and planner="always"'
# Airflow's default owner of a task.
_NO_OWNER = "airflow"


@takes("engine", "engine_version", "policy", "planner", "jars", NETWORK)
class FlinkSqlCompatibilityOperator(UnmappedMixin, ScriptOperator, BranchMixIn):
    """Check the effect of a proposed script on the deployed job's state, and branch by the verdict.

    The ledger's head is the old side of the check. The task logs the verdict, and pushes a summary to XCom (keys
    ``summary`` and ``return_value``). The XCom ``report`` points to the full report, which the ledger stores as JSON
    and Markdown.

    Waivers next to the script's file (``flinkcompat accept``) appear in the report and in the ledger. A change with the
    outcome ``partial`` passes if its findings are waived. If state may not fit, a person sees the waiver and decides,
    even if the policy rejects.

    The task fails for a script with a syntax error or a literal secret, and for a script that a FlinkSqlDeployOperator
    downstream would refuse. No person is asked to decide about a script that cannot be deployed. Each deployment needs
    a separate gate, which cannot be mapped.

    Args:
        branches: Branch → task id, task group id or a list of them. ``first``: the branch if nothing is deployed yet.
            ``resume``, ``restart``, ``approve``: the branches that the policy chooses by outcome. ``migrate`` leads to
            a FlinkStateMigrationOperator; without this branch, nothing is migrated. If ``unchanged`` or ``reject`` is
            chosen but is not in ``branches``, all downstream tasks are skipped.
        redeploy_unchanged: The choice of a branch if the change does not affect the job, and the deployed job runs.
            False: the branch ``unchanged``, which leaves the job alone. True: the policy's branch for a compatible
            change, to restart a job on purpose, for example with a different JAR of a function. (templated: ``true`` or
            ``false``)
        explain_plan: True means ``planner="always"``. If the worker has no planner, the target compiles both scripts,
            and the plans are compared.
        plan_dir: Path or URI of a folder to which the SQL Gateway writes plans, and which this worker can read.
            Required if the target compiles plans on a different machine. (templated)
        savepoint_directory: Folder for a savepoint of the running job. This savepoint is compared with the plan before
            a migration that no person decides. Default: the savepoint folder of the cluster. (templated)
        accept: Effects that a migration allows only on request. ``filter`` keeps aggregations under a changed
            condition, with the state of rows that met the old condition. ``source-moved`` lets a source start at the
            position in its own options if its location (topic, path, …) may have changed; the migration is then
            partial, so that a person is asked. ``history`` keeps state that differs from the state computed from
            history. ``accept`` requires the branch ``migrate``.
        history: Tables with known history, each with the location of the rows that the job has read; "" means the
            location in the script. State that would start empty is treated as kept if the task of the branch
            ``migrate`` can compute the state from these rows. (templated)
        deferrable: Wait in the triggerer while the target does not answer. If False, the task fails and is retried
            (``retries``).
        gateway_timeout: Seconds after which the task fails without a retry if the target does not answer.
        settle_seconds: Seconds for which the job of a plan (``plan_only``) must run without a failure before it is
            recorded as deployed.
        team: The responsible team, which the ledger records in addition to the task's ``owner``. (templated)
    """

    role = TaskRole.CHECK
    template_fields: Sequence[str] = (
        *ScriptOperator.template_fields, "engine", "engine_version", "planner", "jars", "plan_dir",
        "redeploy_unchanged", "team", "history", "savepoint_directory",
    )  # fmt: skip
    operator_extra_links = (FlinkJobLink(), FlinkChangeLink())
    inherits_from_skipmixin = True
    ui_color = "#e8f0fe"

    def __init__(
        self,
        *,
        branches: Mapping[str, str | Sequence[str]],
        engine: Engine | Template = "auto",
        engine_version: str | None = None,
        policy: PolicyTable | Policy | None = None,
        redeploy_unchanged: bool | str = False,
        planner: PlannerMode | Template | None = None,
        jars: Sequence[str] = (),
        planner_network: PlannerNetwork | None = None,
        explain_plan: bool = False,
        plan_dir: str | None = None,
        savepoint_directory: str | None = None,
        accept: Sequence[AcceptName] = (),
        history: Mapping[str, str] | None = None,
        deferrable: bool = True,
        gateway_timeout: float = 86_400,
        settle_seconds: float = 10,
        team: str | None = None,
        **kwargs: Unpack[ScriptArguments],
    ) -> None:
        super().__init__(**kwargs)
        _check_branches(branches)
        if isinstance(policy, Mapping):
            Policy.of(policy)
        for name, value, *more in (("engine", engine, "auto"), ("planner", planner), (NETWORK, planner_network)):
            is_template = name in self.template_fields and "{{" in (value or "")
            if value and not is_template and (wrong := wrong_choice(name, value, *more)):
                raise ValueError(wrong)
        if isinstance(jars, str):
            raise ValueError(f"jars is the text {jars!r}: write a list of paths")
        if (explain_plan or planner == "always") and not _may_compile(engine):
            raise ValueError(_NOT_PLANNED)
        if unknown := [each for each in accept if each not in ACCEPTED]:
            raise ValueError(f"accept: {unknown[0]!r} is not one of {', '.join(ACCEPTED)}")
        if accept and not branches.get("migrate"):
            raise ValueError("accept applies only to a migration: add 'migrate' to branches, or omit accept")
        if history and not branches.get("migrate"):
            raise ValueError("history applies only to a migration: add 'migrate' to branches, or omit history")
        self.history = known_tables(history)
        self.branches = {key: task_ids(value) for key, value in branches.items()}
        self.engine = engine
        self.engine_version = engine_version
        self.policy = policy
        self.redeploy_unchanged = redeploy_unchanged
        self.planner = planner
        self.jars = jars
        self.planner_network = planner_network
        self.explain_plan = explain_plan
        self.plan_dir = plan_dir
        self.savepoint_directory = savepoint_directory
        self.accept = tuple(accept)
        self.deferrable = deferrable
        self.gateway_timeout = gateway_timeout
        self.settle_seconds = settle_seconds
        self.team = team
        self.job_url = ""
        self._folders: list[Path] = []

    def _before_rendering(self, jinja_env: Any) -> None:
        super()._before_rendering(jinja_env)
        self._folders = [Path(root) for root in getattr(jinja_env.loader, "searchpath", ())]

    def execute(self, context: Context) -> None:
        """Check and branch; raises AirflowFailException for a script or arguments that cannot be checked."""
        self._check_or_wait(context, time.time() + self.gateway_timeout)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> None:
        """Resume after a wait in the triggerer; the files are read again.

        Args:
            context: Airflow's context of the task.
            event: Event of the trigger. ``until``: seconds since the epoch after which the task fails. ``silent``: True
                if the target did not answer the triggerer at least once.
        """
        # If the target answers the triggerer but not the worker, the task must not wait again.
        self._check_or_wait(context, float(event["until"]), may_wait=event["silent"])

    def _check_or_wait(self, context: Context, until: float, *, may_wait: bool = True) -> None:
        """Check and branch, or defer until the target answers; ``until`` is in seconds since the epoch."""
        from airflow_flinkcompat.airflow.triggers.deploy import SqlGatewayTrigger
        from airflow_flinkcompat.deploy import DeployError

        with readable_errors():
            try:
                self._check_and_branch(context)
                return
            except DeployError as error:
                if not (self.deferrable and may_wait and error.unanswered):
                    raise
                silence = masked_text(str(error))
        if time.time() >= until:
            raise AirflowFailException(f"{silence}: waited {self.gateway_timeout:.0f} s for it (gateway_timeout)")
        self.log.warning("%s: waiting in the triggerer, for %.0f s at most", silence, until - time.time())
        trigger = SqlGatewayTrigger(self.flink_conn_id, until, target=self.target)
        self.defer(trigger=trigger, method_name="execute_complete")

    def _check_and_branch(self, context: Context) -> None:
        ledger = self.open_ledger()
        self._record_carried_out(context, ledger)
        head = ledger.head()
        new, job = self._ask_target(ledger, head)
        with telemetry.span("check", {"deployment": self.deployment, "sha256": new.sha256}) as tell:
            summary = self._check(context, ledger, head, job, new)
            tell(outcome=summary.outcome, branch=summary.branch, migration=summary.migration)
        telemetry.count(f"check.{summary.outcome or summary.branch}", self.deployment)
        summary = self._record_check(context, ledger, new, summary)
        summaries.push(context, summary)
        # A return value would replace the summary if no downstream task is skipped.
        self.do_branch(context, self.branches.get(summary.branch) or None)

    def _record_carried_out(self, context: Context, ledger: Ledger) -> None:
        """If a plan was carried out, record its job, which is then the old side of the check."""
        from airflow_flinkcompat.deploy import Options
        from airflow_flinkcompat.deploy.redeploy.planning import pending_plans, record_carried_out

        if not pending_plans(ledger.entries()):
            return
        options = Options(settle_seconds=self.settle_seconds)
        with self.hook.get_conn() as target:
            record_carried_out(target, ledger, owner=run_name(context), options=options, log=self.log_lines)

    def _record_check(self, context: Context, ledger: Ledger, new: Side, summary: Summary) -> Summary:
        """Record check, origin and decision in the ledger, unless an earlier try has recorded them."""
        from airflow_flinkcompat.deploy.ledger.entries import JobVersion, Review
        from airflow_flinkcompat.deploy.ledger.gating import record_check

        origin, why = self._origin(context)
        recorded = record_check(
            ledger,
            JobVersion.of(new),
            Review(summary.outcome, summary.report, waivers=tuple(summary.waivers)),
            origin,
            branch=summary.branch,
            policy=summary.policy,
            against=summary.old_entry,
            owner=run_name(context),
            notes=[f"the commit is unknown: {why}"] if why else (),
        )
        self.link_change(recorded.number)
        return replace(summary, origin=origin.to_dict(), checked_entry=recorded.number)

    def _origin(self, context: Context) -> tuple[Origin, str]:
        """Origin of the proposed version, and the reason for an unknown commit."""
        from airflow_flinkcompat.airflow.tasks.files import git_origin
        from airflow_flinkcompat.deploy.ledger.entries import Origin

        found = git_origin(self.files, getattr(context["ti"], "bundle_instance", None))
        if found.why:
            self.log.info("Cannot record the commit of %s in the ledger: %s", self._source, found.why)
        owned_by = self.owner if self.owner != _NO_OWNER else None
        return Origin(found.commit, found.author, str(self.team) if self.team else None, owned_by), found.why

    def _check(
        self, context: Context, ledger: Ledger, head: HeadEntry | None, job: DeployedJob | None, new: Side
    ) -> Summary:
        from airflow_flinkcompat.deploy import ScriptRefused
        from airflow_flinkcompat.model import InputError
        from airflow_flinkcompat.sql import ScriptError

        try:
            self._require_deployable(new)
            return self._compare(ledger, head, job, new) if head else self._first(ledger, new)
        except (
            ScriptError,
            InputError,
            ScriptRefused,
        ) as error:  # the version itself is faulty, so it is not offered again
            record_failure(context, ledger, new, str(error))
            raise

    def _first(self, ledger: Ledger, new: Side) -> Summary:
        self.log.info("%s was never deployed: there is nothing to compare with", ledger.deployment)
        return Summary(ledger.deployment, "first", new.sha256, new.engine, new.engine_version)

    def _ask_target(self, ledger: Ledger, head: HeadEntry | None) -> tuple[Side, DeployedJob | None]:
        """The proposed side, and facts about the deployed job, read from the target through one connection."""
        from airflow_flinkcompat.deploy import DeployError

        if wrong := wrong_choice("engine", self.engine, "auto"):
            raise AirflowFailException(wrong)
        # With native rendering, a template with the value 2.3 becomes a number.
        stated = str(self.engine_version) if self.engine_version else None
        if self.engine == "auto":
            with self.hook.get_conn() as target:
                found = target.engine()
                self.log.info("The target runs %s %s", found.engine, found.version)
                new = self.proposed_side(found.engine, stated or found.version)
                return new, self._deployed_job(target, ledger, head, new)
        new = self.proposed_side(self.engine, stated)
        if not (self.hook.exists and self._plans_job(head, new)):
            return new, None
        try:
            with self.hook.get_conn() as target:
                return new, self._deployed_job(target, ledger, head, new)
        except (DeployError, AirflowException) as error:
            self._warn_unknown_job(error)
            return new, None

    def _plans_job(self, head: HeadEntry | None, new: Side) -> bool:
        """True if this worker's planner may plan the deployed job."""
        return head is not None and self._planner_mode() != "never" and _may_compile(new.engine)

    def _deployed_job(self, target: Target, ledger: Ledger, head: HeadEntry | None, new: Side) -> DeployedJob | None:
        """Facts about the deployed job from its target and last savepoint; None if the target does not answer."""
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.planner.judgement import DeployedJob

        if head is None or not self._plans_job(head, new):
            return None
        try:
            return DeployedJob.of(target, ledger, head, new)
        except (DeployError, AirflowException) as error:
            self._warn_unknown_job(error)
            return None

    def _latest_snapshot(self, ledger: Ledger, head: HeadEntry) -> str | None:
        """Path of the deployed job's last savepoint or checkpoint; None if it is unknown or unreadable."""
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.deploy.plans import stored_job

        if head.job_id is None:
            return None
        try:
            with self.hook.get_conn() as target:
                stored, _ = stored_job(target, head.job_id, ledger.entries())
        except (DeployError, AirflowException):
            return None
        return None if stored is None else stored.path

    def _warn_unknown_job(self, error: Exception) -> None:
        self.log.warning("Flink's planner does not know the options of the cluster: %s", masked_text(str(error)))

    def _compare(self, ledger: Ledger, head: HeadEntry, job: DeployedJob | None, new: Side) -> Summary:
        from airflow_flinkcompat.compat import render_markdown
        from airflow_flinkcompat.compat.gate import ChangeIdentity, kept_by_migration, waivers_held
        from airflow_flinkcompat.compat.reports.advice import metrics_from_zero

        self.job_url = self.hook.job_url(head.job_id) if self.hook.exists else ""
        old = side_of(head)
        report = self._with_waivers(self._judged(job, old, new), ChangeIdentity.of(head.job, new))
        from_zero = metrics_from_zero(report) if report.outcome is Outcome.PARTIAL else ()
        branch, policy = self._branch(ledger, head, report)
        if branch == "migrate" and (why := self._not_compared(head, old, new, report)):
            self.log.warning("The policy would migrate without a question, but a person is asked: %s", masked_text(why))
            branch, report = "approve", replace(report, warnings=(*report.warnings, why))
        known = replace(self._circumstances(head, new, branch), downtime=self._downtime(head, report))
        if branch == "approve" and job is not None and job.stored is not None:
            report, known = _with_stored(report, known, job.stored.path, lambda: self._latest_snapshot(ledger, head))
        kept = {**report.to_dict(), "context": known.to_dict()}
        pointer = masked_text(ledger.store_report(kept, render_markdown(report, known), new))
        self._log_verdict(report, head, branch, pointer, known)
        return Summary(
            deployment=ledger.deployment,
            branch=branch,
            new_sha256=new.sha256,
            engine=new.engine,
            engine_version=new.engine_version,
            old_sha256=head.sha256,
            old_entry=head.number,
            outcome=str(report.outcome),
            report=pointer,
            findings=summaries.brief(report.findings),
            findings_total=len(report.findings),
            migration=kept_by_migration(report),
            accepted=self.accept,
            history=self.history,
            from_zero=[masked_text(name) for name in from_zero],
            policy=policy,
            waivers=[each.to_dict() for each in waivers_held([report])],
            ground=report.ground,
        )

    def _judged(self, job: DeployedJob | None, old: Side, new: Side) -> Report:
        """Judge with the worker's planner, or with the target's planner if the policy needs more facts."""
        from airflow_flinkcompat.compat import check
        from airflow_flinkcompat.compat.gate import planner_decides
        from airflow_flinkcompat.compat.report import PLANNED
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.exec_graph.migration import Accept
        from airflow_flinkcompat.history.known_history import KnownHistory
        from airflow_flinkcompat.model import InputError
        from airflow_flinkcompat.model.options import set_network
        from airflow_flinkcompat.planner.judgement import PlannerUnavailable, judge

        known: dict[str, Any] = {
            "accepted": tuple(map(Accept, self.accept)),
            "history": KnownHistory(self.history).applied if self.history else None,
        }

        def by_target() -> Report:
            self.log.info("Flink's planner compiles both scripts; nothing is started")
            plans = self.hook.explain_plans(old, new, self.plan_dir or None)
            return replace(check(old, new, plans=plans, **known), ground=f"{PLANNED} {new.version}")

        mode = self._planner_mode()
        if mode == "always" and not (_may_compile(new.engine) and old.language == new.language == "sql"):
            raise AirflowFailException(f"{_NOT_PLANNED}; this is {new.source} on {new.engine}")
        set_network(self.planner_network)
        try:
            report = judge(old, new, mode, self._jar_files(), job=job, **known)
        except PlannerUnavailable as error:
            if not self.explain_plan:
                raise AirflowFailException(
                    f'planner is "always", but Flink\'s planner did not answer: {error}'
                ) from None
            self.log.info("The target plans instead of a planner on this worker: %s", masked_text(str(error)))
            return by_target()
        decides = planner_decides(report, self._effective_policy(), migrates="migrate" in self.branches)
        if report.is_planned or not (decides or (self.explain_plan and report.migration_is_unknown)):
            return report
        try:
            found = by_target()
            warnings = (*found.warnings, *report.warnings, *filter(None, [report.doubt]))
            return replace(found, warnings=tuple(dict.fromkeys(warnings)))
        except (DeployError, InputError, AirflowException) as error:
            why = (
                "Flink's planner could not determine the state that a rewritten savepoint keeps: "
                f"{masked_text(str(error))}"
            )
        self.log.warning("%s", why)
        return replace(report, warnings=(*report.warnings, why))

    def _planner_mode(self) -> PlannerMode:
        """The mode of the worker's planner. Raises AirflowFailException for an unknown mode."""
        asked = "always" if self.explain_plan else str(self.planner or os.environ.get(PLANNER_VARIABLE) or "auto")
        mode = next((each for each in PLANNER_MODES if each == asked), None)
        if mode is None:
            raise AirflowFailException(f"planner {asked!r} is not one of {', '.join(PLANNER_MODES)}")
        return mode

    def _jar_files(self) -> list[Path]:
        """Jar files that match the patterns in ``jars``. Raises AirflowFailException if no file matches."""
        found: list[Path] = []
        for pattern in map(str, self.jars or ()):
            places = [Path("/")] if Path(pattern).is_absolute() else self._folders
            matched = sorted(file for place in places for file in place.glob(pattern.lstrip("/")))
            if not matched:
                raise AirflowFailException(f"jars: found no {pattern}; looked in {', '.join(map(str, places))}")
            found += matched
        return found

    def _with_waivers(self, report: Report, change: ChangeIdentity) -> Report:
        """Apply the waivers next to the script; superfluous waivers result in a warning."""
        from airflow_flinkcompat.compat.gate import apply_waivers, utc_day

        judged = apply_waivers([report], self.waivers(), change, utc_day(), (self.deployment, self.deployment))
        (report,) = judged.reports
        return replace(report, warnings=(*report.warnings, *judged.notes))

    def _circumstances(self, head: HeadEntry, new: Side, branch: str) -> ReportContext:
        """Context for the advice in the report, from the ledger and this DAG."""
        from airflow_flinkcompat.backfill.planning import why_refused
        from airflow_flinkcompat.compat import ReportContext
        from airflow_flinkcompat.deploy.target import SourceTables

        return ReportContext(
            deployment=self.deployment,
            job_id=head.job_id or "",
            entry=head.number,
            approver=branch == "approve",
            backfill=summaries.has_backfill(self),
            backfill_refused=why_refused(new),
            migrates="migrate" in self.branches,
            takes_commands=self.hook.names_jobs_as_flink,
            chooses_offsets=self.hook.target_has(SourceTables),
        )

    def _downtime(self, head: HeadEntry, report: Report) -> str:
        """Sentence about the expected downtime of a migration, by the job's last checkpoint; "" if unknown."""
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.deploy.plans import downtime_by_checkpoint
        from airflow_flinkcompat.deploy.rehearsal.restoring import Timeouts

        if not (report.migration and report.keeps_state and "migrate" in self.branches and head.job_id):
            return ""
        tasks = map(self.dag.get_task, summaries.downstream(self, TaskRole.DEPLOY))
        rehearsed = Timeouts().settle if any(getattr(each, "rehearse", False) for each in tasks) else None
        try:
            with self.hook.get_conn() as target:
                found = downtime_by_checkpoint(target, head.job_id, rehearsed=rehearsed)
        except (DeployError, AirflowException) as error:
            self.log.warning("The downtime of a migration is unknown: %s", masked_text(str(error)))
            return ""
        return str(found or "")

    def _branch(self, ledger: Ledger, head: HeadEntry, report: Report) -> tuple[str, str | None]:
        """The branch to follow, and the branch of the policy alone, or None if the policy was not used."""
        from airflow_flinkcompat.compat.gate import branch_of, is_unchanged, policy_branch

        if is_unchanged(report) and not _switch("redeploy_unchanged", self.redeploy_unchanged):
            if self._is_in_force(ledger, head):
                return "unchanged", None
            self.log.info("Nothing changed, but the job of entry %s does not run, so it is started", head.number)
        policy, migrates = self._effective_policy(), "migrate" in self.branches
        return branch_of(report, policy, migrates=migrates), policy_branch(report, policy, migrates=migrates)

    def _not_compared(self, head: HeadEntry, old: Side, new: Side, report: Report) -> str:
        """Reason why no savepoint confirms the plan of a migration; "" if a savepoint confirms it.

        Raises DeployError.
        """
        from airflow_flinkcompat.compat.gate import kept_by_migration
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.deploy.migration import SavepointMigration
        from airflow_flinkcompat.deploy.rehearsal.place import Cluster
        from airflow_flinkcompat.exec_graph.migration import Accept, MigrationExtent
        from airflow_flinkcompat.history.known_history import KnownHistory

        accepted = tuple(map(Accept, self.accept))
        try:
            with ExitStack() as opened, self.hook.get_conn() as target:
                migration = SavepointMigration(
                    old,
                    new,
                    Cluster(target, self.hook.location()),
                    head.job_id,
                    at_least=MigrationExtent(kept_by_migration(report) or "none"),
                    plan_dir=self.plan_dir or None,
                    rehearsed=False,
                    accepted=accepted,
                    history=KnownHistory(self.history, None, accepted) if self.history else None,
                    savepoint_directory=self.savepoint_directory or None,
                    planner=lambda: opened.enter_context(self.hook.planner()),
                    log=self.log_lines,
                )
                with migration.compared() as savepoint:
                    if savepoint is None:
                        return "no savepoint of the running job could be compared with the state that its plan predicts"
        except (DeployError, AirflowException) as error:
            if isinstance(error, DeployError) and error.unanswered:
                raise
            return (
                f"the state that the plan predicts could not be compared with a savepoint of the running job: {error}"
            )
        return ""

    def _effective_policy(self) -> Policy:
        return Policy.of(self.policy, backfill=summaries.has_backfill(self))

    def _is_in_force(self, ledger: Ledger, head: HeadEntry) -> bool:
        """True if the deployed job runs and no redeploy is unfinished.

        If the cluster cannot be queried, for example without a connection, the job is assumed to run, because leaving
        the job alone is safe.
        """
        from airflow_flinkcompat.deploy.ledger.gating import is_in_force

        return is_in_force(ledger, head, self._runs)

    def _runs(self, job: JobRef) -> bool:
        from airflow_flinkcompat.deploy import DeployError

        try:
            with self.hook.get_conn() as target:
                status = target.status(job)
        except (DeployError, AirflowException) as error:
            self.log.warning("Cannot determine whether job %s runs: %s", job, masked_text(str(error)))
            return True
        return status is not None and not status.terminal

    def _log_verdict(self, report: Report, head: HeadEntry, branch: str, pointer: str, known: ReportContext) -> None:
        from airflow_flinkcompat.compat import render_text

        self.log.info(
            "Verdict: %s on %s %s%s, against entry %s of the ledger → %s: %s",
            report.outcome, report.engine, report.engine_version, f", {report.ground}" * bool(report.ground),
            head.number, branch,
            ", ".join(self.branches.get(branch, [])) or "nothing downstream",
        )  # fmt: skip
        self.log_lines(masked_text(render_text(report, known=known, verbose=False)))
        self.log.info("::group::All findings")
        self.log_lines(masked_text(render_text(report, known=known)))
        self.log.info("::endgroup::")
        self.log.info("Full report: %s", pointer)

    def _require_deployable(self, side: Side) -> None:
        """Raise InputError or ScriptRefused, with places and remedies, for a script that cannot be deployed."""
        from airflow_flinkcompat.compat.deployable import obstacles
        from airflow_flinkcompat.deploy.flink.statements import check_settings, prepare
        from airflow_flinkcompat.model import InputError

        if found := obstacles(side):
            reasons = "\n".join(map(str, found))
            raise InputError(f"{side.source} cannot be deployed until it is corrected:\n{reasons}")
        if side.language == "sql" and summaries.downstream(self, TaskRole.DEPLOY):
            prepare(side.script, side.source)
            check_settings(side.settings)


def _with_stored(
    report: Report, known: ReportContext, savepoint: str, latest: Callable[[], str | None]
) -> tuple[Report, ReportContext]:
    """The report and its context with the numbers of stored state, for the person who decides."""
    from airflow_flinkcompat.deploy.stored_numbers import stored_state

    stored = stored_state(savepoint, latest=latest)
    if report.migration is not None:
        report = replace(report, migration=stored.added_to(report.migration))
    return report, replace(known, stored=str(stored))


def _may_compile(engine: str) -> bool:
    """True if scripts can be compiled on an engine, or the engine is still unknown."""
    facts = ENGINE_FACTS.get(engine)
    return facts is None or facts.compiles_plans


def _switch(name: str, value: bool | str | None) -> bool:
    """Parse a Boolean or its rendered text. Raises AirflowFailException for any other value."""
    known = {"true": True, "false": False, "none": False, "": False}
    text = str(value).strip().lower()
    if text not in known:
        raise AirflowFailException(f"{name} is {value!r}: write true or false")
    return known[text]


def masked_text(text: str) -> str:
    from airflow_flinkcompat.secrets import mask_secrets

    return mask_secrets(text)


def _check_branches(branches: Mapping[str, Any]) -> None:
    known = (*REQUIRED_BRANCHES, *OPTIONAL_BRANCHES)
    if unknown := [key for key in branches if key not in known]:
        raise ValueError(f"branches: unknown {', '.join(map(repr, unknown))}; choose from {', '.join(known)}")
    if missing := [key for key in REQUIRED_BRANCHES if not task_ids(branches.get(key))]:
        raise ValueError(f"branches: {', '.join(map(repr, missing))} missing; each needs a task id or a list of them")
