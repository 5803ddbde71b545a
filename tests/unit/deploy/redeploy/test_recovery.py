"""What a run finds of earlier ones: former jobs that came back, and finished runs of its own name."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import (
    DeployError,
    DeployRefused,
    Ledger,
    RolledBack,
    StartFailed,
    SubmissionUnknown,
)
from airflow_flinkcompat.deploy.ledger.entries import (
    DeployedEntry,
    JobStart,
    JobStop,
    Review,
    RolledBackEntry,
    RollingBackEntry,
    StartingEntry,
    StoppedEntry,
    StoppingEntry,
)
from airflow_flinkcompat.deploy.redeploy.run import Options, Run
from airflow_flinkcompat.model import JobSpec, StartMode
from tests.support.deploy.fake_cluster import FakeCluster
from tests.unit.deploy.redeploy.test_redeploy import STOPPED_AT, V1, V2, Killed, kinds, no_pauses, run

__all__ = ["no_pauses"]  # a fixture
AGAIN = "file:/sp/orders/job-3/job-1"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path, "orders")


@pytest.fixture
def target() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was submitted has arrived."""
    monkeypatch.setattr("airflow_flinkcompat.deploy.redeploy.recovery.age_of", lambda _entry: 301.0)


def die() -> None:
    raise Killed


def killed(target: FakeCluster, ledger: Ledger, before: str) -> None:
    """V1 runs, and the run that was to replace it dies."""
    run(target, ledger, V1)
    target.before[before] = die
    with pytest.raises(Killed):
        run(target, ledger, V2)


# ------------------------------------------------------------------------------------- a former job that came back
@pytest.mark.usefixtures("later")
def test_the_start_is_from_the_last_stop_of_a_job_that_came_back(target: FakeCluster, ledger: Ledger) -> None:
    killed(target, ledger, "submit")
    assert kinds(ledger)[-2:] == ["stopped", "starting"]
    target.end("job-1", "RUNNING")
    entry = run(target, ledger, V2)
    assert (entry.start.savepoint, entry.job_id, target.restored["job-3"]) == (AGAIN, "job-3", AGAIN)
    assert target.now == {"job-1": "FINISHED", "job-3": "RUNNING"}
    assert [each.stop.savepoint for each in ledger.entries() if isinstance(each, StoppedEntry)] == [STOPPED_AT, AGAIN]


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("dies", ["stop", "result"])
def test_a_second_stop_that_is_cut_short_is_not_forgotten_for_the_first(
    dies: str, target: FakeCluster, ledger: Ledger
) -> None:
    killed(target, ledger, "submit")
    target.end("job-1", "RUNNING")
    target.before[dies] = die
    with pytest.raises(Killed):
        run(target, ledger, V2)
    assert kinds(ledger)[-1] == "stopping"
    assert run(target, ledger, V2).start.savepoint == AGAIN
    assert list(target.stops) == ["job-2", "job-3"]


@pytest.mark.usefixtures("later")
def test_the_first_savepoint_is_no_start_once_a_second_stop_failed(target: FakeCluster, ledger: Ledger) -> None:
    """It came back, could not be stopped, and ended: what it did since is in no savepoint."""
    killed(target, ledger, "submit")
    target.end("job-1", "RUNNING")
    target.fail, target.stops["job-3"] = "result", ""
    with pytest.raises(StartFailed, match="could not be stopped with a savepoint and is RUNNING"):
        run(target, ledger, V2)
    target.fail = ""
    target.end("job-1", "CANCELED")
    with pytest.raises(DeployRefused, match="no deployment stopped its last run") as caught:
        run(target, ledger, V2)
    assert STOPPED_AT not in str(caught.value)
    assert target.running("orders") == ()


def test_a_submission_that_may_still_arrive_is_waited_for(target: FakeCluster, ledger: Ledger) -> None:
    killed(target, ledger, "submit")
    target.end("job-1", "RUNNING")
    with pytest.raises(DeployRefused, match=r"runs again after its stop, .* job-2 of entry 8 may still be accepted"):
        run(target, ledger, V2)
    assert target.calls.count("stop") == 1


@pytest.mark.parametrize("stays", ["job-1", "job-2"])
def test_two_jobs_are_for_a_person_to_choose_from(stays: str, target: FakeCluster, ledger: Ledger) -> None:
    killed(target, ledger, "submitted")
    target.end("job-1", "RUNNING")
    with pytest.raises(DeployRefused, match=r"job-2 of entry 8, .* also runs\. .*Cancel one of the jobs") as caught:
        run(target, ledger, V2)
    assert "No job of orders runs now" not in str(caught.value)
    target.end("job-2" if stays == "job-1" else "job-1", "CANCELED")
    entry = run(target, ledger, V2)
    assert (entry.job_id, entry.start.savepoint) == (("job-3", AGAIN) if stays == "job-1" else ("job-2", STOPPED_AT))
    assert target.running("orders") == (entry.job_id,)


def test_a_job_that_comes_back_while_its_successor_is_submitted_is_not_joined(
    target: FakeCluster, ledger: Ledger
) -> None:
    """The submission has no answer, and the JobManager that comes back has recovered the former job."""
    run(target, ledger, V1)
    target.fail, target.error = "submit", SubmissionUnknown

    def back() -> None:
        target.end("job-1", "RUNNING")
        target.fail = ""
        raise SubmissionUnknown("no answer")

    target.before["submit"] = back
    with pytest.raises(
        DeployError, match=r"job-1 of orders .* runs again after its stop, so job job-2 was not submitt"
    ):
        run(target, ledger, V2)
    assert target.running("orders") == ("job-1",)


def test_a_former_job_that_is_back_is_the_way_back(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = "restore"
    target.before["cancel"] = die
    with pytest.raises(Killed):
        run(target, ledger, V2)
    assert kinds(ledger)[-1] == "failed"
    target.end("job-1", "RUNNING")
    with pytest.raises(RolledBack, match=r"job job-1 .* runs again by itself, so nothing was started"):
        run(target, ledger, V2)
    head = ledger.head()
    assert head is not None
    assert (head.kind, head.job_id, head.sha256) == ("rolled-back", "job-1", V1.sha256)
    assert target.now == {"job-1": "RUNNING", "job-2": "CANCELED"}
    assert run(target, ledger, V2, owner="another").start.savepoint == AGAIN


def test_a_failed_job_that_cannot_be_ended_beside_it_is_named(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = "restore"
    target.before["cancel"] = die
    with pytest.raises(Killed):
        run(target, ledger, V2)
    target.end("job-1", "RUNNING")
    target.fail = "cancel"
    with pytest.raises(DeployError, match="runs again by itself, and job job-2 could not be cancelled"):
        run(target, ledger, V2)
    target.fail = ""
    with pytest.raises(RolledBack):
        run(target, ledger, V2)


def test_a_stranger_beside_a_start_that_is_taken_up(target: FakeCluster, ledger: Ledger) -> None:
    """Somebody started the former script by hand, while the run was dead."""
    killed(target, ledger, "submit")
    target.run("by-hand")
    with pytest.raises(
        DeployRefused, match="job by-hand named 'orders' runs on the cluster, but is not the ledger's job"
    ):
        run(target, ledger, V2)
    assert "job-2" not in target.jobs


# ------------------------------------------------------------------------------------------- runs of the same name
def test_a_run_of_the_same_name_and_other_contents_is_another(target: FakeCluster, ledger: Ledger) -> None:
    first = run(target, ledger, V1)
    entry = run(target, ledger, V2, checked_old_sha256=V1.sha256)
    assert run(target, ledger, V2, checked_old_sha256=V1.sha256) == entry, "the same run, once more"
    for other in ({"start_mode": "stateless"}, {"checked_old_sha256": None}):
        with pytest.raises(DeployRefused, match="Check the change again, against the deployed version"):
            run(target, ledger, V2, **{"checked_old_sha256": V1.sha256, **other})
    again = run(target, ledger, V2, checked_old_sha256=V2.sha256, start_mode="stateless")
    assert again.job_id not in (first.job_id, entry.job_id), "checked against what it deployed itself: a redeploy"


def rolled_back(target: FakeCluster, ledger: Ledger) -> RolledBackEntry:
    run(target, ledger, V1)
    target.fail = "restore"
    with pytest.raises(RolledBack):
        run(target, ledger, V2)
    head = ledger.head()
    assert isinstance(head, RolledBackEntry)
    return head


def test_a_cleared_run_with_another_script_is_not_told_of_the_former_one(target: FakeCluster, ledger: Ledger) -> None:
    rolled_back(target, ledger)
    with pytest.raises(RolledBack, match="Rolled back"):
        run(target, ledger, V2)
    assert run(target, ledger, dataclasses.replace(V2, settings={"a": "b"})).kind == "deployed"


def test_a_cleared_run_tries_again_what_was_rolled_back(target: FakeCluster, ledger: Ledger) -> None:
    rolled_back(target, ledger)
    now = datetime.now(UTC)
    with pytest.raises(RolledBack, match="Rolled back"):
        run(target, ledger, V2, asked_at=now - timedelta(hours=1))
    assert run(target, ledger, V2, asked_at=now + timedelta(seconds=1)).kind == "deployed"


def requests(ledger: Ledger) -> list[tuple[str, str | None]]:
    """What the stops and starts of a ledger were asked for under, in order."""
    return [
        (entry.kind, entry.stop.request_id if isinstance(entry, StoppingEntry) else entry.request_id)
        for entry in ledger.entries()
        if isinstance(entry, StoppingEntry | StartingEntry | RollingBackEntry)
    ]


def test_a_redeploy_asks_for_its_stop_and_its_start_under_one_id(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    run(target, ledger, V2)
    assert requests(ledger)[1:] == [("stopping", "job-2"), ("starting", "job-2")]
    # Cut off between the two, it is the same request for whoever takes it up.
    target.before["submit"] = die
    with pytest.raises(Killed):
        run(target, ledger, V1)
    run(target, ledger, V1)
    assert requests(ledger)[3:] == [("stopping", "job-3"), ("starting", "job-3")]


@pytest.mark.parametrize("roll_back", [True, False])
def test_what_follows_a_start_that_failed_is_another_request(
    roll_back: bool, target: FakeCluster, ledger: Ledger
) -> None:
    run(target, ledger, V1)
    target.fail = "restore"
    with pytest.raises(StartFailed):
        run(target, ledger, V2, options={"roll_back": roll_back})
    if not roll_back:
        run(target, ledger, V2)
    assert requests(ledger)[1:] == [
        ("stopping", "job-2"), ("starting", "job-2"), ("rolling-back" if roll_back else "starting", "job-3"),
    ]  # fmt: skip


def test_a_redeploy_of_an_earlier_release_goes_on_under_its_two_ids(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    stopped = JobStop("job-1", "stop-1", savepoint=STOPPED_AT)
    target.end("job-1", "FINISHED")
    ledger.append(StoppedEntry(job=V2, stop=stopped, start_mode="savepoint", owner="me"))
    begun = JobStart("savepoint", STOPPED_AT, request_id="start-1", job_id="start-1")
    ledger.append(StartingEntry(job=V2, start=begun, owner="me"))
    assert run(target, ledger, V2).job_id == "start-1"
    assert target.restored["start-1"] == STOPPED_AT
    assert target.calls.count("stop") == 0


def test_entries_hold_the_whole_job(target: FakeCluster, ledger: Ledger) -> None:
    program = JobSpec(
        "pass\n", engine="flink", engine_version="2.3.0", source="", language="python", variables={"region": "eu"},
        files={"names.py": "SINK = 'k'\n"},
    )  # fmt: skip
    one = Run(target, ledger, program, StartMode.STATELESS, Review(), None, "me", Options(), print)
    head = ledger.append(DeployedEntry(**one.attempt, start=JobStart()))
    ledger.append(RollingBackEntry(**one.way_back(head), start=JobStart()))
    entries = ledger.entries()
    assert [dataclasses.replace(entry.job, source="") for entry in entries] == [program, program]
    assert [(entry.sha256, entry.job.source) for entry in entries] == [
        (program.digest(), "deployed #1"), (program.digest(), "deployed #2"),
    ]  # fmt: skip
