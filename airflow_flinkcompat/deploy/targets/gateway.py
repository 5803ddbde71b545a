"""The target ``sql-gateway``: a SQL Gateway runs scripts, and its JobManager observes and stops jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy.errors import SubmissionUnknown, TargetError
from airflow_flinkcompat.deploy.flink.compiled_plans import compile_plans
from airflow_flinkcompat.deploy.flink.gateway import GatewayError, ScriptRunner, Session, SqlGateway, SubmittedBefore
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.rest import Closing, Endpoint
from airflow_flinkcompat.deploy.flink.statements import Prepared, prepare_job
from airflow_flinkcompat.deploy.flink.tables import SessionTables, Substitutes, overlay, sources_of, tables_of
from airflow_flinkcompat.deploy.flink.upsert_sinks import copy_jar
from airflow_flinkcompat.deploy.target import (
    CatchUpRun,
    EngineInfo,
    Operation,
    RestoreTest,
    ShadowRun,
    SinkTable,
    Snapshot,
    Sources,
    Start,
    TablePath,
    Verb,
)
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import (
    JobManagerJobs,
    endpoint_of,
    no_connections,
    trial_options,
)
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.model.engine import CLAIM_MODE, IGNORE_UNCLAIMED, RECOVERY_PATH, in_every_spelling
from airflow_flinkcompat.secrets.placeholders import Lookup

# Flink's internal option (2.3 and 1.20) for the id of a statement's job. A cluster accepts each id only once.
_JOB_ID = "$internal.pipeline.job-id"
# Beginning of the name of the auxiliary table with overridden options.
_PRIVATE = "flinkcompat"


class SqlGatewayPlanner(Closing):
    """A SQL Gateway that only plans scripts and requires no cluster.

    Args:
        gateway: A client of the SQL Gateway, or its endpoint.
        lookup: Returns the value of a placeholder. Every message masks this value. By default, placeholders are
            not replaced, because plans do not depend on their values.
    """

    def __init__(self, gateway: SqlGateway | Endpoint | str, *, lookup: Lookup = str) -> None:
        self._gateway = gateway if isinstance(gateway, SqlGateway) else SqlGateway(gateway)
        self._runner = ScriptRunner(lookup, self._gateway)

    def __str__(self) -> str:
        return f"the SQL Gateway at {self._gateway.endpoint.place}"

    def close(self) -> None:
        self._gateway.close()

    def engine(self) -> EngineInfo:
        return EngineInfo("flink", self._gateway.info()[1])

    def compile_plans(self, side: Side, folder: str | None) -> tuple[CompiledPlan, ...]:
        return compile_plans(self._gateway, self._runner, side, folder)


class SqlGatewayTarget(SqlGatewayPlanner, JobManagerJobs):
    """A target that consists of a SQL Gateway and its JobManager. Closing the target closes both clients.

    Args:
        gateway: A client of the SQL Gateway, or its endpoint.
        jobmanager: A client of the JobManager, or its endpoint.
        lookup: Returns the value of a placeholder. ``lookup`` is called only during validation and submission. Both
            clients mask the value in every message.
    """

    def __init__(
        self,
        gateway: SqlGateway | Endpoint | str,
        jobmanager: JobManager | Endpoint | str,
        *,
        lookup: Lookup = no_connections,
    ) -> None:
        SqlGatewayPlanner.__init__(self, gateway, lookup=lookup)
        JobManagerJobs.__init__(self, jobmanager)
        # Both clients mask the values of placeholders.
        self._runner = ScriptRunner(lookup, self._gateway, self._jobmanager)

    @classmethod
    def connect(cls, access: Access) -> Self:
        """Open the target with the addresses ``gateway`` and ``jobmanager``. Raises ApiError."""
        lookup = access.lookup or no_connections
        return cls(endpoint_of(access, "gateway"), endpoint_of(access, "jobmanager"), lookup=lookup)

    def close(self) -> None:
        SqlGatewayPlanner.close(self)
        JobManagerJobs.close(self)

    def register_secrets(self, job: JobSpec) -> None:
        self._runner.register_placeholders(job)

    def validate(self, job: JobSpec, start: Start) -> str:
        """EXPLAIN the job in a session. The script's DDL is executed and changes permanent catalogs."""
        prepared = prepare_job(job)
        with self._gateway.session(self._runner.settings(job.settings)) as session:
            self._run_setup(session, prepared, start.tables)
            self._explain(session, prepared)
        return ""

    def sources(self, job: JobSpec) -> Sources:
        prepared = prepare_job(job)
        with self._gateway.session(self._runner.settings(job.settings)) as session:
            self._run_setup(session, prepared)
            return sources_of(session, self._explain(session, prepared))

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Submit the script's job, with the request id as its job id."""
        prepared = prepare_job(job)

        def set_up(session: Session) -> None:
            self._run_setup(session, prepared, start.tables)

        return self._submitted(job, prepared, set_up, state_options(start), request_id)

    def restore_test(self, job: JobSpec, private: str, *, empty: bool = False) -> RestoreTest:
        """Replace shared tables with temporary tables, which exist only in the sessions of the test."""
        return self._test(job, private, empty=empty)

    def shadow_run(self, job: JobSpec, private: str, rows: str) -> ShadowRun:
        """Replace shared tables with temporary tables, as in a restore test."""
        return self._test(job, private, rows=rows)

    def catch_up_run(self, job: JobSpec, private: str) -> CatchUpRun:
        """Replace shared tables with temporary tables, as in a restore test."""
        return self._test(job, private, waits=True)

    def _test(
        self, job: JobSpec, private: str, *, empty: bool = False, rows: str | None = None, waits: bool = False
    ) -> _SessionRestoreTest:
        prepared = prepare_job(job)
        with self._gateway.session(self._runner.settings(job.settings)) as session:
            self._run_setup(session, prepared)
            tables = tables_of(self._explain(session, prepared))
            substitutes = Substitutes(SessionTables(session), private)
            substitutes.check(tables, stops=waits or rows is not None)
            sinks = () if rows is None else substitutes.sinks(tables)
            watermarks = waits and substitutes.watermarks(tables)

        def submit(savepoint: Snapshot | None, options: Mapping[str, str], request_id: str) -> Operation:
            # The savepoint of a restore test is in a folder of others.
            own = self.location(savepoint) if savepoint and (waits or rows is not None) else None
            jar = copy_jar(own) if own and tables.upserts else None

            def set_up(session: Session) -> None:
                self._run_setup(session, prepared)
                Substitutes(SessionTables(session), private).put(tables, empty=empty, rows=rows, waits=waits, jar=jar)

            return self._submitted(job, prepared, set_up, options, request_id)

        return _SessionRestoreTest(submit, sinks, watermarks)

    def _submitted(
        self,
        job: JobSpec,
        prepared: Prepared,
        set_up: Callable[[Session], None],
        options: Mapping[str, str],
        request_id: str,
    ) -> Operation:
        """Set up a session and submit a job. Raises SubmissionUnknown, TargetError."""
        wanted = self.job_of_request(request_id)
        with self._gateway.session(self._runner.settings(job.settings)) as session:
            set_up(session)
            # Pass the options with the statement, because a RESET in the script would remove them from the session.
            config = {**options, "table.dml-sync": "false", _JOB_ID: wanted}
            try:
                accepted = self._runner.run(session, prepared.job, prepared.job_sql, config, submits=True).job_id
            except SubmittedBefore:
                accepted = wanted
        if not accepted:
            raise SubmissionUnknown(
                f"{prepared.job.span}: the SQL Gateway accepted the statement, but returned no job id"
            )
        if accepted != wanted:
            self._jobmanager.cancel(accepted)
            raise TargetError(
                f"{prepared.job.span}: the SQL Gateway started job {accepted} instead of {wanted}, so the job was "
                "cancelled"
            )
        return Operation(Verb.START, request_id, wanted)

    def manual_start(self, snapshot: Snapshot, statements: str) -> str:
        """The statements to run in a SQL Gateway session."""
        # Do not call the Gateway here, because it may be down.
        options = in_every_spelling({RECOVERY_PATH: snapshot, CLAIM_MODE: "NO_CLAIM"})
        settings = "".join(f"  SET '{key}' = '{value}';\n" for key, value in options.items())
        return f"in one session of the SQL Gateway:\n{settings}  and {statements}"

    def _run_setup(
        self, session: Session, prepared: Prepared, tables: Mapping[TablePath, Mapping[str, str]] = MappingProxyType({})
    ) -> None:
        for statement in prepared.setup:
            self._runner.run(session, statement, statement.text)
        for path, options in tables.items():
            try:
                overlay(SessionTables(session), path, options, _PRIVATE)
            except GatewayError as error:
                failed = SubmissionUnknown if error.unanswered else TargetError
                raise failed(f"{prepared.job.span}: cannot change the options of table {path[2]}: {error}") from None

    def _explain(self, session: Session, prepared: Prepared) -> str:
        rows = self._runner.run(session, prepared.job, prepared.explain_sql, prefix=prepared.explain_shift).rows
        return "\n".join(str(row[0]) for row in rows)


def state_options(start: Start, *, ignore_unclaimed: bool = False) -> dict[str, str]:
    """Flink's options for a job's initial state. NO_CLAIM keeps the savepoint available for a rollback."""
    options = {IGNORE_UNCLAIMED: str(ignore_unclaimed).lower(), CLAIM_MODE: "NO_CLAIM"}
    if start.savepoint:
        options[RECOVERY_PATH] = start.savepoint
    return in_every_spelling(options)


@dataclass(frozen=True)
class _SessionRestoreTest:
    """A restore test; ``submit`` starts the job from a savepoint with options and a request id."""

    submit: Callable[[Snapshot | None, Mapping[str, str], str], Operation]
    sinks: tuple[SinkTable, ...] = ()
    watermarks: bool = False

    def start(self, name: str, savepoint: Snapshot | None, request_id: str, *, ignore_unclaimed: bool) -> Operation:
        state = state_options(Start(savepoint), ignore_unclaimed=ignore_unclaimed)
        return self.submit(savepoint, {**state, **trial_options(name)}, request_id)
