"""Where a deployment runs: the ``Target`` protocol, and the SQL Gateway with its JobManager as the first target."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType, TracebackType
from typing import Protocol, Self

from airflow_flinkcompat.deploy.flink import evidence
from airflow_flinkcompat.deploy.flink.course import Course, course
from airflow_flinkcompat.deploy.flink.evidence import TakenState
from airflow_flinkcompat.deploy.flink.execution import ScriptRunner, SubmissionUnknown, TargetError
from airflow_flinkcompat.deploy.flink.gateway import GatewayError, Session, SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobStatus
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.flink.statements import (
    Prepared,
    check_settings,
    prepare,
)
from airflow_flinkcompat.deploy.flink.tables import TablePath, overlay
from airflow_flinkcompat.deploy.sources.reading import Sources, sources_of
from airflow_flinkcompat.secrets import (
    AnyPlaceholder,
    EnvPlaceholder,
    Lookup,
    env_in_deployment,
    placeholders,
    redactor_of,
)

_log = logging.getLogger(__name__)
# Flink's own option (2.3 and 1.20) for the id of the job that a statement makes; a cluster takes one id once.
_JOB_ID = "$internal.pipeline.job-id"
# Names the table that carries other options.
_PRIVATE = "flinkcompat"
_SUBMITTED_BEFORE = re.compile(r"Duplicate(Application|Job)SubmissionException")


class StartMode(StrEnum):
    """From which state a job starts. ``AUTO_FIRST``: empty where nothing is deployed yet, else from a savepoint.

    ``CHECKPOINT``: from the former job's latest retained checkpoint; the rows it wrote after that are written again.
    """

    AUTO_FIRST = "auto-first"
    SAVEPOINT = "savepoint"
    CHECKPOINT = "checkpoint"
    STATELESS = "stateless"


@dataclass(frozen=True)
class EngineInfo:
    """The engine of a target: ``flink`` or ``vvr``, and its version."""

    engine: str
    version: str


@dataclass(frozen=True)
class Start:
    """The state one start is given: the path of a savepoint or checkpoint, or None for an empty one.

    ``tables``: options laid over tables it reads, by which its sources begin elsewhere than the script says.
    """

    savepoint: str | None = None
    tables: Mapping[TablePath, Mapping[str, str]] = field(default_factory=dict)

    @property
    def mode(self) -> StartMode:
        return StartMode.SAVEPOINT if self.savepoint else StartMode.STATELESS

    @property
    def options(self) -> dict[str, str]:
        """Flink's options for it, all explicit, because a cluster's file may say otherwise.

        Unclaimed state is never dropped silently, and NO_CLAIM leaves the savepoint to us: a rollback needs it.
        """
        options = {
            "execution.state-recovery.ignore-unclaimed-state": "false",
            "execution.state-recovery.claim-mode": "NO_CLAIM",
        }
        return {**options, "execution.state-recovery.path": self.savepoint} if self.savepoint else options


class Target(Protocol):
    """What a place that runs Flink jobs must be able to do. Every method raises DeployError."""

    def engine(self) -> EngineInfo: ...

    def learn_secrets(self, script: str, settings: Mapping[str, str]) -> None:
        """Have what the placeholders of a script stand for masked from now on, also where nothing is submitted."""

    def validate(
        self,
        script: str,
        settings: Mapping[str, str],
        *,
        source: str = "<script>",
        tables: Mapping[TablePath, Mapping[str, str]] | None = None,
    ) -> None:
        """Have the engine read and plan the script; nothing is started or stopped. ``tables`` as in ``Start``."""

    def sources(self, script: str, settings: Mapping[str, str], *, source: str = "<script>") -> Sources:
        """Validate, and say what the job reads."""

    def submit(
        self, script: str, settings: Mapping[str, str], start: Start, *, job_id: str, source: str = "<script>"
    ) -> None:
        """Start the script's job under this id (32 hex digits). Accepted is not running: verify it.

        Submitting one id twice gives one job. Raises SubmissionUnknown when nobody knows whether it was accepted:
        submit it again.
        """

    def ask_to_stop(self, job_id: str, directory: str | None, trigger_id: str) -> None:
        """Ask for a stop with savepoint, without draining. Asking again under one trigger id is the same stop."""

    def stop_result(self, job_id: str, trigger_id: str) -> str | None:
        """The savepoint of that stop; None while it is at work."""

    def final_savepoint(self, job_id: str) -> str | None:
        """The savepoint by which a job ended, if the target still knows."""

    def status(self, job_id: str) -> JobStatus | None:
        """The job now; None when unknown."""

    def running(self, name: str) -> tuple[str, ...]:
        """Ids of the jobs of this name that have not ended."""

    def restored_from(self, job_id: str) -> str | None:
        """The state the job was really restored from; None for an empty start."""

    def course(self, job_id: str) -> Course:
        """How the job went since it was accepted, as far as that is still shown."""

    def request_checkpoint(self, job_id: str) -> None:
        """Ask for a checkpoint beside the job's own interval."""

    def cancel(self, job_id: str) -> None:
        """End the job without a savepoint, and wait for its end."""

    def taken_state(self, job_id: str, kind: str) -> TakenState | None:
        """The latest ``completed`` checkpoint or ``savepoint`` of a job, sized as far as the target shows it."""

    def statistics_age(self) -> float:
        """How old in seconds what ``taken_state`` tells may be."""

    def keeps_checkpoints(self, job_id: str, state: str = "CANCELED") -> bool:
        """Whether the job's checkpoints outlive an end in this state."""

    def source_offsets(self, job_id: str) -> Mapping[str, int]:
        """Next offset by source partition, where connectors show it."""

    def ever_ran(self, job_id: str) -> bool | None:
        """Whether any task of the job ran, so that rows may have been written; None: cannot be told."""

    def cluster_options(self) -> Mapping[str, str]:
        """Flink's options of the cluster."""

    def dispose(self, savepoint: str) -> None:
        """Delete a savepoint."""


def no_connections(placeholder: AnyPlaceholder) -> str:
    """The lookup of a target that was given none."""
    if isinstance(placeholder, EnvPlaceholder):
        raise TargetError(env_in_deployment(placeholder))
    raise TargetError(f"{placeholder} cannot be resolved: no connections are known here")


class SqlGatewayTarget:
    """A target made of a SQL Gateway (scripts go in) and the JobManager behind it (jobs are watched and stopped).

    ``lookup`` gives the value of a placeholder; it is asked at validation and submission only, and what it answers is
    masked in every message of both clients. Closing the target closes the clients.
    """

    def __init__(
        self,
        gateway: SqlGateway | Endpoint | str,
        jobmanager: JobManager | Endpoint | str,
        *,
        lookup: Lookup = no_connections,
    ) -> None:
        self._gateway = gateway if isinstance(gateway, SqlGateway) else SqlGateway(gateway)
        self._jobmanager = jobmanager if isinstance(jobmanager, JobManager) else JobManager(jobmanager)
        self._runner = ScriptRunner(lookup, self._gateway, self._jobmanager)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._gateway.close()
        self._jobmanager.close()

    def engine(self) -> EngineInfo:
        return EngineInfo("flink", self._gateway.info()[1])

    def learn_secrets(self, script: str, settings: Mapping[str, str]) -> None:
        for placeholder in placeholders("\n".join((script, *settings.values()))):
            try:
                self._runner.learn(redactor_of((placeholder,), self._runner.resolve))
            except Exception as error:  # whatever a lookup raises: the start, if there is one, says what is missing
                _log.debug("%s is not resolved, so not masked: %s", placeholder, type(error).__name__)

    def validate(
        self,
        script: str,
        settings: Mapping[str, str],
        *,
        source: str = "<script>",
        tables: Mapping[TablePath, Mapping[str, str]] | None = None,
    ) -> None:
        """EXPLAIN the job in a session of its own. DDL runs there for real: in a lasting catalog it takes effect."""
        prepared = self._prepare(script, settings, source)
        with self._gateway.session(self._runner.settings(settings)) as session:
            self._run_setup(session, prepared, tables or {})
            self._explain(session, prepared)

    def sources(self, script: str, settings: Mapping[str, str], *, source: str = "<script>") -> Sources:
        prepared = self._prepare(script, settings, source)
        with self._gateway.session(self._runner.settings(settings)) as session:
            self._run_setup(session, prepared)
            return sources_of(session, self._explain(session, prepared))

    def submit(
        self, script: str, settings: Mapping[str, str], start: Start, *, job_id: str, source: str = "<script>"
    ) -> None:
        prepared = self._prepare(script, settings, source)
        with self._gateway.session(self._runner.settings(settings)) as session:
            self._run_setup(session, prepared, start.tables)
            # With the statement and not with the session, where a RESET in the script would take the savepoint away.
            config = {**start.options, "table.dml-sync": "false", _JOB_ID: job_id}
            try:
                accepted = self._runner.run(session, prepared.job, prepared.job_sql, config, submits=True).job_id
            except SubmissionUnknown:
                raise
            except TargetError as error:
                if not _SUBMITTED_BEFORE.search(str(error)):
                    raise
                accepted = job_id
        if not accepted:
            raise SubmissionUnknown(f"{prepared.job.span}: the SQL Gateway accepted the statement but named no job")
        if accepted != job_id:
            self._jobmanager.cancel(accepted)
            raise TargetError(
                f"{prepared.job.span}: the SQL Gateway started job {accepted} instead of {job_id}; it was cancelled"
            )

    def ask_to_stop(self, job_id: str, directory: str | None, trigger_id: str) -> None:
        self._jobmanager.ask_to_stop(job_id, directory, trigger_id)

    def stop_result(self, job_id: str, trigger_id: str) -> str | None:
        return self._jobmanager.stop_result(job_id, trigger_id)

    def final_savepoint(self, job_id: str) -> str | None:
        return self._jobmanager.final_savepoint(job_id)

    def status(self, job_id: str) -> JobStatus | None:
        return self._jobmanager.status(job_id)

    def running(self, name: str) -> tuple[str, ...]:
        return tuple(job.job_id for job in self._jobmanager.jobs().values() if job.name == name and not job.terminal)

    def restored_from(self, job_id: str) -> str | None:
        return self._jobmanager.restored_from(job_id)

    def course(self, job_id: str) -> Course:
        return course(self._jobmanager, job_id)

    def request_checkpoint(self, job_id: str) -> None:
        self._jobmanager.request_checkpoint(job_id)

    def cancel(self, job_id: str) -> None:
        self._jobmanager.cancel(job_id)

    def taken_state(self, job_id: str, kind: str) -> TakenState | None:
        return evidence.taken_state(self._jobmanager, job_id, kind)

    def statistics_age(self) -> float:
        return evidence.statistics_age(self._jobmanager)

    def keeps_checkpoints(self, job_id: str, state: str = "CANCELED") -> bool:
        return evidence.keeps_checkpoints(self._jobmanager, job_id, state)

    def source_offsets(self, job_id: str) -> Mapping[str, int]:
        return evidence.source_offsets(self._jobmanager, job_id)

    def ever_ran(self, job_id: str) -> bool | None:
        return evidence.ever_ran(self._jobmanager, job_id)

    def cluster_options(self) -> Mapping[str, str]:
        return evidence.cluster_options(self._jobmanager)

    def dispose(self, savepoint: str) -> None:
        self._jobmanager.dispose_savepoint(savepoint)

    def _prepare(self, script: str, settings: Mapping[str, str], source: str) -> Prepared:
        check_settings(settings)
        return prepare(script, source)

    def _run_setup(
        self, session: Session, prepared: Prepared, tables: Mapping[TablePath, Mapping[str, str]] = MappingProxyType({})
    ) -> None:
        for statement in prepared.setup:
            self._runner.run(session, statement, statement.text)
        for path, options in tables.items():
            try:
                overlay(session, path, options, _PRIVATE)
            except GatewayError as error:
                failed = SubmissionUnknown if error.unanswered else TargetError
                raise failed(f"{prepared.job.span}: table {path[2]} cannot be given other options: {error}") from None

    def _explain(self, session: Session, prepared: Prepared) -> str:
        rows = self._runner.run(session, prepared.job, prepared.explain_sql, prefix=prepared.explain_shift).rows
        return "\n".join(str(row[0]) for row in rows)
