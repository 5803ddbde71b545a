"""Shared parts of one redeploy: job, target, patience, and the next step in the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypedDict, TypeVar
from uuid import uuid4

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME
from airflow_flinkcompat.deploy.ledger.entries import (
    DeployingEntry,
    HeadEntry,
    JobStart,
    LedgerEntry,
    Origin,
    Review,
    RunEntry,
    StartEntry,
    StepEntry,
    StoppedEntry,
)
from airflow_flinkcompat.deploy.ledger.ledger import Ledger, LedgerConflict
from airflow_flinkcompat.deploy.ledger.status import EntryRow
from airflow_flinkcompat.deploy.offset_choices import SourceOffsets
from airflow_flinkcompat.deploy.target import JobRef, JobStatus, Operation, Snapshot, Start, Target, Verb
from airflow_flinkcompat.model import JobSpec, StartMode

T = TypeVar("T")
E = TypeVar("E", bound=LedgerEntry)
_AGAIN_SECONDS = 5.0
# Minimum duration of a claim, and its margin over the longest wait between two entries.
_CLAIM_SECONDS, _CLAIM_MARGIN_SECONDS = 900.0, 300.0
IN_FLIGHT_SECONDS = 180.0
"""Longest time of a submission without an answer: the time that a SQL Gateway has for a statement."""


class StartFailed(DeployError):
    """A failed start after the stop of a former job, if any; the message names the remedy."""


class RolledBack(StartFailed):
    """A failed start after which the former script runs again from its savepoint, and the reason."""


@dataclass(frozen=True)
class Options:
    """Time-outs in seconds, and places; without ``savepoint_directory``, the cluster's own."""

    savepoint_directory: str | None = None
    settle_seconds: float = 10.0
    stop_timeout: float = 600.0
    start_timeout: float = 300.0
    # Seconds for which a submission without an answer is repeated, under one id, so there is one job.
    submit_timeout: float = 120.0
    # Seconds for which an unfinished run of another owner keeps this one out; None: its own claim decides.
    claim_seconds: float | None = None
    # Allow a stateless start although the ledger's job has ended (failed, or stopped by hand).
    allow_ended: bool = False
    # Start the former script again when the new one does not run.
    roll_back: bool = True
    # Number of this deployment's latest savepoints to keep; None: all.
    keep_savepoints: int | None = None
    # Seconds of one wait before ``Waiting`` is raised instead; None: until its time-out.
    patience: float | None = None

    @property
    def longest_silence(self) -> float:
        """Longest time in seconds for which a run with these options may work without a ledger entry."""
        longest = max(self.stop_timeout, self.submit_timeout, self.start_timeout)
        return max(_CLAIM_SECONDS, longest + _CLAIM_MARGIN_SECONDS)

    def claimed(self, entry: RunEntry | EntryRow) -> float:
        """Time for which another run's last entry keeps out a run with these options.

        Args:
            entry: The ledger's last entry, of an unfinished run, or its row in a list.

        Returns:
            Seconds since the entry was written.
        """
        if self.claim_seconds is not None:
            return self.claim_seconds
        return _CLAIM_SECONDS if entry.claim_seconds is None else entry.claim_seconds


@dataclass(frozen=True)
class Wait:
    """A wait that continues elsewhere: for a stop or savepoint (``request_id``, ``verb``), or for a proof.

    Times are seconds since the epoch; after ``until`` the wait is over.
    """

    job_id: JobRef
    since: float
    until: float
    request_id: str | None = None
    proven_since: float | None = None
    verb: str = str(Verb.STOP)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Wait:
        """The wait from its ``asdict`` form, also of an earlier release.

        Args:
            row: The wait as JSON values; earlier releases name the request ``trigger_id``.

        Returns:
            The wait.
        """
        names = {"trigger_id": "request_id"}
        return cls(**{names.get(key, key): value for key, value in row.items()})


class Waiting(Exception):
    """A long wait for the cluster, not a failure. Call ``deploy`` again with ``wait`` afterwards."""

    def __init__(self, what: str, wait: Wait) -> None:
        super().__init__(what)
        self.wait = wait


class StateMigration(Protocol):
    """Rewriting of the former job's savepoint for the new one."""

    @property
    def writes(self) -> str:
        """Prefix of the names of its folders; folders with another prefix are not resumed."""

    def prepare(self) -> str | None:
        """Check that enough state can be kept, and do all preparation that needs no savepoint.

        Nothing of the deployment is touched.

        Returns:
            Path or URI of a folder from which :meth:`write` resumes, also in another process; None: there is none.

        Raises:
            DeployRefused: Less is kept than was decided, or the target lacks a required capability.
            DeployError: The target did not do it, or cannot be asked.
        """

    def write(self, savepoint: str, folder: str, prepared: str | None) -> Mapping[str, Any]:
        """Write the savepoint of the new job and verify its content.

        Args:
            savepoint: Path or URI of the former job's, which is only read.
            folder: Path or URI of the folder to write, which does not exist.
            prepared: The result of :meth:`prepare`; it may be gone by now.

        Returns:
            The kept state, as JSON values.

        Raises:
            DeployError: There is no such savepoint.
        """

    def rehearse(self, savepoint: Snapshot) -> str:
        """Restore the new job from its savepoint next to the live one, with stand-ins for its sinks.

        Args:
            savepoint: The savepoint that :meth:`write` wrote.

        Returns:
            The result in words, also an unknown one.

        Raises:
            DeployError: The savepoint was refused.
        """


class StepFields(TypedDict):
    """Fields of every step of a run."""

    owner: str
    job: JobSpec
    review: Review
    origin: Origin


class AttemptFields(StepFields):
    """Fields of every step on the way to the proposed job."""

    hand_over: Mapping[str, Any] | None


@dataclass
class Run:
    """One call of ``deploy``. ``last`` is the number of the ledger's last entry as this run knows it."""

    target: Target
    ledger: Ledger
    side: JobSpec
    mode: StartMode
    review: Review
    hand_over: Mapping[str, Any] | None
    owner: str
    options: Options
    log: Callable[[str], None]
    resumed: Wait | None = None
    offsets: SourceOffsets = field(default_factory=SourceOffsets)
    migration: StateMigration | None = None
    origin: Origin = field(default_factory=Origin)
    last: int = field(default=0)

    def job_settings(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Settings of a job, with the deployment's name unless they name it."""
        return {JOB_NAME: self.ledger.deployment, **settings}

    @property
    def attempt(self) -> AttemptFields:
        return {
            "owner": self.owner, "job": self.side, "review": self.review, "origin": self.origin,
            "hand_over": self.hand_over,
        }  # fmt: skip

    def way_back(self, head: HeadEntry) -> StepFields:
        former = Review(approved_by=head.review.approved_by)
        return {"owner": self.owner, "job": head.job, "review": former, "origin": head.origin}

    def runs(self, job_id: JobRef | None) -> bool:
        """True if the cluster knows a job that has not ended; a job without a name does not run."""
        status = self.target.status(job_id) if job_id else None
        return status is not None and not status.terminal

    def validate(self, job: JobSpec, start: Start) -> None:
        """Have the target validate a job, and log unvalidated parts. Raises TargetError, ScriptRefused."""
        if unjudged := self.target.validate(job, start):
            self.log(f"{job.source}: {unjudged}")

    def job_of(self, begun: StepEntry | JobStart) -> JobRef | None:
        """The job of a step: the one that it names, or the target's job for its request."""
        if begun.job_id is not None or begun.request_id is None:
            return begun.job_id
        return self.target.poll(Operation(Verb.START, begun.request_id)).job

    def status_of(self, entry: StepEntry) -> JobStatus | None:
        """The present state of an entry's job; None if there is none, or it is unknown."""
        job = self.job_of(entry)
        return None if job is None else self.target.status(job)

    def starts_as(self, entry: StartEntry) -> bool:
        """True if an entry's start and this run agree about a start with or without state."""
        stateless = entry.start.start_mode == StartMode.STATELESS
        return self.mode is StartMode.AUTO_FIRST or stateless == (self.mode is StartMode.STATELESS)

    def append(self, entry: E) -> E:
        """Write the next step; raises LedgerConflict if another run deploys too, which ends this run.

        In that case the intentions of this run are not written, because the other run would consider them done. The
        stop of the former job is still written, unless the other run already knows it, so that the savepoint is not
        lost.
        """
        if isinstance(entry, RunEntry) and entry.is_open:
            entry = replace(entry, claim_seconds=self.options.longest_silence)
        while True:
            try:
                stored = self.ledger.append(entry, after=self.last)
            except LedgerConflict:
                others = [other for other in self.ledger.entries() if other.number > self.last]
                if others and isinstance(first := others[0], type(entry)) and _same_step(first, entry):
                    self.last = first.number  # written, and only the answer was lost
                    return first
                steps = [other for other in others if isinstance(other, StepEntry)]
                if not steps:  # a rejection, for example, which is no step of a redeploy
                    self.last = others[-1].number
                    continue
                if isinstance(entry, StoppedEntry) and all(isinstance(other, DeployingEntry) for other in steps):
                    self.ledger.append(
                        replace(entry, message=f"{entry.message} (another run wrote in between)".strip())
                    )
                raise
            self.last = stored.number
            return stored

    def wait(self, look: Callable[[], T], pending: Callable[[T], bool], timeout: float, wait: Wait, every: float) -> T:
        """Look until the value is not pending. Raises Overdue after ``timeout``, Waiting after patience."""
        left, patience = self.left(timeout, wait), self.options.patience
        try:
            return poll(look, pending, timeout=left if patience is None else min(left, patience), every=every)
        except Overdue:
            if patience is None or left <= patience:
                raise
            raise Waiting(
                f"job {wait.job_id}", replace(wait, since=self.since(wait), until=time.time() + left)
            ) from None

    def since(self, wait: Wait) -> float:
        """Start of this wait, even if an earlier call began it."""
        resumed = self.resumed
        same = resumed is not None and (resumed.job_id, resumed.request_id) == (wait.job_id, wait.request_id)
        return resumed.since if same and resumed is not None else wait.since

    def left(self, timeout: float, wait: Wait) -> float:
        """Remaining time of a time-out; a resumed wait has at least a moment left, even if it is late."""
        least = 0 if self.since(wait) == wait.since else self.options.settle_seconds + _AGAIN_SECONDS
        return max(timeout - (time.time() - self.since(wait)), least)


def _same_step(stored: LedgerEntry, wanted: LedgerEntry) -> bool:
    written = replace(stored, number=wanted.number, at=wanted.at, message=wanted.message)
    return isinstance(wanted, StepEntry) and bool(wanted.job_id or wanted.request_id) and written == wanted


def new_id() -> str:
    return uuid4().hex


def age_of(entry: LedgerEntry) -> float:
    return (datetime.now(UTC) - entry.written).total_seconds()


def short(sha256: str | None) -> str:
    return (sha256 or "?")[:12]
