"""What only some targets can do, a protocol each, asked for with ``isinstance``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from airflow_flinkcompat.deploy.target.values import (
    Deployed,
    JobHistory,
    JobRef,
    Snapshot,
    Sources,
    TakenState,
)
from airflow_flinkcompat.model import JobSpec


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
