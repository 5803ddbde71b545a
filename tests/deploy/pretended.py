"""A cluster in memory that keeps to the Target protocol, for tests below the edge of a real one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployError, EngineInfo, JobStatus, Start
from airflow_flinkcompat.deploy.flink.course import Course
from airflow_flinkcompat.deploy.flink.evidence import TakenState
from airflow_flinkcompat.deploy.flink.statements import prepare
from airflow_flinkcompat.deploy.flink.tables import TablePath
from airflow_flinkcompat.deploy.sources.reading import Sources


def number_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are ``job-1``, ``job-2``…, stops ``stop-1``…"""
    for module, name in (("starting", "job"), ("stopping", "stop")):
        numbers = itertools.count(1)
        new_id = lambda name=name, numbers=numbers: f"{name}-{next(numbers)}"  # noqa: E731
        monkeypatch.setattr(f"airflow_flinkcompat.deploy.redeploy.{module}.new_id", new_id)


@dataclass
class Pretended:
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
    states: dict[tuple[str, str], TakenState] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    # How jobs went, where that is not as smooth as can be.
    courses: dict[str, Course] = field(default_factory=dict)
    retained: bool = False
    fail: str = ""
    error: Callable[[str], DeployError] = DeployError
    refuse: DeployError | None = None
    before: dict[str, Callable[[], Any]] = field(default_factory=dict)

    def __enter__(self) -> Pretended:
        return self

    def __exit__(self, *_error: object) -> None: ...

    def _call(self, name: str) -> None:
        if name in self.before:
            self.before.pop(name)()
        self.calls.append(name)
        if self.fail == name:
            raise self.error(f"{name} does not work")

    def engine(self) -> EngineInfo:
        return EngineInfo("flink", self.version)

    def learn_secrets(self, script: str, settings: Mapping[str, str]) -> None: ...

    def validate(
        self,
        script: str,
        settings: Mapping[str, str],
        *,
        source: str = "",
        tables: Mapping[TablePath, Mapping[str, str]] | None = None,
    ) -> None:
        prepare(script, source)
        self._call("validate")
        self.tried.append(tables or {})
        if self.refuse:
            raise self.refuse

    def sources(self, script: str, settings: Mapping[str, str], *, source: str = "") -> Sources:
        self.validate(script, settings, source=source)
        return self.reads.get(script, Sources())

    def submit(self, script: str, settings: Mapping[str, str], start: Start, *, job_id: str, source: str = "") -> None:
        self._call("submit")
        self.submitted.append(settings)
        self.starts.append((script, start))
        assert job_id not in self.jobs, "one id is one job"
        self.run(job_id, settings["pipeline.name"], start.savepoint)
        self._call("submitted")

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

    def ask_to_stop(self, job_id: str, directory: str | None, trigger_id: str) -> None:
        self._call("stop")
        if trigger_id not in self.stops:
            self.stops[trigger_id] = f"{directory or 'file:/sp'}/{job_id}"
            self.end(job_id, "FINISHED")

    def stop_result(self, job_id: str, trigger_id: str) -> str | None:
        self._call("result")
        return self.stops.get(trigger_id)

    def final_savepoint(self, job_id: str) -> str | None:
        return None

    def status(self, job_id: str) -> JobStatus | None:
        return self.jobs.get(job_id)

    def running(self, name: str) -> tuple[str, ...]:
        return tuple(job.job_id for job in self.jobs.values() if job.name == name and not job.terminal)

    def restored_from(self, job_id: str) -> str | None:
        return self.wrong.get(job_id, self.restored[job_id])

    def course(self, job_id: str) -> Course:
        return self.courses.get(job_id) or Course(restored=self.restored_from(job_id))

    def request_checkpoint(self, job_id: str) -> None:
        self._call("checkpoint")

    def cancel(self, job_id: str) -> None:
        self._call("cancel")
        self.end(job_id, "CANCELED")

    def taken_state(self, job_id: str, kind: str) -> TakenState | None:
        return self.states.get((job_id, kind))

    def statistics_age(self) -> float:
        return 0.0

    def keeps_checkpoints(self, job_id: str, state: str = "CANCELED") -> bool:
        return self.retained

    def source_offsets(self, job_id: str) -> Mapping[str, int]:
        return {}

    def ever_ran(self, job_id: str) -> bool | None:
        return job_id in self.jobs

    def cluster_options(self) -> Mapping[str, str]:
        return {"execution.checkpointing.savepoint-dir": "file:/sp"}

    def dispose(self, savepoint: str) -> None:
        self._call("dispose")
