"""A platform in memory that differs from the SQL Gateway in every way that the contract allows.

Its server chooses the names of jobs, numbers savepoints, shows no checkpoints, and may lose the answer to an executed
call.
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
    """A lost answer to a request that the server executed."""

    @property
    def unanswered(self) -> bool:
        return True


@dataclass
class FakeJob:
    """One job of the server."""

    status: JobStatus
    runs: JobSpec
    restored: Snapshot | None


@dataclass
class FakeServer:
    """The platform itself, which outlives every target that uses it.

    ``loses``: number of lost answers to each call (``start``, ``stop``, ``savepoint``, ``cancel``) of one request.
    ``refuses``: names of jobs whose next restore from a savepoint fails.
    """

    jobs: dict[JobRef, FakeJob] = field(default_factory=dict)
    starts: dict[str, JobRef] = field(default_factory=dict)
    savepoints: dict[str, Snapshot] = field(default_factory=dict)
    loses: Mapping[str, int] = field(default_factory=dict)
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)
    refuses: set[str] = field(default_factory=set)

    def answered(self, verb: str, request: str, error: type[DeployError]) -> None:
        """Raise ``error`` for each lost answer to this request."""
        if self.lost[verb, request] < self.loses.get(verb, 0):
            self.lost[verb, request] += 1
            raise error(f"the answer to the {verb} was lost")


class FakeTarget:
    """A target over a ``FakeServer``; several may share one, as processes do."""

    def __init__(self, server: FakeServer | None = None, *, version: str = "2.3.0") -> None:
        self.server = server or FakeServer()
        self._version = version

    def __str__(self) -> str:
        return "the fake target"

    def close(self) -> None:
        """Close nothing."""

    def engine(self) -> EngineInfo:
        return EngineInfo("flink", self._version)

    def validate(self, job: JobSpec, start: Start) -> str:
        """Read the script; there is no planner."""
        prepare_job(job)
        return "the script was read, not planned"

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Run the job under the next free name."""
        self.validate(job, start)
        if request_id not in self.server.starts:
            if start.savepoint is not None and start.savepoint not in self.server.savepoints.values():
                raise StateRefused(f"there is no savepoint {start.savepoint}", StateFault.GONE)
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
        """Accept the job; no table is real, so none needs a stand-in."""
        prepare_job(job)
        return FakeRestoreTest(self, job)

    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """End the job, and keep its state under the next free number."""
        if request_id not in self.server.savepoints:
            if not self._runs(job):
                raise StopFailed(f"{job} does not run")
            self.server.savepoints[request_id] = Snapshot(f"savepoint #{len(self.server.savepoints) + 1}")
            self._end(job, "FINISHED")
        self.server.answered("stop", request_id, AnswerLost)
        return Operation(Verb.STOP, request_id, job, directory=directory)

    def savepoint(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Store the state of a running job under the next free number."""
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
            raise SavepointFailed(f"nobody has asked for a savepoint under {operation.request_id}")
        if snapshot is None and not (operation.job and self._runs(operation.job)):
            raise StopFailed(f"{operation.job} ended, and not by this stop")
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
        """The requested state, because the restored one is not observed."""
        return Proof(self.server.jobs[job].restored, Strength.DECLARED)

    def deployed(self, name: str) -> Deployed | None:
        """The running job of this name, with its script."""
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
    """A job of a fake target that may be started next to the live one."""

    target: FakeTarget
    job: JobSpec

    def start(self, name: str, savepoint: Snapshot | None, request_id: str, *, ignore_unclaimed: bool) -> Operation:
        """Run the job under the name; unclaimed state is unknown here."""
        started = self.target.start(self.job, Start(savepoint), request_id)
        assert started.job is not None
        found = self.target.server.jobs[started.job]
        found.status = replace(found.status, name=name)  # over the one that the script gives
        return started
