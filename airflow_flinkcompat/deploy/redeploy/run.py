"""Common parts of a redeploy: arguments, time limits, waits, and the next ledger entry."""

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
"""Seconds for which an unanswered submission may still be accepted (the Gateway's statement timeout)."""


class StartFailed(DeployError):
    """The redeploy failed. The error message shows which job runs, if any, and names the remedy."""


class RolledBack(StartFailed):
    """The new job did not start, and the former script runs again. The message names the reason."""


@dataclass(frozen=True)
class Options:
    """Timeouts in seconds and other options. By default, the cluster's savepoint folder is used."""

    savepoint_directory: str | None = None
    settle_seconds: float = 10.0
    stop_timeout: float = 600.0
    start_timeout: float = 300.0
    # Seconds for which an unanswered submission is repeated under the same id, which creates only one job.
    submit_timeout: float = 120.0
    # Seconds for which an unfinished run of a different owner blocks this run. If None, the other run's claim
    # decides.
    claim_seconds: float | None = None
    # Allow a stateless start although the ledger's job has ended (failed, or stopped manually).
    allow_ended: bool = False
    # Start the former script again if the new job does not run.
    roll_back: bool = True
    # Number of this deployment's latest savepoints to keep. If None, all savepoints are kept.
    keep_savepoints: int | None = None
    # Maximum seconds of a single wait, after which ``Waiting`` is raised. If None, each wait lasts until its timeout.
    patience: float | None = None

    @property
    def longest_silence(self) -> float:
        """Maximum seconds between two ledger entries of a run with these options."""
        longest = max(self.stop_timeout, self.submit_timeout, self.start_timeout)
        return max(_CLAIM_SECONDS, longest + _CLAIM_MARGIN_SECONDS)

    def claimed(self, entry: RunEntry | EntryRow) -> float:
        """Seconds for which the last entry of a different run blocks a run with these options.

        Args:
            entry: The last ledger entry of an unfinished run, or its row in a list.

        Returns:
            The time in seconds, counted from the write of the entry.
        """
        if self.claim_seconds is not None:
            return self.claim_seconds
        return _CLAIM_SECONDS if entry.claim_seconds is None else entry.claim_seconds


@dataclass(frozen=True)
class Wait:
    """A wait for a stop, for a savepoint or for the proof of a start, which outlasts a call of ``deploy``.

    ``request_id`` and ``verb`` identify the stop or savepoint. Times are seconds since the epoch. The wait ends at
    ``until``.
    """

    job_id: JobRef
    since: float
    until: float
    request_id: str | None = None
    proven_since: float | None = None
    verb: str = str(Verb.STOP)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Wait:
        """Read a wait from its ``asdict`` form, including the form of earlier releases.

        Args:
            row: The wait as JSON values. Earlier releases wrote ``trigger_id`` instead of ``request_id``.

        Returns:
            The wait.
        """
        names = {"trigger_id": "request_id"}
        return cls(**{names.get(key, key): value for key, value in row.items()})


class Waiting(Exception):
    """A long wait for the cluster, which is no failure. Then call ``deploy`` with ``wait`` as ``resumed``."""

    def __init__(self, what: str, wait: Wait) -> None:
        super().__init__(what)
        self.wait = wait


class StateMigration(Protocol):
    """Rewriting of the former job's savepoint for the new job."""

    @property
    def writes(self) -> str:
        """Prefix of the names of this migration's folders. A retry uses no folder with a different prefix."""

    def prepare(self) -> str | None:
        """Check that enough state can be kept, and prepare everything that requires no final savepoint.

        The deployment itself is not changed.

        Returns:
            Path or URI of a folder from which :meth:`write` can resume, even in a different process. None if nothing
            was prepared.

        Raises:
            DeployRefused: Less state would be kept than was decided, or the target lacks a required capability.
            DeployError: The preparation failed, or the target does not answer.
        """

    def write(self, savepoint: str, folder: str, prepared: str | None) -> Mapping[str, Any]:
        """Write the savepoint of the new job and verify its content.

        Args:
            savepoint: Path or URI of the former job's savepoint, which is only read.
            folder: Path or URI of the folder to write, which must not exist.
            prepared: The result of :meth:`prepare`. The folder may no longer exist.

        Returns:
            The kept state, as JSON values.

        Raises:
            DeployError: The savepoint could not be written.
        """

    def rehearse(self, savepoint: Snapshot) -> str:
        """Restore the new job from its savepoint in a rehearsal, with stand-ins for its sinks.

        Args:
            savepoint: The savepoint that :meth:`write` wrote.

        Returns:
            A description of the result, which may be unknown.

        Raises:
            DeployError: Flink refused the savepoint.
        """


class StepFields(TypedDict):
    """Fields of every ledger entry of a run."""

    owner: str
    job: JobSpec
    review: Review
    origin: Origin


class AttemptFields(StepFields):
    """Fields of every ledger entry of an attempt to deploy the proposed job."""

    hand_over: Mapping[str, Any] | None


@dataclass
class Run:
    """A call of ``deploy``; ``last`` is the number of the last ledger entry that this run knows."""

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
        """Settings of a job, with the deployment's name as the default job name."""
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
        """True if the cluster knows the job and it has not ended. False if ``job_id`` is None."""
        status = self.target.status(job_id) if job_id else None
        return status is not None and not status.terminal

    def validate(self, job: JobSpec, start: Start) -> None:
        """Validate a job on the target, and log the parts that the target could not validate.

        Raises TargetError, ScriptRefused.
        """
        if unjudged := self.target.validate(job, start):
            self.log(f"{job.source}: {unjudged}")

    def job_of(self, begun: StepEntry | JobStart) -> JobRef | None:
        """The job that a step names, or else the target's job for the step's request id."""
        if begun.job_id is not None or begun.request_id is None:
            return begun.job_id
        return self.target.poll(Operation(Verb.START, begun.request_id)).job

    def status_of(self, entry: StepEntry) -> JobStatus | None:
        """The status of an entry's job, or None if there is no job or the target does not know the job."""
        job = self.job_of(entry)
        return None if job is None else self.target.status(job)

    def starts_as(self, entry: StartEntry) -> bool:
        """True if the entry's start has the same mode as this run (with or without state)."""
        stateless = entry.start.start_mode == StartMode.STATELESS
        return self.mode is StartMode.AUTO_FIRST or stateless == (self.mode is StartMode.STATELESS)

    def append(self, entry: E) -> E:
        """Append the next step. Raises LedgerConflict if a different run deploys at the same time.

        A ``LedgerConflict`` ends this run. After a conflict, this run writes no entry about an intended step, because
        the other run would regard the step as done. The stop of the former job is still written, so that its
        savepoint is not lost, unless the other run has already recorded this stop.
        """
        if isinstance(entry, RunEntry) and entry.is_open:
            entry = replace(entry, claim_seconds=self.options.longest_silence)
        while True:
            try:
                stored = self.ledger.append(entry, after=self.last)
            except LedgerConflict:
                others = [other for other in self.ledger.entries() if other.number > self.last]
                if others and isinstance(first := others[0], type(entry)) and _same_step(first, entry):
                    self.last = first.number  # an earlier attempt wrote the entry, but the store's response was lost
                    return first
                steps = [other for other in others if isinstance(other, StepEntry)]
                if not steps:  # the other entries are no steps of a redeploy, but for example rejections
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
        """Poll until the value is not pending. Raises Overdue after ``timeout``, Waiting after ``patience``."""
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
        """Start time of the wait, which an earlier call of ``deploy`` may have begun."""
        resumed = self.resumed
        same = resumed is not None and (resumed.job_id, resumed.request_id) == (wait.job_id, wait.request_id)
        return resumed.since if same and resumed is not None else wait.since

    def left(self, timeout: float, wait: Wait) -> float:
        """Remaining seconds of a timeout. A resumed wait always gets at least a few seconds."""
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
