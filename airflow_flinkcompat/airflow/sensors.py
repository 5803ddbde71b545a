"""Sensor that waits until the proposed script needs a check."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowSensorTimeout
from airflow.sdk import BaseSensorOperator

from airflow_flinkcompat.airflow.tasks.base import ScriptOperator, readable_errors
from airflow_flinkcompat.airflow.tasks.files import FileMissing, masked_words
from airflow_flinkcompat.airflow.tasks.offers import Offer, offer_of

if TYPE_CHECKING:
    from airflow.sdk import Context
    from typing_extensions import Unpack

    from airflow_flinkcompat.airflow.tasks.arguments import SensorArguments
    from airflow_flinkcompat.deploy import Ledger
    from airflow_flinkcompat.deploy.ledger.entries import PlannedEntry

__all__ = ["FlinkSqlChangeSensor"]

# Long enough for a job that nobody edits, and short enough for dates in databases and JSON.
_NO_TIMEOUT = timedelta(days=3650)
# If a task resumes too soon, Airflow may treat the task as lost by its executor.
_SHORTEST_BACK_OFF = 5.0
WAITING_FOR = "waiting_for"
"""XCom key for the reason why the sensor waits."""


class FlinkSqlChangeSensor(ScriptOperator, BaseSensorOperator):
    """Wait until the proposed script, settings, functions or catalog differ from the deployed version.

    The ledger records the deployed version. A version that was rejected, failed to deploy or cannot be read is not
    offered again, unless it is approved later. A planned version (``plan_only``) is offered after its plan was carried
    out. While the sensor waits in the triggerer, only the script's files are hashed. The ledger is read when the files
    change, and every ``recheck`` seconds.

    A problem that a person must fix does not fail the run. Examples are a missing or unreadable script, an unknown
    connection, a missing ledger, or a ledger or cluster that does not answer. The sensor reports the problem once in
    its log and in the XCom ``waiting_for``, and waits. The sensor tries again when a file changes or appears. If no
    file changes, the sensor tries again after ``poke_interval``, and doubles the interval up to ``recheck``.

    Args:
        poke_interval: Seconds between two reads of the files.
        recheck: Seconds after which the ledger is read even if no file changed.
        timeout: Seconds (or a timedelta) after which the task fails, or is skipped with ``soft_fail``, like any Airflow
            sensor. Default: ten years, regardless of Airflow's ``[sensors] default_timeout`` (a week), because a job
            without edits is normal.
        deferrable: True to wait in the triggerer; False to wait in a worker, according to ``mode``.
        require_cluster: Offer a version only while the target answers, so that every run can deploy. Default: True,
            except for a Table API program, which no target runs.
    """

    template_fields: Sequence[str] = ScriptOperator.template_fields
    ui_color = "#e6f1f2"

    def __init__(
        self,
        *,
        poke_interval: float | timedelta = 10,
        recheck: timedelta = timedelta(minutes=10),
        timeout: float | timedelta = _NO_TIMEOUT,
        deferrable: bool = True,
        require_cluster: bool | None = None,
        **kwargs: Unpack[SensorArguments],
    ) -> None:
        super().__init__(poke_interval=poke_interval, timeout=timeout, **kwargs)
        self.recheck = recheck
        self.deferrable = deferrable
        self.require_cluster = require_cluster
        # The reason why fields could not be rendered, and the files that could not be read.
        self._unrendered: Exception | None = None
        self._absent: tuple[Path, ...] = ()
        self._reported = ""

    def _do_render_template_fields(
        self, parent: Any, template_fields: Any, context: Context, jinja_env: Any, seen_oids: set[int]
    ) -> None:
        """Defer on template rendering errors, like on any error that a person must fix."""
        if parent is not self:
            return super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        self._unrendered, self._absent = None, ()
        try:
            super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        except _to_be_mended() as error:
            self._unrendered = error
            self._absent = error.places if isinstance(error, FileMissing) else ()
            for name, value in self._unmasked.items():  # values that the UI shows
                setattr(self, name, self._masked(name, value))

    def execute(self, context: Context) -> Any:
        """Wait, then return the deployment and the reason why a version is offered."""
        if self.deferrable:
            return self._offer_or_wait(context, time.time())
        return super().execute(context)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> Any:
        """Resume after a wait in the triggerer; the texts were read again when the task resumed.

        Args:
            context: Airflow's context of the task.
            event: Event of the trigger. ``since``: start of the wait, in seconds since the epoch. ``reason``: the last
                reported reason for the wait. ``problems``: the number of consecutive tries that ended in a problem.

        Returns:
            The result of :meth:`execute`.
        """
        self._reported = str(event.get("reason", ""))
        return self._offer_or_wait(context, float(event["since"]), int(event.get("problems", 0)))

    def poke(self, context: Context) -> bool:
        """Check once in a worker; the files are read again."""
        self.reread(context)
        return self._look(context).offered

    def _offer_or_wait(self, context: Context, since: float, problems: int = 0) -> Any:
        from airflow_flinkcompat.airflow.triggers.change import FileChangeTrigger, fingerprint

        offer = self._look(context)
        if offer.offered:
            return {"deployment": self.deployment, "reason": offer.reason}
        left = self.timeout - (time.time() - since)
        if left <= 0:
            raise AirflowSensorTimeout(
                f"no new version of {self.deployment} within {self.timeout:.0f} s: {offer.reason}"
            )
        self.defer(
            trigger=FileChangeTrigger(
                paths=sorted(self.files),
                baseline=fingerprint(self.files),
                poll_interval=self.poke_interval,
                recheck_seconds=min(self._back_off(problems if offer.problem else None), left),
                since=since,
                absent=sorted(map(str, self._absent)),
                reason=offer.reason,
                problems=problems + 1 if offer.problem else 0,
            ),
            method_name="execute_complete",
        )

    def _back_off(self, problems: int | None) -> float:
        """Seconds until the next try, which grow with the number of consecutive problems."""
        ceiling = self.recheck.total_seconds()
        if problems is None:
            return ceiling
        return float(min(ceiling, max(self.poke_interval, _SHORTEST_BACK_OFF) * 2 ** min(problems, 30)))

    def _look(self, context: Context) -> Offer:
        """Decide if the version is offered, and report a changed reason for the wait."""
        try:
            offer = self._judged()
        except _to_be_mended() as error:
            offer = Offer(False, masked_words(error), problem=True)
        if offer.reason != self._reported:
            self._reported = offer.reason
            if offer.problem:
                self.log.warning("Waiting until this is corrected; nothing is started: %s", offer.reason)
            else:
                self.log.info("%s", offer.reason)
            context["ti"].xcom_push(key=WAITING_FOR, value="" if offer.offered else offer.reason)
        return offer

    def _judged(self) -> Offer:
        if self._unrendered is not None:
            raise self._unrendered
        with readable_errors():
            ledger = self.open_ledger()
            offer = offer_of(self.proposed_side("flink", None), ledger.entries())
            if offer.plan is not None:
                return self._offer_of_plan(ledger, offer, offer.plan)
            needed = not self._is_program if self.require_cluster is None else self.require_cluster
            if offer.offered and needed:
                with self.hook.get_conn() as target:
                    target.engine()
                    target.running(self.deployment)
        return offer

    def _offer_of_plan(self, ledger: Ledger, offer: Offer, plan: PlannedEntry) -> Offer:
        from airflow_flinkcompat.deploy.redeploy.planning import carried_out, is_to_be_judged

        with self.hook.get_conn() as target:
            status = carried_out(target, ledger, plan)
        if status is None:
            return offer
        fact = f"the plan of entry {plan.number} was carried out as job {status.job_id}, which is {status.state}"
        ready = is_to_be_judged(status)
        return Offer(ready, f"{fact}: the check can record it" if ready else f"{fact}: waiting until it runs")


def _to_be_mended() -> tuple[type[Exception], ...]:
    """Errors that a person must fix, or that a missing server causes. Any other error fails the task."""
    from airflow.sdk.exceptions import AirflowRuntimeError
    from jinja2 import TemplateError

    return AirflowException, AirflowRuntimeError, TemplateError, OSError
