"""Operations that a rehearsal has started or is about to start, and that must be ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_flinkcompat.deploy.target import JobRef, Operation, Snapshot, Verb


@dataclass
class Started:
    """Announced operations by request id: starts, stops and savepoints, as far as each is known.

    A JobManager remembers the outcome of a request for minutes only.
    """

    operations: dict[str, Operation] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Started:
        """Operations of the rehearsal that was paused with this state."""
        return cls.told(state["started"])

    @classmethod
    def told(cls, messages: Iterable[Mapping[str, Any]]) -> Started:
        """Add the operations that these messages announce."""
        started = cls()
        for message in messages:
            started.take(_operation(message))
        return started

    def messages(self) -> list[dict[str, Any]]:
        """Messages that announce all operations again, as JSON values."""
        return [operation.to_dict() for operation in self.operations.values()]

    def take(self, operation: Operation) -> None:
        self.operations[operation.request_id] = operation


def _operation(message: Mapping[str, Any]) -> Operation:
    """The operation that a message announces; earlier releases name a job, or a savepoint without a kind."""
    if "verb" in message:
        return Operation.from_dict(message)
    if "job" in message:
        return Operation(Verb.START, str(message["job"]), JobRef(message["job"]))
    job, request = message["savepoint"]
    path = message.get("path")
    return Operation(Verb.SAVEPOINT, request, JobRef(job), None if path is None else Snapshot(path))
