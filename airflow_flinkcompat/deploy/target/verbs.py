"""The verbs that every target has."""

from __future__ import annotations

from typing import Protocol

from airflow_flinkcompat.deploy.target.values import EngineInfo, JobRef, JobStatus, Operation, Proof, Start
from airflow_flinkcompat.model import JobSpec


class Target(Protocol):
    """A place that runs Flink jobs; methods raise DeployError, with ``unanswered`` set without an answer.

    ``str()`` of a target is its name in messages: ``the JobManager at http://jobmanager:8081``.
    """

    def engine(self) -> EngineInfo:
        """The engine whose state semantics apply.

        Returns:
            Its name and version.
        """

    def validate(self, job: JobSpec, start: Start) -> str:
        """Have the script validated as far as the target can without starting or stopping anything.

        Args:
            job: The job that would be started.
            start: The state and ``tables`` of that start.

        Returns:
            Description of the unvalidated parts; empty if the engine planned the job as for a start.

        Raises:
            TargetError, ScriptRefused: It would not run, for the place and reason in the message.
        """

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Start the job. An accepted job may not run yet, so verify it.

        A repeated request id makes no second job.

        Args:
            job: The job to start.
            start: The state to start from.
            request_id: 32 hexadecimal digits, written down before.

        Returns:
            The operation, with the job where the target names it at once.

        Raises:
            SubmissionUnknown: The outcome is unknown: poll, or ask again.
            TargetError, ScriptRefused: It was not.
        """

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Request a stop with savepoint, without draining. Repeating the request id refers to the same stop.

        Args:
            job: The job to stop.
            request_id: 32 hexadecimal digits, written down before.
            directory: Folder for the savepoint; None: the target chooses. A target with a fixed place refuses another
                one.

        Returns:
            The operation to poll. For a job that has ended, or is unknown, :meth:`poll` returns its fate.

        Raises:
            StopFailed: The job cannot be stopped with a savepoint.
            DeployRefused: The savepoint cannot be put there.
        """

    def poll(self, operation: Operation) -> Operation:
        """The outcome of an operation, including one that another process requested.

        Args:
            operation: The operation, as :meth:`start`, :meth:`stop` or an earlier call returned it.

        Returns:
            A start with its job once the target knows one of that request; a stop with its savepoint once the job has
            ended by it; a savepoint of a job that continues (``LiveSavepoints``) once it is complete.

        Raises:
            StopFailed: The stop failed for certain, and left no savepoint.
            SavepointFailed: The savepoint failed for certain, or the target knows of none of that request.
        """

    def status(self, job: JobRef) -> JobStatus | None:
        """The job as it is now.

        Args:
            job: The job.

        Returns:
            One look at it; None when it is unknown.
        """

    def running(self, name: str) -> tuple[JobRef, ...]:
        """The jobs of one name that have not ended.

        Args:
            name: The name of the job in the engine.

        Returns:
            The jobs.
        """

    def cancel(self, job: JobRef) -> None:
        """End the job without a savepoint, and wait for its end.

        Args:
            job: The job; an unknown or ended one is left alone.
        """

    def restored_from(self, job: JobRef) -> Proof:
        """The state from which the job was actually restored, and the evidence.

        Args:
            job: The job.

        Returns:
            The state of its last restore.
        """
