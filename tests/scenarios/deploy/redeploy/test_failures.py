"""What is around a redeploy fails: the old job is untouched or back, or the error says what to do. On a real Flink."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployError, DeployRefused, RolledBack, Start, StartFailed
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import JobSpec
from dev.services.csv_job import Side, wait_for
from tests.scenarios.deploy.deployment_fixture import OPTIONS, DeploymentFixture
from tests.scenarios.deploy.kills import Attempt
from tests.scenarios.deploy.redeploy.failing_connections import case

pytestmark = pytest.mark.slow

RETENTION = "execution.checkpointing.externalized-checkpoint-retention"
GIVES_UP = {"restart-strategy.type": "disable", RETENTION: "DELETE_ON_CANCELLATION"}
KEEPS_NOTHING = {"restart-strategy.type": "disable", RETENTION: "NO_EXTERNALIZED_CHECKPOINTS"}


# -------------------------------------------------------------------------------------------------- the savepoints
def _savepoint_cannot_be_written(stage: DeploymentFixture, place: Path, **options: Any) -> str:
    kind, message = stage.fails(options=replace(OPTIONS, savepoint_directory=place.as_uri(), **options))
    assert kind is StartFailed
    assert f"job {stage.first.job_id} could not be stopped with a savepoint and is " in message
    assert stage.kinds == ["deploying", "stopping", "failed"]
    return message


def _goes_on(stage: DeploymentFixture, message: str) -> str:
    assert "The job keeps running, and nothing was started. Remove the cause, then deploy again" in message
    stage.goes_on(stage.first.job_id)
    assert stage.run().kind == "deployed", "with the cause mended the same run goes through"
    return message


@case("savepoint folder that cannot be written")
def unwritable(stage: DeploymentFixture) -> str:
    place = stage.root / "no-folder"
    place.write_text("a file")
    message = _savepoint_cannot_be_written(stage, place)
    assert str(place) in message, "it names the place"
    return _goes_on(stage, message)


@case("savepoint folder that is full", **{"restart-strategy.type": "exponential-delay"})
def full(stage: DeploymentFixture) -> str:
    """Flink restarts the job then, from its latest checkpoint."""
    with _full(stage.root / "full") as place:
        message = _savepoint_cannot_be_written(stage, place)
    return _goes_on(stage, message)


@case("savepoint folder that is full, and a job that may not restart", **GIVES_UP)
def full_for_good(stage: DeploymentFixture) -> str:
    """It fails for good, and is started again from the checkpoint that Flink would have restarted it from."""
    with _full(stage.root / "full") as place:
        kind, message = stage.fails(options=replace(OPTIONS, savepoint_directory=place.as_uri()))
    assert kind is RolledBack
    assert f"job {stage.first.job_id} could not be stopped with a savepoint and is FAILED" in message
    assert stage.kinds == ["deploying", "stopping", "failed", "rolling-back", "rolled-back"]
    head = stage.ledger.head()
    assert head is not None
    assert (head.sha256, head.start.start_mode) == (stage.first.sha256, "checkpoint")
    assert f"runs again as job {head.job_id}, restored from {head.start.savepoint} and verified" in message
    assert re.search(r"/chk-\d+$", str(head.start.savepoint))
    assert "may be written again" in message
    stage.goes_on(head.job_id)
    entry = stage.run(owner="another")
    assert (entry.kind, stage.running) == ("deployed", (entry.job_id,)), (
        "with the cause mended another run goes through"
    )
    return message


@case("savepoint folder that is full, and a job that may not restart, by a run that is not to roll back", **GIVES_UP)
def full_for_good_by_hand(stage: DeploymentFixture) -> str:
    with _full(stage.root / "full") as place:
        message = _savepoint_cannot_be_written(stage, place, roll_back=False)
    assert "is FAILED" in message
    found = re.search(r"its latest checkpoint is file:(\S+)\. To resume from it by hand", message)
    assert found
    assert (Path(found[1]) / "_metadata").is_file(), "the checkpoint that is named is there"
    assert stage.running == ()
    return message


@case("savepoint folder that is full, and a job that may not restart and keeps no checkpoint", **KEEPS_NOTHING)
def full_with_nothing_left(stage: DeploymentFixture) -> str:
    with _full(stage.root / "full") as place:
        message = _savepoint_cannot_be_written(stage, place)
    assert "is FAILED" in message
    assert f"the job's checkpoints were deleted at its end, because '{RETENTION}' does not retain them" in message
    assert "The only remaining choice is a stateless start, with ended jobs allowed" in message
    assert stage.running == ()
    return message


@contextmanager
def _full(place: Path) -> Iterator[Path]:
    """A file system without room; where nobody may mount one, a file instead of the folder."""
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", place], capture_output=True, check=False)
    try:
        if mounted.returncode:
            place.rmdir()
            place.write_text("a file")
        else:
            (place / "filler").write_bytes(b"x" * 4096)
        yield place
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", place], check=True)


def _dies(stage: DeploymentFixture, when: str, **more: Any) -> None:
    """A run that dies right before or after it submits the new job."""
    target = stage.reached_by()

    def die() -> None:
        raise KeyboardInterrupt

    getattr(target, when)["start"] = die
    with pytest.raises(KeyboardInterrupt):
        stage.run(target, **more)


def _no_savepoint(stage: DeploymentFixture, harm: Callable[[Path], object], reason: str, remedy: str) -> str:
    """What a retry says whose savepoint was harmed between stop and start; with it whole again, another one starts."""
    _dies(stage, "before")
    (savepoint,) = stage.savepoints
    copy = stage.root / "copy"
    shutil.copytree(savepoint, copy)
    harm(savepoint)
    kind, message = stage.fails()
    assert kind is StartFailed
    assert stage.kinds[-3:] == ["failed", "rolling-back", "failed"]
    assert len(re.findall(reason, message)) >= 2, f"both reasons: {message}"
    for part in (
        "The rollback also failed",
        remedy,
        f"No job of {stage.name} runs now",
        str(savepoint),
        "SET 'execution.",
    ):
        assert part in message, message
    assert stage.running == ()
    shutil.rmtree(savepoint, ignore_errors=True)
    shutil.copytree(copy, savepoint)
    entry = stage.run(owner="another")
    assert entry.kind == "deployed", "with the savepoint put back it goes through"
    stage.goes_on(entry.job_id)
    return message


@case("savepoint deleted between stop and retry")
def savepoint_deleted(stage: DeploymentFixture) -> str:
    return _no_savepoint(
        stage,
        shutil.rmtree,
        "FileNotFoundException",
        "Restore its files first, or start stateless with ended jobs allowed",
    )


@case("savepoint that is cut off between stop and retry")
def savepoint_truncated(stage: DeploymentFixture) -> str:
    def cut(savepoint: Path) -> None:
        os.truncate(savepoint / "_metadata", 100)

    return _no_savepoint(stage, cut, "EOFException", "Replace it with a complete copy first, or start stateless")


@case("savepoint that holds something else at the retry")
def savepoint_overwritten(stage: DeploymentFixture) -> str:
    def overwrite(savepoint: Path) -> None:
        (savepoint / "_metadata").write_bytes(b"no savepoint at all, " * 100)

    return _no_savepoint(
        stage, overwrite, "Unexpected magic number", "Replace it with a complete copy first, or start stateless"
    )


# ------------------------------------------------------------------------------------------------------ the cluster
@case("new job that failed over by itself, long before its start is taken up")
def failed_over_since(stage: DeploymentFixture) -> str:
    side = Side(stage.changed.script, {**stage.changed.settings, "restart-strategy.type": "exponential-delay"})
    _dies(stage, "after", side=side)
    (job_id,) = stage.running
    jobmanager = stage.target._jobmanager
    wait_for(lambda: stage.target.job_history(job_id).completed > 4, "its settle time is over")
    with _full(stage.root / "full") as place, pytest.raises(DeployError):
        jobmanager.stop_with_savepoint(job_id, place.as_uri())
    wait_for(
        lambda: stage.target.job_history(job_id).restores == 2, "it is restored once more, from its own checkpoint"
    )
    entry = stage.run(side=side, options=replace(OPTIONS, start_timeout=1))
    assert (entry.kind, entry.job_id) == ("deployed", job_id)
    (later,) = (line for line in entry.evidence if line.startswith("after its settle time it failed 1 time"))
    assert f"/{job_id}/chk-" in later
    stage.goes_on(job_id)
    return later


@case("slots missing")
def slots_missing(stage: DeploymentFixture) -> str:
    """Another job takes them all between the stop and the start, and gives them back before the old script returns."""
    target, filler = stage.reached_by(), new_id()
    script = """CREATE TABLE s (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');
    CREATE TABLE k (a INT) WITH ('connector' = 'blackhole'); INSERT INTO k SELECT a FROM s;"""

    def overview() -> dict[str, int]:
        found: dict[str, int] = stage.target._jobmanager.get("overview")
        return found

    def give_back() -> None:
        stage.target.cancel(filler)
        wait_for(lambda: overview()["slots-available"] > 0, "slots are free")

    def take() -> None:
        wait_for(lambda: stage.running == () and overview()["slots-available"] > 0, "the old job's slot is free")
        target.before["start"] = give_back
        settings = {"parallelism.default": str(overview()["slots-available"]), "pipeline.name": "filler"}
        stage.target.start(JobSpec(script, settings), Start(), filler)
        wait_for(lambda: overview()["slots-available"] == 0, "no slot is left")

    target.before["start"] = take
    kind, message = stage.fails(target, options=replace(OPTIONS, start_timeout=8))
    assert kind is RolledBack
    # Which of the two depends on how long the cluster lets a job wait.
    assert re.search(
        r"NoResourceAvailableException|not every task runs \(check that the cluster has enough task slots\)", message
    )
    assert "No task of the new job ever ran, so no row was written twice" in message
    assert stage.kinds[-3:] == ["failed", "rolling-back", "rolled-back"]
    head = stage.ledger.head()
    assert head is not None
    stage.goes_on(head.job_id)
    return message


def _ended_before(stage: DeploymentFixture, state: str) -> str:
    kind, message = stage.fails()
    assert kind is DeployRefused
    assert f"job {stage.first.job_id} of {stage.name} (ledger entry 1) is {state}" in message
    assert "no deployment stopped it" in message
    assert "start mode checkpoint" in message
    assert stage.kinds == []
    assert stage.running == ()
    return message


@case("job cancelled by someone else")
def cancelled_before(stage: DeploymentFixture) -> str:
    stage.target.cancel(str(stage.first.job_id))
    return _ended_before(stage, "CANCELED")


@case("job stopped by someone else")
def stopped_before(stage: DeploymentFixture) -> str:
    savepoint = stage.target._jobmanager.stop_with_savepoint(str(stage.first.job_id))
    message = _ended_before(stage, "FINISHED")
    assert savepoint in message, "what it left is named"
    return message


@case("job failed")
def failed_before(stage: DeploymentFixture) -> str:
    stage.files.source.joinpath("3.csv").write_text("ann,many,2026-01-01 00:01:00\n")
    wait_for(lambda: stage.running == (), "the job fails")
    return _ended_before(stage, "FAILED")


@case("job cancelled by someone else right before the stop")
def cancelled_while_stopping(stage: DeploymentFixture) -> str:
    target = stage.reached_by()
    target.before["stop"] = lambda: stage.target.cancel(str(stage.first.job_id))
    kind, message = stage.fails(target)
    assert kind is StartFailed
    assert f"job {stage.first.job_id} could not be stopped with a savepoint and is CANCELED" in message
    assert f"No job of {stage.name} runs now" in message
    assert f"the job's checkpoints were deleted at its end, because '{RETENTION}' does not retain them" in message
    assert "The only remaining choice is a stateless start, with ended jobs allowed" in message
    assert stage.kinds == ["deploying", "stopping", "failed"]
    assert stage.running == ()
    allowed = replace(OPTIONS, allow_ended=True)
    assert stage.run(start_mode="stateless", options=allowed).kind == "deployed", "which does go through"
    return message


@case("new job cancelled by someone else while it is verified")
def cancelled_while_verified(stage: DeploymentFixture) -> str:
    target = stage.reached_by()
    target.after["start"] = lambda: [stage.target.cancel(job_id) for job_id in stage.running]
    kind, message = stage.fails(target)
    assert kind is RolledBack
    assert re.search(r"job \w{32} is CANCELED after its start", message)
    head = stage.ledger.head()
    assert head is not None
    assert (head.kind, len(stage.savepoints)) == ("rolled-back", 1)
    stage.goes_on(head.job_id)
    return message


@case("two runs at once")
def two_runs(stage: DeploymentFixture) -> str:
    attempt = Attempt(
        partial(SqlGatewayTarget, stage.flink.gateway_url, stage.flink.jobmanager_url),
        stage.root / "ledger",
        stage.name,
        stage.changed,
        "savepoint",
        stage.first.sha256,
        "",
        OPTIONS,
    )
    runs = multiprocessing.get_context("forkserver").Pool(2)
    with runs:
        said = runs.map(Attempt.said, [replace(attempt, owner=owner) for owner in ("one", "another")], chunksize=1)
    outcomes = dict(said)
    assert "deployed" in outcomes, said
    (lost,) = set(outcomes) - {"deployed"}
    assert lost in ("DeployRefused", "LedgerConflict"), said
    assert re.search("at the same time|is deploying|a different run wrote to the ledger", outcomes[lost])
    assert stage.kinds.count("deployed") == stage.kinds.count("stopping") == 1
    head = stage.ledger.head()
    assert head is not None
    assert stage.jobs == {stage.first.job_id, head.job_id}
    stage.goes_on(head.job_id)
    return f"deployed, and {lost}: {outcomes[lost]}"


# ----------------------------------------------------------------------------------------------------------- the runs
@pytest.mark.parametrize("name", case.sample(3))
def test_what_fails_leaves_one_job_or_says_what_to_do(name: str, local_flink: LocalFlink, tmp_path: Path) -> None:
    case.run(name, local_flink, tmp_path)
