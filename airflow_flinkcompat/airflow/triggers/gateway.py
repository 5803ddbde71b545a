"""Wait in the triggerer until a target answers again; its answer is for the task to judge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

# Seconds between two looks: the first, doubled up to the last.
_FIRST, _LAST = 5.0, 60.0


class SqlGatewayTrigger(BaseTrigger):
    """Fire once the target answers in any way, or ``until`` (seconds since the epoch) has passed.

    The event is ``{"until": …, "silent": bool}``; ``silent``: it did not answer here either, at least once.
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
        pause, said = self.first_pause, ""
        while (left := self.until - time.time()) > 0:
            silence = await asyncio.to_thread(self._silence)
            if silence is None:
                break
            if silence != said:
                self.log.info("%s: trying again every %.0f to %.0f s", silence, self.first_pause, _LAST)
                said = silence
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, _LAST)
        yield TriggerEvent({"until": self.until, "silent": bool(said)})

    def _silence(self) -> str | None:
        """Symptom of a target that does not answer; None once it does, or if something else is wrong."""
        from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
        from airflow_flinkcompat.deploy import DeployError

        try:
            FlinkHook(self.flink_conn_id, target=self.target).engine()
        except DeployError as error:
            return str(error) if error.unanswered else None
        except Exception as error:  # of the connection, say: a trigger that fails takes the task with it, unheard
            self.log.info("the wait has a result (%s): continuing in a worker", type(error).__name__)
        return None
