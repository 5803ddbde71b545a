"""Triggers that wait for a cluster's answer, a stop, a verified start, or a step of a rehearsal.

The triggers change no job, except that a killed rehearsal ends its own jobs. When a person ends, clears or marks the
waiting task, Airflow (since 3.3) calls ``on_kill``, and the task's log and the ledger name the jobs left running.
``on_kill`` is not called when a triggerer stops or restarts.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException
from airflow.triggers.base import BaseTrigger, TriggerEvent

if TYPE_CHECKING:
    from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
    from airflow_flinkcompat.deploy import JobRef, JobStatus, Target, Wait

# By default, Airflow allows 30 s for on_kill.
_KILL_SECONDS, _STATE_SECONDS = 28.0, 10.0


class FlinkJobTrigger(BaseTrigger):
    """Fire when the run can resume or has nothing left to wait for; the run decides how to continue.

    ``wait`` contains the fields of ``deploy.Wait``. The event is ``{"wait": …}``, whose ``proven_since`` is set if the
    job is proven to run. A cluster that does not answer is queried again until ``wait["until"]``. If the task is
    killed, an entry for ``deployment`` and ``owner`` (the run's name) is written to ``ledger`` (None: the connection's
    ledger). Without a ``deployment``, no entry is written. ``target`` is the target of the task.
    """

    arguments: Sequence[str] = (
        "flink_conn_id", "wait", "settle_seconds", "poll_interval", "deployment", "ledger", "owner", "target",
    )  # fmt: skip

    def __init__(
        self,
        flink_conn_id: str,
        wait: dict[str, Any],
        settle_seconds: float,
        poll_interval: float,
        deployment: str = "",
        ledger: str | None = None,
        owner: str = "",
        target: str | None = None,
    ) -> None:
        super().__init__()
        self.flink_conn_id = flink_conn_id
        self.wait = wait
        self.settle_seconds = settle_seconds
        self.poll_interval = poll_interval
        self.deployment = deployment
        self.ledger = ledger
        self.owner = owner
        self.target = target

    def serialize(self) -> tuple[str, dict[str, Any]]:
        place = f"{type(self).__module__}.{type(self).__qualname__}"
        return place, {name: getattr(self, name) for name in self.arguments}

    @cached_property
    def hook(self) -> FlinkHook:
        from airflow_flinkcompat.airflow.hooks.flink import FlinkHook

        return FlinkHook(self.flink_conn_id, target=self.target)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from airflow_flinkcompat.deploy import Wait

        wait = self._wait()
        self.log.info("waiting for %s", self.what(wait))
        while time.time() < wait.until:
            found = await asyncio.to_thread(self._look, wait)
            if isinstance(found, Wait):
                wait = found
                break
            wait = wait if found is None else replace(wait, proven_since=found)
            await asyncio.sleep(self.poll_interval)
        yield TriggerEvent({"wait": asdict(wait)})

    def _wait(self) -> Wait:
        from airflow_flinkcompat.deploy import Wait

        return Wait.from_dict(self.wait)

    def what(self, wait: Wait) -> str:
        return _awaited(wait)

    def _look(self, wait: Wait) -> Wait | float | None:
        """The finished wait, or the time since which the job is proven to run; None if neither is known."""
        from airflow_flinkcompat.deploy import DeployError

        try:
            with self.hook.get_conn() as target:
                return self._stop(target, wait) if wait.request_id else self._start(target, wait)
        except DeployError as error:
            if error.unanswered:
                self.log.info("%s", error)
                return None
            return self._to_be_judged(wait, error)
        # includes errors of the connection, because a failed trigger would fail the task without a reason
        except Exception as error:
            return self._to_be_judged(wait, error)

    def _to_be_judged(self, wait: Wait, error: Exception) -> Wait:
        # The error's text may contain the value of a placeholder, which only the task can mask.
        self.log.info("the wait has a result (%s): continuing in a worker", type(error).__name__)
        return wait

    @staticmethod
    def _stop(target: Target, wait: Wait) -> Wait | None:
        from airflow_flinkcompat.deploy.target import Operation, Verb

        asked = target.poll(Operation(Verb(wait.verb), str(wait.request_id), wait.job_id))
        return None if asked.snapshot is None else wait

    def _start(self, target: Target, wait: Wait) -> Wait | float | None:
        status = target.status(wait.job_id)
        if status is None:
            return None
        if status.terminal or status.failure:
            return wait
        if not self._is_up(status):
            return None
        since = wait.proven_since or time.time()
        return replace(wait, proven_since=since) if time.time() - since >= self.settle_seconds else since

    def _is_up(self, status: JobStatus) -> bool:
        return status.tasks_running and status.completed_checkpoints != 0

    # ------------------------------------------------------------------------------- a person ends, clears or marks it
    async def on_kill(self) -> None:
        """Report the jobs left running, even though Airflow 3.3 cancels this method repeatedly."""
        work = asyncio.create_task(self._on_kill())
        until = time.monotonic() + _KILL_SECONDS
        while not work.done() and time.monotonic() < until:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({work}, timeout=until - time.monotonic())
        if work.done():
            work.result()

    async def _on_kill(self) -> None:
        if await asyncio.to_thread(self._is_deferred):
            self.log.info("a different triggerer took over this task: nobody ended it")
        else:
            await self.killed()

    def _is_deferred(self) -> bool:
        """True if the task is still deferred, so that the reported kill is only a takeover of this trigger.

        Airflow 3.3 also reports a kill when a different triggerer takes over the trigger, because this triggerer was
        too busy for its heartbeat. The result is False if the task's state is unknown. A trigger can read only the
        state of its task, not the number of the try or the id of the task's trigger. Therefore, a kill is not reported
        if the task was cleared and is already deferred again. This is harmless, because the new try has taken over the
        same stop or job.
        """
        with contextlib.suppress(Exception):
            from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

            ti: Any = self.task_instance
            found = RuntimeTaskInstance.get_task_states(
                dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=ti.map_index
            )
            return {str(state) for state in found[ti.run_id].values()} == {"deferred"}
        return False

    async def killed(self) -> None:
        """Log and record the jobs left running after a person ended, cleared or marked the task."""
        wait = self._wait()
        try:
            state = await asyncio.wait_for(asyncio.to_thread(self._state, wait.job_id), _STATE_SECONDS)
        except TimeoutError:
            state = "in a state that the cluster does not report now"
        fact = f"ended, cleared or marked by a person while it waited in the triggerer. {_remaining_jobs(wait, state)}"
        self.log.warning("The task was %s", fact)
        if self.deployment:
            await asyncio.to_thread(self._record, wait, f"the task was {fact}")

    def _state(self, job_id: JobRef) -> str:
        with contextlib.suppress(Exception), self.hook.get_conn() as target:
            status = target.status(job_id)
            return status.state if status else "unknown to the cluster"
        return "in a state that the cluster does not report now"

    def _record(self, wait: Wait, message: str) -> None:
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.deploy.ledger.entries import InterruptedEntry

        entry = InterruptedEntry(job_id=wait.job_id, request_id=wait.request_id, message=message, owner=self.owner)
        try:
            self.hook.ledger(self.deployment, self.ledger).append(entry)
        except (DeployError, AirflowException) as error:
            self.log.warning("This could not be recorded in the ledger of %s: %s", self.deployment, error)


def _awaited(wait: Wait) -> str:
    stops = f"the stop of job {wait.job_id} with a savepoint (request {wait.request_id})"
    return stops if wait.request_id else f"the verification of job {wait.job_id}"


def _remaining_jobs(wait: Wait, state: str) -> str:
    """Description of the jobs left running, and of the ways to resume."""
    if wait.request_id:
        return (
            f"It waited for {_awaited(wait)}, which continues; the job is {state}, and no job is started afterwards. "
            f"To start from the same savepoint, clear this task or deploy again"
        )
    return (
        f"It waited for {_awaited(wait)}; the job is {state} and is neither ended nor verified. To verify the same "
        f"job, or to roll back if it does not run, clear this task or deploy again"
    )


# By default, Airflow allows 30 s for on_kill; a separate process ends the remaining jobs.
_CLEANING_SECONDS = 15.0


def kills_reach_triggers() -> bool:
    """True if Airflow (3.3 and later) notifies a trigger when a person ends, clears or marks its task."""
    return hasattr(BaseTrigger, "on_kill")


class FlinkRehearsalTrigger(FlinkJobTrigger):
    """Fire when a rehearsal's job is up, settled or failed, or when its savepoint is written.

    ``state`` is the rehearsal's state from ``rehearsal.Paused``. When a person ends, clears or marks the waiting task,
    this trigger ends the jobs of the rehearsal, but not when a triggerer stops or restarts. If Airflow does not report
    a kill (``kills_reach_triggers``), a rehearsal must not wait in this trigger.
    """

    arguments: Sequence[str] = ("flink_conn_id", "wait", "settle_seconds", "poll_interval", "state", "target")

    def __init__(
        self,
        flink_conn_id: str,
        wait: dict[str, Any],
        settle_seconds: float,
        poll_interval: float,
        state: Mapping[str, Any],
        target: str | None = None,
    ) -> None:
        super().__init__(flink_conn_id, wait, settle_seconds, poll_interval, target=target)
        self.state = state

    def _wait(self) -> Wait:
        # A wait that an earlier release stored has no verb. A savepoint request also finds the savepoint of a stop.
        return super()._wait() if "verb" in self.wait else replace(super()._wait(), verb="savepoint")

    def what(self, wait: Wait) -> str:
        if wait.request_id:
            return f"a savepoint of job {wait.job_id}"
        return f"job {wait.job_id} to {'keep running' if wait.proven_since else 'start'} next to the live one"

    def _is_up(self, status: JobStatus) -> bool:
        return status.tasks_running  # a rehearsal does not wait for checkpoints

    async def killed(self) -> None:
        """End the jobs of the rehearsal; the live job keeps running."""
        self.log.warning("A person ended, cleared or marked the task while its rehearsal waited: ending the rehearsal")
        left = await asyncio.to_thread(self._abandon)
        for words in left:
            self.log.warning("not ended yet, a separate process keeps trying: %s", words)
        if not left:
            self.log.info("the jobs of the rehearsal have ended; the live job keeps running")

    def _abandon(self) -> list[str]:
        from airflow_flinkcompat.deploy.rehearsal.sequence import abandon

        with self.hook.rehearsal_cluster() as cluster:
            return abandon(cluster, self.state, timeout=_CLEANING_SECONDS)


# First and last interval in seconds between two queries; each interval is twice the previous one.
_FIRST, _LAST = 5.0, 60.0


class SqlGatewayTrigger(BaseTrigger):
    """Fire when the target answers in any way, or after ``until`` (seconds since the epoch).

    The event is ``{"until": …, "silent": bool}``. ``silent`` is True if the target did not answer at least once.
    """

    def __init__(
        self, flink_conn_id: str, until: float, first_pause: float = _FIRST, target: str | None = None
    ) -> None:
        super().__init__()
        self.flink_conn_id = flink_conn_id
        self.until = until
        self.first_pause = first_pause
        self.target = target

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("flink_conn_id", "until", "first_pause", "target")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        pause, reported = self.first_pause, ""
        while (left := self.until - time.time()) > 0:
            silence = await asyncio.to_thread(self._silence)
            if silence is None:
                break
            if silence != reported:
                self.log.info("%s: trying again every %.0f to %.0f s", silence, self.first_pause, _LAST)
                reported = silence
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, _LAST)
        yield TriggerEvent({"until": self.until, "silent": bool(reported)})

    def _silence(self) -> str | None:
        """Error of a target that does not answer; None if it answers, or if the error has a different cause."""
        from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
        from airflow_flinkcompat.deploy import DeployError

        try:
            FlinkHook(self.flink_conn_id, target=self.target).engine()
        except DeployError as error:
            return str(error) if error.unanswered else None
        # for example of the connection; a failed trigger would fail the task without a reason
        except Exception as error:
            self.log.info("the wait has a result (%s): continuing in a worker", type(error).__name__)
        return None
