"""Rehearse a restore beside the live job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_flinkcompat.operators.base import ScriptOperator, readable_errors, side_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.deploy import LedgerEntry
    from airflow_flinkcompat.deploy.rehearsal import Rehearsal

FINDINGS = ("refused", "restored", "could not tell")


class FlinkRestoreRehearsalOperator(ScriptOperator):
    """Restores the proposed script from a savepoint of the running job, beside it, and says what Flink makes of it.

    The job of the ledger's head is asked for a savepoint and for nothing else. From it the deployed script is restored
    as a control, then the proposed one, both with stand-in sinks and private consumer groups; both are ended and the
    savepoints disposed of afterwards, also when this task is killed. Returns the finding: ``refused``, ``restored``
    (which is no proof of right rows: the check says that) or ``could not tell``, its reason, and the operators whose
    state was claimed and dropped.

    :param fail_on: findings that fail the task, ``refused`` and ``could not tell`` for instance; none by default.
    :param savepoint_directory: where savepoints go; default: the cluster's. (templated)
    :param settle_seconds: how long each job is watched without failure.
    :param start_timeout: seconds each job has to come up.
    """

    template_fields: Sequence[str] = (*ScriptOperator.template_fields, "savepoint_directory")
    ui_color = "#e8e6f4"

    def __init__(
        self,
        *,
        fail_on: Sequence[str] = (),
        savepoint_directory: str | None = None,
        settle_seconds: float = 5,
        start_timeout: float = 180,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if unknown := [finding for finding in fail_on if finding not in FINDINGS]:
            raise ValueError(f"fail_on {unknown[0]!r} is not one of {', '.join(FINDINGS)}")
        self.fail_on = fail_on
        self.savepoint_directory = savepoint_directory
        self.settle_seconds = settle_seconds
        self.start_timeout = start_timeout

    def execute(self, context: Context) -> dict[str, Any]:
        """The finding as data (schema ``flinkcompat-rehearsal/1``). Raises AirflowFailException: one to fail on."""
        from airflow_flinkcompat.deploy.rehearsal import Finding, Rehearsal

        with readable_errors():
            head = self.open_ledger().head()
            side = self.proposed_side("flink", None)
            if head is None:
                found = Rehearsal(Finding.UNTOLD, f"nothing of {self.deployment} is deployed: there is no state")
            else:
                found = self._rehearse(head, side)
        text = "\n".join(found.lines())
        self.log_lines(text)
        if str(found.finding) in self.fail_on:
            raise AirflowFailException(text)
        return {**found.to_dict(), "deployment": self.deployment, "new_sha256": side.sha256}

    def _rehearse(self, head: LedgerEntry, side: Side) -> Rehearsal:
        from airflow_flinkcompat.deploy import JobManager, SqlGateway
        from airflow_flinkcompat.deploy.rehearsal import Cluster, Patience, RehearsalOptions, rehearse
        from airflow_flinkcompat.hooks.flink import connection_lookup

        hook = self.hook
        options = RehearsalOptions(
            self.savepoint_directory, Patience(settle=self.settle_seconds, start=self.start_timeout)
        )
        with SqlGateway(hook.gateway_endpoint) as gateway, JobManager(hook.jobmanager_endpoint) as jobmanager:
            cluster = Cluster(gateway, jobmanager, connection_lookup(hook.get_connection), hook.access)
            return rehearse(cluster, str(head.job_id), side_of(head), side, options, self.log_lines)

    def on_kill(self) -> None:
        """The rehearsal ends what it has started, and its watcher does when it cannot."""
        self.log.warning("Killed: the jobs beside %s are being ended; the live job goes on", self.deployment)
