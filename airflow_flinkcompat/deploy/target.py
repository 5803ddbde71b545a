"""What every layer above asks of a place that runs Flink jobs: values, the verbs of a target, and its capabilities.

A target has eight verbs. A start and a stop are two phases that can be asked for again: each goes by a request id that
the caller chose and wrote down before, so that whoever comes later finds out what became of it. Whatever only some
targets can do is a protocol of its own, asked for with ``isinstance``; where a target lacks it, that is said ("cannot
be told on this target") and nothing is assumed in its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NewType, Protocol, runtime_checkable

from airflow_flinkcompat.model import JobSpec, StartMode

JobRef = NewType("JobRef", str)
"""A job as its target names it. Opaque: the ledger keeps it, people see it, only the target reads it."""

Snapshot = NewType("Snapshot", str)
"""A savepoint or checkpoint as its target names it: a path, an id or a name. Opaque."""

TablePath = tuple[str, str, str]
"""Catalog, database and name of a table."""

# States that a job never leaves (FINISHED, also after a stop with savepoint).
TERMINAL = frozenset({"FINISHED", "FAILED", "CANCELED"})
_COMING_UP = frozenset({"INITIALIZING", "CREATED", "RUNNING"})
CANNOT_TELL = "cannot be told on this target"


@dataclass(frozen=True)
class EngineInfo:
    """The engine of a target: ``flink`` or ``vvr``, and its version."""

    engine: str
    version: str


@dataclass(frozen=True)
class Start:
    """The state one start is given: a savepoint or checkpoint, or None for an empty one.

    ``tables``: options laid over tables it reads, by which its sources begin elsewhere than the script says; only a
    target of ``SourceTables`` is given any.
    """

    savepoint: Snapshot | None = None
    tables: Mapping[TablePath, Mapping[str, str]] = field(default_factory=dict)

    @property
    def mode(self) -> StartMode:
        return StartMode.SAVEPOINT if self.savepoint else StartMode.STATELESS

    @property
    def options(self) -> dict[str, str]:
        """Flink's options for it, all explicit, because a cluster's file may say otherwise.

        Unclaimed state is never dropped silently, and NO_CLAIM leaves the savepoint to us: a rollback needs it.
        """
        options = {
            "execution.state-recovery.ignore-unclaimed-state": "false",
            "execution.state-recovery.claim-mode": "NO_CLAIM",
        }
        return {**options, "execution.state-recovery.path": self.savepoint} if self.savepoint else options


class Verb(StrEnum):
    """What an operation does."""

    START = "start"
    STOP = "stop"


@dataclass(frozen=True)
class Operation:
    """A start or a stop, as far as it has come; ``Target.poll`` brings it up to date.

    ``request_id``: 32 hexadecimal digits. ``job``: the one to stop, or the one that a start made, None as long as the
    target knows of none. ``snapshot``: what a stop left, None as long as the job has not ended by it. ``directory``:
    where that was asked to go.
    """

    verb: Verb
    request_id: str
    job: JobRef | None = None
    snapshot: Snapshot | None = None
    directory: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The operation as JSON values; :meth:`from_dict` reads it back.

        Returns:
            One key per field.
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Operation:
        """The operation that :meth:`to_dict` wrote.

        Args:
            row: The operation as JSON values.

        Returns:
            The operation.
        """
        return cls(**{**row, "verb": Verb(row["verb"])})


class Strength(StrEnum):
    """How a target knows from which state a job was restored.

    ``OBSERVED``: Flink itself says so. ``DECLARED``: the platform repeats what it was asked for. ``UNKNOWN``: neither.
    """

    OBSERVED = "observed"
    DECLARED = "declared"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Proof:
    """The state a job was restored from last; None: it began empty (or nobody knows, at strength ``UNKNOWN``)."""

    snapshot: Snapshot | None
    strength: Strength = Strength.OBSERVED


@dataclass(frozen=True)
class JobStatus:
    """One look at a job. ``failure`` is the root cause of its latest failure, also of one it restarted after.

    ``tasks_running``: every task runs, so none of them is still restoring its state. ``completed_checkpoints``: None
    where the target does not show checkpoints.
    """

    job_id: JobRef
    name: str
    state: str
    tasks_running: bool = False
    completed_checkpoints: int | None = 0
    failure: str | None = None

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def starting(self) -> bool:
        """Whether the job comes up, and not all of its tasks run yet."""
        return self.state in _COMING_UP and not self.tasks_running


class Target(Protocol):
    """A place that runs Flink jobs. Every method raises DeployError; ``unanswered`` tells that no answer came."""

    def engine(self) -> EngineInfo:
        """The engine whose state semantics apply there.

        Returns:
            Its name and version.
        """

    def validate(self, job: JobSpec, start: Start) -> str:
        """Have the script judged as far as the target can without starting or stopping anything.

        Args:
            job: What would be started.
            start: With ``tables`` as the start would have them.

        Returns:
            What was not judged, in words; empty where the engine planned the job as it would start it.

        Raises:
            TargetError, ScriptRefused: It would not run; the message says where and why.
        """

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Start the job. Accepted is not running: verify it.

        Asking again under one request id makes no second job.

        Args:
            job: What to start.
            start: The state it is given.
            request_id: 32 hexadecimal digits, written down before.

        Returns:
            The operation, with the job where the target names it at once.

        Raises:
            SubmissionUnknown: Nobody knows whether it was accepted: poll, or ask again.
            TargetError, ScriptRefused: It was not.
        """

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Ask for a stop with savepoint, without draining. Asking again under one request id is the same stop.

        Args:
            job: The job to stop.
            request_id: 32 hexadecimal digits, written down before.
            directory: Where the savepoint shall lie; None: where the target puts it.

        Returns:
            The operation to poll.
        """

    def poll(self, operation: Operation) -> Operation:
        """What became of a start or a stop, also of one that another process asked for.

        Args:
            operation: The operation, as :meth:`start`, :meth:`stop` or an earlier call returned it.

        Returns:
            A start with its job once the target knows one of that request; a stop with its savepoint once the job has
            ended by it.

        Raises:
            StopFailed: The stop failed for certain, and left no savepoint.
        """

    def status(self, job: JobRef) -> JobStatus | None:
        """The job as it is now.

        Args:
            job: The job.

        Returns:
            One look at it; None when it is unknown.
        """

    def running(self, name: str) -> tuple[JobRef, ...]:
        """The jobs of one name that have not ended.

        Args:
            name: The name of the job, as the engine has it.

        Returns:
            The jobs.
        """

    def cancel(self, job: JobRef) -> None:
        """End the job without a savepoint, and wait for its end.

        Args:
            job: The job.
        """

    def restored_from(self, job: JobRef) -> Proof:
        """The state the job was really restored from, and how the target knows.

        Args:
            job: The job.

        Returns:
            The state of its last restore.
        """


# ---------------------------------------------------------------------------------------------------- capabilities
@runtime_checkable
class CallerNamesJobs(Protocol):
    """A target whose jobs are named by the request that starts them."""

    def job_of_request(self, request_id: str) -> JobRef:
        """The name of the job that a start makes, before it is asked for.

        Args:
            request_id: The request of the start, 32 hexadecimal digits.

        Returns:
            The job.
        """


@runtime_checkable
class MasksSecrets(Protocol):
    """A target that resolves placeholders itself."""

    def register_secrets(self, job: JobSpec) -> None:
        """Have what the placeholders of a job stand for masked from now on, also where nothing is submitted.

        Args:
            job: The job.
        """


@dataclass(frozen=True)
class Deployed:
    """What a platform says it runs under a name; ``script`` None where it keeps none."""

    job: JobRef | None
    script: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class ReadsBack(Protocol):
    """A target that keeps what is deployed itself, so that it can be compared with the ledger."""

    def deployed(self, name: str) -> Deployed | None:
        """What is deployed under a name.

        Args:
            name: The name of the deployment.

        Returns:
            What the platform says it runs; None: nothing.
        """


@dataclass(frozen=True)
class SourceTable:
    """A table a job reads.

    ``options`` are those by which it begins somewhere, and which topic of which brokers it reads; ``hinted`` the keys
    of hints in the script, which win over options of the table; ``record_time`` the columns that are the time of the
    record itself.
    """

    path: TablePath
    connector: str
    options: Mapping[str, str] = field(default_factory=dict)
    hinted: frozenset[str] = frozenset()
    record_time: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.path[2]


@dataclass(frozen=True)
class Sources:
    """The tables a job reads; ``unknown`` says why they could not be told, where that is so."""

    tables: tuple[SourceTable, ...] = ()
    unknown: str = ""


@runtime_checkable
class SourceTables(Protocol):
    """A target that says what a job reads, and can lay other options over those tables."""

    def sources(self, job: JobSpec) -> Sources:
        """Validate the job, and say what it reads.

        Args:
            job: The job.

        Returns:
            The tables, or why they cannot be told.
        """


@dataclass(frozen=True)
class VertexState:
    """What one vertex put into a checkpoint or savepoint, in bytes."""

    name: str
    parallelism: int
    bytes: int


@dataclass(frozen=True)
class TakenState:
    """A checkpoint or savepoint as its job's statistics show it: where, bytes by vertex id, and its number."""

    path: Snapshot
    vertices: Mapping[str, VertexState] = field(default_factory=dict)
    number: int | None = None

    @property
    def bytes(self) -> int:
        return sum(vertex.bytes for vertex in self.vertices.values())

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> TakenState | None:
        """Read back; None for an empty record."""
        if not row:
            return None
        vertices = {key: VertexState(**vertex) for key, vertex in row.get("vertices", {}).items()}
        return cls(Snapshot(str(row["path"])), vertices, row.get("number"))


@runtime_checkable
class CheckpointStatistics(Protocol):
    """A target that shows what checkpoints and savepoints hold."""

    def taken_state(self, job: JobRef, kind: str) -> TakenState | None:
        """The latest checkpoint or savepoint of a job.

        Args:
            job: The job.
            kind: ``completed`` for a checkpoint, or ``savepoint``.

        Returns:
            The state, sized as far as the target shows it; None where there is none.
        """

    def request_checkpoint(self, job: JobRef) -> None:
        """Ask for a checkpoint beside the job's own interval.

        Args:
            job: The job.
        """


@runtime_checkable
class RetainedCheckpoints(Protocol):
    """A target that starts jobs from checkpoints which outlive their job."""

    def keeps_checkpoints(self, job: JobRef, state: str = "CANCELED") -> bool:
        """Whether the job's checkpoints outlive its end.

        Args:
            job: The job.
            state: The state that the job ends in, as Flink names it.

        Returns:
            True where they are kept.
        """

    def last_checkpoint(self, job: JobRef) -> TakenState | None:
        """The last checkpoint of a job that has ended, by statistics that are not older than this call.

        Args:
            job: The job.

        Returns:
            The checkpoint; None where there is none.
        """


@runtime_checkable
class OffsetStatistics(Protocol):
    """A target that shows where sources stand."""

    def source_offsets(self, job: JobRef) -> Mapping[str, int]:
        """Where the sources of a job stand, as far as connectors show it.

        Args:
            job: The job.

        Returns:
            Next offset by source partition.
        """


@runtime_checkable
class SavepointStore(Protocol):
    """A target whose savepoints lie at paths that its user chooses, can read, and can have deleted."""

    def savepoint_root(self) -> str | None:
        """Where savepoints go unless they are asked to go elsewhere.

        Returns:
            Path or URI of a folder; None: no place is named.
        """

    def final_savepoint(self, job: JobRef) -> Snapshot | None:
        """The savepoint by which a job ended.

        Args:
            job: The job.

        Returns:
            The savepoint; None where there is none, or the target does not know it any more.
        """

    def location(self, snapshot: Snapshot) -> str:
        """Where a savepoint lies.

        Args:
            snapshot: The savepoint.

        Returns:
            Path or URI of its folder.
        """

    def dispose(self, snapshot: Snapshot) -> None:
        """Delete a savepoint.

        Args:
            snapshot: The savepoint.
        """


@dataclass(frozen=True)
class JobHistory:
    """How a job went. Times are seconds since the epoch by the cluster's clock, numbers of checkpoints Flink's own.

    ``failures``: oldest first; ``all_failures``: no older one was dropped. ``checkpoint``: when the earliest one of the
    completed checkpoints that are shown was complete. ``restored``: the state it was restored from last, when, and its
    number; ``restores``: how often it was. ``newest``: the highest number; ``completed`` and ``triggered`` count.
    """

    failures: tuple[float, ...] = ()
    all_failures: bool = True
    checkpoint: float | None = None
    restored: Snapshot | None = None
    restored_at: float | None = None
    restored_number: int | None = None
    restores: int = 0
    newest: int = 0
    completed: int = 0
    triggered: int = 0


@runtime_checkable
class JobHistories(Protocol):
    """A target that shows how a job went since it was accepted."""

    def job_history(self, job: JobRef) -> JobHistory:
        """How the job went since it was accepted.

        Args:
            job: The job.

        Returns:
            Failures, restores and checkpoints, as far as they are still shown.
        """

    def ever_ran(self, job: JobRef) -> bool | None:
        """Whether any task of the job ran, so that rows may have been written.

        Args:
            job: The job.

        Returns:
            None where it cannot be told.
        """


@runtime_checkable
class ClusterOptions(Protocol):
    """A target that shows the options of its cluster."""

    def cluster_options(self) -> Mapping[str, str]:
        """The options of the cluster.

        Returns:
            Flink's options by key; values that Flink masks stay masked.
        """


@runtime_checkable
class ManualStart(Protocol):
    """A target of which a person can start a job by hand."""

    def manual_start(self, snapshot: Snapshot, statements: str) -> str:
        """What a person types to start a job from a savepoint.

        Args:
            snapshot: The savepoint.
            statements: Words that name the statements of the job.

        Returns:
            The text, indented by two.
        """


def same_snapshot(one: str | None, other: str | None) -> bool:
    """Whether two names are of one savepoint or checkpoint; Flink writes ``file:/x`` for ``file:///x``."""

    def plain(path: str | None) -> str:
        return re.sub(r"^file:/+", "file:/", path or "").rstrip("/")

    return plain(one) == plain(other)
