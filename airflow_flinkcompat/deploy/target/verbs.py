"""The verbs that every target has."""

from __future__ import annotations

from typing import Protocol

from airflow_flinkcompat.deploy.target.values import EngineInfo, JobRef, JobStatus, Operation, Proof, Start
from airflow_flinkcompat.model import JobSpec


class Target(Protocol):
    """A platform that runs Flink jobs.

    Methods raise DeployError, with ``unanswered`` set if no answer arrived. ``str()`` returns the target's name for
    messages, such as ``the JobManager at http://jobmanager:8081``.
    """

    def engine(self) -> EngineInfo:
        """The engine that runs the jobs, which determines how state is restored.

        Returns:
            The engine's name and version.
        """

    def validate(self, job: JobSpec, start: Start) -> str:
        """Validate a job as far as possible without a start or stop.

        Args:
            job: The job to validate.
            start: The planned initial state, and options that override table options.

        Returns:
            Description of the unvalidated parts. Empty if the engine planned the job in the same way as for a start.

        Raises:
            TargetError, ScriptRefused: The job would not run. The error message names the place and the reason.
        """

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Start a job. A repeated request id starts no second job.

        An accepted job may not run yet, so the caller must verify the start.

        Args:
            job: The job to start.
            start: The initial state, and options that override table options.
            request_id: 32 hexadecimal digits, recorded before the request.

        Returns:
            The operation, which already contains the job if the target knows the job immediately.

        Raises:
            SubmissionUnknown: The outcome is unknown. To determine the outcome, poll, or repeat the request.
            TargetError, ScriptRefused: The job was not started.
        """

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Request a stop with savepoint, without draining. A repeated request id refers to the same stop.

        Args:
            job: The job to stop.
            request_id: 32 hexadecimal digits, recorded before the request.
            directory: Folder for the savepoint. If None, the target chooses the folder. A target with a fixed folder
                refuses any other.

        Returns:
            The operation to poll, even if the job has already ended or is unknown.

        Raises:
            StopFailed: The job cannot be stopped with a savepoint.
            DeployRefused: The savepoint cannot be written to ``directory``.
        """

    def poll(self, operation: Operation) -> Operation:
        """The outcome of an operation, even if a different process requested the operation.

        Args:
            operation: An operation that :meth:`start`, :meth:`stop` or an earlier call returned.

        Returns:
            For a start, the operation with its job, as soon as the target knows a job of this request. For a stop,
            the operation with its savepoint, as soon as the stop has ended the job. For a savepoint request
            (``LiveSavepoints``), the operation with its savepoint, as soon as the savepoint is complete.

        Raises:
            StopFailed: The stop failed finally and left no savepoint.
            SavepointFailed: The savepoint failed finally, or the target knows no such request.
        """

    def status(self, job: JobRef) -> JobStatus | None:
        """The current status of a job.

        Args:
            job: The job.

        Returns:
            The status, or None if the job is unknown.
        """

    def running(self, name: str) -> tuple[JobRef, ...]:
        """The jobs with this name that have not ended.

        Args:
            name: The job's name in the engine.

        Returns:
            The jobs.
        """

    def cancel(self, job: JobRef) -> None:
        """Cancel the job without a savepoint, and wait for its end.

        Args:
            job: The job. If the job is unknown or has ended, the call has no effect.
        """

    def restored_from(self, job: JobRef) -> Proof:
        """The state from which the job was actually restored, and the strength of the evidence.

        Args:
            job: The job.

        Returns:
            The state of the job's last restore.
        """
