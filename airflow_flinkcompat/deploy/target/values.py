"""Arguments and results of targets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NewType

from airflow_flinkcompat.deploy.errors import StateFault
from airflow_flinkcompat.model import StartMode

JobRef = NewType("JobRef", str)
"""The target's id of a job. Only the target interprets the id. Other code stores and shows it."""

Snapshot = NewType("Snapshot", str)
"""The target's reference to a savepoint or checkpoint. Only the target interprets the reference."""

TablePath = tuple[str, str, str]
"""Catalog, database and name of a table."""

# States that a job never leaves. A stop with savepoint ends in FINISHED.
TERMINAL = frozenset({"FINISHED", "FAILED", "CANCELED"})
_COMING_UP = frozenset({"INITIALIZING", "CREATED", "RUNNING"})
CANNOT_TELL = "cannot be determined on this target"


@dataclass(frozen=True)
class EngineInfo:
    """The engine of a target (``flink`` or ``vvr``) and its version."""

    engine: str
    version: str


@dataclass(frozen=True)
class Start:
    """The initial state of a start: a savepoint or checkpoint, or None for empty state.

    ``tables`` contains options that override table options, so that sources begin at other positions than in the
    script. Only targets with ``SourceTables`` support ``tables``.
    """

    savepoint: Snapshot | None = None
    tables: Mapping[TablePath, Mapping[str, str]] = field(default_factory=dict)

    @property
    def mode(self) -> StartMode:
        return StartMode.SAVEPOINT if self.savepoint else StartMode.STATELESS


class Verb(StrEnum):
    """Kind of an operation: start a job, stop a job with a savepoint, or take a savepoint without a stop."""

    START = "start"
    STOP = "stop"
    SAVEPOINT = "savepoint"


@dataclass(frozen=True)
class Operation:
    """A start, a stop or a savepoint in its last known state, which ``Target.poll`` updates.

    ``request_id`` has 32 hexadecimal digits. ``job`` is the job to stop or to take a savepoint of. For a start,
    ``job`` is the new job, or None until the target knows the job. ``snapshot`` is the savepoint, or None until it is
    complete and, after a stop, the job has ended. ``directory`` is the requested folder of the savepoint.
    """

    verb: Verb
    request_id: str
    job: JobRef | None = None
    snapshot: Snapshot | None = None
    directory: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The operation as JSON values, which :meth:`from_dict` reads.

        Returns:
            One key for each field.
        """
        return {**asdict(self), "verb": str(self.verb)}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Operation:
        """Read an operation that :meth:`to_dict` wrote.

        Args:
            row: The operation as JSON values.

        Returns:
            The operation.
        """
        return cls(**{**row, "verb": Verb(row["verb"])})


class Strength(StrEnum):
    """Strength of the evidence for the state from which a job was restored.

    ``OBSERVED``: Flink reports the restored state. ``DECLARED``: the platform only repeats the request. ``UNKNOWN``:
    there is no evidence.
    """

    OBSERVED = "observed"
    DECLARED = "declared"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Proof:
    """The state of a job's last restore. A ``snapshot`` of None means empty or ``UNKNOWN`` state."""

    snapshot: Snapshot | None
    strength: Strength = Strength.OBSERVED


@dataclass(frozen=True)
class JobStatus:
    """Status of a job at a point in time.

    ``tasks_running`` is True if every task runs, so that no task still restores its state. ``completed_checkpoints`` is
    None if the target does not show checkpoints. ``failure`` is the root cause of the latest failure, even if the job
    restarted afterwards. ``fault`` is the fault of the restored state that this failure reports. ``seconds`` is the
    time since the start, if a list of jobs shows it.
    """

    job_id: JobRef
    name: str
    state: str
    tasks_running: bool = False
    completed_checkpoints: int | None = 0
    failure: str | None = None
    fault: StateFault | None = None
    seconds: float | None = None

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def starting(self) -> bool:
        """True while the job starts and some of its tasks do not run yet."""
        return self.state in _COMING_UP and not self.tasks_running


@dataclass(frozen=True)
class Deployed:
    """A platform's record of the job deployed under a name.

    ``script`` and ``settings`` are as submitted, with placeholders, or None if the platform does not store them.
    ``engine`` is the job's engine, or None if the platform does not report an engine for each job.
    """

    job: JobRef | None
    script: str | None = None
    settings: Mapping[str, str] | None = None
    engine: EngineInfo | None = None


@dataclass(frozen=True)
class ChangePlan:
    """Changes that the owner of a platform's resources must write so that a job runs.

    ``place`` is the changed resource. ``documents`` is YAML with only the fields that a deployment sets. ``patch``
    contains the same changes as a merge patch (RFC 7386) of the existing resource, or is None without such a resource.
    ``notes`` lists consequences and further steps, one line each.
    """

    place: str
    documents: str
    patch: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join([*(f"# {note}" for note in self.notes), self.documents])


@dataclass(frozen=True)
class JobVertex:
    """A vertex of a job graph; ``name`` consists of the names of its operators."""

    id: str
    name: str
    parallelism: int


@dataclass(frozen=True)
class JobDescription:
    """The structure of a job; ``streaming`` is False for a batch job."""

    vertices: tuple[JobVertex, ...] = ()
    streaming: bool = True


@dataclass(frozen=True)
class Slots:
    """Number of task slots of a cluster."""

    free: int
    total: int


@dataclass(frozen=True)
class SourceTable:
    """A table that a job reads.

    ``options`` contains the table's startup options, topic and brokers. ``hinted`` contains the option keys that hints
    in the script set, which override table options. ``record_time`` contains the columns with the record's timestamp.
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
class SinkTable:
    """A table that a job writes; ``columns``: Flink's type by column.

    ``key``: columns of the primary key. ``partitions``: columns whose values are only in the paths of files.
    """

    path: TablePath
    columns: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path[2]


@dataclass(frozen=True)
class Sources:
    """The tables that a job reads; ``unknown`` is the reason if they could not be determined."""

    tables: tuple[SourceTable, ...] = ()
    unknown: str = ""


@dataclass(frozen=True)
class VertexState:
    """State size of a vertex in a checkpoint or savepoint, in bytes."""

    name: str
    parallelism: int
    bytes: int


@dataclass(frozen=True)
class SnapshotStats:
    """Statistics of a checkpoint or savepoint: location, state size by vertex id, and number.

    ``taken`` is the completion time in seconds since the epoch by the cluster's clock, or None if not shown.
    """

    path: Snapshot
    vertices: Mapping[str, VertexState] = field(default_factory=dict)
    number: int | None = None
    taken: float | None = None

    @property
    def bytes(self) -> int:
        return sum(vertex.bytes for vertex in self.vertices.values())

    def to_dict(self) -> dict[str, Any]:
        """The statistics as JSON values, which :meth:`from_dict` reads.

        Returns:
            One key for each field, without an unknown time.
        """
        row = asdict(self)
        if self.taken is None:
            del row["taken"]
        return row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> SnapshotStats | None:
        """Read statistics that :meth:`to_dict` wrote.

        Args:
            row: The statistics as JSON values.

        Returns:
            The statistics, or None for an empty record.
        """
        if not row:
            return None
        vertices = {key: VertexState(**vertex) for key, vertex in row.get("vertices", {}).items()}
        return cls(Snapshot(str(row["path"])), vertices, row.get("number"), row.get("taken"))


@dataclass(frozen=True)
class JobHistory:
    """History of a job. Times are seconds since the epoch by the cluster's clock.

    ``failures`` contains the failure times, oldest first. ``all_failures`` is True if Flink still keeps all failures
    of the job. ``checkpoint`` is the completion time of the earliest checkpoint that the target shows. ``restored``
    is the state of the last restore, ``restored_at`` its time and ``restored_number`` its checkpoint number.
    ``restored_own`` is True if that state is a checkpoint of this job. ``restores`` is the number of the job's
    restores. ``newest`` is the highest checkpoint number. ``completed`` and ``triggered`` are counts of completed and
    of triggered checkpoints.
    """

    failures: tuple[float, ...] = ()
    all_failures: bool = True
    checkpoint: float | None = None
    restored: Snapshot | None = None
    restored_at: float | None = None
    restored_number: int | None = None
    restored_own: bool = False
    restores: int = 0
    newest: int = 0
    completed: int = 0
    triggered: int = 0


def same_snapshot(one: str | None, other: str | None) -> bool:
    """True if two references denote the same savepoint or checkpoint (``file:/x`` equals ``file:///x``).

    Args:
        one: A reference, or None for no state.
        other: The reference to compare with.

    Returns:
        True if both denote the same savepoint or checkpoint, or both are None.
    """

    def plain(path: str | None) -> str:
        return re.sub(r"^file:/+", "file:/", path or "").rstrip("/")

    return plain(one) == plain(other)


def checkpoint_number(snapshot: str | None) -> int | None:
    """The number of a checkpoint, read from the name of its folder, such as ``chk-17``.

    Args:
        snapshot: A reference to a savepoint or checkpoint, or None for no state.

    Returns:
        The number, or None if the reference contains no number.
    """
    match = re.search(r"/chk-(\d+)/?$", snapshot or "")
    return int(match[1]) if match else None
