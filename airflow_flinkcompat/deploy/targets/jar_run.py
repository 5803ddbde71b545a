"""The target ``jobmanager``: a JobManager that runs scripts without a SQL Gateway.

The call ``POST /jars/{id}/run`` starts a class of a jar on the JobManager. Since Flink 2.0, the started class is
Flink's own ``SqlDriver`` on the JobManager's class path. The driver finds the Gateway's jar on the class path or in
``FLINK_OPT_DIR``, so the uploaded jar is empty. On Flink 1.x, the class is the runner in this package. The runner's
source is ``runner/SqlRunner.java``, and ``scripts/build_jars.py`` builds its jar reproducibly. The runner
executes ``SET`` and ``RESET`` itself, and passes all other statements to Flink (1.19, 1.20 and 2.x).

Measured on Flink 2.3: the cluster accepts the requested job id only once. The cluster responds with status 400 to
every request that it refuses, including a second submission.
"""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Self

from airflow_flinkcompat.deploy.errors import DeployError, SubmissionUnknown, TargetError, refusal
from airflow_flinkcompat.deploy.flink.gateway import ScriptRunner
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.flink.script_tables import ScriptTables
from airflow_flinkcompat.deploy.flink.statements import prepare_job, set_options
from airflow_flinkcompat.deploy.flink.tables import Substitutes
from airflow_flinkcompat.deploy.flink.upsert_sinks import copy_jar
from airflow_flinkcompat.deploy.target import (
    CatchUpRun,
    EngineInfo,
    JobRef,
    JobStatus,
    Operation,
    ShadowRun,
    SinkTable,
    Snapshot,
    Start,
    Verb,
)
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import (
    JobManagerJobs,
    endpoint_of,
    no_connections,
    trial_options,
)
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets.placeholders import Lookup
from airflow_flinkcompat.sql import parse_script

ENTRY_CLASS = "flinkcompat.SqlRunner"
"""The jar's main class, which accepts ``--statements LIST`` or ``--scriptUri URI``."""
_DRIVER = "org.apache.flink.table.runtime.application.SqlDriver"
_REFUSED = 400
# Timeout of a submission. The first one loads the planner into the JobManager, in 9 to 30 s on a busy machine.
_RUN_SECONDS = 180.0
# Maximum seconds to wait until all tasks of a job run, before the job is stopped anyway.
_UP_SECONDS = 60.0


class JobManagerTarget(JobManagerJobs):
    """A JobManager as target (requires Flink's option ``web.submit.enable``).

    Submitted scripts contain secret values.
    """

    def __init__(self, jobmanager: JobManager | Endpoint | str, *, lookup: Lookup = no_connections) -> None:
        super().__init__(jobmanager)
        self._runner = ScriptRunner(lookup, self._jobmanager)

    @classmethod
    def connect(cls, access: Access) -> Self:
        """Open the target with the address ``jobmanager``. Raises ApiError if a setting is wrong."""
        return cls(endpoint_of(access, "jobmanager"), lookup=access.lookup or no_connections)

    def engine(self) -> EngineInfo:
        return EngineInfo("flink", self._jobmanager.version())

    def register_secrets(self, job: JobSpec) -> None:
        self._runner.register_placeholders(job)

    def validate(self, job: JobSpec, start: Start) -> str:
        """Check that the script can be deployed. The script is not planned."""
        prepare_job(job)
        return (
            "the script was checked for statements that cannot be deployed, but not planned by Flink, because a "
            "JobManager has no EXPLAIN (flinkcompat check --explain-plan uses a SQL Gateway)"
        )

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Run the script with the driver, with the request id as the job id."""
        self.validate(job, start)
        return self._submitted(job, start.savepoint, request_id)

    def shadow_run(self, job: JobSpec, private: str, rows: str) -> ShadowRun:
        """Add stand-ins to the script, whose tables must all be declared in the script."""
        return self._trial(job, private, rows)

    def catch_up_run(self, job: JobSpec, private: str) -> CatchUpRun:
        """Add stand-ins to the script, as in a shadow run."""
        return self._trial(job, private, None)

    def _trial(self, job: JobSpec, private: str, rows: str | None) -> _ScriptRun:
        script = _tables_in(job)
        stand_ins = Substitutes(script, private)
        stand_ins.check(script.tables, stops=True)
        sinks = () if rows is None else tuple(map(_with_defaults, stand_ins.sinks(script.tables)))
        watermarks = rows is None and stand_ins.watermarks(script.tables)
        return _ScriptRun(self, job, private, rows, sinks, watermarks)

    def _submitted(
        self, job: JobSpec, savepoint: Snapshot | None, request_id: str, *, ignore_unclaimed: bool = False
    ) -> Operation:
        """Run a script and return its start. Raises SubmissionUnknown, TargetError."""
        ref = self.job_of_request(request_id)
        run = {
            **self._program(self._runner.script(job)),
            "jobId": ref,
            "flinkConfiguration": self._runner.settings(job.settings),
            # Never drop unclaimed state silently. NO_CLAIM keeps the savepoint, which a rollback requires.
            "allowNonRestoredState": ignore_unclaimed,
            "restoreMode": "NO_CLAIM",
            **({"savepointPath": savepoint} if savepoint else {}),
        }
        try:
            started = self._run(run, _empty_jar() if self._has_driver else runner_jar().read_bytes())
        except JobManagerError as error:
            if (
                error.status != _REFUSED
            ):  # status 400 is an error of the program. After any other error, the driver may run
                raise SubmissionUnknown(f"{job.source}: {error}") from None
            if self.status(ref) is None:  # if the job exists, an earlier request submitted it
                message = f"{job.source}: the JobManager refused the script: {error.reason}"
                raise refusal(message, error.reason) from None
        else:
            self._require_own(job, started, ref)
        return Operation(Verb.START, request_id, ref)

    @cached_property
    def _has_driver(self) -> bool:
        return not self._jobmanager.version().startswith("1.")

    def _program(self, script: str) -> dict[str, Any]:
        """The class that runs a script, and its arguments."""
        if self._has_driver:
            return {"entryClass": _DRIVER, "programArgsList": ["--script", script]}
        return {"entryClass": ENTRY_CLASS, "programArgsList": ["--statements", encode_script(script)]}

    def _require_own(self, job: JobSpec, started: str | None, wanted: JobRef) -> None:
        """Raise SubmissionUnknown without a job id. Cancel a job with a wrong id and raise TargetError."""
        if started is None:
            raise SubmissionUnknown(f"{job.source}: the JobManager ran the script, but returned no job id")
        if started != wanted:
            self._jobmanager.cancel(JobRef(started))
            raise TargetError(
                f"{job.source}: the JobManager started job {started} instead of {wanted}; it was cancelled"
            )

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Request the stop only when all tasks run, because the stop of a starting job would make it fail."""
        with suppress(Overdue):  # the JobManager's own error gives the reason
            poll(lambda: self.status(job), _comes_up, timeout=_UP_SECONDS)
        return super().stop(job, request_id, directory)

    def _run(self, run: dict[str, Any], content: bytes) -> str | None:
        """Upload a jar, run a class, and delete the jar. Return the job. Raises JobManagerError."""
        jar = self._jobmanager.upload_jar("flinkcompat.jar", content)
        try:
            job = self._jobmanager.call("POST", f"jars/{jar}/run", run, timeout=_RUN_SECONDS).get("jobid")
            return None if job is None else str(job)
        finally:
            with suppress(DeployError):  # the jar is in a temporary folder of the JobManager
                self._jobmanager.call("DELETE", f"jars/{jar}", idempotent=True)


@dataclass(frozen=True)
class _ScriptRun:
    """A job next to the live job; ``rows``: folder of its rows, or None to discard them."""

    target: JobManagerTarget
    job: JobSpec
    private: str
    rows: str | None
    sinks: tuple[SinkTable, ...]
    watermarks: bool

    def start(self, name: str, savepoint: Snapshot | None, request_id: str, *, ignore_unclaimed: bool) -> Operation:
        script = _tables_in(self.job)
        jar = copy_jar(self.target.location(savepoint)) if savepoint and script.tables.upserts else None
        Substitutes(script, self.private).put(script.tables, rows=self.rows, waits=self.rows is None, jar=jar)
        job = replace(self.job, script=script.script(trial_options(name)))
        return self.target._submitted(job, savepoint, request_id, ignore_unclaimed=ignore_unclaimed)


def _tables_in(job: JobSpec) -> ScriptTables:
    return ScriptTables(prepare_job(job), {**job.settings, **set_options(job.script, job.source)})


def _comes_up(status: JobStatus | None) -> bool:
    return status is not None and status.starting


def _empty_jar() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")
    return content.getvalue()


def runner_jar() -> Traversable:
    """The jar of the runner in this package. ``importlib.resources.as_file`` returns its path."""
    return files(__package__).joinpath("runner", "flinkcompat-sql-runner.jar")


def encode_statements(statements: Iterable[str]) -> str:
    """The value of ``--statements``, without blanks and quotes. Raises ValueError without statements."""
    encoded = [base64.urlsafe_b64encode(statement.encode()).decode("ascii") for statement in statements]
    if not encoded:
        raise ValueError("the script contains no statement. Write at least an INSERT")
    return ",".join(encoded)


def encode_script(script: str) -> str:
    """The value of ``--statements`` for a script without placeholders. Raises ScriptError, ValueError."""
    return encode_statements(each.text for each in parse_script(script, "<script>").statements)


def _with_defaults(sink: SinkTable) -> SinkTable:
    """The sink with the path that Flink's plan of the script contains."""
    catalog, database, name = sink.path
    return replace(sink, path=(catalog or "default_catalog", database or "default_database", name))
