"""Waiting in the triggerer for jobs that a rehearsal has started next to a live job."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger

from airflow_flinkcompat.airflow.triggers.deploy import FlinkJobTrigger

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy import JobStatus, Wait

# Airflow gives on_kill 30 s by default; what is left after this is for a process of its own.
_CLEANING_SECONDS = 15.0


def is_told_of_kills() -> bool:
    """True if Airflow (3.3 and later) notifies a trigger when a person ends, clears or marks its task."""
    return hasattr(BaseTrigger, "on_kill")


class FlinkRehearsalTrigger(FlinkJobTrigger):
    """Fire once a rehearsal's job is up, settled or failed, or its savepoint is written; judge nothing.

    ``state`` is that of ``rehearsal.Paused``. When a person ends, clears or marks the waiting task, the jobs of the
    rehearsal are ended here; not when a triggerer stops or restarts. If Airflow does not report this
    (``is_told_of_kills``), nothing that must be ended may be left to it.
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
        # One of an earlier release does not say which it waits for. Asked for as a savepoint, that of a stop is found.
        return super()._wait() if "verb" in self.wait else replace(super()._wait(), verb="savepoint")

    def what(self, wait: Wait) -> str:
        if wait.request_id:
            return f"a savepoint of job {wait.job_id}"
        return f"job {wait.job_id} to {'keep running' if wait.proven_since else 'start'} next to the live one"

    def _is_up(self, status: JobStatus) -> bool:
        return status.tasks_running  # its checkpoints are its script's business

    async def killed(self) -> None:
        """End the started jobs; the live job continues."""
        self.log.warning("Somebody ended, cleared or marked the task while its rehearsal waited: ending the rehearsal")
        left = await asyncio.to_thread(self._abandon)
        for words in left:
            self.log.warning("not ended yet, a separate process keeps trying: %s", words)
        if not left:
            self.log.info("the jobs of the rehearsal are gone; the live job keeps running")

    def _abandon(self) -> list[str]:
        from airflow_flinkcompat.deploy.restore_test import abandon

        with self.hook.rehearsal_cluster() as cluster:
            return abandon(cluster, self.state, timeout=_CLEANING_SECONDS)
