"""The order of a redeploy's steps and what each failure leaves behind, on a target that only pretends."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_flinkcompat import compat
from airflow_flinkcompat.deploy import (
    ApiError,
    DeployError,
    DeployRefused,
    JobStatus,
    Ledger,
    LedgerConflict,
    Options,
    RolledBack,
    StartFailed,
    SubmissionUnknown,
    TargetError,
    deploy,
)
from airflow_flinkcompat.deploy.errors import SnapshotGone, StateFault, StateRefused
from airflow_flinkcompat.deploy.flink.jobmanager import JobManagerError
from airflow_flinkcompat.deploy.ledger.entries import (
    ApprovedEntry,
    DeployedEntry,
    DeployingEntry,
    FailedEntry,
    FailedVersionEntry,
    JobStart,
    JobStop,
    JobVersion,
    RejectedEntry,
    Review,
    RollingBackEntry,
    StartedEntry,
    StartingEntry,
    StoppedEntry,
    VersionEntry,
)
from airflow_flinkcompat.deploy.ledger.status import last_savepoint
from airflow_flinkcompat.deploy.redeploy.sequence import surplus
from airflow_flinkcompat.deploy.target import SnapshotStats, VertexState
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import find_savepoint
from airflow_flinkcompat.model import JobSpec, Span
from airflow_flinkcompat.plan import FunctionDeclaration
from dev.services.csv_job import Side
from tests.support.deploy.fake_cluster import FakeCluster, number_ids
from tests.support.nightly import mostly_slow

SCRIPT = "CREATE TABLE s (a INT) WITH ('connector'='datagen'); CREATE TABLE k LIKE s; INSERT INTO k SELECT a FROM s;"
V1, V2 = Side(SCRIPT), Side(SCRIPT, settings={"parallelism.default": "2"})


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda _: None))
    number_ids(monkeypatch)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path, "orders")


@pytest.fixture
def target() -> FakeCluster:
    return FakeCluster()


def run(target: FakeCluster, ledger: Ledger, side: JobSpec, **more: Any) -> DeployedEntry:
    head = ledger.head()
    options = Options(**{"settle_seconds": 0, "start_timeout": 0.02, "submit_timeout": 0.02, **more.pop("options", {})})
    given = {"checked_old_sha256": head.sha256 if head else None, "options": options, "owner": "me", **more}
    return deploy(target, ledger, side, **given)


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


def test_entry_holds_the_whole_side(target: FakeCluster, ledger: Ledger) -> None:
    side = dataclasses.replace(
        V1, functions=(FunctionDeclaration("f", "scalar", span=Span("x", 1, 1, 1, 1)),), catalog="CREATE TABLE …"
    )
    entry = run(target, ledger, side, review=Review("unknown", "r.json", "ann"))
    assert entry == ledger.head()
    assert dataclasses.replace(entry.job, source=side.source) == JobSpec.from_dict(side.to_dict())
    assert (entry.job.engine, entry.job.engine_version, entry.sha256) == ("flink", "2.3.0", side.sha256)
    assert (entry.review, entry.owner) == (Review("unknown", "r.json", "ann"), "me")


def test_side_comes_back_from_the_ledger(target: FakeCluster, ledger: Ledger) -> None:
    functions = (FunctionDeclaration("f", "aggregate", "python"),)
    side = compat.Side(SCRIPT, {"a": "b"}, functions, engine="flink", engine_version="2.3.0")
    run(target, ledger, side)
    (head,) = (entry for entry in ledger.entries() if isinstance(entry, DeployedEntry))
    assert compat.Side.of(head.job).sha256 == side.sha256 == head.sha256


def test_job_is_named_after_the_deployment_unless_the_settings_say_otherwise(
    target: FakeCluster, ledger: Ledger
) -> None:
    run(target, ledger, V1)
    assert target.submitted[0]["pipeline.name"] == "orders"
    run(target, ledger, dataclasses.replace(V2, settings={"pipeline.name": "mine"}))
    assert target.submitted[1]["pipeline.name"] == "mine"


def test_savepoints_lie_where_they_are_wanted_a_folder_for_each_stop(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    entry = run(target, ledger, V2, options={"savepoint_directory": "s3://b/"})
    assert entry.start.savepoint == "s3://b/orders/job-2/job-1"
    assert run(target, ledger, V1).start.savepoint == "file:/sp/orders/job-3/job-2"


def test_first_deployment_has_no_savepoint_to_start_from(target: FakeCluster, ledger: Ledger) -> None:
    with pytest.raises(DeployRefused, match="was never deployed"):
        run(target, ledger, V1, start_mode="savepoint")
    with pytest.raises(DeployRefused, match=r"contains no deployment\. Make sure that this is the right ledger"):
        run(target, ledger, V1, checked_old_sha256="ab" * 32)
    assert target.calls == []


def test_check_was_for_another_version(target: FakeCluster, ledger: Ledger) -> None:
    target.version = "2.2.1"
    with pytest.raises(DeployRefused, match=r"checked for flink 2\.3\.0, but the target is flink 2\.2\.1"):
        run(target, ledger, V1)
    for version in ("2.3.7", "2.3"):
        target.version = version
        run(target, Ledger(ledger.directory.parent, f"v{version}"), V1)


def test_validation_comes_before_everything(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail, target.calls = "validate", []
    with pytest.raises(DeployError, match="validate does not work"):
        run(target, ledger, V2)
    assert target.calls == ["validate"]
    assert kinds(ledger) == ["deploying", "starting", "started", "deployed"]


STOPPED_AT = "file:/sp/orders/job-2/job-1"


def test_every_step_is_an_entry(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    assert kinds(ledger) == ["deploying", "starting", "started", "deployed"]
    last = run(target, ledger, V2)
    assert kinds(ledger)[4:] == ["deploying", "stopping", "stopped", "starting", "started", "deployed"]
    stopping, stopped = ledger.entries()[5:7]
    assert stopping.stop == JobStop("job-1", "job-2", directory="file:/sp/orders/job-2")
    assert replace(stopped.stop, savepoint_at=None) == JobStop("job-1", "job-2", savepoint=STOPPED_AT)
    seen = datetime.fromisoformat(stopped.stop.savepoint_at)
    assert timedelta(0) <= stopped.written - seen < timedelta(minutes=1), "no statistics: when the end was seen"
    assert last.evidence[0] == f"restored from {STOPPED_AT}"
    assert last.effective_settings == {
        "cluster": {"execution.checkpointing.savepoint-dir": "file:/sp"},
        "session": {"pipeline.name": "orders", "parallelism.default": "2"},
        "script": {},
    }


@pytest.mark.parametrize(
    ("state", "retained", "checkpoint", "said"),
    [
        (
            "CANCELED",
            True,
            "file:/chk-8",
            r"the job's latest checkpoint is file:/chk-8\. .*recovery\.path' = 'file:/chk-8'",
        ),
        (
            "CANCELED",
            False,
            "file:/chk-8",
            "deleted at its end, because 'execution.*does not retain them.* is a stateless start",
        ),
        ("FAILED", True, None, "the job had no checkpoint.* is a stateless start, with ended jobs allowed"),
        (
            None,
            True,
            None,
            r"the job's latest known checkpoint is file:/chk-7 \(look for a later checkpoint in the same folder\)",
        ),
    ],
)
def test_job_that_ends_while_it_is_stopped(
    state: str | None, retained: bool, checkpoint: str | None, said: str, target: FakeCluster, ledger: Ledger
) -> None:
    run(target, ledger, V1)
    target.states["job-1", "completed"] = SnapshotStats("file:/chk-7")
    target.fail, target.retained = "result", retained

    def end() -> None:
        target.stops["job-2"] = ""
        if state is None:
            del target.jobs["job-1"]
        else:
            target.end("job-1", state)
        target.states.pop(("job-1", "completed"))
        if checkpoint:
            target.states["job-1", "completed"] = SnapshotStats(checkpoint)

    target.before["stop"] = end
    with pytest.raises(StartFailed, match=f"(?s)No job of orders runs now.*{said}") as caught:
        run(target, ledger, V2)
    assert not isinstance(caught.value, RolledBack)
    assert target.running("orders") == ()


def fails_over_the_stop(target: FakeCluster) -> None:
    """The job fails when it is stopped, and keeps its checkpoint."""
    (former,) = target.running("orders")
    target.states[former, "completed"], target.retained = SnapshotStats("file:/chk-8"), True
    ask, result = target.stop, target.stop_result

    def failed(job_id: str, trigger_id: str) -> str | None:
        if target.now[job_id] == "FAILED":
            raise DeployError("no space left")
        return result(job_id, trigger_id)

    def fail(job_id: str, trigger_id: str, directory: str | None) -> Any:
        if job_id != former:
            return ask(job_id, trigger_id, directory)
        target.stops[trigger_id] = "nowhere"
        target.end(job_id, "FAILED")

    target.stop, target.stop_result = fail, failed  # type: ignore[method-assign]


def test_job_that_fails_over_its_stop_is_started_again(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    fails_over_the_stop(target)
    with pytest.raises(RolledBack, match="job job-1 could not be stopped with a savepoint and is FAILED") as caught:
        run(target, ledger, V2)
    message = str(caught.value)
    assert "the script of entry 4 runs again as job job-3, restored from file:/chk-8 and verified" in message
    assert "after that checkpoint may be written again" in message
    assert kinds(ledger)[4:] == ["deploying", "stopping", "failed", "rolling-back", "rolled-back"]
    head = ledger.head()
    assert head is not None
    assert (head.sha256, head.job_id, head.start.savepoint, head.start.start_mode) == (
        V1.sha256, "job-3", "file:/chk-8", "checkpoint",
    )  # fmt: skip
    assert target.now == {"job-1": "FAILED", "job-3": "RUNNING"}
    assert run(target, ledger, V2, owner="another").start.savepoint == "file:/sp/orders/job-4/job-3"


def test_job_that_fails_over_its_stop_is_left_where_nothing_is_to_be_rolled_back(
    target: FakeCluster, ledger: Ledger
) -> None:
    run(target, ledger, V1)
    fails_over_the_stop(target)
    with pytest.raises(
        StartFailed, match=r"is file:/chk-8\. To resume from this checkpoint manually[^$]*path' = 'file:/chk-8'"
    ):
        run(target, ledger, V2, options={"roll_back": False})
    assert target.running("orders") == ()


def test_checkpoint_of_a_job_that_failed_over_its_stop_may_be_no_start_either(
    target: FakeCluster, ledger: Ledger
) -> None:
    run(target, ledger, V1)
    fails_over_the_stop(target)
    target.start = lambda *_, **__: (_ for _ in ()).throw(DeployError("no such file"))  # type: ignore[method-assign]
    with pytest.raises(StartFailed, match="The rollback also failed: the job was refused: no such file") as caught:
        run(target, ledger, V2)
    assert "deploy the script of ledger entry 4 again with start mode 'checkpoint'" in str(caught.value)
    del target.start  # type: ignore[method-assign]
    entry = run(target, ledger, V1, start_mode="checkpoint", review=Review("compatible"))
    assert entry.start.savepoint == "file:/chk-8", "which does go through"


@pytest.mark.parametrize("at", ["stopped", "started"])
def test_run_that_is_overtaken_says_so(at: str, target: FakeCluster, ledger: Ledger) -> None:
    """It read the ledger before the other one's claim, and looks at the cluster after its stop, or its start."""
    run(target, ledger, V1)

    def overtake() -> None:
        run(target, ledger, V2, owner="another")
        if at == "started":  # its claim on the old job's id comes first
            target.jobs["job-1"] = dataclasses.replace(target.jobs["job-1"], state="RUNNING")

    target.before["validate"] = overtake
    with pytest.raises(
        DeployRefused,
        match=r"another deploys orders at the same time \(entry 10, deployed\)\. Wait until that run has ended",
    ):
        run(target, ledger, V2, owner="me")
    assert target.now["job-2"] == "RUNNING"


def test_savepoint_of_whoever_stopped_the_job_is_named(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.end("job-1", "FINISHED")
    target.final_savepoint = lambda _: "file:/by-hand"  # type: ignore[method-assign]
    with pytest.raises(DeployRefused, match=r"except file:/by-hand from a stop outside this deployment.* ledger adopt"):
        run(target, ledger, V2)


def test_job_that_was_just_recovered_is_stopped_when_its_tasks_run(target: FakeCluster, ledger: Ledger) -> None:
    """Flink refuses the stop before."""
    job_id = str(run(target, ledger, V1).job_id)
    whole = target.jobs[job_id]
    begins = dataclasses.replace(whole, state="INITIALIZING", tasks_running=False)
    seen = [whole, begins, dataclasses.replace(begins, state="CREATED"), dataclasses.replace(begins, state="RUNNING")]
    ask, at = target.status, []

    def status(asked: str) -> JobStatus | None:
        if asked != job_id or "stop" in target.calls:
            return ask(asked)
        at.append(seen.pop(0) if seen else whole)
        return at[-1]

    target.status = status  # type: ignore[method-assign]
    assert run(target, ledger, V2).kind == "deployed"
    assert at[-1] == whole
    assert len(at) > 4


def test_savepoint_of_a_stop_that_was_done_twice_is_the_later_one(tmp_path: Path) -> None:
    """A job that was recovered after its savepoint, and stopped again."""
    for age, name in ((1, "savepoint-a"), (0, "savepoint-b"), (2, "savepoint-c")):
        place = tmp_path / name / "_metadata"
        place.parent.mkdir()
        place.touch()
        os.utime(place, (1e9 - age, 1e9 - age))
    found, _ = find_savepoint(tmp_path.as_uri())
    assert found is not None
    assert found.endswith("savepoint-b")
    os.utime(tmp_path / "savepoint-c" / "_metadata", (1e9, 1e9))
    found, words = find_savepoint(tmp_path.as_uri())
    assert found is None
    assert re.search("which of these savepoints is the latest: .*savepoint-b, .*savepoint-c", words)


def test_stop_that_fails_leaves_the_old_job(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail, target.stops["job-2"] = "result", ""  # the cluster knows the stop and does not do it
    with pytest.raises(
        StartFailed,
        match=r"job job-1 could not be stopped with a savepoint and is RUNNING: .*\nThe job keeps running",
    ):
        run(target, ledger, V2)
    assert kinds(ledger)[4:] == ["deploying", "stopping", "failed"]
    target.fail = ""
    assert run(target, ledger, V2).start.savepoint == "file:/sp/orders/job-3/job-1"


def test_stop_of_which_the_cluster_says_nothing_has_not_failed(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.stops["job-2"] = STOPPED_AT  # at work, and the job still runs
    target.fail, target.error = "result", lambda said: JobManagerError(said, 503)
    with pytest.raises(JobManagerError, match="result does not work"):
        run(target, ledger, V2)
    assert kinds(ledger)[-1] == "stopping"
    target.fail = ""
    target.end("job-1", "FINISHED")
    assert run(target, ledger, V2).start.savepoint == STOPPED_AT
    assert list(target.stops) == ["job-2"], "one stop"


@pytest.mark.parametrize("where", ["submit", "restore"])
def test_start_that_fails_is_rolled_back(where: str, target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = where
    if where == "submit":  # the way back is not refused
        target.before["cancel"] = target.before["submitted"] = lambda: None
        submit = target.start

        def once(*arguments: Any, **more: Any) -> Any:
            try:
                return submit(*arguments, **more)
            finally:
                target.fail = ""

        target.start = once  # type: ignore[method-assign]
    with pytest.raises(RolledBack) as caught:
        run(target, ledger, V2)
    message = str(caught.value)
    assert "Rolled back: the script of entry 4 runs again as job job-3" in message
    assert f"restored from {STOPPED_AT} and verified" in message
    assert ("No task of the new job ever ran" in message) == (where == "submit")
    assert ("may again write the rows" in message) == (where == "restore")
    steps = ["deploying", "stopping", "stopped", "starting", "started", "failed", "rolling-back", "rolled-back"]
    assert kinds(ledger)[4:] == [kind for kind in steps if where == "restore" or kind != "started"]
    failed = next(entry for entry in ledger.entries() if entry.kind == "failed")
    assert (failed.start.savepoint, failed.sha256, failed.rolls_back_to) == (STOPPED_AT, V2.sha256, 4)
    head = ledger.head()
    assert head is not None
    assert (head.kind, head.sha256) == ("rolled-back", V1.sha256)
    assert (head.job_id, head.start.savepoint) == ("job-3", STOPPED_AT)
    assert target.running("orders") == ("job-3",)
    assert target.calls.count("stop") == 1

    # This very run is told the same again; another one may try.
    with pytest.raises(RolledBack, match="Rolled back"):
        run(target, ledger, V2)
    assert run(target, ledger, V2, owner="another").start.savepoint == "file:/sp/orders/job-4/job-3"


def test_start_and_way_back_that_fail_tell_what_to_do(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = "submit"
    with pytest.raises(StartFailed) as caught:
        run(target, ledger, V2)
    message = str(caught.value)
    assert not isinstance(caught.value, RolledBack)
    assert message.count("submit does not work") == 2
    assert "No job of orders runs now" in message
    assert "deploy the script of ledger entry 4 again with start mode 'savepoint'" in message
    assert f"SET 'execution.state-recovery.path' = '{STOPPED_AT}'" in message
    assert "000004.json" in message
    assert target.running("orders") == ()

    target.fail = ""
    back = run(target, ledger, V1, start_mode="savepoint")
    assert (back.start.savepoint, back.sha256, target.calls.count("stop")) == (STOPPED_AT, V1.sha256, 1)


def test_without_roll_back_the_way_back_is_told(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = "submit"
    with pytest.raises(StartFailed, match=r"Its state is safe in\n  file:/sp/orders/job-2/job-1"):
        run(target, ledger, V2, options={"roll_back": False})
    assert kinds(ledger)[-2:] == ["starting", "failed"]
    target.fail = ""
    entry = run(target, ledger, V2, start_mode="stateless")
    assert target.restored[str(entry.job_id)] is None
    assert (entry.start.start_mode, entry.start.savepoint) == ("stateless", STOPPED_AT)


def test_first_start_that_fails(target: FakeCluster, ledger: Ledger) -> None:
    target.fail = "submit"
    with pytest.raises(StartFailed, match="No job of orders runs, as before"):
        run(target, ledger, V1)
    assert kinds(ledger) == ["deploying", "starting", "failed"]
    assert ledger.head() is None


def test_new_job_that_cannot_be_ended_is_not_rolled_back(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = "restore"
    original = target.cancel

    def cancel(job_id: str) -> None:
        raise DeployError("no answer")

    target.cancel = cancel  # type: ignore[method-assign]
    with pytest.raises(StartFailed, match=r"not rolled back, because job job-2 could not be cancelled \(no answer\)"):
        run(target, ledger, V2)
    target.cancel = original  # type: ignore[method-assign]
    with pytest.raises(DeployRefused, match="job job-2 named 'orders' runs on the cluster"):
        run(target, ledger, V2)


def test_way_back_waits_for_a_cluster_that_does_not_answer(target: FakeCluster, ledger: Ledger) -> None:
    """The job that failed may come back with its JobManager: only when it is gone the former one is started."""
    run(target, ledger, V1)
    target.fail, original = "restore", target.cancel

    def cancel(job_id: str) -> None:
        raise ApiError("the JobManager does not answer")

    target.cancel = cancel  # type: ignore[method-assign]
    with pytest.raises(
        DeployError, match=r"instead of .*\nThe rollback to entry \d must wait: the JobManager"
    ) as caught:
        run(target, ledger, V2)
    assert not isinstance(caught.value, StartFailed)
    assert target.now["job-2"] == "RUNNING"
    target.cancel = original  # type: ignore[method-assign]
    with pytest.raises(RolledBack):
        run(target, ledger, V2)
    assert target.now == {"job-1": "FINISHED", "job-2": "CANCELED", "job-3": "RUNNING"}


def unknown(message: str) -> DeployError:
    return SubmissionUnknown(message)


def test_submission_without_an_answer_is_neither_failed_nor_doubled(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail, target.error = "submitted", unknown  # accepted, and nobody heard of it
    assert run(target, ledger, V2).job_id == "job-2"
    assert target.running("orders") == ("job-2",)

    target.fail = "submit"
    with pytest.raises(DeployError, match=r"It is unknown if job job-3 was accepted") as caught:
        run(target, ledger, V1, owner="later")
    assert not isinstance(caught.value, StartFailed)
    assert kinds(ledger)[-1] == "starting"
    target.fail = ""
    assert run(target, ledger, V1, owner="later").job_id == "job-3"
    assert target.running("orders") == ("job-3",)


def test_refusal_after_a_submission_without_an_answer_is_none_while_that_may_be_at_work(
    target: FakeCluster, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the former job would be started, and the one that nobody heard of would come beside it."""
    run(target, ledger, V1)
    target.fail, target.error = "submit", unknown
    with pytest.raises(DeployError, match=r"It is unknown if job job-2 was accepted"):
        run(target, ledger, V2)
    target.error = DeployError  # the Gateway has no room for another session, a catalog is away
    with pytest.raises(DeployError, match=r"It is unknown if job job-2 was accepted") as caught:
        run(target, ledger, V2)
    assert not isinstance(caught.value, StartFailed)
    target.run("job-2", savepoint=target.stops["job-2"])  # it was at work all the time
    assert run(target, ledger, V2).job_id == "job-2"
    assert target.running("orders") == ("job-2",)

    target.error = unknown
    with pytest.raises(DeployError, match=r"It is unknown if job job-3 was accepted"):
        run(target, ledger, V1, owner="later")
    target.error = DeployError
    monkeypatch.setattr("airflow_flinkcompat.deploy.redeploy.submitting.age_of", lambda _entry: 301.0)
    with pytest.raises(StartFailed, match=r"the job was refused: submit does not work"):
        run(target, ledger, V1, owner="later")


def test_state_that_does_not_fit_is_refused_at_once_whatever_was_heard_before(
    target: FakeCluster, ledger: Ledger
) -> None:
    run(target, ledger, V1)
    target.fail, target.error = "submit", unknown
    with pytest.raises(DeployError, match=r"It is unknown if"):
        run(target, ledger, V2)

    def refused(_message: str) -> DeployError:
        target.fail = ""
        return StateRefused(
            "Cannot map checkpoint/savepoint state for operator a to the new program", StateFault.MISFIT
        )

    target.error = refused
    with pytest.raises(RolledBack, match="Cannot map"):
        run(target, ledger, V2)
    assert target.running("orders") == ("job-3",)


def test_refusal_while_nobody_can_ask_the_cluster_is_no_refusal(target: FakeCluster, ledger: Ledger) -> None:
    """The SQL Gateway answers, and could not reach the JobManager: the new job has done nothing wrong."""
    run(target, ledger, V1)
    asked = target.running

    def down(name: str) -> tuple[str, ...]:
        raise DeployError("no answer")

    def goes_down() -> None:
        target.running = down  # type: ignore[method-assign]

    target.fail, target.before["submit"] = "submit", goes_down
    with pytest.raises(DeployError, match=r"It is unknown if job job-2 was accepted"):
        run(target, ledger, V2)
    assert kinds(ledger)[-1] == "starting"
    target.fail, target.running = "", asked  # type: ignore[method-assign]
    assert run(target, ledger, V2).job_id == "job-2"


def test_checkpoint_is_for_compatible_changes_of_jobs_that_keep_theirs(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    with pytest.raises(DeployRefused, match="only for compatible changes"):
        run(target, ledger, V2, start_mode="checkpoint", review=Review("partial"))
    target.states["job-1", "completed"] = SnapshotStats("file:/chk-7", {"v": VertexState("a", 1, 100)})
    with pytest.raises(DeployRefused, match="does not retain checkpoints when cancelled"):
        run(target, ledger, V2, start_mode="checkpoint", review=Review("compatible"))
    target.retained = True
    entry = run(target, ledger, V2, start_mode="checkpoint", review=Review("compatible"))
    assert (entry.start.start_mode, entry.start.savepoint) == ("checkpoint", "file:/chk-7")
    assert target.calls.count("stop") == 0
    assert target.now == {"job-1": "CANCELED", "job-2": "RUNNING"}


def test_job_that_failed_goes_on_from_its_last_checkpoint(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.end("job-1", "FAILED")
    target.states["job-1", "completed"], target.retained = SnapshotStats("file:/chk-7"), True
    with pytest.raises(DeployRefused, match="start mode checkpoint"):
        run(target, ledger, V2, start_mode="savepoint")
    assert (
        run(target, ledger, V2, start_mode="checkpoint", review=Review("compatible")).start.savepoint == "file:/chk-7"
    )


def test_job_that_dropped_state_has_not_started(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.states["job-2", "completed"] = SnapshotStats("c", {"w": VertexState("sum", 1, 0)})
    # Right after the stop the cluster still shows an older savepoint.
    target.states["job-1", "savepoint"] = SnapshotStats("file:/sp/older", {"v": VertexState("sum", 1, 1)})
    taken = SnapshotStats("file:/sp/orders/job-2/job-1", {"v": VertexState("sum", 1, 100)})
    target.before["submit"] = lambda: target.states.update({("job-1", "savepoint"): taken})
    with pytest.raises(
        RolledBack, match=r"state was dropped: no operator of the new job restored the state of sum \(100 bytes"
    ):
        run(target, ledger, V2)
    assert target.running("orders") == ("job-3",)


def test_size_and_moment_of_the_savepoint_are_those_of_the_statistics(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    taken = SnapshotStats(STOPPED_AT, {"v": VertexState("sum", 1, 100)}, 7, 1795716000.25)
    target.states["job-1", "savepoint"] = taken
    target.states["job-2", "completed"] = SnapshotStats("c", {"v": VertexState("sum", 1, 90)})
    run(target, ledger, V2)
    stopped = next(entry for entry in ledger.entries() if isinstance(entry, StoppedEntry))
    assert (stopped.stop.savepoint_bytes, stopped.stop.savepoint_at) == (100, "2026-11-26T18:00:00.250+00:00")
    found = last_savepoint(ledger.entries())
    assert found is not None
    assert (found.path, found.bytes, found.number) == (STOPPED_AT, 100, stopped.number)


def test_a_size_that_the_target_shows_only_later_is_known_by_the_start(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.states["job-1", "savepoint"] = SnapshotStats("file:/sp/older", {"v": VertexState("sum", 1, 1)})
    target.states["job-2", "completed"] = SnapshotStats("c", {"v": VertexState("sum", 1, 90)})
    later = SnapshotStats(STOPPED_AT, {"v": VertexState("sum", 1, 100)})
    target.before["submit"] = lambda: target.states.update({("job-1", "savepoint"): later})
    entry = run(target, ledger, V2)
    stopped = next(entry for entry in ledger.entries() if isinstance(entry, StoppedEntry))
    assert (stopped.stop.savepoint_bytes, entry.start.savepoint_bytes) == (None, 100)
    found = last_savepoint(ledger.entries())
    assert found is not None
    assert (found.bytes, ledger.row().savepoint) == (100, found)


def test_statistics_of_another_savepoint_are_not_compared(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.states["job-1", "savepoint"] = SnapshotStats("file:/sp/older", {"v": VertexState("sum", 1, 1)})
    target.states["job-2", "completed"] = SnapshotStats("c", {"w": VertexState("sum", 1, 0)})
    assert "state sizes: not compared, because the target does not show them" in run(target, ledger, V2).evidence


def test_checkpoint_that_came_while_the_job_was_cancelled_is_the_one(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.retained = True
    target.states["job-1", "completed"] = SnapshotStats("file:/chk-7")

    def renewed() -> float:  # statistics may be seconds old, and checkpoint 7 is gone when 8 has completed
        assert target.now["job-1"] == "CANCELED"
        target.states["job-1", "completed"] = SnapshotStats("file:/chk-8")
        return 0.0

    target.statistics_age = renewed  # type: ignore[method-assign]
    assert (
        run(target, ledger, V2, start_mode="checkpoint", review=Review("compatible")).start.savepoint == "file:/chk-8"
    )


def test_every_step_has_its_own_time(target: FakeCluster, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = itertools.count()
    now = lambda _zone: datetime(2026, 1, 1, next(hours), tzinfo=UTC)  # noqa: E731
    monkeypatch.setattr("airflow_flinkcompat.deploy.ledger.ledger.datetime", SimpleNamespace(now=now))
    run(target, ledger, V1)
    run(target, ledger, V2)
    times = [entry.at for entry in ledger.entries()]
    assert len(set(times)) == len(times) == 10


def test_old_savepoints_go_by_the_rule_and_the_way_back_stays(target: FakeCluster, ledger: Ledger) -> None:
    disposed: list[str] = []
    target.dispose = disposed.append  # type: ignore[method-assign]
    for number in range(5):
        run(target, ledger, (V1, V2)[number % 2], options={"keep_savepoints": 2})
    assert disposed == ["file:/sp/orders/job-2/job-1", "file:/sp/orders/job-3/job-2"]
    head = ledger.head()
    assert head is not None
    assert head.start.savepoint == "file:/sp/orders/job-5/job-4"
    assert surplus(ledger.entries(), 1) == ("file:/sp/orders/job-4/job-3",)
    assert surplus(ledger.entries(), 0) == ("file:/sp/orders/job-4/job-3",)


@pytest.mark.parametrize(("error", "noted"), [(SnapshotGone("gone"), 1), (JobManagerError("full"), 0)])
def test_a_savepoint_that_is_gone_already_is_not_asked_for_again(
    target: FakeCluster, ledger: Ledger, error: Exception, noted: int
) -> None:
    def dispose(_savepoint: str) -> None:
        raise error

    target.dispose = dispose  # type: ignore[method-assign]
    for number in range(3):
        run(target, ledger, (V1, V2)[number % 2], options={"keep_savepoints": 1})
    assert [entry.kind for entry in ledger.entries()].count("disposed") == noted


def test_another_run_in_between_stops_this_one_before_it_starts(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.before["stop"] = lambda: ledger.append(DeployingEntry(job=V2, owner="other"))
    target.calls.clear()
    with pytest.raises(LedgerConflict):
        run(target, ledger, V2)
    assert [call for call in target.calls if call != "result"] == ["validate", "stop"]
    stopped = ledger.entries()[-1]
    assert (stopped.kind, stopped.stop.savepoint) == ("stopped", STOPPED_AT), "the savepoint is recorded in any case"


def test_rejection_in_between_takes_no_part(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.before["submit"] = lambda: ledger.append(RejectedEntry(version=JobVersion(sha256="cd")))
    run(target, ledger, V2)
    assert kinds(ledger)[4:] == ["deploying", "stopping", "stopped", "starting", "rejected", "started", "deployed"]


def test_unfinished_run_keeps_others_out_for_a_while(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    ledger.append(DeployingEntry(job=V2, owner="other"))
    with pytest.raises(
        DeployRefused,
        match=r"other is deploying orders \(entry 5, deploying, \d+ s ago\)\. Wait until the run of other has ended",
    ):
        run(target, ledger, V2)
    log: list[str] = []
    run(target, ledger, V2, options={"claim_seconds": 0}, log=log.append)
    assert "taking over the unfinished run of other (entry 5, deploying)" in log
    ledger.append(DeployingEntry(job=V1, owner="me"))
    run(target, ledger, V1)


def test_started_job_of_another_version_must_go_first(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.end("job-1", "FINISHED")
    target.run("jobX")
    ledger.append(StoppedEntry(job=V2, stop=JobStop("job-1", savepoint=STOPPED_AT), owner="me"))
    ledger.append(StartedEntry(job=V2, start=JobStart(job_id="jobX"), owner="me"))
    with pytest.raises(DeployRefused, match="job jobX of entry 6 runs a different version"):
        run(target, ledger, V1)
    target.end("jobX", "CANCELED")
    run(target, ledger, V1)


@pytest.mark.parametrize("between", [RejectedEntry, FailedVersionEntry, ApprovedEntry])
def test_decision_after_a_killed_run_does_not_hide_its_job(
    between: type[VersionEntry], target: FakeCluster, ledger: Ledger
) -> None:
    run(target, ledger, V1)
    target.end("job-1", "FINISHED")
    target.run("jobX")
    ledger.append(StartedEntry(job=V2, start=JobStart("stateless", job_id="jobX"), owner="me"))
    ledger.append(between(version=JobVersion(sha256="cd"), owner="a person"))
    assert run(target, ledger, V2, start_mode="stateless").job_id == "jobX"


def test_what_a_late_try_meant_to_do_is_not_written(target: FakeCluster, ledger: Ledger) -> None:
    """The first try goes on beside its retry, which is further: it stops, and leaves nothing that would be taken up."""
    run(target, ledger, V1)
    stopped = StoppedEntry(job=V2, stop=JobStop("job-1", savepoint=STOPPED_AT), owner="me")
    begun = [stopped, StartingEntry(job=V2, start=JobStart(job_id="job-9"), owner="me")]
    target.before["result"] = lambda: [ledger.append(entry) for entry in begun]
    with pytest.raises(LedgerConflict):
        run(target, ledger, V2)
    assert kinds(ledger)[-3:] == ["stopping", "stopped", "starting"]
    assert run(target, ledger, V2).job_id == "job-9"
    assert target.running("orders") == ("job-9",)


def test_a_failure_seen_late_does_not_undo_what_was_deployed_since(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    late = run(target, ledger, V2)
    failed = FailedEntry(job=V2, start=JobStart(savepoint=STOPPED_AT, job_id=late.job_id), owner="me")
    for rolls_back_to in (4, late.number):
        ledger.append(dataclasses.replace(failed, rolls_back_to=rolls_back_to if rolls_back_to == 4 else None))
    ledger.append(RollingBackEntry(job=V1, start=JobStart(job_id="job-9"), owner="me"))
    entry = run(target, ledger, V1, owner="later", options={"claim_seconds": 0})
    assert target.running("orders") == (entry.job_id,)
    assert entry.start.savepoint == f"file:/sp/orders/job-3/{late.job_id}", "what runs was stopped, not cancelled"


def test_a_stop_that_takes_too_long_is_waited_for_again(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    results = target.stop_result
    target.stop_result = lambda job_id, trigger_id: None  # type: ignore[method-assign]
    with pytest.raises(DeployError, match=r"still writes to file:/sp/orders/job-2\. Nothing else was done") as caught:
        run(target, ledger, V2, options={"stop_timeout": 0.02})
    assert not isinstance(caught.value, StartFailed)
    assert kinds(ledger)[-1] == "stopping"
    target.stop_result = results  # type: ignore[method-assign]
    assert run(target, ledger, V2).start.savepoint == STOPPED_AT
    assert list(target.stops) == ["job-2"]


def test_former_job_that_only_takes_its_time_is_left_running(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = "restore"
    started = target.run

    def slow(job_id: str, name: str = "orders", savepoint: str | None = None) -> str:
        started(job_id, name, savepoint)
        if job_id == "job-3":
            target.jobs[job_id] = dataclasses.replace(target.jobs[job_id], completed_checkpoints=0)
        return job_id

    target.run = slow  # type: ignore[method-assign]
    with pytest.raises(
        RolledBack, match=r"job job-3 from .* and still runs, but the job was not verified within 0 s: its"
    ):
        run(target, ledger, V2)
    head = ledger.head()
    assert head is not None
    assert (head.kind, head.job_id, target.running("orders")) == ("rolled-back", "job-3", ("job-3",))


def test_cancelling_is_for_the_start_mode_that_asked_for_it(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.states["job-1", "completed"], target.retained = SnapshotStats("file:/chk-7"), True
    target.fail = "cancel"
    with pytest.raises(DeployError, match="cancel does not work"):
        run(target, ledger, V2, start_mode="checkpoint", review=Review("compatible"))
    target.fail = ""
    entry = run(target, ledger, V2, start_mode="savepoint")
    assert (entry.start.savepoint, target.calls.count("stop")) == (STOPPED_AT, 1)


def test_a_checkpoint_without_a_place_is_no_start(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.states["job-1", "completed"], target.retained = SnapshotStats(""), True
    with pytest.raises(DeployRefused, match="does not retain checkpoints when cancelled"):
        run(target, ledger, V2, start_mode="checkpoint", review=Review("compatible"))
    assert target.now == {"job-1": "RUNNING"}


def test_a_start_without_state_is_not_taken_up_by_a_resume(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail, target.error = "submit", unknown
    with pytest.raises(DeployError, match="It is unknown if"):
        run(target, ledger, V2, start_mode="stateless")
    target.fail = ""
    with pytest.raises(DeployRefused, match="began a start in mode stateless, but this run must start in mode savepo"):
        run(target, ledger, V2, start_mode="savepoint")
    with pytest.raises(DeployRefused, match=r"a different version .* may still be accepted\. Wait for \d+ s") as caught:
        run(target, ledger, V1, start_mode="savepoint")
    assert "No job of orders runs now" in str(caught.value)
    assert run(target, ledger, V2, start_mode="stateless").job_id == "job-2"


def test_a_job_of_another_name_that_an_earlier_run_left_is_a_stranger(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = "restore"
    target.cancel = lambda job_id: (_ for _ in ()).throw(DeployError("no answer"))  # type: ignore[method-assign]
    other = dataclasses.replace(V2, settings={"pipeline.name": "orders-v2"})
    with pytest.raises(StartFailed, match=r"could not be cancelled \(no answer\)[^$]*Cancel that job manually first"):
        run(target, ledger, other)
    with pytest.raises(DeployRefused, match="job job-2 named 'orders' runs on the cluster"):
        run(target, ledger, V1)


def test_refusals_say_when_nothing_runs(target: FakeCluster, ledger: Ledger) -> None:
    run(target, ledger, V1)
    target.fail = "submit"
    with pytest.raises(StartFailed):
        run(target, ledger, V2, options={"roll_back": False})
    target.fail, target.refuse = "", TargetError("no such column")
    with pytest.raises(TargetError, match=r"no such column\nNo job of orders runs now") as caught:
        run(target, ledger, dataclasses.replace(V2, settings={"a": "b"}))
    assert STOPPED_AT in str(caught.value)


class Killed(BaseException):
    """The process is gone."""


CALLS = [
    "engine",
    "validate",
    "stop",
    "poll",
    "start",
    "status",
    "restored_from",
    "cancel",
    "append",
]


KILLS = list(itertools.product(("before", "after"), ("", "restore", "stop")))


@pytest.mark.parametrize(("when", "fails"), mostly_slow(KILLS, len(KILLS)))
def test_killed_anywhere_and_run_again(when: str, fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the n-th call of target and ledger, for every n there is: one job in the end, one stop, a whole ledger."""
    reached = 0
    for place in itertools.count(1):
        target, ledger = FakeCluster(), Ledger(tmp_path / f"{when}{place}", "orders")
        run(target, ledger, V1)
        if fails == "stop":
            fails_over_the_stop(target)
        else:
            target.fail = fails
        killed = _run_killed(target, ledger, when, place)
        wanted = V1 if fails else V2
        if killed:
            if fails:
                with pytest.raises(RolledBack):
                    run(target, ledger, V2, checked_old_sha256=V1.sha256)
            else:
                run(target, ledger, V2, checked_old_sha256=V1.sha256)
        head = ledger.head()
        assert head is not None
        assert (head.sha256, target.running("orders")) == (wanted.sha256, (head.job_id,)), (when, place, kinds(ledger))
        assert len(target.stops) == 1
        kept = "file:/chk-8" if fails == "stop" else next(iter(target.stops.values()))
        assert target.restored[str(head.job_id)] == kept
        assert [entry.number for entry in ledger.entries()] == list(range(1, len(kinds(ledger)) + 1))
        if not killed:
            break
        reached = place
    assert reached > 15


def _run_killed(target: FakeCluster, ledger: Ledger, when: str, place: int) -> bool:
    """Deploy V2 in a run that dies before or after the ``place``-th call."""
    numbers = itertools.count(1)

    def dying(call: Any) -> Any:
        def wrapped(*arguments: Any, **more: Any) -> Any:
            number = next(numbers)
            if when == "before" and number == place:
                raise Killed
            try:
                return call(*arguments, **more)
            finally:
                if when == "after" and number == place:
                    raise Killed

        return wrapped

    mortal = copy.copy(target)  # shares the cluster's dictionaries
    frail = copy.copy(ledger)
    for name in CALLS:
        owner = frail if name == "append" else mortal
        setattr(owner, name, dying(getattr(owner, name)))
    try:
        run(mortal, frail, V2, checked_old_sha256=V1.sha256)
    except Killed:
        return True
    except RolledBack:
        assert mortal.wrong or "nowhere" in mortal.stops.values()
    finally:
        target.fail = mortal.fail
    return False
