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
"""A job as its target names it. Opaque: stored and shown, but only the target interprets it."""

Snapshot = NewType("Snapshot", str)
"""A savepoint or checkpoint as its target names it: a path, an id or a name. Opaque."""

TablePath = tuple[str, str, str]
"""Catalog, database and name of a table."""

# States that a job never leaves (FINISHED, also after a stop with savepoint).
TERMINAL = frozenset({"FINISHED", "FAILED", "CANCELED"})
_COMING_UP = frozenset({"INITIALIZING", "CREATED", "RUNNING"})
CANNOT_TELL = "cannot be determined on this target"


@dataclass(frozen=True)
class EngineInfo:
    """The engine of a target: ``flink`` or ``vvr``, and its version."""

    engine: str
    version: str


@dataclass(frozen=True)
class Start:
    """The state for one start: a savepoint or checkpoint, or None for an empty one.

    ``tables``: options that overlay its tables so that its sources begin at other positions than in the script; only
    for targets with ``SourceTables``.
    """

    savepoint: Snapshot | None = None
    tables: Mapping[TablePath, Mapping[str, str]] = field(default_factory=dict)

    @property
    def mode(self) -> StartMode:
        return StartMode.SAVEPOINT if self.savepoint else StartMode.STATELESS


class Verb(StrEnum):
    """Kind of an operation: start a job, stop one with a savepoint, or take a savepoint of a running one."""

    START = "start"
    STOP = "stop"
    SAVEPOINT = "savepoint"


@dataclass(frozen=True)
class Operation:
    """A start, a stop or a savepoint in its last known state, which ``Target.poll`` updates.

    ``request_id``: 32 hexadecimal digits. ``job``: the one to stop or to take a savepoint of, or the one that a start
    made, None until the target knows one. ``snapshot``: the savepoint, None until it is complete and, for a stop,
    until the job has ended. ``directory``: the requested folder.
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
    """Strength of the evidence for the state from which a job was restored.

    ``OBSERVED``: Flink itself reports it. ``DECLARED``: the platform repeats the request. ``UNKNOWN``: neither.
    """

    OBSERVED = "observed"
    DECLARED = "declared"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Proof:
    """The state of a job's last restore; None: it began empty, or is unknown at strength ``UNKNOWN``."""

    snapshot: Snapshot | None
    strength: Strength = Strength.OBSERVED


@dataclass(frozen=True)
class JobStatus:
    """One look at a job; ``failure``: root cause of its latest failure, even if it restarted afterwards.

    ``tasks_running``: every task runs, so none of them is still restoring its state. ``completed_checkpoints``: None if
    the target does not show checkpoints. ``fault``: the fault in the restored state that this failure reports.
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
        """True while the job starts and not all of its tasks run yet."""
        return self.state in _COMING_UP and not self.tasks_running


@dataclass(frozen=True)
class Deployed:
    """A platform's record of the job that it runs under a name.

    ``script`` and ``settings`` are as submitted, with their placeholders; None if the platform does not store them.
    ``engine``: the job's engine; None if the platform does not report it for each job.
    """

    job: JobRef | None
    script: str | None = None
    settings: Mapping[str, str] | None = None
    engine: EngineInfo | None = None


@dataclass(frozen=True)
class ChangePlan:
    """Changes that the owner of a platform's resources must write so that a job runs.

    ``place``: the changed resource. ``documents``: YAML with only the fields that a deployment sets. ``patch``: the
    same as a merge patch (RFC 7386) of the existing resource; None if there is none. ``notes``: consequences and
    further steps, a line each.
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
    """One vertex of a running job; its ``name`` consists of those of its operators."""

    id: str
    name: str
    parallelism: int


@dataclass(frozen=True)
class JobDescription:
    """The structure of a job. ``streaming``: False for a batch job."""

    vertices: tuple[JobVertex, ...] = ()
    streaming: bool = True


@dataclass(frozen=True)
class Slots:
    """Task slots of a cluster."""

    free: int
    total: int


@dataclass(frozen=True)
class SourceTable:
    """A table that a job reads.

    ``options`` are its startup options, and its topic and brokers; ``hinted`` the keys of hints in the script, which
    override options of the table; ``record_time`` the columns with the time of the record itself.
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
    """The tables that a job reads; ``unknown`` is the reason if they could not be determined."""

    tables: tuple[SourceTable, ...] = ()
    unknown: str = ""


@dataclass(frozen=True)
class VertexState:
    """Bytes of one vertex in a checkpoint or savepoint."""

    name: str
    parallelism: int
    bytes: int


@dataclass(frozen=True)
class SnapshotStats:
    """A checkpoint or savepoint in its job's statistics: location, bytes by vertex id, and number.

    ``taken``: its completion in seconds since the epoch by the cluster's clock; None if not shown.
    """

    path: Snapshot
    vertices: Mapping[str, VertexState] = field(default_factory=dict)
    number: int | None = None
    taken: float | None = None

    @property
    def bytes(self) -> int:
        return sum(vertex.bytes for vertex in self.vertices.values())

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON values; :meth:`from_dict` reads it back.

        Returns:
            One key per field; none for a time that is not known.
        """
        row = asdict(self)
        if self.taken is None:
            del row["taken"]
        return row

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
        return cls(Snapshot(str(row["path"])), vertices, row.get("number"), row.get("taken"))


@dataclass(frozen=True)
class JobHistory:
    """History of a job; times are seconds since the epoch by the cluster's clock, numbers are Flink's.

    ``failures``: oldest first; ``all_failures``: True if no older one was dropped. ``checkpoint``: completion of the
    earliest shown checkpoint. ``restored``: the state of the last restore, with its time, number, and whether it is a
    checkpoint of this job; ``restores``: the number of restores. ``newest``: the highest checkpoint number;
    ``completed`` and ``triggered`` are counts.
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
    """True if two names refer to one savepoint or checkpoint; Flink writes ``file:/x`` for ``file:///x``.

    Args:
        one: A name; None: of no state.
        other: Another one.

    Returns:
        True if they are.
    """

    def plain(path: str | None) -> str:
        return re.sub(r"^file:/+", "file:/", path or "").rstrip("/")

    return plain(one) == plain(other)


def checkpoint_number(snapshot: str | None) -> int | None:
    """The number of a checkpoint, if its name contains it: Flink's folders are called ``chk-17``.

    Args:
        snapshot: The name of a savepoint or checkpoint; None: of no state.

    Returns:
        The number; None if the name contains none.
    """
    match = re.search(r"/chk-(\d+)/?$", snapshot or "")
    return int(match[1]) if match else None
