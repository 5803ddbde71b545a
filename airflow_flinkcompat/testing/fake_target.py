"""An in-memory target that differs from the SQL Gateway in every way that the contract allows.

The fake server chooses job ids, numbers savepoints and shows no checkpoints. The server may also execute a call and
lose its response.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airflow_flinkcompat.deploy.errors import (
    DeployError,
    SavepointFailed,
    StateFault,
    StateRefused,
    StopFailed,
    SubmissionUnknown,
    TargetError,
)
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, prepare, prepare_job
from airflow_flinkcompat.deploy.target import (
    Deployed,
    EngineInfo,
    JobRef,
    JobStatus,
    Operation,
    Proof,
    RestoreTest,
    Snapshot,
    Start,
    Strength,
    Verb,
)
from airflow_flinkcompat.model import JobSpec


class AnswerLost(DeployError):
    """Raised if the answer to an executed request is lost."""

    @property
    def unanswered(self) -> bool:
        return True


@dataclass
class FakeJob:
    """A job that the fake server runs or ran."""

    status: JobStatus
    runs: JobSpec
    restored: Snapshot | None


@dataclass
class FakeServer:
    """The fake platform, which outlives every target that uses it.

    ``loses`` maps each call (``start``, ``stop``, ``savepoint``, ``cancel``) to the number of responses that the
    server loses for each request. ``refuses`` contains the names of jobs whose next restore from a savepoint fails.
    """

    jobs: dict[JobRef, FakeJob] = field(default_factory=dict)
    starts: dict[str, JobRef] = field(default_factory=dict)
    savepoints: dict[str, Snapshot] = field(default_factory=dict)
    loses: Mapping[str, int] = field(default_factory=dict)
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)
    refuses: set[str] = field(default_factory=set)

    def answered(self, verb: str, request: str, error: type[DeployError]) -> None:
        """Raise ``error`` if the answer to this request must be lost."""
        if self.lost[verb, request] < self.loses.get(verb, 0):
            self.lost[verb, request] += 1
            raise error(f"the answer to the {verb} was lost")


class FakeTarget:
    """A target for a ``FakeServer``. Several targets may share a server, as processes share a cluster."""

    def __init__(self, server: FakeServer | None = None, *, version: str = "2.3.0") -> None:
        self.server = server or FakeServer()
        self._version = version

    def __str__(self) -> str:
        return "the fake target"

    def close(self) -> None:
        """Do nothing, because a fake target has no connection to close."""

    def engine(self) -> EngineInfo:
        return EngineInfo("flink", self._version)

    def validate(self, job: JobSpec, start: Start) -> str:
        """Check that the script can be parsed, because a fake target has no planner."""
        prepare_job(job)
        return "the script was read, not planned"

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Run the job under the next free job id."""
        self.validate(job, start)
        if request_id not in self.server.starts:
            if start.savepoint is not None and start.savepoint not in self.server.savepoints.values():
                raise StateRefused(f"the savepoint {start.savepoint} does not exist", StateFault.GONE)
            name = prepare(job.script, job.source).job_name or job.settings.get(JOB_NAME, "")
            ref = JobRef(f"job-{len(self.server.jobs) + 1}")
            status = JobStatus(ref, name, "RUNNING", True, None)
            if name in self.server.refuses and start.savepoint is not None:
                self.server.refuses.discard(name)
                status = replace(
                    status,
                    state="FAILED",
                    tasks_running=False,
                    failure="the state does not fit",
                    fault=StateFault.MISFIT,
                )
            self.server.jobs[ref] = FakeJob(status, job, start.savepoint)
            self.server.starts[request_id] = ref
        self.server.answered("start", request_id, SubmissionUnknown)
        return Operation(Verb.START, request_id, self.server.starts[request_id])

    def restore_test(self, job: JobSpec, private: str, *, empty: bool = False) -> RestoreTest:
        """Accept any job whose script can be parsed. No table is real, so no table needs a stand-in."""
        prepare_job(job)
        return FakeRestoreTest(self, job)

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """End the job and store a savepoint under the next free number."""
        if request_id not in self.server.savepoints:
            if not self._runs(job):
                raise StopFailed(f"{job} does not run")
            self.server.savepoints[request_id] = Snapshot(f"savepoint #{len(self.server.savepoints) + 1}")
            self._end(job, "FINISHED")
        self.server.answered("stop", request_id, AnswerLost)
        return Operation(Verb.STOP, request_id, job, directory=directory)

    def savepoint(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Store a savepoint of a running job under the next free number."""
        if request_id not in self.server.savepoints:
            if not self._runs(job):
                raise TargetError(f"{job} does not run")
            self.server.savepoints[request_id] = Snapshot(f"savepoint #{len(self.server.savepoints) + 1}")
        self.server.answered("savepoint", request_id, AnswerLost)
        return Operation(Verb.SAVEPOINT, request_id, job, directory=directory)

    def poll(self, operation: Operation) -> Operation:
        if operation.verb is Verb.START:
            return replace(operation, job=self.server.starts.get(operation.request_id))
        snapshot = self.server.savepoints.get(operation.request_id)
        if operation.verb is Verb.SAVEPOINT and snapshot is None:
            raise SavepointFailed(f"no savepoint was requested under the id {operation.request_id}")
        if snapshot is None and not (operation.job and self._runs(operation.job)):
            raise StopFailed(f"{operation.job} ended for another reason than this stop")
        return replace(operation, snapshot=snapshot)

    def status(self, job: JobRef) -> JobStatus | None:
        found = self.server.jobs.get(job)
        return found.status if found else None

    def running(self, name: str) -> tuple[JobRef, ...]:
        jobs = (job.status for job in self.server.jobs.values())
        return tuple(job.job_id for job in jobs if job.name == name and not job.terminal)

    def cancel(self, job: JobRef) -> None:
        if self._runs(job):
            self._end(job, "CANCELED")
        self.server.answered("cancel", job, AnswerLost)

    def restored_from(self, job: JobRef) -> Proof:
        """The requested savepoint as declared proof, because this target does not observe restores."""
        return Proof(self.server.jobs[job].restored, Strength.DECLARED)

    def deployed(self, name: str) -> Deployed | None:
        """The running job of this name with its script, or None."""
        for ref in self.running(name):
            found = self.server.jobs[ref].runs
            return Deployed(ref, found.script, found.settings)
        return None

    def _runs(self, job: JobRef) -> bool:
        return job in self.server.jobs and not self.server.jobs[job].status.terminal

    def _end(self, job: JobRef, state: str) -> None:
        found = self.server.jobs[job]
        found.status = replace(found.status, state=state, tasks_running=False)


@dataclass(frozen=True)
class FakeRestoreTest:
    """A job of a fake target that can run next to the live job."""

    target: FakeTarget
    job: JobSpec

    def start(self, name: str, savepoint: Snapshot | None, request_id: str, *, ignore_unclaimed: bool) -> Operation:
        """Run the job under ``name``. This target has no unclaimed state."""
        started = self.target.start(self.job, Start(savepoint), request_id)
        assert started.job is not None
        found = self.target.server.jobs[started.job]
        found.status = replace(found.status, name=name)  # this option overrides the job name in the script
        return started
