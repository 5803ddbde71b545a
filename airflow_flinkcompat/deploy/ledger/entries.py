"""Types of ledger entries, one for each kind, and their form as flat JSON objects.

Recurring parts are separate classes: the job, the approval (:class:`Review`), a start (:class:`JobStart`) and a stop
(:class:`JobStop`). The fields of these classes are keys of the JSON object. Each entry contains every key of the
schema. Keys that a kind does not use have an empty value. Therefore releases can read each other's entries.
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
    """Every key of the schema in display order, with its empty value."""
    return {
        "kind": "", "script": "", "settings": {}, "functions": [], "catalog": "", "language": "sql", "variables": {},
        "files": {}, "engine": "", "engine_version": None, "sha256": "", "job_id": None, "savepoint": None,
        "start_mode": None, "offsets": (), "outcome": None, "report_path": None, "approved_by": None, "message": "",
        "reason": None, "branch": None, "policy": None, "commit": None, "author": None, "team": None, "owned_by": None,
        "savepoint_bytes": None, "savepoint_at": None, "rehearsal": {}, "shadow": {}, "range_from": None,
        "range_to": None, "sinks": {}, "counts": {},
        "owner": "", "hand_over": None, "claim_seconds": None, "request_id": None, "trigger_id": None,
        "checkpoint": None, "state": {}, "rolls_back_to": None, "evidence": (), "effective_settings": {},
        "migrated_from": None, "migrated_to": None, "migration": {}, "prepared": None, "savepoint_before": None,
        "waivers": (), "passes_over": (),
        "number": 0, "at": "", "schema": SCHEMA,
    }  # fmt: skip


# --------------------------------------------------------------------------------------------------- groups of fields
@dataclass(frozen=True)
class _Keys:
    """A part of an entry whose fields are keys of the entry."""

    def to_dict(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        known = {each.name: row[each.name] for each in fields(cls) if each.name in row}
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in known.items()})


@dataclass(frozen=True)
class Review(_Keys):
    """Approval of a version: the check's outcome and report, waivers, approver and reason."""

    outcome: str | None = None
    report_path: str | None = None
    approved_by: str | None = None
    reason: str | None = None
    waivers: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Origin(_Keys):
    """Origin of a script version, and owners of the deployment.

    ``commit`` is the Git commit that last changed the version's files, and ``author`` is the commit's author.
    ``commit`` and ``author`` are None without version control, or if the files have uncommitted changes. ``team`` and
    ``owned_by`` are responsible for the deployment. In contrast, ``owner`` is the run that wrote an entry.
    """

    commit: str | None = None
    author: str | None = None
    team: str | None = None
    owned_by: str | None = None


@dataclass(frozen=True)
class JobVersion(_Keys):
    """Engine and digest of a version. The script is not stored, because it may contain secrets."""

    engine: str = ""
    engine_version: str | None = None
    sha256: str = ""

    @classmethod
    def of(cls, job: JobSpec) -> JobVersion:
        return cls(job.engine, job.engine_version, job.digest())


@dataclass(frozen=True)
class JobStart(_Keys):
    """Facts about a start.

    ``savepoint`` is the savepoint or checkpoint from which the job starts. ``migrated_from`` is the former job's
    savepoint, if ``savepoint`` was rewritten from it. ``offsets`` has a row for each source: the table's path, the
    chosen position, the connector options and a text. ``request_id`` identifies the request, so that a repeated
    request is the same start. ``job_id`` is the job, as soon as it is known. ``savepoint_bytes`` is the size of the
    former job's state, if the target showed the size during verification.
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
        """The former job's state, from which a rollback restarts the former script."""
        return self.migrated_from or self.savepoint

    @property
    def asked_under(self) -> str:
        """The request id. Entries of earlier releases contain it only as the job id, which is equal."""
        return str(self.request_id or self.job_id)

    @property
    def job_ref(self) -> JobRef:
        return JobRef(str(self.job_id))


@dataclass(frozen=True)
class JobStop(_Keys):
    """Facts about a stop.

    ``request_id`` identifies the request, so that a repeated request is the same stop. ``request_id`` is None if the
    job is cancelled and its last checkpoint is used. ``checkpoint`` is the job's last checkpoint before the stop.
    ``offsets`` is the next offset by source partition before the stop. ``directory`` is the requested folder of the
    savepoint.

    After the end of the job, ``savepoint`` is the savepoint, ``savepoint_bytes`` its size and ``savepoint_at`` its time
    (ISO 8601 in UTC). A value that is unknown is None. ``state`` contains the statistics of the savepoint.
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
        # Write the stop's request id under a separate key, because the key request_id belongs to starts.
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
            "its sha256 does not match its job, so a later release of flinkcompat with more fields wrote it"
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
    """JSON values with sorted keys, as in an entry's file."""
    return json.loads(json.dumps(value, sort_keys=True))


_READ = {
    "job": _read_job,
    "review": Review.from_dict,
    "version": JobVersion.from_dict,
    "start": JobStart.from_dict,
    "stop": JobStop.from_dict,
    "origin": Origin.from_dict,
}
"""Fields of entries that consist of several keys, with the function that reads each."""


# ----------------------------------------------------------------------------------------------- base of all entries
@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """Base of all kinds of entries: a step of a deployment, or a note about the deployment.

    Attributes:
        number: The entry's number in the ledger, set by ``Ledger.append``.
        at: The time of writing, ISO 8601 in UTC, set by ``Ledger.append``.
        owner: The name of the run that wrote the entry.
        message: A remark for readers.
        passes_over: Numbers of the torn entries directly before this entry.
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
        """The time of writing. An entry has a time only after it was written to a ledger."""
        return datetime.fromisoformat(self.at)

    @property
    def is_head(self) -> bool:
        """True if the entry is about the deployed job."""
        return isinstance(self, HeadEntry)

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON values, which :meth:`from_dict` reads.

        Returns:
            JSON values for every key of the schema.
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
        """Read an entry that :meth:`to_dict` wrote. Keys of later releases are ignored.

        Args:
            row: The entry as JSON values.

        Returns:
            The entry with the type of its kind, or an :class:`OtherEntry` if this release does not know the kind.

        Raises:
            ValueError: The row has a different schema, lacks kind or number, or contains an invalid value.
        """
        if row.get("schema") != SCHEMA:
            raise ValueError(f"its schema is {row.get('schema')!r}, but this release reads {SCHEMA!r}")
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
    """A step of a redeploy or of an adoption. ``job.source`` is the name of the entry."""

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
        """The running job of the step, or None if there is no job or it is unknown."""
        return None

    @property
    def request_id(self) -> str | None:
        return None


@dataclass(frozen=True, kw_only=True)
class StartEntry(StepEntry):
    """A step with a start of its job."""

    start: JobStart

    @property
    def job_id(self) -> JobRef | None:
        return self.start.job_id

    @property
    def request_id(self) -> str | None:
        return self.start.request_id


@dataclass(frozen=True, kw_only=True)
class HeadEntry(StartEntry):
    """The deployed job, which runs the entry's script; ``evidence`` lists observations."""

    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunEntry(StepEntry):
    """A step of a run that may continue; ``claim_seconds`` is the maximum time until the run's next entry."""

    claim_seconds: float | None = None

    @property
    def is_open(self) -> bool:
        """True if the run writes more entries after this entry."""
        return True


@dataclass(frozen=True, kw_only=True)
class AttemptEntry(RunEntry):
    """A step of an attempt to start a new job; ``hand_over`` records the backfill that precedes the job."""

    hand_over: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class StopEntry(AttemptEntry):
    """A step about the stop of the former job; ``start_mode`` is the start mode of its successor."""

    stop: JobStop
    start_mode: str | None = None

    @property
    def job_id(self) -> JobRef | None:
        return self.stop.job_id


# ------------------------------------------------------------------------------------------------ steps of a redeploy
@dataclass(frozen=True, kw_only=True)
class DeployingEntry(AttemptEntry, kind="deploying"):
    """A claim on the deployment; ``prepared`` is the folder of the state computed from history so far."""

    start_mode: str | None = None
    prepared: str | None = None


class StoppingEntry(StopEntry, kind="stopping"):
    """The intention to stop the former job."""


class StoppedEntry(StopEntry, kind="stopped"):
    """The completed stop of the former job, with its state."""


@dataclass(frozen=True, kw_only=True)
class MigrationEntry(AttemptEntry):
    """A step of a migration that rewrites the former job's ``savepoint`` to the folder ``migrated_to``."""

    savepoint: Snapshot
    migrated_to: str


class MigratingEntry(MigrationEntry, kind="migrating"):
    """The intention to rewrite the former job's savepoint."""


@dataclass(frozen=True, kw_only=True)
class MigratedEntry(MigrationEntry, kind="migrated"):
    """A verified migration; ``migration`` lists the kept state of each operator."""

    migration: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StartingEntry(AttemptEntry, StartEntry, kind="starting"):
    """The intention to start the job."""


@dataclass(frozen=True, kw_only=True)
class StartedEntry(AttemptEntry, StartEntry, kind="started"):
    """An accepted job that is not verified yet."""


@dataclass(frozen=True, kw_only=True)
class DeployedEntry(AttemptEntry, HeadEntry, kind="deployed"):
    """A verified job; ``effective_settings`` contains the settings of cluster, session and script."""

    effective_settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class FailedEntry(AttemptEntry, StartEntry, kind="failed"):
    """A failed attempt; ``start`` is the failed start, or names the former job if the stop failed.

    ``rolls_back_to`` is the number of the entry whose script is restarted, or None if no rollback follows.
    """

    rolls_back_to: int | None = None

    @property
    def is_open(self) -> bool:
        return self.rolls_back_to is not None


@dataclass(frozen=True, kw_only=True)
class RollingBackEntry(RunEntry, StartEntry, kind="rolling-back"):
    """The intention to restart the former script. The entry describes the former job, not the failed one."""


class RolledBackEntry(HeadEntry, kind="rolled-back"):
    """A completed rollback: the former script runs again."""


@dataclass(frozen=True, kw_only=True)
class AdoptedEntry(HeadEntry, kind="adopted"):
    """An adopted job with the script that its user provided. Of the job's start, only the job id is known."""

    effective_settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PlannedEntry(StartEntry, kind="planned"):
    """A planned change for a platform that someone else configures. Nothing was changed.

    ``start`` describes the future start, with the request id that identifies its job. ``evidence`` contains remarks,
    one line each. ``savepoint_before`` is the savepoint that the platform reported at the time of planning. A
    different savepoint is therefore newer than the plan.
    """

    evidence: tuple[str, ...] = ()
    savepoint_before: Snapshot | None = None


# ------------------------------------------------------------------------------------------- other notes
@dataclass(frozen=True, kw_only=True)
class VersionEntry(LedgerEntry):
    """A result about a proposed version, recorded before a redeploy or without one."""

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
    """A version that changes nothing relevant in the running job."""


class FailedVersionEntry(VersionEntry, kind=FailedEntry.KIND):
    """A faulty version. The fault was detected before the running job was changed."""


@dataclass(frozen=True, kw_only=True)
class FindingEntry(VersionEntry):
    """A finding about a version, which is neither a decision nor a step of a redeploy."""


@dataclass(frozen=True, kw_only=True)
class CheckedEntry(FindingEntry, kind="checked"):
    """A check; ``branch`` is the chosen branch, ``policy`` the policy's branch or None if not consulted."""

    review: Review = Review()
    origin: Origin = Origin()
    branch: str | None = None
    policy: str | None = None


@dataclass(frozen=True, kw_only=True)
class RehearsedEntry(FindingEntry, kind="rehearsed"):
    """A rehearsal; ``rehearsal`` is its result in the format ``flinkcompat-rehearsal/1``."""

    rehearsal: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ShadowedEntry(FindingEntry, kind="shadowed"):
    """A shadow run; ``shadow`` is its result in the format ``flinkcompat-shadow/1``.

    ``review`` is copied from the check. ``branch`` is the chosen branch after the run.
    """

    review: Review = Review()
    branch: str | None = None
    shadow: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class BackfilledEntry(FindingEntry, kind="backfilled"):
    """A backfill that ran with the version. A bound of None means the beginning or the end of history."""

    range_from: str | None = None
    range_to: str | None = None
    sinks: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    hand_over: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class InterruptedEntry(LedgerEntry, kind="interrupted"):
    """The manual end of a task that waited for a stop (``request_id``) or for the proof of a start."""

    job_id: JobRef
    request_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON values, with the request id under the key of a stop."""
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
    """An entry that this release does not understand, with its content. The entry has no effect."""

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
    CheckedEntry, RehearsedEntry, ShadowedEntry, BackfilledEntry,
)  # fmt: skip
"""The types of all kinds that this release knows."""

_BY_KIND = {each.KIND: each for each in ENTRY_TYPES if each is not FailedVersionEntry}


def _type_of(row: Mapping[str, Any]) -> type[LedgerEntry]:
    if row["kind"] == FailedVersionEntry.KIND and not row.get("script"):
        return FailedVersionEntry
    return _BY_KIND.get(row["kind"], OtherEntry)
