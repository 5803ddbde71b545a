"""FlinkSqlDeployOperator: stop the running job, start the checked version, and verify it.

In the DAG of a redeploy this task follows the check and, if a person must decide, the approval. ``execute`` reads the
check's summary, and ``_deploy`` runs the redeploy sequence. If a stop or start takes long, the task waits in the
triggerer and resumes in ``execute_complete``. With ``plan_only``, ``_plan`` writes a plan and deploys nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_flinkcompat.airflow.links import FlinkChangeLink, FlinkJobLink
from airflow_flinkcompat.airflow.operators import summary as summaries
from airflow_flinkcompat.airflow.tasks import assets, telemetry
from airflow_flinkcompat.airflow.tasks.base import (
    ScriptOperator,
    TaskRole,
    readable_errors,
    record_failure,
    run_name,
    side_of,
)
from airflow_flinkcompat.airflow.tasks.files import masked
from airflow_flinkcompat.model import StartMode, StartModeName

if TYPE_CHECKING:
    from airflow.sdk import Context
    from typing_extensions import Unpack

    from airflow_flinkcompat.airflow.operators.summary import Summary
    from airflow_flinkcompat.airflow.tasks.arguments import ScriptArguments, Template
    from airflow_flinkcompat.airflow.tasks.assets import RunLineage
    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.deploy import Ledger, Target
    from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
    from airflow_flinkcompat.deploy.redeploy.run import StateMigration

_RETURNED = (
    "number", "at", "job_id", "savepoint", "start_mode", "offsets", "engine", "engine_version", "sha256", "approved_by",
)  # fmt: skip


class FlinkSqlDeployOperator(ScriptOperator):
    """Stop the running job with a savepoint, and start the checked script from it or without state.

    The operator deploys the checked change. The script, settings, functions and catalog must match the digests in the
    check's summary. The ledger's head and the running job must be the old side of the check. Placeholders
    (``${conn.<id>.<attribute>}``) are resolved from Airflow connections at submission only. Literal secrets are
    refused. A start succeeds only after the job has proved that it runs from the requested state.

    If the new job does not start, the former script is restarted from the savepoint and verified, and the task fails
    with both reasons. A retry after a kill finds the completed steps, and resumes after these steps.

    Args:
        start_mode: ``savepoint`` (resume), ``checkpoint`` (resume from the former job's latest retained checkpoint; for
            compatible changes, also of a failed job), ``stateless``, or ``auto-first`` (``stateless`` if nothing is
            deployed, else ``savepoint``). (templated)
        check_task_id: The FlinkSqlCompatibilityOperator whose version is deployed; by default, the only one upstream
            for the same deployment.
        approval_task_id: The approval whose answer is recorded in the ledger; by default, the one upstream.
        savepoint_directory: Folder for savepoints; default: the savepoint folder of the cluster. (templated)
        settle_seconds: Seconds for which the new job must run without a failure.
        stop_timeout: Maximum seconds for the stop with savepoint.
        start_timeout: Maximum seconds until the new job has proved that it runs.
        roll_back: Restart the former script if the new script does not run.
        keep_savepoints: Number of savepoints to keep from stops of this deployment. Older savepoints are deleted,
            except for the savepoint that a rollback needs. None: keep all.
        deferrable: Wait in the triggerer if a stop or start takes long.
        patience: Seconds for which the worker waits before the task is deferred.
        poll_interval: Seconds between two queries in the triggerer.
        allow_ended: Start stateless even if the deployed job was ended by something other than this deployment.
        hand_over: The hand-over record of a backfill with a boundary: a mapping (``hand_over`` in the result of a
            FlinkBackfillOperator), JSON text, or a path or URI. The record must belong to exactly this script, and the
            start must be stateless. The log shows the required starting positions of the sources, and the ledger stores
            the record. (templated)
        source_offsets: Starting positions of the sources: ``as-stored``, ``earliest``, ``latest``, a time in ISO 8601
            with its zone, or ``script`` (the options in the script). Pass one value for all sources, or a mapping by
            table (or JSON). A start from a savepoint or checkpoint accepts only ``as-stored``. The default of a
            stateless start is ``script``, or the position that a hand-over needs, if the source supports this position.
            (templated)
        plan_only: Change nothing. The target returns the spec that runs the script, for a platform that is configured
            in a different way (by a pull request to the repository that Argo CD or Flux follows). The plan is logged,
            pushed to XCom (``plan``), written to ``plan_to``, and recorded in the ledger. After the plan was carried
            out, the next check records the running job. Requires the target ``kubernetes``.
        plan_to: Path or URI of the file for the plan; an existing file is replaced. (templated)
        rollback_notifiers: Airflow notifiers, called after the new job failed and the former script was restarted. If a
            notifier fails, a warning is logged.
    """

    role = TaskRole.DEPLOY
    template_fields: Sequence[str] = (
        *ScriptOperator.template_fields, "start_mode", "savepoint_directory", "hand_over", "source_offsets", "plan_to",
    )  # fmt: skip
    operator_extra_links = (FlinkJobLink(), FlinkChangeLink())
    takes_programs = False
    ui_color = "#e6f4ea"
    start_modes: ClassVar[tuple[StartMode, ...]] = tuple(mode for mode in StartMode if mode is not StartMode.MIGRATED)

    def __init__(
        self,
        *,
        start_mode: StartModeName | Template = "savepoint",
        check_task_id: str | None = None,
        approval_task_id: str | None = None,
        savepoint_directory: str | None = None,
        settle_seconds: float = 10,
        stop_timeout: float = 600,
        start_timeout: float = 300,
        roll_back: bool = True,
        keep_savepoints: int | None = 5,
        deferrable: bool = True,
        patience: float = 20,
        poll_interval: float = 5,
        allow_ended: bool = False,
        hand_over: str | Mapping[str, Any] | None = None,
        source_offsets: str | Mapping[str, str] | None = None,
        plan_only: bool = False,
        plan_to: str | None = None,
        rollback_notifiers: Any = (),
        **kwargs: Unpack[ScriptArguments],
    ) -> None:
        super().__init__(**kwargs)
        if start_mode not in self.start_modes and "{{" not in start_mode:
            raise ValueError(f"start_mode {start_mode!r} is not one of {', '.join(self.start_modes)}")
        if "{{" not in f"{source_offsets} {start_mode}":
            _check_offsets(source_offsets, start_mode)
        if plan_to and not plan_only:
            raise ValueError("plan_to needs plan_only=True: add it, or omit plan_to")
        if plan_only and (hand_over or source_offsets):
            raise ValueError(
                "plan_only accepts no hand_over and no source_offsets: the platform itself starts a planned "
                "job, at the offsets of its script"
            )
        self.plan_only = plan_only
        self.plan_to = plan_to
        self.rollback_notifiers = telemetry.each("rollback_notifiers", rollback_notifiers)
        self.source_offsets = source_offsets
        self.start_mode = start_mode
        self.check_task_id = check_task_id
        self.approval_task_id = approval_task_id
        self.savepoint_directory = savepoint_directory
        self.settle_seconds = settle_seconds
        self.stop_timeout = stop_timeout
        self.start_timeout = start_timeout
        self.roll_back = roll_back
        self.keep_savepoints = keep_savepoints
        self.deferrable = deferrable
        self.patience = patience
        self.poll_interval = poll_interval
        self.allow_ended = allow_ended
        self.hand_over = hand_over
        # Unrendered values, because a task declares its outlets before rendering.
        self._about = {"flink_conn_id": self.flink_conn_id, "deployment": self.deployment}
        if not plan_only:
            self.outlets = [*self.outlets, assets.deployment_alias(**self._about), assets.tables_alias(**self._about)]
        self.job_url = ""
        self._lineage: RunLineage | None = None
        self._step = "nothing was changed yet"

    def execute(self, context: Context) -> dict[str, Any]:
        """Deploy, or plan; return the ledger entry without the script. Raises AirflowFailException."""
        return self._plan(context) if self.plan_only else self._deploy_or_defer(context, None)

    def _plan(self, context: Context) -> dict[str, Any]:
        """Plan the change. Returns ledger entry and plan; raises AirflowFailException if it is refused."""
        from airflow_flinkcompat.deploy import ScriptRefused, TargetError
        from airflow_flinkcompat.deploy.ledger.entries import Origin, Review
        from airflow_flinkcompat.deploy.redeploy.planning import plan_change

        with readable_errors():
            summary = summaries.pull(context, self, self.check_task_id)
            self.link_change(summary.checked_entry)
            side = summaries.checked_side(self, summary)
            ledger = self.open_ledger()
            review = Review(summary.outcome, summary.report, *self._approver(context, summary), tuple(summary.waivers))
            try:
                with self.hook.get_conn() as target:
                    planned = plan_change(
                        target,
                        ledger,
                        side,
                        start_mode=self.start_mode,
                        checked_old_sha256=summary.old_sha256,
                        review=review,
                        origin=Origin.from_dict(summary.origin),
                        owner=run_name(context),
                        log=self._note,
                    )
            except (ScriptRefused, TargetError) as error:  # the version itself is faulty
                if not error.unanswered:
                    record_failure(context, ledger, side, str(error))
                raise
        plan, entry = planned.plan, planned.entry
        if self.plan_to:
            _write(self.plan_to, plan.text)
        self.log_lines(f"Nothing was changed. Plan of ledger entry {entry.number} for {plan.place}:")
        self.log.info("::group::Plan")
        self.log_lines(plan.text)
        self.log.info("::endgroup::")
        if self.plan_to:
            self.log_lines(f"Written to {self.plan_to}: after you merge it there, the next check records the new job")
        result = {key: value for key, value in entry.to_dict().items() if key in _RETURNED}
        place = {"place": plan.place, "plan": plan.text, "patch": plan.patch, "plan_to": self.plan_to}
        return {**result, **place, "deployment": self.deployment, "job_url": ""}

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> dict[str, Any]:
        """Resume after a wait in the triggerer.

        Args:
            context: Airflow's context of the task.
            event: Event of the trigger; ``wait`` is the wait at which the run paused.

        Returns:
            The result of :meth:`execute`.
        """
        return self._deploy_or_defer(context, event["wait"])

    def _deploy_or_defer(self, context: Context, wait: Mapping[str, Any] | None) -> dict[str, Any]:
        """Deploy, or resume a deploy that waited. Defers the task if a stop or start takes long."""
        from airflow_flinkcompat.airflow.tasks.assets import RunLineage
        from airflow_flinkcompat.airflow.triggers.deploy import FlinkJobTrigger
        from airflow_flinkcompat.deploy import Waiting

        if self.start_mode not in self.start_modes:
            raise AirflowFailException(f"start_mode {self.start_mode!r} is not one of {', '.join(self.start_modes)}")
        try:
            with readable_errors():
                summary = summaries.pull(context, self, self.check_task_id)
                self.link_change(summary.checked_entry)
                side = self._side(context, summary)
                verdict = {"deployment": self.deployment, "outcome": summary.outcome, "start_mode": self.start_mode}
                self._lineage = RunLineage(side, {**verdict, "sha256": side.sha256})
                about = {"deployment": self.deployment, "outcome": summary.outcome, "sha256": side.sha256}
                with telemetry.span("deploy", {**about, "start_mode": self.start_mode}, (Waiting,)) as tell:
                    entry = self._deploy(context, side, summary, wait)
                    tell(job_id=entry.job_id, entry=entry.number, savepoint=entry.start.savepoint)
        except Waiting as waiting:
            self._note(f"{waiting}: waiting in the triggerer")
            trigger = FlinkJobTrigger(
                self.flink_conn_id,
                asdict(waiting.wait),
                float(self.settle_seconds),
                float(self.poll_interval),
                **self.ledger_for_trigger(context),
                target=self.target,
            )
            self.defer(trigger=trigger, method_name="execute_complete")
        self.job_url = self.hook.job_url(entry.job_id)
        self._emit(context, side, summary, entry)
        self._measure(entry)
        result = {key: value for key, value in entry.to_dict().items() if key in _RETURNED}
        return {**result, **self._more(entry), "deployment": self.deployment, "job_url": self.job_url}

    def _more(self, entry: DeployedEntry) -> dict[str, Any]:
        return {}

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """OpenLineage facets of a deploy, requested by the OpenLineage provider in the task's process.

        Args:
            task_instance: The task instance.

        Returns:
            ``OperatorLineage``; None for a plan, which changes nothing.
        """
        from airflow_flinkcompat.airflow.tasks.assets import operator_lineage

        return operator_lineage(self._lineage)

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        """OpenLineage facets of a failed deploy, up to the step that failed.

        Args:
            task_instance: The task instance.

        Returns:
            ``OperatorLineage``; None if the checked script was not read yet.
        """
        from airflow_flinkcompat.airflow.tasks.assets import operator_lineage

        return operator_lineage(self._lineage, event="failed", step=masked(self._step))

    def _measure(self, entry: DeployedEntry) -> None:
        from airflow_flinkcompat.deploy import DeployError

        telemetry.count(f"deploy.{entry.start.start_mode}", self.deployment)
        if entry.start.savepoint_bytes is not None:
            telemetry.level("savepoint_bytes", entry.start.savepoint_bytes, self.deployment)
        try:
            accepted, verified = telemetry.downtime(self.open_ledger().entries())
        except (DeployError, AirflowException) as error:  # the deploy itself succeeded
            self.log.warning("The downtime is not measured: %s", masked(str(error)))
            return
        for name, took in (("accepted", accepted), ("verified", verified)):
            if took is not None:
                telemetry.duration(f"downtime.{name}", took, self.deployment)

    def _emit(self, context: Context, side: Side, summary: Summary, entry: DeployedEntry) -> None:
        """Emit asset events for the deployment and for the tables that its script writes."""
        from airflow_flinkcompat.airflow.tasks.assets import RunLineage
        from airflow_flinkcompat.plan.datasets import written

        start = entry.start
        extra = {
            "event": "migrated" if start.migrated_from else "deployed",
            "deployment": self.deployment,
            "outcome": entry.review.outcome,
            "entry": entry.number,
            "sha256": entry.sha256,
            "old_entry": summary.old_entry or None,
            "old_sha256": summary.old_sha256,
            "engine": side.engine,
            "engine_version": side.engine_version,
            "start_mode": start.start_mode,
            "savepoint": start.savepoint,
            "migrated_from": start.migrated_from,
            "job_id": entry.job_id,
            "commit": entry.origin.commit,
        }
        uri = assets.deployment_uri(self.deployment, self.flink_conn_id)
        assets.emit(self, context, assets.deployment_alias(**self._about), {uri: extra})
        assets.emit_tables(self, context, assets.tables_alias(**self._about), written(side.program), extra)
        self._lineage = RunLineage(side, extra)

    def _side(self, context: Context, summary: Summary) -> Side:
        """The checked side: from the task's files, or from the ledger if they changed during this run.

        When the files change, the former job may already be stopped. It must then be replaced with the checked version,
        or be restored.
        """
        from airflow_flinkcompat.deploy.ledger.entries import DeployingEntry
        from airflow_flinkcompat.deploy.ledger.status import Progress

        try:
            return summaries.checked_side(self, summary)
        except AirflowFailException:
            progress = Progress.of(self.open_ledger().entries())
            claim = progress.latest(DeployingEntry)
            ours = progress.unfinished is not None and progress.unfinished.owner == run_name(context)
            if not ours or claim is None or progress.reached is None:
                raise
            begun = side_of(claim)
            if begun.sha256 != summary.new_sha256:
                raise
            self.log_lines(f"the script changed since this run began: the checked version is deployed, {begun.source}")
            return begun

    def _deploy(self, context: Context, side: Side, summary: Summary, wait: Mapping[str, Any] | None) -> DeployedEntry:
        from airflow_flinkcompat.deploy import (
            Options,
            RolledBack,
            ScriptRefused,
            SubmissionUnknown,
            TargetError,
            Wait,
            deploy,
        )
        from airflow_flinkcompat.deploy.ledger.entries import Origin, Review
        from airflow_flinkcompat.deploy.redeploy.preconditions import read_hand_over

        ledger = self.open_ledger()
        approved_by, reason = self._approver(context, summary)
        hand_over = read_hand_over(self.hand_over) if self.hand_over else None
        options = Options(
            savepoint_directory=self.savepoint_directory,
            settle_seconds=self.settle_seconds,
            stop_timeout=self.stop_timeout,
            start_timeout=self.start_timeout,
            roll_back=self.roll_back,
            keep_savepoints=self.keep_savepoints,
            allow_ended=self.allow_ended,
            patience=self.patience if self.deferrable else None,
        )
        try:
            with self.hook.get_conn() as target, ExitStack() as opened:
                migration = self._migration(target, ledger, side, summary, opened)
                return deploy(
                    target,
                    ledger,
                    side,
                    start_mode=self.start_mode if migration is None else StartMode.MIGRATED,
                    checked_old_sha256=summary.old_sha256,
                    review=Review(summary.outcome, summary.report, approved_by, reason, tuple(summary.waivers)),
                    origin=Origin.from_dict(summary.origin),
                    owner=run_name(context),
                    hand_over=hand_over,
                    offsets=self.source_offsets if migration is None else None,
                    migration=migration,
                    options=options,
                    resumed=Wait.from_dict(wait) if wait else None,
                    # Airflow renews this date when a task of an ended run is cleared, but not for a retry.
                    asked_at=getattr(context.get("dag_run"), "start_date", None),
                    log=self._note,
                )
        except SubmissionUnknown:
            raise
        except RolledBack as error:
            telemetry.count("rolled_back", self.deployment)
            why = {"event": "rolled back", "deployment": self.deployment, "why": masked(str(error))}
            telemetry.notify(self, context, self.rollback_notifiers, {**why, "outcome": summary.outcome})
            raise
        except (ScriptRefused, TargetError) as error:  # the version itself is faulty, and nothing was changed
            record_failure(context, ledger, side, str(error))
            raise

    def _migration(
        self, target: Target, ledger: Ledger, side: Side, summary: Summary, opened: ExitStack
    ) -> StateMigration | None:
        """The migration that rewrites the savepoint, for subclasses; ``opened`` closes its resources."""
        return None

    def on_kill(self) -> None:
        """Log the progress. The end of this task stops no job."""
        self.log.warning(
            "Killed while: %s. Running jobs keep running, and the completed steps are in the ledger of %s. "
            "Clear this task to resume where it stopped.", self._step, self.deployment,
        )  # fmt: skip

    def _note(self, message: str) -> None:
        self._step = message
        self.log_lines(message)

    def _approver(self, context: Context, summary: Summary) -> tuple[str | None, str | None]:
        """Approver and reason. Raises AirflowFailException if the decision does not allow this start."""
        decided, by, reason, found = summary.branch, None, None, self._approvals()
        # A person may also decide after a shadow run, whatever the branch of the check.
        answers = (context["ti"].xcom_pull(task_ids=task_id, key=summaries.DECISION) for task_id in found)
        if answer := next((row for row in answers if row and row.get("new_sha256") == summary.new_sha256), None):
            # Approvals of earlier releases have no reason.
            decided, by, reason = str(answer["choice"]), str(answer["by"]), answer.get("reason")
        elif summary.branch == "approve" and found:
            raise AirflowFailException(f"this version of {self.deployment} was not approved by {', '.join(found)}")
        if decided == "reject":
            raise AirflowFailException(
                f"the decision on {self.deployment} is 'reject': do not connect that branch to a deploy task"
            )
        if decided == "restart" and self.start_mode != "stateless":
            raise AirflowFailException(
                f"the decision on {self.deployment} is {decided!r}, but this task would resume (start_mode "
                f"{self.start_mode!r}): connect that branch to a task with start_mode 'stateless'"
            )
        if (decided == "migrate") != (self.start_mode == StartMode.MIGRATED.value):
            raise AirflowFailException(
                f"the decision on {self.deployment} is {decided!r}, but this task starts with start_mode "
                f"{self.start_mode!r}: connect only the branch 'migrate' to a FlinkStateMigrationOperator"
            )
        return by, reason

    def _approvals(self) -> list[str]:
        return [self.approval_task_id] if self.approval_task_id else summaries.upstream(self, TaskRole.APPROVAL)


def _write(place: str, text: str) -> None:
    from upath import UPath

    try:
        file = UPath(place)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except (OSError, ValueError, ImportError) as error:
        raise AirflowException(
            f"the plan cannot be written to {place}: {error}. Nothing was changed. The ledger contains the plan, "
            f"and a retry plans again"
        ) from None


def _check_offsets(argument: str | Mapping[str, str] | None, start_mode: str) -> None:
    """Raise ValueError for invalid offsets, so that Airflow shows an import error."""
    from airflow_flinkcompat.deploy.errors import DeployRefused
    from airflow_flinkcompat.deploy.offset_choices import SourceOffsets

    try:
        offsets = SourceOffsets.of(argument)
        if start_mode in ("savepoint", "checkpoint"):
            offsets.require_stored()
    except DeployRefused as error:
        raise ValueError(f"source_offsets: {error}") from None
