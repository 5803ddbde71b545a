"""Entries of the ledger: a type for each kind, and the flat JSON object in which it is stored.

Recurring parts are values of their own whose fields are keys of that object: the job, the approval (:class:`Review`), a
start (:class:`JobStart`) and a stop (:class:`JobStop`). Every key of the schema is written, also those that a kind does
not use, with the value for "empty". Releases can therefore read each other's entries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, ClassVar, Self

from airflow_flinkcompat.deploy.target import JobRef, Snapshot, SnapshotStats
from airflow_flinkcompat.model import JobSpec

SCHEMA = "flinkcompat-ledger/1"
_STOP_REQUEST = "trigger_id"


def _absent() -> dict[str, Any]:
    """Every key of the schema in display order, with the value of an entry that does not use it."""
    return {
        "kind": "", "script": "", "settings": {}, "functions": [], "catalog": "", "language": "sql", "variables": {},
        "files": {}, "engine": "", "engine_version": None, "sha256": "", "job_id": None, "savepoint": None,
        "start_mode": None, "offsets": (), "outcome": None, "report_path": None, "approved_by": None, "message": "",
        "reason": None, "branch": None, "policy": None, "commit": None, "author": None, "team": None, "owned_by": None,
        "savepoint_bytes": None, "savepoint_at": None, "rehearsal": {}, "range_from": None, "range_to": None,
        "sinks": {}, "counts": {},
        "owner": "", "hand_over": None, "claim_seconds": None, "request_id": None, "trigger_id": None,
        "checkpoint": None, "state": {}, "rolls_back_to": None, "evidence": (), "effective_settings": {},
        "migrated_from": None, "migrated_to": None, "migration": {}, "prepared": None, "savepoint_before": None,
        "waivers": (), "passes_over": (),
        "number": 0, "at": "", "schema": SCHEMA,
    }  # fmt: skip


# --------------------------------------------------------------------------------------------------- groups of fields
@dataclass(frozen=True)
class _Keys:
    """A value whose fields are keys of an entry."""

    def to_dict(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        known = {each.name: row[each.name] for each in fields(cls) if each.name in row}
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in known.items()})


@dataclass(frozen=True)
class Review(_Keys):
    """Approval of a version: outcome and report of its check, waivers (a row each), approver, reason."""

    outcome: str | None = None
    report_path: str | None = None
    approved_by: str | None = None
    reason: str | None = None
    waivers: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Origin(_Keys):
    """Origin of a version, and the owners of the deployment.

    ``commit`` is the Git commit that last changed the version's files and ``author`` its author; None without version
    control, or if the files were edited since. ``team`` and ``owned_by`` are responsible for the deployment. The key
    ``owner`` is another one: the run that wrote an entry.
    """

    commit: str | None = None
    author: str | None = None
    team: str | None = None
    owned_by: str | None = None


@dataclass(frozen=True)
class JobVersion(_Keys):
    """A version by its digest. Its script is not stored, because it may contain secrets or be unreadable."""

    engine: str = ""
    engine_version: str | None = None
    sha256: str = ""

    @classmethod
    def of(cls, job: JobSpec) -> JobVersion:
        return cls(job.engine, job.engine_version, job.digest())


@dataclass(frozen=True)
class JobStart(_Keys):
    """Facts of a start.

    ``savepoint``: the savepoint or checkpoint that the job starts from. ``migrated_from``: the savepoint of the former
    job from which this one was rewritten, if any. ``offsets``: the starting positions of the sources, a row each: path
    of the table, choice, options, words. ``request_id``: the id of the request, so that repeating it is the same start.
    ``job_id``: the job, once its name is known. ``savepoint_bytes``: the size of the former job's state, if the target
    showed it when the start was verified.
    """

    start_mode: str | None = None
    savepoint: Snapshot | None = None
    offsets: tuple[Mapping[str, Any], ...] = ()
    request_id: str | None = None
    job_id: JobRef | None = None
    migrated_from: Snapshot | None = None
    savepoint_bytes: int | None = None

    @property
    def way_back(self) -> Snapshot | None:
        """The former job's state, from which it is restarted if this start fails."""
        return self.migrated_from or self.savepoint

    @property
    def asked_under(self) -> str:
        """The request id; entries of earlier releases name the job alone, by the same id."""
        return str(self.request_id or self.job_id)

    @property
    def job_ref(self) -> JobRef:
        return JobRef(str(self.job_id))


@dataclass(frozen=True)
class JobStop(_Keys):
    """Facts of a stop.

    ``request_id``: the id of the request, so that repeating it is the same stop; None if the job is cancelled and its
    last checkpoint is used. ``checkpoint``: the last one before the stop, and ``offsets`` the next offset by source
    partition. ``directory``: the requested location of the savepoint. Once the job has ended, ``savepoint`` is its
    path, ``savepoint_bytes`` its size, ``savepoint_at`` its time (ISO 8601 in UTC), each None if unknown, and ``state``
    the statistics of its state.
    """

    job_id: JobRef
    request_id: str | None = None
    checkpoint: Snapshot | None = None
    offsets: Mapping[str, int] = field(default_factory=dict)
    directory: str | None = None
    savepoint: Snapshot | None = None
    state: SnapshotStats | None = None
    savepoint_bytes: int | None = None
    savepoint_at: str | None = None

    def to_dict(self) -> dict[str, Any]:
        row = super().to_dict()
        state = {**(self.state.to_dict() if self.state else {}), "offsets": row.pop("offsets")}
        if (directory := row.pop("directory")) is not None:
            state["directory"] = directory
        # Under a separate key, because an entry's request_id is that of a start.
        row[_STOP_REQUEST] = row.pop("request_id")
        return {**row, "state": _ordered(state)}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        state = dict(row.get("state", {}))
        of_state = {key: state.pop(key) for key in ("offsets", "directory") if key in state}
        stop = {**row, "request_id": row.get(_STOP_REQUEST), "offsets": {}, **of_state}
        return super().from_dict({**stop, "state": SnapshotStats.from_dict(state)})


def _read_job(row: Mapping[str, Any]) -> JobSpec:
    if not row.get("script"):
        raise ValueError("it contains no job")
    job = JobSpec.from_dict(row)
    if row.get("sha256", job.digest()) != job.digest():
        raise ValueError(
            "its sha256 does not match its job: a later version of flinkcompat, with more fields, wrote it"
        )
    return job


def _write_job(job: JobSpec) -> dict[str, Any]:
    row = {**job.to_dict(), "sha256": job.digest()}
    del row["source"]
    return {**row, "functions": _ordered(row["functions"])}


def _require_kind_and_number(row: Mapping[str, Any]) -> None:
    if not isinstance(row.get("kind"), str) or not isinstance(row.get("number"), int):
        raise ValueError("kind or number is missing")


def _ordered(value: Any) -> Any:
    """JSON values with their keys in file order, whether or not they were read from a file."""
    return json.loads(json.dumps(value, sort_keys=True))


_READ = {
    "job": _read_job,
    "review": Review.from_dict,
    "version": JobVersion.from_dict,
    "start": JobStart.from_dict,
    "stop": JobStop.from_dict,
    "origin": Origin.from_dict,
}
"""Fields of entries that are groups, and the reader of each from the keys of an entry."""


# ------------------------------------------------------------------------------------------------- what entries share
@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One step in the life of a deployment, or a note about it: the base of all kinds.

    Attributes:
        number: Its place in the ledger, set by ``Ledger.append``.
        at: When it was written, ISO 8601 in UTC, set by ``Ledger.append``.
        owner: The name of the run that wrote it.
        message: Remarks on it, for readers.
        passes_over: Numbers of the torn entries right before it.
    """

    KIND: ClassVar[str]
    schema: ClassVar[str] = SCHEMA

    def __init_subclass__(cls, kind: str = "") -> None:
        super().__init_subclass__()
        if kind:
            cls.KIND = kind

    number: int = 0
    at: str = ""
    owner: str = ""
    message: str = ""
    passes_over: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        return self.KIND

    @property
    def written(self) -> datetime:
        """The time of writing; only for an entry that is in the ledger."""
        return datetime.fromisoformat(self.at)

    @property
    def is_head(self) -> bool:
        """True if the entry is about the job in force."""
        return isinstance(self, HeadEntry)

    def to_dict(self) -> dict[str, Any]:
        """The entry as it is stored; :meth:`from_dict` reads it back.

        Returns:
            JSON values, by every key of the schema.
        """
        row = {**_absent(), "kind": self.kind}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, JobSpec):
                row |= _write_job(value)
            elif isinstance(value, _Keys):
                row |= value.to_dict()
            else:
                row[each.name] = value
        return row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> LedgerEntry:
        """The entry that :meth:`to_dict` wrote; keys of a later version are ignored.

        Args:
            row: The entry as JSON values.

        Returns:
            The entry, of the type of its kind; an :class:`OtherEntry` where this version does not know that.

        Raises:
            ValueError: The row has another schema, lacks the kind or the number, or contains an impossible value.
        """
        if row.get("schema") != SCHEMA:
            raise ValueError(f"its schema is {row.get('schema')!r}, this version reads {SCHEMA!r}")
        _require_kind_and_number(row)
        return _type_of(row)._read(row)

    @classmethod
    def _read(cls, row: Mapping[str, Any]) -> Self:
        known: dict[str, Any] = {}
        for each in fields(cls):
            if each.name in _READ:
                known[each.name] = _READ[each.name](row)
            elif each.name in row:
                value = row[each.name]
                known[each.name] = tuple(value) if isinstance(value, list) else value
        return cls(**known)


@dataclass(frozen=True, kw_only=True)
class StepEntry(LedgerEntry):
    """A step that replaces or takes over a job; ``job`` is named after the entry."""

    job: JobSpec
    review: Review = Review()
    origin: Origin = Origin()

    def __post_init__(self) -> None:
        named = JobSpec.from_dict({**self.job.to_dict(), "source": f"deployed #{self.number}"})
        object.__setattr__(self, "job", named)

    @property
    def sha256(self) -> str:
        return self.job.digest()

    @property
    def job_id(self) -> JobRef | None:
        """The running job of the step, if there is one and it is known."""
        return None

    @property
    def request_id(self) -> str | None:
        return None


@dataclass(frozen=True, kw_only=True)
class StartEntry(StepEntry):
    """A step with the start of its job."""

    start: JobStart

    @property
    def job_id(self) -> JobRef | None:
        return self.start.job_id

    @property
    def request_id(self) -> str | None:
        return self.start.request_id


@dataclass(frozen=True, kw_only=True)
class HeadEntry(StartEntry):
    """The job in force, which runs the script of the entry; ``evidence`` lists observations, a line each."""

    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunEntry(StepEntry):
    """A step of a run that may continue; it states the seconds until the run writes its next entry."""

    claim_seconds: float | None = None

    @property
    def is_open(self) -> bool:
        """True if further steps of the run follow the entry."""
        return True


@dataclass(frozen=True, kw_only=True)
class AttemptEntry(RunEntry):
    """A step on the way to its job; ``hand_over`` is the record of the backfill before it."""

    hand_over: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class StopEntry(AttemptEntry):
    """A step about the stop of the former job. ``start_mode`` is the requested start of its successor."""

    stop: JobStop
    start_mode: str | None = None

    @property
    def job_id(self) -> JobRef | None:
        return self.stop.job_id


# ------------------------------------------------------------------------------------------------ steps of a redeploy
@dataclass(frozen=True, kw_only=True)
class DeployingEntry(AttemptEntry, kind="deploying"):
    """A claim on the deployment; ``prepared`` is the folder of the state already computed from history."""

    start_mode: str | None = None
    prepared: str | None = None


class StoppingEntry(StopEntry, kind="stopping"):
    """The intention to stop the former job."""


class StoppedEntry(StopEntry, kind="stopped"):
    """The stop of the former job, whose state is kept."""


@dataclass(frozen=True, kw_only=True)
class MigrationEntry(AttemptEntry):
    """A step of a rewritten savepoint: ``savepoint`` is the former job's, ``migrated_to`` the new one's."""

    savepoint: Snapshot
    migrated_to: str


class MigratingEntry(MigrationEntry, kind="migrating"):
    """The intention to rewrite the savepoint of the former job."""


@dataclass(frozen=True, kw_only=True)
class MigratedEntry(MigrationEntry, kind="migrated"):
    """A complete and verified rewritten savepoint; ``migration`` lists the kept state of each operator."""

    migration: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StartingEntry(AttemptEntry, StartEntry, kind="starting"):
    """The intention to start the job."""


@dataclass(frozen=True, kw_only=True)
class StartedEntry(AttemptEntry, StartEntry, kind="started"):
    """An accepted job that has not proved itself yet."""


@dataclass(frozen=True, kw_only=True)
class DeployedEntry(AttemptEntry, HeadEntry, kind="deployed"):
    """A verified, running job; ``effective_settings`` are those of cluster, session and script."""

    effective_settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class FailedEntry(AttemptEntry, StartEntry, kind="failed"):
    """A failed attempt: ``start`` is its last state, or names the former job if that could not be stopped.

    ``rolls_back_to``: the number of the entry whose script is restarted; None if there is no way back.
    """

    rolls_back_to: int | None = None

    @property
    def is_open(self) -> bool:
        return self.rolls_back_to is not None


@dataclass(frozen=True, kw_only=True)
class RollingBackEntry(RunEntry, StartEntry, kind="rolling-back"):
    """The intention to restart the former script, whose job the entry contains."""


class RolledBackEntry(HeadEntry, kind="rolled-back"):
    """A return to the former script, which runs again."""


@dataclass(frozen=True, kw_only=True)
class AdoptedEntry(HeadEntry, kind="adopted"):
    """A running job taken over with its user's script; only the job of its start is known."""

    effective_settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PlannedEntry(StartEntry, kind="planned"):
    """The spec for a platform that others configure; nothing was touched.

    ``start`` is how the job would start, with the request id by which it is recognised; ``evidence`` holds remarks, a
    line each. ``savepoint_before``: the savepoint that the platform then named as the next start, so that a later one
    can be distinguished.
    """

    evidence: tuple[str, ...] = ()
    savepoint_before: Snapshot | None = None


# ------------------------------------------------------------------------------------------- other notes
@dataclass(frozen=True, kw_only=True)
class VersionEntry(LedgerEntry):
    """Fate of a proposed version, before or without a redeploy."""

    version: JobVersion


@dataclass(frozen=True, kw_only=True)
class DecisionEntry(VersionEntry):
    """A decision about a version by a person, the policy or the check itself."""

    review: Review = Review()


class ApprovedEntry(DecisionEntry, kind="approved"):
    """The approval of the version by a person."""


class RejectedEntry(DecisionEntry, kind="rejected"):
    """The rejection of the version by a person or the policy."""


class UnchangedEntry(DecisionEntry, kind="unchanged"):
    """A version without a change that matters to the running job."""


class FailedVersionEntry(VersionEntry, kind=FailedEntry.KIND):
    """A version that is itself at fault, which was found before anything was touched."""


@dataclass(frozen=True, kw_only=True)
class FindingEntry(VersionEntry):
    """A finding about a version, which decides nothing and is no step of a redeploy."""


@dataclass(frozen=True, kw_only=True)
class CheckedEntry(FindingEntry, kind="checked"):
    """A check; ``branch`` is the chosen branch, ``policy`` the policy's own one, None if not consulted."""

    review: Review = Review()
    origin: Origin = Origin()
    branch: str | None = None
    policy: str | None = None


@dataclass(frozen=True, kw_only=True)
class RehearsedEntry(FindingEntry, kind="rehearsed"):
    """A rehearsed restore; ``rehearsal`` is the result as ``flinkcompat-rehearsal/1``."""

    rehearsal: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class BackfilledEntry(FindingEntry, kind="backfilled"):
    """A recomputation of history with the version; bounds are None for begin and end of history."""

    range_from: str | None = None
    range_to: str | None = None
    sinks: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    hand_over: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class InterruptedEntry(LedgerEntry, kind="interrupted"):
    """The end, by a person, of a task that waited for a stop (``request_id``) or for the proof of a start."""

    job_id: JobRef
    request_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The entry as it is stored, with the request under the key of a stop."""
        row = super().to_dict()
        return {**row, _STOP_REQUEST: row["request_id"], "request_id": None}

    @classmethod
    def _read(cls, row: Mapping[str, Any]) -> Self:
        return super()._read({**row, "request_id": row.get(_STOP_REQUEST)})


@dataclass(frozen=True, kw_only=True)
class DisposedEntry(LedgerEntry, kind="disposed"):
    """The deletion of a savepoint that an earlier stop left."""

    savepoint: Snapshot


@dataclass(frozen=True, kw_only=True)
class OtherEntry(LedgerEntry):
    """An entry that this version does not understand, with its content; it has no effect."""

    row: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.row["kind"])

    def to_dict(self) -> dict[str, Any]:
        return {**_absent(), **self.row, **{each.name: getattr(self, each.name) for each in fields(LedgerEntry)}}

    @classmethod
    def _read(cls, row: Mapping[str, Any]) -> Self:
        return super()._read({**row, "row": dict(row)})

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        _require_kind_and_number(row)
        return cls._read(row)


ENTRY_TYPES: tuple[type[LedgerEntry], ...] = (
    DeployingEntry, StoppingEntry, StoppedEntry, MigratingEntry, MigratedEntry, StartingEntry, StartedEntry,
    DeployedEntry, FailedEntry, RollingBackEntry, RolledBackEntry, AdoptedEntry, PlannedEntry, ApprovedEntry,
    RejectedEntry, UnchangedEntry, FailedVersionEntry, InterruptedEntry, DisposedEntry,
    CheckedEntry, RehearsedEntry, BackfilledEntry,
)  # fmt: skip
"""The types of all kinds that this version knows."""

_BY_KIND = {each.KIND: each for each in ENTRY_TYPES if each is not FailedVersionEntry}


def _type_of(row: Mapping[str, Any]) -> type[LedgerEntry]:
    if row["kind"] == FailedVersionEntry.KIND and not row.get("script"):
        return FailedVersionEntry
    return _BY_KIND.get(row["kind"], OtherEntry)
