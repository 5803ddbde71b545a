"""Waits, in the triggerer, for what a cluster does about a job: its stop with savepoint, or the proof of its start."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy import Target, Wait
    from airflow_flinkcompat.hooks.flink import FlinkHook


class FlinkJobTrigger(BaseTrigger):
    """Fires once there is something to go on with, or nothing more to wait for; judges nothing.

    ``wait`` holds the fields of ``deploy.Wait``; the event is ``{"wait": …}`` with ``proven_since`` filled in. A
    cluster that does not answer is asked again until ``wait["until"]``.
    """

    def __init__(self, flink_conn_id: str, wait: dict[str, Any], settle_seconds: float, poll_interval: float) -> None:
        super().__init__()
        self.flink_conn_id = flink_conn_id
        self.wait = wait
        self.settle_seconds = settle_seconds
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("flink_conn_id", "wait", "settle_seconds", "poll_interval")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    @cached_property
    def hook(self) -> FlinkHook:
        from airflow_flinkcompat.hooks.flink import FlinkHook

        return FlinkHook(self.flink_conn_id)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from airflow_flinkcompat.deploy import Wait

        wait = Wait(**self.wait)
        while time.time() < wait.until:
            found = await asyncio.to_thread(self._look, wait)
            if isinstance(found, Wait):
                wait = found
                break
            wait = wait if found is None else replace(wait, proven_since=found)
            await asyncio.sleep(self.poll_interval)
        yield TriggerEvent({"wait": asdict(wait)})

    def _look(self, wait: Wait) -> Wait | float | None:
        """The wait once it is over; else since when the job is proved, None while it is not."""
        from airflow_flinkcompat.deploy import ApiError, DeployError

        try:
            with self.hook.get_conn() as target:
                return self._stop(target, wait) if wait.trigger_id else self._start(target, wait)
        except ApiError as error:
            self.log.info("%s", error)
            return None if error.unanswered else wait
        except DeployError as error:
            self.log.info("%s", error)
            return wait

    @staticmethod
    def _stop(target: Target, wait: Wait) -> Wait | None:
        return None if target.stop_result(wait.job_id, str(wait.trigger_id)) is None else wait

    def _start(self, target: Target, wait: Wait) -> Wait | float | None:
        status = target.status(wait.job_id)
        if status is None:
            return None
        if status.terminal or status.failure:
            return wait
        if not (status.tasks_running and status.completed_checkpoints):
            return None
        since = wait.proven_since or time.time()
        return replace(wait, proven_since=since) if time.time() - since >= self.settle_seconds else since
