"""Where a deployment runs: the ``Target`` protocol, and the SQL Gateway with its JobManager as the first target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self

from airflow_flinkcompat.deploy.execution import ScriptRunner, TargetError
from airflow_flinkcompat.deploy.gateway import Session, SqlGateway
from airflow_flinkcompat.deploy.jobmanager import JobManager, JobStatus
from airflow_flinkcompat.deploy.rest import Endpoint
from airflow_flinkcompat.deploy.statements import (
    Lookup,
    Prepared,
    check_settings,
    prepare,
    resolve_settings,
)
from airflow_flinkcompat.sql import Placeholder


class StartMode(StrEnum):
    """From which state a job starts. ``AUTO_FIRST``: empty where nothing is deployed yet, else from a savepoint."""

    AUTO_FIRST = "auto-first"
    SAVEPOINT = "savepoint"
    STATELESS = "stateless"


@dataclass(frozen=True)
class EngineInfo:
    """The engine of a target: ``flink`` or ``vvr``, and its version."""

    engine: str
    version: str


@dataclass(frozen=True)
class Start:
    """The state one start is given: a savepoint's path, or None for an empty one."""

    savepoint: str | None = None

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

    def validate(self, script: str, settings: Mapping[str, str], *, source: str = "<script>") -> None:
        """Have the engine read and plan the script; nothing is started or stopped."""

    def submit(self, script: str, settings: Mapping[str, str], start: Start, *, source: str = "<script>") -> str:
        """Start the script's job and return its id. Accepted is not running: verify it."""

    def stop_with_savepoint(self, job_id: str, directory: str | None = None) -> str:
        """Stop without draining; the savepoint's path."""

    def status(self, job_id: str) -> JobStatus | None:
        """The job now; None when unknown."""

    def running(self, name: str) -> tuple[str, ...]:
        """Ids of the jobs of this name that have not ended."""

    def restored_from(self, job_id: str) -> str | None:
        """The state the job was really restored from; None for an empty start."""

    def request_checkpoint(self, job_id: str) -> None:
        """Ask for a checkpoint beside the job's own interval."""

    def cancel(self, job_id: str) -> None:
        """End the job without a savepoint."""


def no_connections(placeholder: Placeholder) -> str:
    """The lookup of a target that was given none."""
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

    def validate(self, script: str, settings: Mapping[str, str], *, source: str = "<script>") -> None:
        """EXPLAIN the job in a session of its own. DDL runs there for real: in a lasting catalog it takes effect."""
        prepared = self._prepare(script, settings, source)
        with self._gateway.session(resolve_settings(settings, self._runner.resolve)) as session:
            self._run_setup(session, prepared)
            self._runner.run(session, prepared.job, prepared.explain_sql, prefix=prepared.explain_shift)

    def submit(self, script: str, settings: Mapping[str, str], start: Start, *, source: str = "<script>") -> str:
        prepared = self._prepare(script, settings, source)
        with self._gateway.session(resolve_settings(settings, self._runner.resolve)) as session:
            self._run_setup(session, prepared)
            # With the statement and not with the session, where a RESET in the script would take the savepoint away.
            config = {**start.options, "table.dml-sync": "false"}
            job_id = self._runner.run(session, prepared.job, prepared.job_sql, config).job_id
        if not job_id:
            raise TargetError(f"{prepared.job.span}: the SQL Gateway accepted the statement but named no job")
        return job_id

    def stop_with_savepoint(self, job_id: str, directory: str | None = None) -> str:
        return self._jobmanager.stop_with_savepoint(job_id, directory)

    def status(self, job_id: str) -> JobStatus | None:
        return self._jobmanager.status(job_id)

    def running(self, name: str) -> tuple[str, ...]:
        return tuple(job.job_id for job in self._jobmanager.jobs().values() if job.name == name and not job.terminal)

    def restored_from(self, job_id: str) -> str | None:
        return self._jobmanager.restored_from(job_id)

    def request_checkpoint(self, job_id: str) -> None:
        self._jobmanager.request_checkpoint(job_id)

    def cancel(self, job_id: str) -> None:
        self._jobmanager.cancel(job_id)

    def _prepare(self, script: str, settings: Mapping[str, str], source: str) -> Prepared:
        check_settings(settings)
        return prepare(script, source)

    def _run_setup(self, session: Session, prepared: Prepared) -> None:
        for statement in prepared.setup:
            self._runner.run(session, statement, statement.text)
