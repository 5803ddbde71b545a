"""The place of a rehearsal: a target that has all capabilities, and the operations to end there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.target import (
    ClusterOptions,
    JobDescription,
    JobDescriptions,
    JobHistories,
    JobRef,
    LiveSavepoints,
    Operation,
    RestoreObservations,
    RestoreTests,
    SavepointStore,
    Snapshot,
    Target,
    Verb,
)
from airflow_flinkcompat.deploy.targets import TargetLocation

_ELASTIC = ("kubernetes.", "yarn.")


@runtime_checkable
class RestoreTestTarget(
    Target,
    RestoreTests,
    LiveSavepoints,
    RestoreObservations,
    SavepointStore,
    JobDescriptions,
    JobHistories,
    Protocol,
):
    """A target on which a restore can be rehearsed."""


_LACKS: Mapping[type, str] = {
    RestoreTests: "cannot replace the tables that a job would share with the live one",
    LiveSavepoints: "takes no savepoint of a running job",
    RestoreObservations: "does not show which state a job restored",
    SavepointStore: "does not delete savepoints",
    JobDescriptions: "does not show the plans of jobs",
    JobHistories: "does not show whether a job was restarted",
}


@dataclass(frozen=True)
class Cluster:
    """The cluster of the live job, or one for trials.

    ``location``: how the watcher, a process of its own, opens the same target. ``temporary``: it was started for its
    caller alone and holds only Flink's defaults.
    """

    target: Target
    location: TargetLocation = field(default_factory=TargetLocation)
    temporary: bool = False

    @property
    def restore_test_target(self) -> RestoreTestTarget:
        """The target, which has all capabilities that a rehearsal needs.

        Raises:
            DeployRefused: It cannot; the message names what it lacks, and where to rehearse instead.
        """
        if isinstance(self.target, RestoreTestTarget):
            return self.target
        lacking = "; ".join(words for each, words in _LACKS.items() if not isinstance(self.target, each))
        raise DeployRefused(
            f"nothing can be rehearsed on {self.target}: it {lacking}. If a SQL Gateway of the same cluster "
            "runs, rehearse there (the target sql-gateway)"
        )


def missing_slots(target: RestoreTestTarget, needed: int) -> str:
    """Reason why ``needed`` slots are not free; empty if they are, or if the cluster can grow."""
    slots = target.slots()
    if slots.free >= needed:
        return ""
    options = target.cluster_options() if isinstance(target, ClusterOptions) else {}
    if any(key.startswith(_ELASTIC) for key in options):
        return ""
    return (
        f"it needs {needed} free slot{'s' * (needed != 1)}, the cluster has {slots.free} of {slots.total}: add a "
        "TaskManager"
    )


def slots_of(described: JobDescription | None) -> int:
    """Number of slots of a job with all tasks in one sharing group: its highest parallelism."""
    return max((vertex.parallelism for vertex in (described.vertices if described else ())), default=1)


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
