"""Capabilities of some targets, a protocol each, tested with ``isinstance``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from airflow_flinkcompat.deploy.target.values import (
    ChangePlan,
    Deployed,
    EngineInfo,
    JobDescription,
    JobHistory,
    JobRef,
    JobStatus,
    Operation,
    Slots,
    Snapshot,
    SnapshotStats,
    Sources,
)
from airflow_flinkcompat.model import JobSpec, StartMode

if TYPE_CHECKING:
    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan


@runtime_checkable
class CallerNamesJobs(Protocol):
    """A target whose jobs are named by the request that starts them."""

    def job_of_request(self, request_id: str) -> JobRef:
        """The name of the job of a start, before its request.

        Args:
            request_id: The request of the start, 32 hexadecimal digits.

        Returns:
            The job.
        """


@runtime_checkable
class MasksSecrets(Protocol):
    """A target that resolves placeholders itself."""

    def register_secrets(self, job: JobSpec) -> None:
        """Mask the values of a job's placeholders from now on, even if nothing is submitted.

        Args:
            job: The job.
        """


@runtime_checkable
class ReadsBack(Protocol):
    """A target with its own record of deployments, to be compared with the ledger."""

    def deployed(self, name: str) -> Deployed | None:
        """The job that is deployed under a name.

        Args:
            name: The name of the deployment.

        Returns:
            The platform's record; None: nothing.
        """


@runtime_checkable
class PlansChanges(Protocol):
    """A target whose resources others may write: it returns their content, and writes nothing.

    A write of that content makes the platform replace one job by another in one step.
    """

    def plan(self, job: JobSpec, mode: StartMode, request_id: str) -> ChangePlan:
        """The documents to write so that a job runs, validated as far as the platform can.

        Args:
            job: The job to run.
            mode: ``savepoint``: from the savepoint with which the platform ends the running job; or ``stateless``.
            request_id: 32 hexadecimal digits; :meth:`Target.poll` of a start finds the job by it once it is written.

        Returns:
            The documents and remarks on them, without a secret.

        Raises:
            DeployRefused, TargetError, ScriptRefused: It cannot be written, for the reason in the message.
        """

    def carried_over(self, job: JobRef) -> Snapshot | None:
        """The savepoint with which the platform reports that it ended the former job.

        Args:
            job: The job that followed it.

        Returns:
            The savepoint, also one of an earlier end if it keeps that; None if it names none, or only the one from
            which the author of the resource started it.
        """

    def edits(self, job: JobRef) -> str | None:
        """Edits to a plan by the author of the job, apart from its script and settings.

        Args:
            job: The job.

        Returns:
            The differences in words, empty if there is none; None if the resource describes another job by now.
        """


@runtime_checkable
class JobDescriptions(Protocol):
    """A target that describes the structure of jobs, whoever started them."""

    def describe(self, job: JobRef) -> JobDescription | None:
        """The structure of a job.

        Args:
            job: The job.

        Returns:
            Its vertices and its kind; None when it is unknown.

        Raises:
            DeployRefused: No job can have this name there.
        """

    def jobs(self) -> tuple[JobStatus, ...]:
        """Every job that the target remembers.

        Returns:
            The jobs, with name and state only.
        """


@runtime_checkable
class PlanCompiler(Protocol):
    """A place that has Flink compile scripts into plans, and starts nothing."""

    def engine(self) -> EngineInfo:
        """The engine of the planner.

        Returns:
            Its name and version.
        """

    def compile_plans(self, side: Side, folder: str | None) -> tuple[CompiledPlan, ...]:
        """Compile every job of a script: one for each INSERT, statement set and bare query.

        Args:
            side: The script with its settings and catalog.
            folder: Path or URI of a folder that the planner and this machine both see, if plans pass through a folder;
                None: one that the target finds itself.

        Returns:
            The plans in the order of the script.

        Raises:
            PlansUnavailable: The folder is not shared, or a connector is missing.
            TargetError: A statement was refused; the message names its place in the script.
            ScriptRefused: A statement cannot be run as written.
        """


@runtime_checkable
class SourceTables(Protocol):
    """A target that reports the tables that a job reads, and can overlay other options on them."""

    def sources(self, job: JobSpec) -> Sources:
        """Validate the job and return its sources.

        Args:
            job: The job.

        Returns:
            The tables, or the reason why they are unknown.
        """


@runtime_checkable
class CheckpointStatistics(Protocol):
    """A target that shows the content of checkpoints and savepoints."""

    def snapshot_stats(self, job: JobRef, kind: str) -> SnapshotStats | None:
        """The latest checkpoint or savepoint of a job.

        Args:
            job: The job.
            kind: ``completed`` for a checkpoint, or ``savepoint``.

        Returns:
            The state, sized as far as the target shows it; None if there is none.
        """

    def request_checkpoint(self, job: JobRef) -> None:
        """Ask for a checkpoint independent of the job's own interval.

        Args:
            job: The job.
        """


@runtime_checkable
class RetainedCheckpoints(Protocol):
    """A target that starts jobs from checkpoints that outlive their job."""

    def keeps_checkpoints(self, job: JobRef, state: str = "CANCELED") -> bool:
        """True if the job's checkpoints outlive its end.

        Args:
            job: The job.
            state: The state that the job ends in, as Flink names it.

        Returns:
            True if they are kept.
        """

    def last_checkpoint(self, job: JobRef) -> SnapshotStats | None:
        """The last checkpoint of a job that has ended, by statistics that are not older than this call.

        Args:
            job: The job.

        Returns:
            The checkpoint; None if there is none.
        """


@runtime_checkable
class OffsetStatistics(Protocol):
    """A target that shows the positions of sources."""

    def source_offsets(self, job: JobRef) -> Mapping[str, int]:
        """Positions of a job's sources, as far as connectors show them.

        Args:
            job: The job.

        Returns:
            Next offset by source partition.
        """


@runtime_checkable
class SavepointStore(Protocol):
    """A target whose savepoints lie at paths that its user chooses, can read, and can have deleted."""

    def savepoint_root(self) -> str | None:
        """The default folder of savepoints.

        Returns:
            Path or URI of a folder; None: no place is named.
        """

    def final_savepoint(self, job: JobRef) -> Snapshot | None:
        """The savepoint by which a job ended.

        Args:
            job: The job.

        Returns:
            The savepoint; None if there is none, or the target no longer knows it.
        """

    def location(self, snapshot: Snapshot) -> str:
        """The location of a savepoint.

        Args:
            snapshot: The savepoint.

        Returns:
            Path or URI of its folder.
        """

    def savepoint_at(self, location: str) -> Snapshot:
        """Refer to a savepoint that somebody wrote next to those of the target.

        Args:
            location: Path or URI of its folder.

        Returns:
            A reference from which a job can start.
        """

    def dispose(self, snapshot: Snapshot) -> None:
        """Delete a savepoint.

        Args:
            snapshot: The savepoint.
        """


@runtime_checkable
class LiveSavepoints(Protocol):
    """A target that takes savepoints of running jobs."""

    def savepoint(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Request a savepoint. Repeating the request id refers to the same savepoint.

        Args:
            job: The job, which continues.
            request_id: 32 hexadecimal digits, written down before.
            directory: Folder for the savepoint; None: the target chooses.

        Returns:
            The operation to poll.
        """


@runtime_checkable
class RestoreObservations(Protocol):
    """A target that shows the part of a savepoint that a job restored from it."""

    def query(self, job: JobRef) -> Mapping[str, int]:
        """Operators of a job's query without sinks, as the planner describes them: equal for equal queries.

        Args:
            job: The job.

        Returns:
            Number of occurrences of each of them in the job.
        """

    def left_aside(self, job: JobRef) -> frozenset[str] | None:
        """Operators of the savepoint that a restore skipped, as reported by whoever restored it.

        Args:
            job: The job that was restored.

        Returns:
            Their ids; None if they are unknown.
        """

    def failed_at_restore(self, job: JobRef) -> bool:
        """True if the latest failure happened while a task restored its state or opened its operators.

        Args:
            job: The job.

        Returns:
            False if it ran before.
        """

    def slots(self) -> Slots:
        """The task slots of the cluster.

        Returns:
            Those that are free, and all.
        """


class RestoreTest(Protocol):
    """A job that may be restored next to the live one: shared resources have stand-ins."""

    def start(self, name: str, savepoint: Snapshot | None, request_id: str, *, ignore_unclaimed: bool) -> Operation:
        """Start the job, so that nothing outlives it and no failure is retried.

        Args:
            name: The name of the job.
            savepoint: The state to start from, which the job does not own; None: none.
            request_id: 32 hexadecimal digits, written down before.
            ignore_unclaimed: True to ignore state without an operator in the job; otherwise such a start is refused.

        Returns:
            The operation, with the job where the target names it at once.

        Raises:
            SubmissionUnknown: The outcome is unknown.
            TargetError: It was not.
        """


@runtime_checkable
class RestoreTests(Protocol):
    """A target that restores a script next to the live job without touching shared resources."""

    def restore_test(self, job: JobSpec, private: str, *, empty: bool = False) -> RestoreTest:
        """Find stand-ins for a job's sinks and for shared resources of its sources; nothing is started.

        Args:
            job: The job.
            private: Names the test's own resources, a consumer group, for example.
            empty: True if its sources skip all existing rows, where their connectors support that.

        Returns:
            The job, ready to be started any number of times.

        Raises:
            CannotRehearse: A source admits one reader, or a table cannot be replaced.
            TargetError, ScriptRefused: The script would not run.
        """


@runtime_checkable
class JobHistories(Protocol):
    """A target that shows the history of a job since it was accepted."""

    def job_history(self, job: JobRef) -> JobHistory:
        """The history of a job since it was accepted.

        Args:
            job: The job.

        Returns:
            Failures, restores and checkpoints, as far as they are still shown.
        """

    def ever_ran(self, job: JobRef) -> bool | None:
        """True if any task of the job ran and rows may have been written.

        Args:
            job: The job.

        Returns:
            None if it is not known.
        """


@runtime_checkable
class JobPages(Protocol):
    """A target with its own names of jobs, and the addresses of Flink's UI for them."""

    def page_of(self, job: JobRef, ui_url: str) -> str | None:
        """The address of a job's page for a browser.

        Args:
            job: The job.
            ui_url: Address of Flink's UI for people, by the connection.

        Returns:
            The address; None if Flink does not have the job yet, or no longer has it.
        """


@runtime_checkable
class StartOutcomes(Protocol):
    """A target that keeps the outcome of a start, and does not show the job's history since."""

    def came_up(self, job: JobRef) -> bool | None:
        """True if every task of the job ever ran.

        Args:
            job: The job.

        Returns:
            False if its start ended otherwise; None if it is not known.
        """


@runtime_checkable
class ClusterOptions(Protocol):
    """A target that shows the options of its cluster."""

    def cluster_options(self, job: JobRef | None = None) -> Mapping[str, str]:
        """The options of the cluster.

        Args:
            job: The job to which they apply, if each has its own cluster or options; None: any.

        Returns:
            Flink's options by key; values that Flink masks stay masked.
        """


@runtime_checkable
class ManualStart(Protocol):
    """A target on which a person can start a job by hand."""

    def manual_start(self, snapshot: Snapshot, statements: str) -> str:
        """The text that a person types to start a job from a savepoint.

        Args:
            snapshot: The savepoint.
            statements: Words that name the statements of the job.

        Returns:
            The text, indented by two.
        """
