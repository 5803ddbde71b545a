"""Optional capabilities of targets. Each capability is a protocol, tested with ``isinstance``."""

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
    SinkTable,
    Slots,
    Snapshot,
    SnapshotStats,
    Sources,
)
from airflow_flinkcompat.deploy.target.verbs import Target
from airflow_flinkcompat.model import JobSpec, StartMode

if TYPE_CHECKING:
    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan


@runtime_checkable
class CallerNamesJobs(Protocol):
    """A target on which the caller's request id determines the job id."""

    def job_of_request(self, request_id: str) -> JobRef:
        """The job that a start with this request id creates, known before the request.

        Args:
            request_id: The request id of the start, 32 hexadecimal digits.

        Returns:
            The job.
        """


@runtime_checkable
class MasksSecrets(Protocol):
    """A target that resolves the placeholders in scripts itself."""

    def register_secrets(self, job: JobSpec) -> None:
        """Mask the values of a job's placeholders in all later messages, even if nothing is submitted.

        Args:
            job: The job.
        """


@runtime_checkable
class ReadsBack(Protocol):
    """A target whose platform keeps its own record of deployments, which is compared with the ledger."""

    def deployed(self, name: str) -> Deployed | None:
        """The job that is deployed under ``name``.

        Args:
            name: The name of the deployment.

        Returns:
            The platform's record, or None if nothing is deployed.
        """


@runtime_checkable
class PlansChanges(Protocol):
    """A target whose resources a different party writes, such as Argo CD. The target only plans changes.

    As soon as the planned documents are written, the platform replaces the running job in one step.
    """

    def plan(self, job: JobSpec, mode: StartMode, request_id: str) -> ChangePlan:
        """The documents to write so that a job runs. The platform validates them as far as possible.

        Args:
            job: The job to run.
            mode: ``savepoint`` starts from the savepoint with which the platform stops the running job. ``stateless``
                starts without state.
            request_id: 32 hexadecimal digits. After the documents are written, :meth:`Target.poll` of a start with
                this id finds the job.

        Returns:
            The documents, with remarks for their authors and without secrets.

        Raises:
            DeployRefused, TargetError, ScriptRefused: No valid documents exist, for the reason in the message.
        """

    def carried_over(self, job: JobRef) -> Snapshot | None:
        """The savepoint with which the platform stopped the former job, as the platform reports it.

        Args:
            job: The job that replaced the former job.

        Returns:
            The savepoint of the latest stop that the platform remembers. None if the platform reports no savepoint, or
            only the savepoint from which the resource's author started the job.
        """

    def edits(self, job: JobRef) -> str | None:
        """Manual edits to the planned documents, apart from script and settings.

        Args:
            job: The job.

        Returns:
            A description of the edits, empty without edits. None if the resource now describes a different job.
        """


@runtime_checkable
class JobDescriptions(Protocol):
    """A target that describes the structure of any job on the platform."""

    def describe(self, job: JobRef) -> JobDescription | None:
        """The structure of a job.

        Args:
            job: The job.

        Returns:
            The job's vertices and kind, or None if the job is unknown.

        Raises:
            DeployRefused: The target cannot have a job with this id.
        """

    def jobs(self) -> tuple[JobStatus, ...]:
        """Every job that the target remembers.

        Returns:
            The jobs, with only name and state filled in.
        """


@runtime_checkable
class PlanCompiler(Protocol):
    """A target or SQL Gateway that compiles scripts into plans with Flink, without a start."""

    def engine(self) -> EngineInfo:
        """The engine of the planner.

        Returns:
            The engine's name and version.
        """

    def compile_plans(self, side: Side, folder: str | None) -> tuple[CompiledPlan, ...]:
        """Compile every job of a script: one plan for each INSERT, statement set and bare query.

        Args:
            side: The script with its settings and catalog.
            folder: Path or URI of a folder that the planner and this machine share, if plans are exchanged as files.
                If None, the target chooses a folder.

        Returns:
            The plans in the order of the script.

        Raises:
            PlansUnavailable: The folder is not shared, or a connector is missing.
            TargetError: A statement was refused. The error message names the position of the statement in the script.
            ScriptRefused: A statement cannot be run as written.
        """


@runtime_checkable
class SourceTables(Protocol):
    """A target that reports the tables that a job reads, and can override their options."""

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
        """Statistics of the latest checkpoint or savepoint of a job.

        Args:
            job: The job.
            kind: ``completed`` for the latest checkpoint, or ``savepoint``.

        Returns:
            The statistics, with sizes as far as the target shows them. None if there is no such checkpoint or
            savepoint.
        """

    def request_checkpoint(self, job: JobRef) -> None:
        """Request a checkpoint immediately, independent of the job's interval.

        Args:
            job: The job.
        """


@runtime_checkable
class RetainedCheckpoints(Protocol):
    """A target that can start jobs from retained checkpoints of ended jobs."""

    def keeps_checkpoints(self, job: JobRef, state: str = "CANCELED") -> bool:
        """True if the job's checkpoints are retained after its end.

        Args:
            job: The job.
            state: Flink's name of the job's final state.

        Returns:
            True if the checkpoints are retained.
        """

    def last_checkpoint(self, job: JobRef) -> SnapshotStats | None:
        """The last checkpoint of an ended job, read from statistics that are newer than this call.

        Args:
            job: The job.

        Returns:
            The checkpoint, or None if there is none.
        """


@runtime_checkable
class OffsetStatistics(Protocol):
    """A target that shows the positions of sources."""

    def source_offsets(self, job: JobRef) -> Mapping[str, int]:
        """Positions of a job's sources, if their connectors report them.

        Args:
            job: The job.

        Returns:
            Next offset by source partition.
        """


@runtime_checkable
class JobMetrics(Protocol):
    """A target that shows the metrics of a job's subtasks."""

    def highest_metric(self, job: JobRef, name: str) -> float | None:
        """The highest value of a metric among all subtasks of a job.

        Args:
            job: The job.
            name: The last part of the metric's name, such as ``pendingRecords``.

        Returns:
            The value, or None if no operator of the job reports the metric.
        """


@runtime_checkable
class RowCounts(Protocol):
    """A target that counts the rows that the sources of a job read."""

    def source_rows(self, job: JobRef) -> int | None:
        """Count the rows that all sources of a job have read.

        Args:
            job: The job.

        Returns:
            The number of rows since the last start or restart of the tasks, or None if it is not reported.
        """


@runtime_checkable
class SavepointStore(Protocol):
    """A target with savepoints at paths that users choose and read, and that can delete savepoints."""

    def savepoint_root(self) -> str | None:
        """The default folder of savepoints.

        Returns:
            Path or URI of the folder, or None if no folder is configured.
        """

    def final_savepoint(self, job: JobRef) -> Snapshot | None:
        """The savepoint that a stop of the job wrote.

        Args:
            job: The job.

        Returns:
            The savepoint. None if there is none, or the target no longer knows the savepoint.
        """

    def location(self, snapshot: Snapshot) -> str:
        """The location of a savepoint.

        Args:
            snapshot: The savepoint.

        Returns:
            Path or URI of its folder.
        """

    def savepoint_at(self, location: str) -> Snapshot:
        """A reference to a savepoint that was not written by the target.

        Args:
            location: Path or URI of the savepoint's folder.

        Returns:
            A reference from which the target can start a job.
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
        """Request a savepoint. A repeated request id refers to the same savepoint.

        Args:
            job: The job, which keeps running.
            request_id: 32 hexadecimal digits, recorded before the request.
            directory: Folder for the savepoint. If None, the target chooses the folder.

        Returns:
            The operation to poll.
        """


@runtime_checkable
class RestoreObservations(Protocol):
    """A target that shows which parts of a savepoint a job restored."""

    def query(self, job: JobRef) -> Mapping[str, int]:
        """Descriptions of a job's operators, except sinks. Jobs with equal queries have equal descriptions.

        Args:
            job: The job.

        Returns:
            Number of occurrences of each description in the job.
        """

    def left_aside(self, job: JobRef) -> frozenset[str] | None:
        """Operators of the savepoint whose state the restore skipped, as Flink's log reports.

        Args:
            job: The restored job.

        Returns:
            The ids of the operators, or None if unknown.
        """

    def failed_at_restore(self, job: JobRef) -> bool:
        """True if the latest failure happened while a task restored its state or opened its operators.

        Args:
            job: The job.

        Returns:
            False if the job failed only after the restore.
        """

    def slots(self) -> Slots:
        """The task slots of the cluster.

        Returns:
            The number of free slots and of all slots.
        """


class RestoreTest(Protocol):
    """A test job that can be restored next to the live job, because stand-ins replace shared resources."""

    def start(self, name: str, savepoint: Snapshot | None, request_id: str, *, ignore_unclaimed: bool) -> Operation:
        """Start the job. Nothing outlives the job, and a failure causes no restart.

        Args:
            name: The name of the job.
            savepoint: The savepoint to start from, which the job does not own. If None, the job starts without state.
            request_id: 32 hexadecimal digits, recorded before the request.
            ignore_unclaimed: If True, state that has no operator in the job is ignored. If False, a start that would
                ignore state is refused.

        Returns:
            The operation, which already contains the job if the target knows the job immediately.

        Raises:
            SubmissionUnknown: The outcome is unknown.
            TargetError: The job was not started.
        """


@runtime_checkable
class RestoreTests(Protocol):
    """A target that can restore a script next to the live job without use of shared resources."""

    def restore_test(self, job: JobSpec, private: str, *, empty: bool = False) -> RestoreTest:
        """Find stand-ins for a job's sinks and for shared resources of its sources. Nothing is started.

        Args:
            job: The job.
            private: Name for private resources of the test, such as a consumer group.
            empty: True makes sources skip all existing rows, if their connectors support that.

        Returns:
            The test job, which can be started any number of times.

        Raises:
            CannotRehearse: A source allows only one reader, or a table cannot be replaced.
            TargetError, ScriptRefused: The script would not run.
        """


class ShadowRun(RestoreTest, Protocol):
    """A test job whose sinks write all of their changes into a folder, and whose sources end."""

    @property
    def sinks(self) -> tuple[SinkTable, ...]:
        """The sinks, in the order of their folders, whose names are numbers from 0.

        Returns:
            Path, columns and key of each sink.
        """


class CatchUpRun(RestoreTest, Protocol):
    """A test job whose sinks discard rows. Its sources stop at end positions, but the job keeps running."""

    @property
    def watermarks(self) -> bool:
        """True if a source has watermarks.

        Returns:
            If True, the last watermark may differ from that of the live job at the same position.
        """


@runtime_checkable
class ShadowRuns(Protocol):
    """A target that can run a script next to the live job up to an exact row, and store the script's rows."""

    def catch_up_run(self, job: JobSpec, private: str) -> CatchUpRun:
        """Find stand-ins for a job's sinks, which discard rows. Nothing is started.

        Args:
            job: The job.
            private: Name for private resources of the run, such as a consumer group.

        Returns:
            The run. A source stops at the end position in its state, but does not end.

        Raises:
            CannotRehearse: A source allows only one reader, or cannot stop, or a table cannot be replaced.
            TargetError, ScriptRefused: The script would not run.
        """

    def native_savepoint(self, job: JobRef, request_id: str, directory: str) -> Operation:
        """Request a savepoint in the format of the state backend, which is fast, but cannot be migrated.

        Args:
            job: The job, which keeps running.
            request_id: 32 hexadecimal digits, recorded before the request.
            directory: Folder for the savepoint.

        Returns:
            The operation to poll.
        """

    def shadow_run(self, job: JobSpec, private: str, rows: str) -> ShadowRun:
        """Find stand-ins for a job's sinks, which store their changes. Nothing is started.

        Args:
            job: The job.
            private: Name for private resources of the run, such as a consumer group.
            rows: URI of a folder, in which each sink has a folder for its files. A line of a file is a change in the
                format ``debezium-json``.

        Returns:
            The run. A source ends at the end position in its state, or after all existing rows.

        Raises:
            CannotRehearse: A source allows only one reader, or cannot end, or a table cannot be replaced.
            TargetError, ScriptRefused: The script would not run.
        """


@runtime_checkable
class SharedCluster(Protocol):
    """A target whose jobs run on a Flink cluster that also accepts jobs from others."""

    def shared_cluster(self) -> Target:
        """The cluster as a target of its own.

        Returns:
            A target whose jobs the platform neither observes nor restarts. This target closes it.

        Raises:
            DeployRefused: Each job has a cluster of its own.
        """

    def shared_job(self, job: JobRef) -> JobRef:
        """A job of this target, as the cluster names it.

        Args:
            job: The job.

        Returns:
            The job's id in the cluster.

        Raises:
            DeployRefused: The target has no such job, or the job runs on another cluster.
        """


@runtime_checkable
class JobHistories(Protocol):
    """A target that shows the history of a job since its submission."""

    def job_history(self, job: JobRef) -> JobHistory:
        """The history of a job since its submission.

        Args:
            job: The job.

        Returns:
            Failures, restores and checkpoints that the target still shows.
        """

    def ever_ran(self, job: JobRef) -> bool | None:
        """True if any task of the job ran, so that rows may have been written.

        Args:
            job: The job.

        Returns:
            True or False, or None if unknown.
        """


@runtime_checkable
class JobPages(Protocol):
    """A target whose job ids differ from Flink's, and which finds the page of a job in Flink's UI."""

    def page_of(self, job: JobRef, ui_url: str) -> str | None:
        """The address of a job's page in Flink's UI.

        Args:
            job: The job.
            ui_url: Address of Flink's UI, as set in the connection.

        Returns:
            The address, or None if Flink does not know the job yet or has forgotten it.
        """


@runtime_checkable
class StartOutcomes(Protocol):
    """A target that remembers the outcome of a start, but no later history of the job."""

    def came_up(self, job: JobRef) -> bool | None:
        """True if all tasks of the job ran at some time.

        Args:
            job: The job.

        Returns:
            False if the start failed before all tasks ran, or None if unknown.
        """


@runtime_checkable
class ClusterOptions(Protocol):
    """A target that shows the options of its cluster."""

    def cluster_options(self, job: JobRef | None = None) -> Mapping[str, str]:
        """The options of the cluster.

        Args:
            job: The job to which the options apply, if each job has a separate cluster or options. None means any job.

        Returns:
            Flink's options by key. Values that Flink masks stay masked.
        """


@runtime_checkable
class ManualStart(Protocol):
    """A target on which a person can start a job manually."""

    def manual_start(self, snapshot: Snapshot, statements: str) -> str:
        """Commands with which a person starts a job from a savepoint.

        Args:
            snapshot: The savepoint.
            statements: Text that refers to the statements of the job.

        Returns:
            The commands, indented by two spaces.
        """
