"""One restore of a rehearsal on a pretended target: what is announced, and what each of its words comes to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployError, JobStatus, SubmissionUnknown, TargetError
from airflow_flinkcompat.deploy.errors import StateFault, StateRefused
from airflow_flinkcompat.deploy.redeploy.run import Waiting
from airflow_flinkcompat.deploy.rehearsal import place as restoring_place
from airflow_flinkcompat.deploy.rehearsal import restoring, waiting
from airflow_flinkcompat.deploy.rehearsal.place import Started, Watcher
from airflow_flinkcompat.deploy.rehearsal.restoring import (
    Checked,
    Inconclusive,
    RestoreRefused,
    RestoreRunner,
    Timeouts,
)
from airflow_flinkcompat.deploy.rehearsal.waiting import Journal
from airflow_flinkcompat.deploy.target import JobRef, Operation, Slots, Snapshot, Verb
from airflow_flinkcompat.exec_graph.stand_ins import StandInIds
from airflow_flinkcompat.savepoint.store import copy_savepoint, read_metadata
from dev.benchmarks.rehearsal import Script

SAVED = Path(__file__).parents[3] / "fixtures" / "migrations" / "a-metric-is-added-to-a-tumbling-window" / "old"
SIDE = Script("INSERT INTO k SELECT x FROM s;", {}, "new.sql")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(restoring, "_REASON_SECONDS", 0.1)


@dataclass
class Place:
    """A target that names jobs itself, and the test that it runs."""

    status_now: JobStatus = field(default_factory=lambda: JobStatus(JobRef("job-7"), "n", "RUNNING", True))
    named: bool = True
    error: BaseException | None = None
    at_restore: bool = False
    written: bool = True
    skipped: frozenset[str] | None = frozenset({"d" * 32, "e" * 32, "f" * 32})
    done: list[Any] = field(default_factory=list)

    def start(self, name: str, savepoint: str, request_id: str, *, ignore_unclaimed: bool) -> Operation:
        self.done.append(("started", name, savepoint, ignore_unclaimed))
        if self.error:
            raise self.error
        return Operation(Verb.START, request_id, JobRef("job-7") if self.named else None)

    def stop(self, job: str, request_id: str, directory: str | None) -> Operation:
        self.done.append(("stopped", job, directory))
        return Operation(Verb.STOP, request_id, JobRef(job))

    def poll(self, operation: Operation) -> Operation:
        if operation.verb is Verb.START:
            return replace(operation, job=JobRef("job-7"))
        assert operation.directory is None, "nobody looks for it among the savepoints of others"
        return replace(operation, snapshot=Snapshot("own") if self.written else None)

    def status(self, _job: str) -> JobStatus:
        return self.status_now

    def failed_at_restore(self, _job: str) -> bool:
        return self.at_restore

    def slots(self) -> Slots:
        return Slots(0, 2)

    def location(self, snapshot: str) -> str:
        return snapshot

    def savepoint_at(self, location: str) -> str:
        return location

    def left_aside(self, _job: str) -> frozenset[str] | None:
        return self.skipped

    def cancel(self, job: str) -> None:
        self.done.append(("cancelled", job))
        self.status_now = replace(self.status_now, state="CANCELED")


class Watched:
    """A watcher without a process."""

    def __init__(self) -> None:
        self.started = Started()

    def announce(self, operation: Operation) -> None:
        self.started.take(operation)

    def announce_folder(self, folder: str) -> None:
        self.started.folders.append(folder)

    def dismiss(self) -> None:
        """Without a process, nothing is to be ended."""

    end, leave, submitting = Watcher.end, dismiss, Watcher.submitting


def restored(place: Place, watcher: Watched, **timeouts: Any) -> Any:
    given = Timeouts(**{"settle": 0.0, "start": 0.3, "savepoint": 0.3, **timeouts})
    runner = RestoreRunner(place, given, Journal(patience=given.here))  # type: ignore[arg-type]
    return runner.restore(watcher, Checked(SIDE, place), "n", Snapshot("saved"), "file:/shared")  # type: ignore[arg-type]


@pytest.mark.parametrize("named", [True, False])
def test_all_of_it_is_announced_before_it_is_asked_for(named: bool) -> None:
    """A start by its request, also where the target names the job later; a stop, and then its savepoint."""
    place, watcher = Place(named=named), Watched()
    found = restored(place, watcher)
    assert (found.job_id, found.savepoint) == ("job-7", "own")
    assert place.done == [("started", "n", "saved", True), ("stopped", "job-7", "file:/shared")]
    start, stop = watcher.started.operations.values()
    assert (start.verb, start.job, stop.verb, stop.job, stop.snapshot) == (Verb.START, None, Verb.STOP, "job-7", "own")
    again = Started.of({"started": watcher.started.messages()})
    assert again == watcher.started


def test_what_an_earlier_release_had_announced_is_taken_over() -> None:
    """It named jobs and savepoints by their ids alone, not what each was to become."""
    stored = [{"job": "a"}, {"savepoint": ["a", "s1"], "path": None}, {"savepoint": ["live", "s2"], "path": "file:/2"}]
    assert list(Started.of({"started": stored}).operations.values()) == [
        Operation(Verb.START, "a", JobRef("a")),
        Operation(Verb.SAVEPOINT, "s1", JobRef("a")),
        Operation(Verb.SAVEPOINT, "s2", JobRef("live"), Snapshot("file:/2")),
    ]


FAILED = JobStatus(JobRef("job-7"), "n", "FAILED", failure="it does not fit")
ENDS = {
    "unanswered": (Place(error=SubmissionUnknown("no answer")), Inconclusive, "no answer"),
    "refused at submit": (Place(error=StateRefused("Cannot map it", StateFault.MISFIT)), RestoreRefused, "Cannot"),
    "its savepoint is gone": (Place(error=StateRefused("no such file", StateFault.GONE)), Inconclusive, "no such"),
    "refused otherwise": (Place(error=TargetError("no such table")), Inconclusive, "no such table"),
    "failed at restore": (Place(FAILED, at_restore=True), RestoreRefused, "it does not fit"),
    "failed before": (
        Place(FAILED),
        Inconclusive,
        ("failed before it ran, but not because of its state: it does not fit"),
    ),
    "cancelled": (Place(replace(FAILED, state="CANCELED")), Inconclusive, "someone else cancelled the job"),
    "never up": (
        Place(JobStatus(JobRef("job-7"), "n", "CREATED")),
        Inconclusive,
        "The job is CREATED, and 0 of 2 slots are free",
    ),
    "never saved": (Place(written=False), TargetError, "the savepoint of job job-7 did not complete within 0 s"),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_each_end_means(name: str) -> None:
    place, kind, words = ENDS[name]
    with pytest.raises(kind, match=words):
        restored(place, Watched())


class _Unresponsive(Place):
    """A target that does not show the job of a start."""

    def poll(self, operation: Operation) -> Operation:
        return operation


@pytest.mark.parametrize(
    ("place", "awaited"),
    [
        (Place(error=SubmissionUnknown("no answer")), True),
        (Place(error=KeyboardInterrupt()), True),
        (_Unresponsive(named=False), True),
        (Place(error=StateRefused("Cannot map it", StateFault.MISFIT)), False),
        (Place(FAILED), False),
    ],
    ids=["unanswered", "interrupted", "without an id", "refused", "failed"],
)
def test_only_a_job_of_an_unanswered_submission_is_awaited(
    place: Place, awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher, seconds = Watched(), list[float]()
    with pytest.raises((DeployError, KeyboardInterrupt)):
        restored(place, watcher)

    def clean(*_: Any, timeout: float, coming: float) -> list[str]:
        seconds.append(coming)
        return []

    monkeypatch.setattr(restoring_place, "clean_up", clean)
    watcher.end(place, timeout=1.0)  # type: ignore[misc, arg-type]
    assert [each > 0 for each in seconds] == [awaited]


def test_a_savepoint_that_takes_long_is_waited_for_elsewhere() -> None:
    with pytest.raises(Waiting) as raised:
        restored(Place(written=False), Watched(), savepoint=600, here=0.0)
    wait = raised.value.wait
    assert (wait.job_id, wait.verb, wait.request_id is not None) == ("job-7", "stop", True)
    with pytest.raises(Waiting) as raised:
        restored(Place(JobStatus(JobRef("job-7"), "n", "CREATED")), Watched(), start=600, here=0.0)
    assert raised.value.wait.request_id is None


def test_a_job_starts_with_the_ids_of_its_stand_ins(tmp_path: Path) -> None:
    """From a copy of the metadata, which is deleted in the end. Its caller knows only the real ids."""
    saved, place, watcher = str(SAVED), Place(), Watched()
    (real, *_) = (each.id for each in read_metadata(saved).operators)
    folder = tmp_path / "saved"
    copy_savepoint(saved, folder)
    checked = Checked(SIDE, place, StandInIds({real: "d" * 32}, frozenset({"f" * 32})))  # type: ignore[arg-type]
    runner = RestoreRunner(place, Timeouts(settle=0.0), Journal())  # type: ignore[arg-type]
    job = runner.restore(watcher, checked, "n", Snapshot(str(folder)), None).job_id  # type: ignore[arg-type]
    (copy,) = watcher.started.folders
    assert place.done[0] == ("started", "n", copy, True)
    assert copy.startswith(f"{folder}-")
    assert {each.id for each in read_metadata(copy).operators} > {"d" * 32}
    assert {each.id for each in read_metadata(str(folder)).operators} > {real}
    assert runner.left_aside(checked, job) == {real, "e" * 32}
    place.skipped = None
    with pytest.raises(Inconclusive, match="does not show which state job job-7 restored"):
        runner.left_aside(checked, job)


def test_a_strict_submission_is_cancelled() -> None:
    place = Place()
    runner = RestoreRunner(place, Timeouts(), Journal())  # type: ignore[arg-type]
    runner.submit_only(Watched(), Checked(SIDE, place), "n", Snapshot("own"))  # type: ignore[arg-type]
    assert place.done == [("started", "n", "own", False), ("cancelled", "job-7")]
