"""The place of a rehearsal, and the cleanup of everything started there, even if its owner dies.

The watcher is a child process. It receives announcements of operations over its standard input: one JSON object a line,
the first of which states how to open the target. ``{"done": true}`` ends it; end-of-file without that means that the
owner is gone. It then cancels every announced job and disposes of every announced savepoint. That includes those that
appear only now, because their submission was under way when the owner died.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused, SavepointFailed, SnapshotGone, StopFailed
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
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
        """The target with all capabilities that a rehearsal needs. Raises DeployRefused, naming the others."""
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
    """Announced operations by request id; a JobManager remembers outcomes for minutes only."""

    operations: dict[str, Operation] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Started:
        """Operations of the rehearsal that was paused with this state."""
        return cls.announced(state["started"])

    @classmethod
    def announced(cls, messages: Iterable[Mapping[str, Any]]) -> Started:
        started = cls()
        for message in messages:
            started.take(_operation(message))
        return started

    def messages(self) -> list[dict[str, Any]]:
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


COMING_SECONDS = 30.0
"""Seconds in which a job may still start after a submission without an answer."""
SECONDS = 300.0
"""Seconds for which a watcher whose owner died keeps trying."""
_EVERY = 0.5
# A job unknown to the cluster this long after its owner's end was never submitted.
_COMING_SECONDS = 60.0


def clean_up(
    target: RestoreTestTarget,
    started: Started,
    *,
    timeout: float = SECONDS,
    coming: float = _COMING_SECONDS,
) -> list[str]:
    """End jobs, delete savepoints, return the rest; ``coming``: seconds in which a job may still start."""
    begin = time.monotonic()

    def step() -> list[str]:
        may_come = time.monotonic() - begin < coming
        # Jobs first, because a running stop ends with its job.
        operations = sorted(started.operations.values(), key=lambda each: each.verb is not Verb.START)
        left = {each.request_id: _ended(target, each, may_come) for each in operations}
        # Completed operations are not tried again.
        started.operations = {key: each for key, each in started.operations.items() if left[key]}
        return [words for words in left.values() if words]

    try:
        return poll(step, bool, timeout=timeout, every=_EVERY)
    except Overdue as overdue:
        still: list[str] = overdue.last
        return still


def _ended(target: RestoreTestTarget, operation: Operation, may_come: bool) -> str:
    """The remainder of an operation; empty once nothing remains or can still appear."""
    try:
        end = _end_job if operation.verb is Verb.START else _end_savepoint
        return end(target, operation, may_come)
    except DeployError as error:  # the target may come back
        return str(error)


def _end_job(target: RestoreTestTarget, start: Operation, may_come: bool) -> str:
    job = target.poll(start).job
    status = None if job is None else target.status(job)
    if job is None or status is None:
        return f"job {start.job or f'of request {start.request_id}'} may still start" if may_come else ""
    if not status.terminal:
        target.cancel(job)
    return ""


def _end_savepoint(target: RestoreTestTarget, asked: Operation, _may_come: bool) -> str:
    try:
        snapshot = asked.snapshot or target.poll(asked).snapshot
    except (SavepointFailed, StopFailed):  # none was written, or none was requested
        return ""
    if snapshot is None:
        return f"the savepoint {asked.request_id} of job {asked.job} is still being written"
    with suppress(SnapshotGone):
        target.dispose(snapshot)
    return ""


class Watcher:
    """The owner's side: it starts the child, announces operations to it, and dismisses it."""

    def __init__(self, location: TargetLocation, started: Started | None = None) -> None:
        self.started = started or Started()
        path = filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        self._child = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # a signal to the owner's process group does not reach it
            text=True,
        )
        self._say(asdict(location))
        for message in self.started.messages():
            self._say(message)

    @property
    def pid(self) -> int:
        return self._child.pid

    def announce(self, operation: Operation) -> None:
        """Announce an operation before a job is started, stopped or saved, and again once it has an id."""
        self.started.take(operation)
        # A killed watcher does not stop the rehearsal: the owner cleans up itself as long as it lives.
        with contextlib.suppress(OSError):
            self._say(operation.to_dict())

    def end(self, target: RestoreTestTarget, timeout: float, coming: float = 0.0) -> list[str]:
        """End everything started, as :func:`clean_up`; the child keeps trying to end the rest."""
        left = ["?"]
        try:
            left = clean_up(target, self.started, timeout=timeout, coming=coming)
        finally:
            if left:
                self.leave()
            else:
                self.dismiss()
        return left

    def dismiss(self) -> None:
        """Dismiss the child, which has nothing left to end."""
        with contextlib.suppress(OSError):
            self._say({"done": True})
        self._close()

    def leave(self) -> None:
        """Detach; the child keeps trying to end the remaining operations."""
        self._close(wait=False)

    def _say(self, message: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(message) + "\n")
        self._child.stdin.flush()

    def _close(self, *, wait: bool = True) -> None:
        assert self._child.stdin is not None
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        if wait:
            self._child.wait(30)
        else:
            self._child.returncode = 0  # it outlives this object on purpose


def main() -> int:
    """Listen until the owner is done or gone. Return 0 if nothing remains."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the signal is meant for the owner, and this process waits for its end
    first = sys.stdin.readline()
    if not first:
        return 0
    messages: list[dict[str, Any]] = []
    for line in sys.stdin:
        if not line.endswith("\n"):
            break  # the owner died within the message, so before it started the operation
        message = json.loads(line)
        if message.get("done"):
            return 0
        messages.append(message)
    with TargetLocation(**json.loads(first)).open() as target:
        return 1 if clean_up(Cluster(target).restore_test_target, Started.announced(messages)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
