"""A JobManager that runs scripts itself, without a SQL Gateway.

``POST /jars/{id}/run`` starts a class of a jar on the JobManager. From Flink 2.0 on that is Flink's own ``SqlDriver``,
which is on its class path, and looks there or in ``FLINK_OPT_DIR`` for the Gateway's jar; the jar that is uploaded for
the call is empty. On Flink 1.x it is the runner that comes with this package
(``runner/SqlRunner.java``; ``scripts/build_sql_runner.py`` builds its jar reproducibly). The runner reads ``SET`` and
``RESET`` itself and leaves every other statement to Flink, on 1.19, 1.20 and 2.x. Measured on Flink 2.3: the cluster
accepts the requested job id, once, and answers 400 to whatever it refuses, a second submission too.
"""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Self

from airflow_flinkcompat.deploy.errors import DeployError, SubmissionUnknown, TargetError, refusal
from airflow_flinkcompat.deploy.flink.gateway import ScriptRunner
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.flink.statements import prepare_job
from airflow_flinkcompat.deploy.target import EngineInfo, JobRef, JobStatus, Operation, Start, Verb
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import JobManagerJobs, endpoint_of, no_connections
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets.placeholders import Lookup
from airflow_flinkcompat.sql import parse_script

ENTRY_CLASS = "flinkcompat.SqlRunner"
"""Class whose ``main`` accepts ``--statements LIST`` or ``--scriptUri URI``, as the manifest names it."""
_DRIVER = "org.apache.flink.table.runtime.application.SqlDriver"
_REFUSED = 400
# The first run loads the planner into the JobManager: 9 to 30 s on a busy machine.
_RUN_SECONDS = 180.0
# Seconds that a job may take until all its tasks run, before it is stopped anyway.
_UP_SECONDS = 60.0


class JobManagerTarget(JobManagerJobs):
    """A target made of a JobManager alone (with ``web.submit.enable``); scripts are sent with secrets."""

    def __init__(self, jobmanager: JobManager | Endpoint | str, *, lookup: Lookup = no_connections) -> None:
        super().__init__(jobmanager)
        self._runner = ScriptRunner(lookup, self._jobmanager)

    @classmethod
    def connect(cls, access: Access) -> Self:
        """The target at the address ``jobmanager``. Raises ApiError if a setting is wrong."""
        return cls(endpoint_of(access, "jobmanager"), lookup=access.lookup or no_connections)

    def engine(self) -> EngineInfo:
        return EngineInfo("flink", self._jobmanager.version())

    def register_secrets(self, job: JobSpec) -> None:
        self._runner.register_placeholders(job)

    def validate(self, job: JobSpec, start: Start) -> str:
        """Read the script for obstacles to a deployment; nothing here plans it."""
        prepare_job(job)
        return (
            "the script was checked for statements that cannot be deployed, but not planned by Flink: a "
            "JobManager has no EXPLAIN (flinkcompat check --explain-plan uses a SQL Gateway)"
        )

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Run the script by the driver, with the request's id as the job's."""
        self.validate(job, start)
        ref = self.job_of_request(request_id)
        run = {
            **self._program(self._runner.script(job)),
            "jobId": ref,
            "flinkConfiguration": self._runner.settings(job.settings),
            # Unclaimed state is never dropped silently, and NO_CLAIM leaves the savepoint to us: a rollback needs it.
            "allowNonRestoredState": False,
            "restoreMode": "NO_CLAIM",
            **({"savepointPath": start.savepoint} if start.savepoint else {}),
        }
        try:
            started = self._run(run, _empty_jar() if self._has_driver else runner_jar().read_bytes())
        except JobManagerError as error:
            if error.status != _REFUSED:  # 400 is an error of the program; after any other the driver may still run
                raise SubmissionUnknown(f"{job.source}: {error}") from None
            if self.status(ref) is None:  # otherwise it was submitted before
                message = f"{job.source}: the JobManager refused the script: {error.reason}"
                raise refusal(message, error.reason) from None
        else:
            self._require_own(job, started, ref)
        return Operation(Verb.START, request_id, ref)

    @cached_property
    def _has_driver(self) -> bool:
        return not self._jobmanager.version().startswith("1.")

    def _program(self, script: str) -> dict[str, Any]:
        """The program that runs a script, and its arguments."""
        if self._has_driver:
            return {"entryClass": _DRIVER, "programArgsList": ["--script", script]}
        return {"entryClass": ENTRY_CLASS, "programArgsList": ["--statements", encode_script(script)]}

    def _require_own(self, job: JobSpec, started: str | None, wanted: JobRef) -> None:
        """Raise SubmissionUnknown if no job was named; end another job and raise TargetError if one was."""
        if started is None:
            raise SubmissionUnknown(f"{job.source}: the JobManager ran the script but named no job")
        if started != wanted:
            self._jobmanager.cancel(JobRef(started))
            raise TargetError(
                f"{job.source}: the JobManager started job {started} instead of {wanted}; it was cancelled"
            )

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Request the stop once every task runs, because a starting job ends as FAILED instead."""
        with suppress(Overdue):  # the JobManager's own error gives the reason
            poll(lambda: self.status(job), _comes_up, timeout=_UP_SECONDS)
        return super().stop(job, request_id, directory)

    def _run(self, run: dict[str, Any], content: bytes) -> str | None:
        """Run a class with a jar uploaded for this call only; return its job. Raises JobManagerError."""
        jar = self._jobmanager.upload_jar("flinkcompat.jar", content)
        try:
            job = self._jobmanager.call("POST", f"jars/{jar}/run", run, timeout=_RUN_SECONDS).get("jobid")
            return None if job is None else str(job)
        finally:
            with suppress(DeployError):  # it is in a temporary folder of the JobManager
                self._jobmanager.call("DELETE", f"jars/{jar}", idempotent=True)


def _comes_up(status: JobStatus | None) -> bool:
    return status is not None and status.starting


def _empty_jar() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")
    return content.getvalue()


def runner_jar() -> Traversable:
    """The shipped jar; ``importlib.resources.as_file`` makes a path of it."""
    return files(__package__).joinpath("runner", "flinkcompat-sql-runner.jar")


def encode_statements(statements: Iterable[str]) -> str:
    """The value of ``--statements``, in one line without blanks or quotes. Raises ValueError without any."""
    encoded = [base64.urlsafe_b64encode(statement.encode()).decode("ascii") for statement in statements]
    if not encoded:
        raise ValueError("a script without a statement runs nothing: write at least its INSERT")
    return ",".join(encoded)


def encode_script(script: str) -> str:
    """A script in that form, with no placeholder left. Raises ScriptError, ValueError."""
    return encode_statements(each.text for each in parse_script(script, "<script>").statements)
