"""The fake target keeps the contract of every target, also where its server loses the first answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import DeployError, DeployRefused, Ledger, Options, StartFailed, deploy
from airflow_flinkcompat.deploy.ledger.entries import Review
from airflow_flinkcompat.deploy.redeploy import stopping, submitting
from airflow_flinkcompat.deploy.target import (
    CheckpointStatistics,
    JobHistories,
    OffsetStatistics,
    RetainedCheckpoints,
    SavepointStore,
    Sources,
    SourceTable,
    SourceTables,
    Target,
)
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.testing.fake_target import FakeServer, FakeTarget
from airflow_flinkcompat.testing.target_contract import CHANGED, SCRIPT, Connect, TargetContract, side


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submitting, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(stopping, "_LOOK_SECONDS", 0.01)


class TestFakeTarget(TargetContract):
    """Every call is answered."""

    @pytest.fixture
    def server(self) -> FakeServer:
        return FakeServer()

    @pytest.fixture
    def connect(self, server: FakeServer) -> Connect:
        return lambda: FakeTarget(server)

    def misfits(self, target: Target, name: str) -> None:
        assert isinstance(target, FakeTarget)
        target.server.refuses.add(name)


def test_answers_that_are_lost_make_no_second_job_and_no_second_stop(tmp_path: Path) -> None:
    """The server did the work each time, and does not say so."""
    server, ledger = FakeServer(loses={"start": 2, "stop": 1}), Ledger(tmp_path, "orders")
    options = Options(settle_seconds=0)

    def run(script: str, checked: str | None) -> str:
        for _ in range(4):
            try:
                entry = deploy(
                    FakeTarget(server),
                    ledger,
                    side(script),
                    checked_old_sha256=checked and side(checked).digest(),
                    owner="worker",
                    options=options,
                )
            except DeployError as error:
                if not error.unanswered:
                    raise
                continue
            return str(entry.job_id)
        raise AssertionError("it never came to its end")

    first = run(SCRIPT, None)
    second = run(CHANGED, SCRIPT)
    assert (first, second) == ("job-1", "job-2")
    assert len(server.jobs) == 2
    assert list(server.savepoints.values()) == ["savepoint #1"]
    assert server.jobs[second].restored == "savepoint #1"  # type: ignore[index]
    assert sum(server.lost.values()) > 2, "answers were lost in fact"


def test_what_it_cannot_do_is_said_and_nothing_is_assumed(tmp_path: Path) -> None:
    """It has none of these capabilities, so a redeploy says so where it would use them."""
    target, ledger, said = FakeTarget(), Ledger(tmp_path, "orders"), []
    lacks = (CheckpointStatistics, JobHistories, OffsetStatistics, RetainedCheckpoints, SavepointStore, SourceTables)
    assert [each for each in lacks if isinstance(target, each)] == []
    options = Options(settle_seconds=0, keep_savepoints=1)
    more: Mapping[str, object] = {"options": options, "log": said.append}
    deploy(target, ledger, side(SCRIPT), checked_old_sha256=None, **more)  # type: ignore[arg-type]
    deploy(target, ledger, side(CHANGED), checked_old_sha256=side(SCRIPT).digest(), **more)  # type: ignore[arg-type]
    told = "\n".join(said)
    for what in (
        "checkpoints: cannot be determined on this target",
        "state sizes: cannot be determined on this target",
        "source offsets: cannot be determined on this target",
        "the sources of a job cannot be determined on this target",
        "old savepoints were not deleted: their paths cannot be determined on this target",
        "the script was read, not planned",
    ):
        assert what in told, told
    with pytest.raises(DeployError, match="the retained checkpoint of job job-2 cannot be determined on this target"):
        deploy(
            target,
            ledger,
            side(SCRIPT),
            start_mode="checkpoint",
            checked_old_sha256=side(CHANGED).digest(),
            review=Review("compatible"),
            options=options,
        )


class _TellsSources(FakeTarget):
    """It says what a job reads, and not where its savepoints lie."""

    def sources(self, job: JobSpec) -> Sources:
        options = {"topic": "numbers", "properties.bootstrap.servers": "broker:9092"}
        return Sources((SourceTable(("c", "d", "numbers"), "kafka", options),))


def test_offsets_out_of_a_savepoint_that_cannot_be_read_are_refused_before_the_stop(tmp_path: Path) -> None:
    target, ledger = _TellsSources(), Ledger(tmp_path, "orders")
    assert isinstance(target, SourceTables)
    options = Options(settle_seconds=0)
    first = deploy(target, ledger, side(SCRIPT), checked_old_sha256=None, options=options)
    written = len(ledger.entries())
    with pytest.raises(
        DeployRefused, match=r"as-stored .* cannot be determined on this target \(the fake target\)\. Choose"
    ):
        deploy(
            target,
            ledger,
            side(CHANGED),
            start_mode="stateless",
            offsets="as-stored",
            checked_old_sha256=side(SCRIPT).digest(),
            options=options,
        )
    assert target.running("orders") == (first.job_id,)
    assert target.server.savepoints == {}
    assert len(ledger.entries()) == written


def test_a_job_that_ended_by_itself_is_no_start(tmp_path: Path) -> None:
    """No savepoint is made up for it."""
    target, ledger = FakeTarget(), Ledger(tmp_path, "orders")
    options = Options(settle_seconds=0)
    first = deploy(target, ledger, side(SCRIPT), checked_old_sha256=None, options=options)
    target.cancel(first.start.job_ref)
    with pytest.raises(DeployError, match="There is no savepoint to resume from"):
        deploy(target, ledger, side(CHANGED), checked_old_sha256=side(SCRIPT).digest(), options=options)
    target.server.refuses.add("orders")
    later = deploy(
        target,
        ledger,
        side(CHANGED),
        start_mode="stateless",
        checked_old_sha256=side(SCRIPT).digest(),
        options=Options(settle_seconds=0, allow_ended=True),
    )
    assert later.evidence[0] == "started from an empty state, as declared by the platform (not observed)"
    with pytest.raises(StartFailed, match="the state does not fit"):
        deploy(
            target,
            ledger,
            side(SCRIPT),
            checked_old_sha256=side(CHANGED).digest(),
            options=Options(settle_seconds=0, roll_back=False),
        )
