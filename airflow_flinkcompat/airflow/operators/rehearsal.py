"""Rehearsal of a restore next to the live job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_flinkcompat.airflow.operators import summary as summaries
from airflow_flinkcompat.airflow.tasks.base import (
    ScriptOperator,
    TaskRole,
    readable_errors,
    record_failure,
    run_name,
    side_of,
)
from airflow_flinkcompat.airflow.triggers.deploy import FlinkRehearsalTrigger, kills_reach_triggers
from airflow_flinkcompat.model import RehearsalFinding, RehearsalFindingName

if TYPE_CHECKING:
    from airflow.sdk import Context
    from typing_extensions import Unpack

    from airflow_flinkcompat.airflow.tasks.arguments import ScriptArguments
    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.deploy.ledger.entries import HeadEntry
    from airflow_flinkcompat.deploy.rehearsal.report import Rehearsal

# After a wait: seconds in which the started jobs must end if the rehearsal cannot continue.
_CLEANING_SECONDS = 120.0
# XCom key for the jobs and savepoints of a rehearsal that waits in the triggerer.
_STATE = "rehearsal"


class FlinkRestoreRehearsalOperator(ScriptOperator):
    """Restore the proposed script from a savepoint next to the running job, and report the result.

    The running job, which is the job of the ledger's head, takes a savepoint and is not changed in any other way. First
    the deployed script is restored from this savepoint as a control, and then the proposed script. Both restored jobs
    have stand-in sinks and private consumer groups. After the rehearsal, the restored jobs are stopped and the
    savepoints are deleted, even if this task is killed in a worker or while it waits in the triggerer. Returns the
    finding (``refused``, ``restored`` or ``could not tell``), its reason, the operators whose state was claimed, and
    the operators whose state was dropped. ``restored`` does not prove correct rows, which only the check judges.

    Downstream of a FlinkSqlCompatibilityOperator of the same deployment, exactly the checked version is rehearsed.

    Args:
        fail_on: Findings that fail the task without a retry, such as ``refused`` and ``could not tell``; none by
            default. The ledger then records the version as failed, and ``FlinkSqlChangeSensor`` does not offer the
            version again. Clear this task to repeat the rehearsal.
        savepoint_directory: Folder for savepoints; default: the savepoint folder of the cluster. (templated)
        settle_seconds: Seconds for which each job must run without a failure.
        start_timeout: Maximum seconds for the start of each job.
        savepoint_timeout: Maximum seconds for each savepoint.
        deferrable: Wait in the triggerer if a savepoint or start takes long. Before Airflow 3.3, the worker always
            waits: Airflow does not report that a person ended a deferred task, so the jobs of the rehearsal would keep
            running.
        patience: Seconds for which the worker waits before the task is deferred.
        poll_interval: Seconds between two queries in the triggerer.
        check_task_id: The check whose version is rehearsed; by default, the only check upstream for the same
            deployment.
    """

    role = TaskRole.REHEARSAL
    template_fields: Sequence[str] = (*ScriptOperator.template_fields, "savepoint_directory")
    takes_programs = False
    ui_color = "#e8e6f4"

    def __init__(
        self,
        *,
        fail_on: Sequence[RehearsalFindingName] = (),
        savepoint_directory: str | None = None,
        settle_seconds: float = 5,
        start_timeout: float = 180,
        savepoint_timeout: float = 600,
        deferrable: bool = True,
        patience: float = 20,
        poll_interval: float = 5,
        check_task_id: str | None = None,
        **kwargs: Unpack[ScriptArguments],
    ) -> None:
        super().__init__(**kwargs)
        if unknown := [finding for finding in fail_on if finding not in tuple(RehearsalFinding)]:
            raise ValueError(f"fail_on {unknown[0]!r} is not one of {', '.join(RehearsalFinding)}")
        self.fail_on = fail_on
        self.savepoint_directory = savepoint_directory
        self.settle_seconds = settle_seconds
        self.start_timeout = start_timeout
        self.savepoint_timeout = savepoint_timeout
        self.deferrable = deferrable
        self.patience = patience
        self.poll_interval = poll_interval
        self.check_task_id = check_task_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the result (``flinkcompat-rehearsal/1``). Raises AirflowFailException (``fail_on``)."""
        from airflow_flinkcompat.deploy.rehearsal.report import Rehearsal

        with readable_errors():
            head = self.open_ledger().head()
            side = self._side(context)
            if head is None:
                found = Rehearsal(
                    RehearsalFinding.INCONCLUSIVE, f"{self.deployment} has no deployed job: there is no state to test"
                )
            else:
                found = self._rehearse(context, head, side, None)
            return self._result(context, found, side)

    def execute_complete(
        self, context: Context, event: Mapping[str, Any], entry: int, sha256: str, state: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Resume after a wait in the triggerer.

        Args:
            context: Airflow's context of the task.
            event: Event of the trigger; it is not used.
            entry: The number of the ledger entry whose job is rehearsed.
            sha256: The digest of the version that is rehearsed.
            state: Operations that the rehearsal has started so far.

        Returns:
            The result of :meth:`execute`.

        Raises:
            AirflowFailException: A different version is proposed now, or the finding is in ``fail_on``.
        """
        from airflow_flinkcompat.deploy.ledger.entries import HeadEntry

        with readable_errors():
            try:
                entries = self.open_ledger().entries()
                head = next(each for each in entries if isinstance(each, HeadEntry) and each.number == entry)
                side = self._side(context)
                if side.sha256 != sha256:
                    raise AirflowFailException(
                        f"the proposed version ({side.sha256[:12]}) differs from the rehearsed one "
                        f"({sha256[:12]}): the script, settings, functions or catalog changed in between. "
                        "Run the rehearsal again"
                    )
            except BaseException:
                self._abandon(state)
                raise
            return self._result(context, self._rehearse(context, head, side, state), side)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """If the wait in the triggerer failed or timed out, stop the started jobs before the task fails."""
        if next_method == "execute_complete":
            return super().resume_execution(next_method, next_kwargs, context)
        state = context["ti"].xcom_pull(task_ids=self.task_id, key=_STATE)
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        finally:
            if state:
                self._abandon(state)

    def _side(self, context: Context) -> Side:
        if self.check_task_id or summaries.upstream(self, TaskRole.CHECK):
            return summaries.checked_side(self, summaries.pull(context, self, self.check_task_id))
        return self.proposed_side("flink", None)

    def _rehearse(self, context: Context, head: HeadEntry, side: Side, state: Mapping[str, Any] | None) -> Rehearsal:
        from airflow_flinkcompat.deploy.rehearsal.restoring import Timeouts
        from airflow_flinkcompat.deploy.rehearsal.sequence import RehearsalOptions, rehearse
        from airflow_flinkcompat.deploy.rehearsal.waiting import Paused

        timeouts = Timeouts(
            settle=self.settle_seconds,
            start=self.start_timeout,
            savepoint=self.savepoint_timeout,
            here=self.patience if self.deferrable and kills_reach_triggers() else None,
        )
        options = RehearsalOptions(self.savepoint_directory, timeouts)
        try:
            with self.hook.rehearsal_cluster() as cluster:
                return rehearse(cluster, str(head.job_id), side_of(head), side, options, self.log_lines, state)
        except Paused as paused:
            wait = paused.wait
            context["ti"].xcom_push(key=_STATE, value=paused.state)
            self.log_lines(f"{paused}: waiting in the triggerer")
            trigger = FlinkRehearsalTrigger(
                self.flink_conn_id,
                asdict(wait),
                float(self.settle_seconds) if wait.proven_since else 0.0,
                float(self.poll_interval),
                paused.state,
                target=self.target,
            )
            more = {"entry": head.number, "sha256": side.sha256, "state": paused.state}
            self.defer(trigger=trigger, method_name="execute_complete", kwargs=more)

    def _abandon(self, state: Mapping[str, Any]) -> None:
        from airflow_flinkcompat.deploy.rehearsal.sequence import abandon

        self.log_lines("the rehearsal cannot continue: ending the jobs that it started")
        with self.hook.rehearsal_cluster() as cluster:
            for words in abandon(cluster, state, timeout=_CLEANING_SECONDS):
                self.log_lines(f"not ended yet, a separate process keeps trying: {words}")

    def _result(self, context: Context, found: Rehearsal, side: Side) -> dict[str, Any]:
        from airflow_flinkcompat.deploy.ledger.entries import JobVersion, RehearsedEntry

        text = "\n".join(found.lines())
        self.log_lines(text)
        self.open_ledger().append(
            RehearsedEntry(
                version=JobVersion.of(side),
                rehearsal=found.to_dict(),
                message=found.lines()[0],
                owner=run_name(context),
            )
        )
        if str(found.finding) in self.fail_on:
            record_failure(context, self.open_ledger(), side, f"{found.lines()[0]}: {found.reason or 'see its log'}")
            raise AirflowFailException(text)
        return {**found.to_dict(), "deployment": self.deployment, "new_sha256": side.sha256}

    def on_kill(self) -> None:
        """Log that the started jobs are being ended, by the rehearsal or by a separate process."""
        self.log.warning("Killed: the jobs next to %s are being ended; the live job keeps running", self.deployment)
