"""Trigger that observes moved jobs until they were healthy for long enough, or must stop the fleet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_flinkcompat.model.engine import is_of_line

if TYPE_CHECKING:
    from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
    from airflow_flinkcompat.deploy.health import FleetHealth
    from airflow_flinkcompat.deploy.ledger.entries import HeadEntry


class FlinkHealthTrigger(BaseTrigger):
    """Fire when all moved jobs were healthy for ``hold`` seconds, or when one of them stops the fleet.

    ``jobs`` contains the name, the connection, the target and the ledger of each deployment. Only jobs that the Flink
    line ``line`` runs are observed. ``lag`` is the largest healthy value of each metric. The event is empty: the task
    observes the jobs again.
    """

    def __init__(
        self,
        jobs: Sequence[Mapping[str, str | None]],
        line: str,
        hold: float,
        lag: Mapping[str, float],
        poll_interval: float,
    ) -> None:
        super().__init__()
        self.jobs = [dict(each) for each in jobs]
        self.line = line
        self.hold = hold
        self.lag = dict(lag)
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("jobs", "line", "hold", "lag", "poll_interval")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while not await asyncio.to_thread(self._is_decided):
            await asyncio.sleep(self.poll_interval)
        yield TriggerEvent({})

    def _is_decided(self) -> bool:
        try:
            health = self.observe()
        except Exception as error:  # a failed trigger would fail the task without a reason
            self.log.info("the wait has a result (%s): continuing in a worker", type(error).__name__)
            return True
        return bool(health.failed) or health.left(time.time()) <= 0

    def observe(self) -> FleetHealth:
        """Observe all moved jobs once. Raises DeployError if a ledger is unusable."""
        from airflow_flinkcompat.deploy.health import FleetHealth, job_health

        now = time.time()
        moved = [*self._moved()]
        began = max((head.written.timestamp() for _, _, head in moved), default=now - self.hold)
        found = []
        for name, hook, head in moved:
            with hook.get_conn() as target:
                found.append(job_health(target, name, head, self.lag, now))
        return FleetHealth(found, began, self.hold)

    def _moved(self) -> Iterator[tuple[str, FlinkHook, HeadEntry]]:
        from airflow_flinkcompat.airflow.hooks.flink import FlinkHook

        for each in self.jobs:
            hook = FlinkHook(str(each["flink_conn_id"]), target=each["target"])
            head = hook.ledger(str(each["name"]), each["ledger"]).head()
            if head is not None and is_of_line(head.job.engine_version, self.line):
                yield str(each["name"]), hook, head
