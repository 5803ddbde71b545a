"""A cluster in memory that keeps to the Target protocol, for tests below the edge of a real one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployError, EngineInfo, JobStatus, Operation, Proof, Start
from airflow_flinkcompat.deploy.flink.statements import prepare
from airflow_flinkcompat.deploy.target import JobHistory, JobRef, SnapshotStats, Sources, TablePath, Verb
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import JobManagerJobs
from airflow_flinkcompat.model import JobSpec


def number_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are ``job-1``, ``job-2``…, and so are the jobs that they start; stops go by the same numbers."""
    numbers = itertools.count(1)
    for module in ("starting", "stopping"):
        monkeypatch.setattr(f"airflow_flinkcompat.deploy.redeploy.{module}.new_id", lambda: f"job-{next(numbers)}")


@dataclass
class FakeCluster:
    """``fail`` names the call that fails; ``refuse`` is what it says to every script; ``before`` runs before a call."""

    version: str = "2.3.0"
    jobs: dict[str, JobStatus] = field(default_factory=dict)
    restored: dict[str, str | None] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    submitted: list[Mapping[str, str]] = field(default_factory=list)
    starts: list[tuple[str, Start]] = field(default_factory=list)
    # What a script reads, and the options with which validation was asked for.
    reads: dict[str, Sources] = field(default_factory=dict)
    tried: list[Mapping[TablePath, Mapping[str, str]]] = field(default_factory=list)
    stops: dict[str, str] = field(default_factory=dict)
    states: dict[tuple[str, str], SnapshotStats] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    # How jobs went, where that is not as smooth as can be.
    job_histories: dict[str, JobHistory] = field(default_factory=dict)
    retained: bool = False
    fail: str = ""
    error: Callable[[str], DeployError] = DeployError
    refuse: DeployError | None = None
    before: dict[str, Callable[[], Any]] = field(default_factory=dict)

    def __enter__(self) -> FakeCluster:
        return self

    def __exit__(self, *_error: object) -> None: ...

    def __str__(self) -> str:
        return "pretended"

    def _call(self, name: str) -> None:
        if name in self.before:
            self.before.pop(name)()
        self.calls.append(name)
        if self.fail == name:
            raise self.error(f"{name} does not work")

    def engine(self) -> EngineInfo:
        return EngineInfo("flink", self.version)

    def register_secrets(self, job: JobSpec) -> None: ...

    def validate(self, job: JobSpec, start: Start) -> str:
        prepare(job.script, job.source)
        self._call("validate")
        self.tried.append(start.tables)
        if self.refuse:
            raise self.refuse
        return ""

    def sources(self, job: JobSpec) -> Sources:
        self.validate(job, Start())
        return self.reads.get(job.script, Sources())

    def job_of_request(self, request_id: str) -> str:
        return request_id

    manual_start = SqlGatewayTarget.manual_start

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        self._call("submit")
        self.submitted.append(job.settings)
        self.starts.append((job.script, start))
        assert request_id not in self.jobs, "one id is one job"
        self.run(request_id, job.settings["pipeline.name"], start.savepoint)
        self._call("submitted")
        return Operation(Verb.START, request_id, request_id)

    def run(self, job_id: str, name: str = "orders", savepoint: str | None = None) -> str:
        """A job that runs."""
        self.jobs[job_id] = JobStatus(job_id, name, "RUNNING", True, 1)
        self.restored[job_id] = savepoint
        if self.fail == "restore":  # this job only
            self.fail, self.wrong[job_id] = "", "file:/another"
        return job_id

    @property
    def now(self) -> dict[str, str]:
        """State by job id."""
        return {job.job_id: job.state for job in self.jobs.values()}

    def end(self, job_id: str, state: str) -> None:
        self.jobs[job_id] = replace(self.jobs[job_id], state=state)

    def stop(self, job_id: str, request_id: str, directory: str | None) -> Operation:
        self._call("stop")
        if request_id not in self.stops:
            self.stops[request_id] = f"{directory or 'file:/sp'}/{job_id}"
            self.end(job_id, "FINISHED")
        return Operation(Verb.STOP, request_id, job_id, directory=directory)

    def poll(self, operation: Operation) -> Operation:
        if operation.verb is Verb.START:
            return replace(operation, job=operation.request_id if operation.request_id in self.jobs else None)
        return replace(operation, snapshot=self._savepoint_of_stop(operation))

    # What a JobManager says of a stop is made of the same.
    _savepoint_of_stop, _runs, last_checkpoint = (
        JobManagerJobs._savepoint_of_stop,
        JobManagerJobs._runs,
        JobManagerJobs.last_checkpoint,
    )

    @property
    def _jobmanager(self) -> FakeCluster:
        return self

    def stop_result(self, job_id: str, trigger_id: str) -> str | None:
        self._call("result")
        return self.stops.get(trigger_id)

    def statistics_age(self) -> float:
        return 0.0

    def _await_statistics(self) -> None:
        self.statistics_age()

    def final_savepoint(self, job_id: str) -> str | None:
        return None

    def status(self, job_id: str) -> JobStatus | None:
        return self.jobs.get(job_id)

    def running(self, name: str) -> tuple[str, ...]:
        return tuple(job.job_id for job in self.jobs.values() if job.name == name and not job.terminal)

    def restored_from(self, job_id: str) -> Proof:
        return Proof(self.wrong.get(job_id, self.restored[job_id]))

    def job_history(self, job_id: str) -> JobHistory:
        return self.job_histories.get(job_id) or JobHistory(restored=self.restored_from(job_id).snapshot)

    def request_checkpoint(self, job_id: str) -> None:
        self._call("checkpoint")

    def cancel(self, job_id: str) -> None:
        self._call("cancel")
        self.end(job_id, "CANCELED")

    def snapshot_stats(self, job_id: str, kind: str) -> SnapshotStats | None:
        return self.states.get((job_id, kind))

    def keeps_checkpoints(self, job_id: str, state: str = "CANCELED") -> bool:
        return self.retained

    def source_offsets(self, job_id: str) -> Mapping[str, int]:
        return {}

    def ever_ran(self, job_id: str) -> bool | None:
        return job_id in self.jobs

    def cluster_options(self, job: JobRef | None = None) -> Mapping[str, str]:
        return {"execution.checkpointing.savepoint-dir": "file:/sp"}

    def savepoint_root(self) -> str | None:
        return "file:/sp"

    def location(self, snapshot: str) -> str:
        return snapshot

    def savepoint_at(self, location: str) -> str:
        return location

    def dispose(self, savepoint: str) -> None:
        self._call("dispose")
