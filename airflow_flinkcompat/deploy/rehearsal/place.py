"""The cluster of a rehearsal, and cleanup of its jobs and savepoints, even if the owner process dies.

The watcher is a child process. The watcher's standard input has one JSON object on each line. The first object
describes how to open the target. Each later object announces an operation or a folder, and ``{"done": true}`` ends the
watcher. If the input ends without ``{"done": true}``, the owner has died. The watcher then cancels all announced jobs,
and deletes all announced savepoints and folders. The watcher also waits for jobs whose submission was in progress when
the owner died.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
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
    ShadowRuns,
    SharedCluster,
    Snapshot,
    Target,
    Verb,
)
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.deploy.two_lines import open_target
from airflow_flinkcompat.savepoint.store import place

_ELASTIC = ("kubernetes.", "yarn.")


@runtime_checkable
class LiveTarget(Target, LiveSavepoints, SavepointStore, Protocol):
    """A target that takes savepoints of running jobs, and deletes them."""


@runtime_checkable
class TrialTarget(LiveTarget, RestoreObservations, JobDescriptions, JobHistories, Protocol):
    """A target that observes trial jobs, and removes them and their savepoints."""


@runtime_checkable
class RestoreTestTarget(TrialTarget, RestoreTests, Protocol):
    """A target that supports rehearsals."""


@runtime_checkable
class ShadowTarget(TrialTarget, ShadowRuns, Protocol):
    """A target that supports shadow runs."""


_LACKS: Mapping[type, str] = {
    RestoreTests: "cannot replace the tables that a job would share with the live job",
    ShadowRuns: "cannot replace the sinks of a job",
    LiveSavepoints: "cannot take savepoints of running jobs",
    RestoreObservations: "does not show which state a job restored",
    SavepointStore: "does not delete savepoints",
    JobDescriptions: "does not show the plans of jobs",
    JobHistories: "does not show the restarts of a job",
}


@dataclass(frozen=True)
class Cluster:
    """The cluster of the live job, or a cluster for trial jobs.

    The watcher process opens the same target by ``location``. ``temporary`` is True if the caller started the cluster
    only for itself, with Flink's default options.
    """

    target: Target
    location: TargetLocation = field(default_factory=TargetLocation)
    temporary: bool = False

    @property
    def restore_test_target(self) -> RestoreTestTarget:
        """The target, if it has all capabilities that a rehearsal requires.

        Raises DeployRefused if a capability is missing.
        """
        if isinstance(self.target, RestoreTestTarget):
            return self.target
        raise _lacking(self.target, "rehearsals", RestoreTests)

    @property
    def shadow_target(self) -> ShadowTarget:
        """The target, or the cluster that it shares, if it has all capabilities that a shadow run requires.

        Raises DeployRefused if a capability is missing.
        """
        target = self._shared
        if isinstance(target, ShadowTarget):
            return target
        raise _lacking(target, "shadow runs", ShadowRuns)

    @property
    def trial_target(self) -> TrialTarget:
        """The target, or the cluster that it shares, from which trial jobs are removed. Raises DeployRefused."""
        target = self._shared
        if isinstance(target, TrialTarget):
            return target
        raise _lacking(target, "trial jobs")

    @property
    def _shared(self) -> Target:
        return self.target.shared_cluster() if isinstance(self.target, SharedCluster) else self.target

    def shared_job(self, job_id: str) -> JobRef:
        """The live job as the target of trial jobs names it. Raises DeployRefused."""
        job = JobRef(job_id)
        return self.target.shared_job(job) if isinstance(self.target, SharedCluster) else job


def _lacking(target: Target, what: str, *needed: type) -> DeployRefused:
    kinds = (*needed, *(each for each in _LACKS if each not in (RestoreTests, ShadowRuns)))
    lacking = "; ".join(_LACKS[each] for each in kinds if not isinstance(target, each))
    return DeployRefused(
        f"{what} are not possible on {target}, because it {lacking}. If the same cluster has a SQL Gateway, use the "
        "target sql-gateway"
    )


def missing_slots(target: TrialTarget, needed: int) -> str:
    """Text about missing task slots, or "" if ``needed`` slots are free or the cluster can grow."""
    slots = target.slots()
    if slots.free >= needed:
        return ""
    options = target.cluster_options() if isinstance(target, ClusterOptions) else {}
    if any(key.startswith(_ELASTIC) for key in options):
        return ""
    return (
        f"{needed} free slot{'s' * (needed != 1)} required, but the cluster has {slots.free} of {slots.total}. Add a "
        "TaskManager"
    )


def slots_of(described: JobDescription | None) -> int:
    """Number of task slots of a job in a single slot sharing group: its highest parallelism."""
    return max((vertex.parallelism for vertex in (described.vertices if described else ())), default=1)


@dataclass
class Started:
    """Announced folders, and operations by request id. A JobManager forgets their outcomes after minutes.

    ``unanswered`` contains the request ids of submissions whose jobs may still start.
    """

    operations: dict[str, Operation] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    unanswered: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Started:
        """Operations of a paused rehearsal, read from the state in ``Paused``."""
        return cls.announced(state["started"])

    @classmethod
    def announced(cls, messages: Iterable[Mapping[str, Any]]) -> Started:
        started = cls()
        for message in messages:
            if "folder" in message:
                started.folders.append(message["folder"])
            else:
                started.take(_operation(message))
        return started

    def messages(self) -> list[dict[str, Any]]:
        folders = ({"folder": each} for each in self.folders)
        return [*(operation.to_dict() for operation in self.operations.values()), *folders]

    def take(self, operation: Operation) -> None:
        self.operations[operation.request_id] = operation


def _operation(message: Mapping[str, Any]) -> Operation:
    """The operation that a message announces. A message in the format of earlier releases is also read."""
    if "verb" in message:
        return Operation.from_dict(message)
    if "job" in message:
        return Operation(Verb.START, str(message["job"]), JobRef(message["job"]))
    job, request = message["savepoint"]
    path = message.get("path")
    return Operation(Verb.SAVEPOINT, request, JobRef(job), None if path is None else Snapshot(path))


SECONDS = 300.0
"""Seconds for which a watcher tries to clean up after its owner process died."""
_EVERY = 0.5
# If the cluster does not know a job so many seconds after an unanswered submission, the job was never submitted.
_UNANSWERED_SECONDS = 30.0
# The same after the owner process died.
_COMING_SECONDS = 60.0


def clean_up(
    target: LiveTarget, started: Started, *, timeout: float = SECONDS, coming: float = _COMING_SECONDS
) -> list[str]:
    """Cancel jobs, delete savepoints and folders, and return what remains; ``coming``: time for new jobs."""
    begin = time.monotonic()

    def step() -> list[str]:
        may_come = time.monotonic() - begin < coming
        # Cancel jobs first, because this also ends their stops.
        operations = sorted(started.operations.values(), key=lambda each: each.verb is not Verb.START)
        left = {each.request_id: _end_operation(target, each, may_come) for each in operations}
        # Do not repeat completed operations.
        started.operations = {key: each for key, each in started.operations.items() if left[key]}
        return [words for words in left.values() if words]

    try:
        left: list[str] = poll(step, bool, timeout=timeout, every=_EVERY)
    except Overdue as overdue:
        left = overdue.last
    for folder in () if left else tuple(started.folders):  # a job that is left may still use them
        try:
            remove_folder(folder)
            started.folders.remove(folder)
        except Exception as error:  # each kind of store raises errors of its own library
            left.append(f"the folder {folder} ({type(error).__name__})")
    return left


def _end_operation(target: LiveTarget, operation: Operation, may_come: bool) -> str:
    """Text about the job or savepoint that an operation left, or "" if none is left and none can appear."""
    try:
        end = _end_job if operation.verb is Verb.START else _end_savepoint
        return end(target, operation, may_come)
    except DeployError as error:  # the target may answer again later
        return str(error)


def _end_job(target: LiveTarget, start: Operation, may_come: bool) -> str:
    job = target.poll(start).job
    status = None if job is None else target.status(job)
    if job is None or status is None:
        return f"job {start.job or f'of request {start.request_id}'} may still start" if may_come else ""
    if status.terminal:
        return ""
    target.cancel(job)
    return f"job {job} is being cancelled"


def _end_savepoint(target: LiveTarget, asked: Operation, _may_come: bool) -> str:
    try:
        snapshot = asked.snapshot or target.poll(asked).snapshot
    except (SavepointFailed, StopFailed):  # no savepoint was written or requested
        return ""
    if snapshot is None:
        return f"the savepoint {asked.request_id} of job {asked.job} is still being written"
    with suppress(SnapshotGone):
        target.dispose(snapshot)
    return ""


class Watcher:
    """Controller of the watcher process in its owner: starts the process, announces operations, ends it.

    With ``own``, the operations are those of the target itself, not of a cluster that it shares.
    """

    def __init__(self, location: TargetLocation, started: Started | None = None, *, own: bool = False) -> None:
        self.started = started or Started()
        path = filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        self._child = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # a signal to the owner's process group must not reach the child
            text=True,
        )
        self._send({**asdict(location), "own": own})
        for message in self.started.messages():
            self._send(message)

    @property
    def pid(self) -> int:
        return self._child.pid

    def announce(self, operation: Operation) -> None:
        """Announce an operation to the watcher before its request, and again when its result is known."""
        self.started.take(operation)
        self._announce(operation.to_dict())

    @contextmanager
    def submitting(self, start: Operation) -> Iterator[None]:
        """Announce a submission. If it is interrupted or has no answer, :meth:`end` also waits for its job."""
        self.started.unanswered.add(start.request_id)
        self.announce(start)
        try:
            yield
        except DeployError as error:
            if not error.unanswered:
                self.started.unanswered.remove(start.request_id)
            raise
        self.started.unanswered.remove(start.request_id)

    def announce_folder(self, folder: str) -> None:
        """Announce a folder (path or URI), which is deleted at the end, or if the owner dies."""
        self.started.folders.append(folder)
        self._announce({"folder": folder})

    def _announce(self, message: Mapping[str, Any]) -> None:
        # The rehearsal continues without its watcher, because the owner cleans up as long as it lives.
        with suppress(OSError):
            self._send(message)

    def end(self, target: LiveTarget, timeout: float) -> list[str]:
        """Clean up with :func:`clean_up`. The child process keeps trying to remove what remains."""
        left, coming = ["?"], _UNANSWERED_SECONDS if self.started.unanswered else 0.0
        try:
            left = clean_up(target, self.started, timeout=timeout, coming=coming)
        finally:
            (self.leave if left else self.dismiss)()
        return left

    def dismiss(self) -> None:
        """End the child process, because nothing remains to clean up."""
        self._announce({"done": True})
        self._close()

    def leave(self) -> None:
        """Detach the child process, which keeps trying to remove what remains."""
        self._close(wait=False)

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(message) + "\n")
        self._child.stdin.flush()

    def _close(self, *, wait: bool = True) -> None:
        assert self._child.stdin is not None
        with suppress(OSError):
            self._child.stdin.close()
        if wait:
            self._child.wait(30)
        else:
            self._child.returncode = 0  # the child outlives this object intentionally


def main() -> int:
    """Read messages until the owner ends, and clean up if it died. Return 0 if nothing is left to remove."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # ignore signals meant for the owner, and wait for its end
    first = sys.stdin.readline()
    if not first:
        return 0
    location = json.loads(first)
    own = location.pop("own")
    messages: list[dict[str, Any]] = []
    for line in sys.stdin:
        if not line.endswith("\n"):
            break  # the owner died while it wrote the message, before it began the operation
        message = json.loads(line)
        if message.get("done"):
            return 0
        messages.append(message)
    started = Started.announced(messages)
    with open_target(TargetLocation(**location)) as target:
        live = target if own and isinstance(target, LiveTarget) else Cluster(target).trial_target
        left = clean_up(live, started)
    for folder in started.folders:
        remove_folder(folder)
    return 1 if left else 0


def remove_folder(folder: str) -> None:
    """Delete a folder (path or URI) with its content, if it exists."""
    path = place(folder)
    if path.exists():
        path.fs.rm(path.path, recursive=True)


if __name__ == "__main__":
    raise SystemExit(main())
