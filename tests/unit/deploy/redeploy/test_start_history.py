"""A start that is taken up long afterwards is judged by its settle time, whatever became of its job since."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_flinkcompat.deploy import DeployError, JobStatus, Ledger, LedgerEntry, RolledBack, StartFailed
from airflow_flinkcompat.deploy.ledger.entries import JobStart, JobStop, StartingEntry, StoppedEntry
from airflow_flinkcompat.deploy.redeploy.verify import number_of, verify_start
from airflow_flinkcompat.deploy.target import JobHistory, SnapshotStats, VertexState
from tests.support.deploy.fake_cluster import FakeCluster
from tests.unit.deploy.redeploy.test_redeploy import STOPPED_AT, V1, V2, Killed, kinds, no_pauses, run

__all__ = ["no_pauses"]  # a fixture
CHECKPOINT = "file:/chk/job-2/chk-130"
OPTIONS = {"settle_seconds": 10, "start_timeout": 300}
# Savepoint 100 of the former job; it fails once, an hour after its start, restored from checkpoint 130.
FAILED_LATER = JobHistory(
    restored=CHECKPOINT, restored_own=True, restored_number=130, restores=2, newest=170, completed=68, triggered=70
)  # fmt: skip


@pytest.fixture(autouse=True)
def pauses_pass_at_once(no_pauses: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A settle time is over after as many pauses as fill it."""
    slept = 0.0

    def sleep(seconds: float) -> None:
        nonlocal slept
        slept += seconds

    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=sleep))
    defaults = verify_start.__kwdefaults__ or {}
    assert "clock" in defaults
    monkeypatch.setitem(defaults, "clock", lambda: time.time() + slept)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path, "orders")


@pytest.fixture
def began() -> float:
    return time.time() - 7200


@pytest.fixture
def target(ledger: Ledger, began: float, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A run died two hours ago, right after its submission; its job failed once since, and recovered."""
    target = FakeCluster()
    run(target, ledger, V1)
    target.states["job-1", "savepoint"] = SnapshotStats(STOPPED_AT, {"v": VertexState("sum", 1, 9)}, 100)

    def die() -> None:
        raise Killed

    target.before["submitted"] = die
    with pytest.raises(Killed):
        run(target, ledger, V2)
    _written_at(monkeypatch, began)
    fails(target, FAILED_LATER, began + 3600)
    target.states["job-2", "completed"] = SnapshotStats("file:/chk/job-2/chk-170", {"v": VertexState("sum", 1, 9)}, 170)
    return target


def _written_at(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(LedgerEntry, "written", property(lambda _entry: datetime.fromtimestamp(seconds, UTC)))


def fails(target: FakeCluster, job_history: JobHistory, *at: float, state: str = "RUNNING") -> None:
    ran = target.jobs["job-2"]
    runs = state == "RUNNING"
    target.jobs["job-2"] = replace(
        ran, state=state, tasks_running=runs, completed_checkpoints=68, failure="a task died"
    )
    target.job_histories["job-2"] = replace(job_history, failures=at)
    target.wrong["job-2"] = str(job_history.restored)


def test_a_job_that_failed_long_after_its_start_was_deployed(target: FakeCluster, ledger: Ledger) -> None:
    entry = run(target, ledger, V2, options=OPTIONS)
    assert (entry.kind, entry.job_id, entry.start.savepoint) == ("deployed", "job-2", STOPPED_AT)
    assert entry.evidence[0] == f"restored from {STOPPED_AT}"
    assert any(
        line.startswith("after its settle time, the job failed 1 time, first at 20")
        and line.endswith(f"and is RUNNING now, restored from its own checkpoint {CHECKPOINT}: a task died")
        for line in entry.evidence
    )
    assert target.now == {"job-1": "FINISHED", "job-2": "RUNNING"}


def test_one_that_restarts_at_this_moment_was_deployed_too(target: FakeCluster, ledger: Ledger, began: float) -> None:
    fails(target, FAILED_LATER, began + 3600, state="RESTARTING")
    assert run(target, ledger, V2, options=OPTIONS).kind == "deployed"


def test_failure_right_after_the_settle_time_is_one_after_it(target: FakeCluster, ledger: Ledger, began: float) -> None:
    """The first checkpoint is still shown."""
    job_history = replace(FAILED_LATER, checkpoint=began + 5)
    fails(target, job_history, began + 15.5)
    assert run(target, ledger, V2, options=OPTIONS).kind == "deployed"


@pytest.mark.parametrize(
    ("first_checkpoint", "failures"), [(5.0, (14.0,)), (5.0, (14.0, 3600.0)), (None, (200.0,)), (7000.0, (200.0,))]
)
def test_failure_in_the_settle_time_is_a_failure(
    first_checkpoint: float | None, failures: tuple[float, ...], target: FakeCluster, ledger: Ledger, began: float
) -> None:
    """Or where nobody can see that it was not: no checkpoint from before it is shown."""
    checkpoint = first_checkpoint and began + first_checkpoint
    job_history = replace(FAILED_LATER, checkpoint=checkpoint, restores=len(failures) + 1)
    fails(target, job_history, *(began + each for each in failures))
    with pytest.raises(RolledBack, match="a task died"):
        run(target, ledger, V2, options=OPTIONS)
    assert target.running("orders") == ("job-3",)


@pytest.mark.parametrize("restored", ["file:/sp/another", None])
def test_another_state_than_its_own_is_none(
    restored: str | None, target: FakeCluster, ledger: Ledger, began: float
) -> None:
    fails(target, replace(FAILED_LATER, restored=restored, restored_own=False), began + 3600)
    with pytest.raises(RolledBack):
        run(target, ledger, V2, options=OPTIONS)


def test_state_that_was_dropped_is_seen_late_as_well(target: FakeCluster, ledger: Ledger) -> None:
    target.states["job-2", "completed"] = SnapshotStats("c", {"w": VertexState("count", 1, 9)})
    with pytest.raises(RolledBack, match="state was dropped"):
        run(target, ledger, V2, options=OPTIONS)


@pytest.mark.parametrize(
    "job_history",
    [
        replace(FAILED_LATER, restored_number=30, newest=70),  # numbered from 1 on
        replace(FAILED_LATER, restores=1),  # restored after the failure alone
        replace(FAILED_LATER, all_failures=False),
    ],
)
def test_what_cannot_be_told_is_neither_deployed_nor_undone(
    job_history: JobHistory, target: FakeCluster, ledger: Ledger, began: float
) -> None:
    """It may have begun without the state it was given."""
    fails(target, job_history, began + 3600)
    with pytest.raises(
        DeployError, match=r"can no longer be determined, because .* ledger adopt --job-id job-2"
    ) as caught:
        run(target, ledger, V2, options=OPTIONS)
    assert not isinstance(caught.value, StartFailed)
    assert kinds(ledger)[-1] == "started"
    assert target.running("orders") == ("job-2",)


def test_a_job_that_was_recovered_with_its_jobmanager(target: FakeCluster, ledger: Ledger, began: float) -> None:
    """Which has forgotten all failures, and counts anew."""
    recovered = replace(FAILED_LATER, restored_at=began + 3600, restores=1, completed=5, triggered=5)
    fails(target, recovered)
    target.jobs["job-2"] = replace(target.jobs["job-2"], failure=None)
    entry = run(target, ledger, V2, options=OPTIONS)
    assert any("the job was recovered at 20" in line for line in entry.evidence)
    assert target.running("orders") == ("job-2",)


def test_a_job_that_is_gone_since_was_deployed_and_is_not_undone(
    target: FakeCluster, ledger: Ledger, began: float
) -> None:
    fails(target, replace(FAILED_LATER, restores=1, restored=STOPPED_AT), began + 3600, state="FAILED")
    with pytest.raises(StartFailed, match=r"job-2 was deployed \(entry 11\), but after .*is FAILED now"):
        run(target, ledger, V2, options=OPTIONS)
    assert kinds(ledger)[-1] == "deployed"
    assert target.running("orders") == ()


def test_a_start_without_state(ledger: Ledger, began: float, monkeypatch: pytest.MonkeyPatch) -> None:
    target = FakeCluster()
    ledger.append(StartingEntry(job=V1, start=JobStart("stateless", job_id="job-2"), owner="me"))
    target.jobs["job-2"] = JobStatus("job-2", "orders", "RUNNING", True, 68, "a task died")
    target.restored["job-2"] = None
    _written_at(monkeypatch, began)
    empty = replace(FAILED_LATER, restored_number=30, newest=70)
    fails(target, replace(empty, restores=2), began + 3600)
    with pytest.raises(DeployError, match="history does not prove that it started from an empty state"):
        run(target, ledger, V1, options=OPTIONS)
    fails(target, replace(empty, restores=1), began + 3600)
    assert run(target, ledger, V1, options=OPTIONS).evidence[0] == "started from an empty state"


def test_numbers_of_states() -> None:
    taken = SnapshotStats("file:///sp/1", number=9)
    stopped = StoppedEntry(job=V1, stop=JobStop("job-1", checkpoint="file:/c/chk-7", savepoint=taken.path, state=taken))
    unmeasured = replace(stopped, stop=replace(stopped.stop, state=None))
    assert number_of(None, ()) == 0
    assert number_of("file:/c/chk-12", ()) == 12
    assert number_of("file:/sp/1", [stopped]) == 9
    assert number_of("file:/sp/1", [unmeasured]) == 7, "at least"
    assert number_of("file:/sp/2", [stopped]) is None
