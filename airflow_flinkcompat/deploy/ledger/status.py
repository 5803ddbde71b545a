"""Status of a deployment, computed from ledger entries: progress of a redeploy, and a list row.

A new row depends only on the former row and the new entry. Therefore a writer that knows the former row updates the
index without reading the ledger.

A redeploy has the following steps. ``deploying`` claims the deployment for one run. ``stopping`` → ``stopped`` is the
stop of the former job. ``starting`` → ``started`` → ``deployed`` is the start of the new job. ``failed`` ends an
attempt. With ``rolls_back_to``, ``failed`` begins the rollback: ``rolling-back`` → ``rolled-back``. Each action is
recorded with a request id before it is taken. The stop and the following start share a request id. If a run dies, a
later run can therefore query the cluster for the outcome by request id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from functools import reduce
from typing import Any, Self, TypeVar

from airflow_flinkcompat.deploy.ledger.entries import (
    CheckedEntry,
    DeployingEntry,
    DisposedEntry,
    FailedEntry,
    FailedVersionEntry,
    HeadEntry,
    LedgerEntry,
    RolledBackEntry,
    RollingBackEntry,
    RunEntry,
    ShadowedEntry,
    StepEntry,
    StoppedEntry,
    StoppingEntry,
    VersionEntry,
)
from airflow_flinkcompat.deploy.target import same_snapshot

SCHEMA = "flinkcompat-index/4"
"""Version of the row format. Increase it if the code computes a different row from the same entries.

Releases with different versions do not share rows.
"""
APPROVE = "approve"
"""The branch of a check or shadow run that needs a person's decision."""


@dataclass(frozen=True)
class EntryRow:
    """Keys of an entry that lists show, without long texts such as the script."""

    number: int
    kind: str
    at: str
    job_id: str | None
    savepoint: str | None
    start_mode: str | None
    outcome: str | None
    engine: str
    engine_version: str | None
    language: str
    approved_by: str | None
    owner: str
    message: str
    sha256: str
    report_path: str | None
    reason: str | None
    branch: str | None
    commit: str | None
    author: str | None
    team: str | None
    owned_by: str | None
    claim_seconds: float | None

    @classmethod
    def of(cls, entry: LedgerEntry) -> Self:
        row = entry.to_dict()
        return cls(**{each.name: row[each.name] for each in fields(cls)})

    @classmethod
    def from_dict(cls, row: Mapping[str, Any] | None) -> Self | None:
        return None if row is None else cls(**{each.name: row[each.name] for each in fields(cls)})


@dataclass(frozen=True)
class SavepointRow:
    """The last savepoint of a deployment: path, size, time, and the number of its entry.

    Entries of earlier releases contain no savepoint time. Without a savepoint time, ``taken_at`` is the time of the
    ledger entry. ``owners`` are the runs that recorded the stop and later starts from the savepoint.
    """

    path: str
    bytes: int | None
    taken_at: str
    number: int
    owners: tuple[str, ...]

    @classmethod
    def from_dict(cls, row: Mapping[str, Any] | None) -> Self | None:
        if row is None:
            return None
        return cls(**{**{each.name: row[each.name] for each in fields(cls)}, "owners": tuple(row["owners"])})

    def age(self, now: datetime) -> float:
        """Age of the savepoint in seconds."""
        return (now - datetime.fromisoformat(self.taken_at)).total_seconds()


def last_savepoint(entries: Iterable[LedgerEntry]) -> SavepointRow | None:
    """The last savepoint or checkpoint that a stop left, according to the ledger entries."""
    none: SavepointRow | None = None
    return reduce(_savepoint_after, entries, none)


def _savepoint_after(former: SavepointRow | None, entry: LedgerEntry) -> SavepointRow | None:
    if isinstance(entry, StoppedEntry) and (path := entry.stop.savepoint):
        stop, state, size = entry.stop, entry.stop.state, entry.stop.savepoint_bytes
        # Entries of earlier releases contain the savepoint's size only in the checkpoint statistics.
        if size is None and state is not None and state.vertices and same_snapshot(state.path, path):
            size = state.bytes
        return SavepointRow(path, size, stop.savepoint_at or entry.at, entry.number, (entry.owner,))
    if isinstance(entry, HeadEntry) and former and same_snapshot(entry.start.way_back, former.path):
        # Directly after a stop, a target may show older statistics. The next job's entry then contains the
        # savepoint's size.
        size = entry.start.savepoint_bytes if former.bytes is None else former.bytes
        return replace(former, bytes=size, owners=tuple(dict.fromkeys((*former.owners, entry.owner))))
    if isinstance(entry, DisposedEntry) and former and same_snapshot(former.path, entry.savepoint):
        return None
    return former


@dataclass(frozen=True)
class DeploymentRow:
    """A deployment's row in a list.

    Attributes:
        deployment: The name of the deployment.
        last: The number of the last entry that the row includes, or 0 without entries.
        head: The deployed job.
        unfinished: The last step of a redeploy that is not finished, or None.
        pending: The check that waits, itself or after its shadow run, for a person's decision.
        checked: The last compatibility check of a version.
        savepoint: The last savepoint that a stop left.
        failed: The last failure of a redeploy or a version, until a different redeploy begins. After a rollback,
            ``failed`` is the failure that caused the rollback.
    """

    deployment: str
    last: int = 0
    head: EntryRow | None = None
    unfinished: EntryRow | None = None
    pending: EntryRow | None = None
    checked: EntryRow | None = None
    savepoint: SavepointRow | None = None
    failed: EntryRow | None = None

    def after(self, entry: LedgerEntry) -> DeploymentRow:
        row = replace(self, last=entry.number, savepoint=_savepoint_after(self.savepoint, entry))
        row = replace(row, failed=self._failed_after(entry))
        match entry:
            case HeadEntry():
                return replace(row, head=EntryRow.of(entry), unfinished=None, pending=None)
            case StepEntry():
                unfinished = EntryRow.of(entry) if isinstance(entry, RunEntry) and entry.is_open else None
                return replace(row, unfinished=unfinished, pending=self._pending_after(entry.sha256))
            case CheckedEntry():
                checked = EntryRow.of(entry)
                return replace(row, checked=checked, pending=checked if entry.branch == APPROVE else None)
            case ShadowedEntry() if entry.branch == APPROVE and self._is_checked(entry.version.sha256):
                return replace(row, pending=self.checked)
            case VersionEntry():
                return replace(row, pending=self._pending_after(entry.version.sha256))
        return row

    def _is_checked(self, sha256: str) -> bool:
        return self.checked is not None and self.checked.sha256 == sha256

    def _failed_after(self, entry: LedgerEntry) -> EntryRow | None:
        match entry:
            case FailedEntry() | FailedVersionEntry():
                return EntryRow.of(entry)
            case DeployingEntry():
                return None
            case HeadEntry() if not isinstance(entry, RolledBackEntry):
                return None
        return self.failed

    def _pending_after(self, settled: str) -> EntryRow | None:
        return None if self.pending and self.pending.sha256 == settled else self.pending

    def after_all(self, entries: Iterable[LedgerEntry]) -> DeploymentRow:
        return reduce(DeploymentRow.after, entries, self)

    def to_dict(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> DeploymentRow:
        """Read a row that :meth:`to_dict` wrote. Keys of later releases are ignored."""
        if row["schema"] != SCHEMA:
            raise ValueError(f"its schema is {row['schema']!r}, but this release reads {SCHEMA!r}")
        summaries = {
            name: EntryRow.from_dict(row[name]) for name in ("head", "unfinished", "pending", "checked", "failed")
        }
        return cls(row["deployment"], int(row["last"]), savepoint=SavepointRow.from_dict(row["savepoint"]), **summaries)


S = TypeVar("S", bound=StepEntry)


@dataclass(frozen=True)
class Progress:
    """Progress of a redeploy: the deployed version, the steps after it, and the last entry's number."""

    head: HeadEntry | None
    steps: tuple[StepEntry, ...]
    last: int

    @classmethod
    def of(cls, entries: Sequence[LedgerEntry]) -> Progress:
        """Compute the progress from ledger entries, oldest first."""
        head = next((entry for entry in reversed(entries) if isinstance(entry, HeadEntry)), None)
        since = 0 if head is None else head.number
        steps = tuple(entry for entry in entries if entry.number > since and isinstance(entry, StepEntry))
        return cls(head, steps, entries[-1].number if entries else 0)

    @property
    def unfinished(self) -> RunEntry | None:
        last = self.steps[-1] if self.steps else None
        return last if isinstance(last, RunEntry) and last.is_open else None

    @property
    def reached(self) -> StepEntry | None:
        """The last step of the redeploy, other than its claim of the deployment."""
        return next((entry for entry in reversed(self.steps) if not isinstance(entry, DeployingEntry)), None)

    @property
    def is_interrupted(self) -> bool:
        """True if a redeploy began to change the deployment and has not ended."""
        return isinstance(self.reached, RunEntry) and self.reached.is_open

    @property
    def stopped(self) -> StoppedEntry | None:
        """The stop of the head's job, or None if a later stop of that job was begun or failed."""
        ours = (entry for entry in reversed(self.steps) if self.head and entry.job_id == self.head.job_id)
        last = next((entry for entry in ours if isinstance(entry, StoppingEntry | StoppedEntry | FailedEntry)), None)
        return last if isinstance(last, StoppedEntry) else None

    @property
    def failed_start(self) -> FailedEntry | None:
        """The failed start with an unfinished rollback, or None."""
        way_back = isinstance(self.reached, RollingBackEntry | FailedEntry) and self.reached.is_open
        if self.head is None or not way_back:
            return None
        failed = (entry for entry in reversed(self.steps) if isinstance(entry, FailedEntry))
        return next((entry for entry in failed if entry.rolls_back_to == self.head.number), None)

    def latest(self, *kinds: type[S]) -> S | None:
        return next((entry for entry in reversed(self.steps) if isinstance(entry, kinds)), None)


def begun_mode(progress: Progress, sha256: str) -> str | None:
    """Start mode of an unfinished run of this version, which a retry must also use."""
    claim = progress.latest(DeployingEntry)
    if progress.unfinished is None or progress.reached is None or claim is None or claim.sha256 != sha256:
        return None
    return claim.start_mode
