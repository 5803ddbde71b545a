"""The values that a target takes and gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NewType

from airflow_flinkcompat.deploy.errors import StateFault
from airflow_flinkcompat.model import StartMode

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


class Verb(StrEnum):
    """What an operation does: start a job, stop one with a savepoint, or take a savepoint of one that goes on."""

    START = "start"
    STOP = "stop"
    SAVEPOINT = "savepoint"


@dataclass(frozen=True)
class Operation:
    """A start, a stop or a savepoint, as far as it has come; ``Target.poll`` brings it up to date.

    ``request_id``: 32 hexadecimal digits. ``job``: the one to stop or to take a savepoint of, or the one that a start
    made, None as long as the target knows of none. ``snapshot``: what a stop left, None as long as the job has not
    ended by it, or the savepoint, None as long as it is not complete. ``directory``: where that was asked to go.
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
        return {**asdict(self), "verb": str(self.verb)}

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
    where the target does not show checkpoints. ``fault``: what that failure says of the state the job was given.
    """

    job_id: JobRef
    name: str
    state: str
    tasks_running: bool = False
    completed_checkpoints: int | None = 0
    failure: str | None = None
    fault: StateFault | None = None

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def starting(self) -> bool:
        """Whether the job comes up, and not all of its tasks run yet."""
        return self.state in _COMING_UP and not self.tasks_running


@dataclass(frozen=True)
class Deployed:
    """What a platform says it runs under a name.

    ``script`` and ``settings`` are as they were given, with their placeholders; None where the platform does not keep
    them so. ``engine``: what the job runs on; None where the platform does not tell it of each job.
    """

    job: JobRef | None
    script: str | None = None
    settings: Mapping[str, str] | None = None
    engine: EngineInfo | None = None


@dataclass(frozen=True)
class ChangePlan:
    """What whoever owns a platform's resources is to write there, so that a job runs.

    ``place``: what is changed, in words. ``documents``: YAML, of that only what a deployment sets. ``patch``: the same
    as a merge patch (RFC 7386) of what is there now; None: nothing is. ``notes``: what comes of it, and what has to be
    done beside, a line each.
    """

    place: str
    documents: str
    patch: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The documents under their notes, as comments."""
        return "\n".join([*(f"# {note}" for note in self.notes), self.documents])


@dataclass(frozen=True)
class JobVertex:
    """One vertex of a running job, whose ``name`` is made of those of its operators."""

    id: str
    name: str
    parallelism: int


@dataclass(frozen=True)
class JobDescription:
    """How a job is built. ``streaming``: it is no batch job."""

    vertices: tuple[JobVertex, ...] = ()
    streaming: bool = True


@dataclass(frozen=True)
class Slots:
    """Task slots of a cluster."""

    free: int
    total: int


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


@dataclass(frozen=True)
class VertexState:
    """What one vertex put into a checkpoint or savepoint, in bytes."""

    name: str
    parallelism: int
    bytes: int


@dataclass(frozen=True)
class SnapshotStats:
    """A checkpoint or savepoint as its job's statistics show it: where, bytes by vertex id, and its number."""

    path: Snapshot
    vertices: Mapping[str, VertexState] = field(default_factory=dict)
    number: int | None = None

    @property
    def bytes(self) -> int:
        return sum(vertex.bytes for vertex in self.vertices.values())

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON values; :meth:`from_dict` reads it back.

        Returns:
            One key per field.
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> SnapshotStats | None:
        """The state that :meth:`to_dict` wrote.

        Args:
            row: The state as JSON values.

        Returns:
            The state; None for an empty record.
        """
        if not row:
            return None
        vertices = {key: VertexState(**vertex) for key, vertex in row.get("vertices", {}).items()}
        return cls(Snapshot(str(row["path"])), vertices, row.get("number"))


@dataclass(frozen=True)
class JobHistory:
    """How a job went. Times are seconds since the epoch by the cluster's clock, numbers of checkpoints Flink's own.

    ``failures``: oldest first; ``all_failures``: no older one was dropped. ``checkpoint``: when the earliest one of the
    completed checkpoints that are shown was complete. ``restored``: the state it was restored from last, when, its
    number, and whether it is a checkpoint of this job's own; ``restores``: how often it was. ``newest``: the highest
    number; ``completed`` and ``triggered`` count.
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
    """Whether two names are of one savepoint or checkpoint; Flink writes ``file:/x`` for ``file:///x``.

    Args:
        one: A name; None: of no state.
        other: Another one.

    Returns:
        True where they are.
    """

    def plain(path: str | None) -> str:
        return re.sub(r"^file:/+", "file:/", path or "").rstrip("/")

    return plain(one) == plain(other)


def checkpoint_number(snapshot: str | None) -> int | None:
    """The number of a checkpoint, where its name tells it: Flink's folders are called ``chk-17``.

    Args:
        snapshot: The name of a savepoint or checkpoint; None: of no state.

    Returns:
        The number; None where the name tells none.
    """
    match = re.search(r"/chk-(\d+)/?$", snapshot or "")
    return int(match[1]) if match else None
