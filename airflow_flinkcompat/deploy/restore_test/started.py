"""What a rehearsal has started, or is about to: what has to be ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Started:
    """What was announced: ids of jobs, and (job, trigger) of savepoints → path, None while it is not known.

    The JobManager remembers for minutes only what became of a trigger.
    """

    jobs: list[str] = field(default_factory=list)
    savepoints: dict[tuple[str, str], str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Started:
        """What the rehearsal has started that was paused with this state."""
        started = cls()
        for message in state["started"]:
            started.take(message)
        return started

    def messages(self) -> list[dict[str, Any]]:
        """What announces all of it anew, as JSON values."""
        jobs = [{"job": job_id} for job_id in self.jobs]
        return [*jobs, *({"savepoint": [*key], "path": path} for key, path in self.savepoints.items())]

    def take(self, message: Mapping[str, Any]) -> None:
        if "job" in message:
            self.jobs.append(str(message["job"]))
        elif "savepoint" in message:
            job_id, trigger = message["savepoint"]
            self.savepoints[job_id, trigger] = message.get("path")
