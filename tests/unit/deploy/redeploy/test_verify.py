"""What counts as proof that a job runs from its state, by a scripted target and a clock that moves by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from airflow_flinkcompat.deploy import DeployError, JobStatus, Start, Target, VerificationFailed
from airflow_flinkcompat.deploy.redeploy.verify import verify_start
from airflow_flinkcompat.deploy.target import Proof, same_snapshot


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda _: None))


SAVEPOINT = "file:///sp/savepoint-1"


def job(
    state: str = "RUNNING", *, tasks: bool = True, checkpoints: int = 1, failure: str | None = None
) -> JobStatus | None:
    return JobStatus("j", "orders", state, tasks, checkpoints, failure)


@dataclass
class Scripted:
    """Shows each status in turn, the last one for ever."""

    seen: list[JobStatus | None]
    restored: str | None = "file:/sp/savepoint-1"
    asked: int = 0
    looks: int = 0
    after_request: JobStatus | None = None
    refuse: bool = False
    now: float = 0
    log: list[str] = field(default_factory=list)

    def status(self, job_id: str) -> JobStatus | None:
        self.looks += 1
        self.now += 0.5
        return self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]

    def restored_from(self, job_id: str) -> Proof:
        return Proof(self.restored)

    def request_checkpoint(self, job_id: str) -> None:
        self.asked += 1
        if self.refuse:
            raise DeployError("not now")
        self.seen = [self.after_request]

    def verify(self, savepoint: str | None = SAVEPOINT, settle: float = 2, timeout: float = 60) -> JobStatus:
        look: Callable[[], float] = lambda: self.now  # noqa: E731
        target: Target = self  # type: ignore[assignment]
        return verify_start(
            target, "j", Start(savepoint), settle_seconds=settle, timeout=timeout, log=self.log.append, clock=look
        ).status

    def snapshot_stats(self, job_id: str, kind: str) -> None: ...

    def source_offsets(self, job_id: str) -> dict[str, int]:
        return {}


def test_proved_after_the_settle_time() -> None:
    target = Scripted([None, job("INITIALIZING", tasks=False, checkpoints=0), job(checkpoints=0), job()])
    assert target.verify().state == "RUNNING"
    # Three looks before it is proved, one that sees it, and four of half a second each.
    assert target.looks == 8
    assert any("watching" in line for line in target.log)


def test_failure_in_the_settle_time() -> None:
    target = Scripted([job(), job(), job("FAILED", failure="StateMigrationException: no")])
    with pytest.raises(VerificationFailed, match="job j is FAILED after its start: StateMigrationException: no"):
        target.verify()


def test_restart_in_the_settle_time_is_a_failure() -> None:
    with pytest.raises(VerificationFailed, match="RUNNING after its start: no luck"):
        Scripted([job(), job(failure="no luck")]).verify()


def test_reason_may_come_late() -> None:
    target = Scripted([job("FAILING"), job("FAILED"), job("FAILED"), job("FAILED", failure="at last")])
    with pytest.raises(VerificationFailed, match="at last"):
        target.verify()
    with pytest.raises(VerificationFailed, match="no reason reported"):
        Scripted([job("FAILED")]).verify()
    with pytest.raises(VerificationFailed, match="no reason reported"):
        Scripted([job("RESTARTING"), job()]).verify()


@pytest.mark.parametrize(
    ("savepoint", "restored", "said"),
    [
        (SAVEPOINT, None, "restored from nothing instead of file:///sp/savepoint-1"),
        (SAVEPOINT, "file:/sp/savepoint-2", "restored from file:/sp/savepoint-2 instead of"),
        (None, "file:/sp/savepoint-1", "restored from file:/sp/savepoint-1 instead of nothing"),
    ],
)
def test_running_from_another_state_is_no_proof(savepoint: str | None, restored: str | None, said: str) -> None:
    with pytest.raises(VerificationFailed, match=said):
        Scripted([job()], restored=restored).verify(savepoint, timeout=0.5)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (None, "the cluster never listed it"),
        (job("RUNNING", tasks=False), "not every task runs"),
        (job(checkpoints=0), "no checkpoint has completed"),
    ],
)
def test_what_is_missing_is_told(seen: JobStatus | None, said: str) -> None:
    with pytest.raises(VerificationFailed, match=f"was not verified within 0 s: .*{said}"):
        Scripted([seen]).verify(timeout=0.3)


def test_long_interval_is_not_waited_for() -> None:
    target = Scripted([job(checkpoints=0)], after_request=job())
    assert target.verify().completed_checkpoints == 1
    assert target.asked == 1


def test_checkpoint_that_is_refused_is_asked_for_once() -> None:
    target = Scripted([*[job(checkpoints=0)] * 20, job()], refuse=True)
    assert target.verify().state == "RUNNING"
    assert target.asked == 1
    assert any("no checkpoint could be triggered: not now" in line for line in target.log)


def test_bounded_job_may_end() -> None:
    target = Scripted([job("FINISHED", tasks=False, checkpoints=0)])
    assert target.verify().state == "FINISHED"
    assert target.looks == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("file:///a/b", "file:/a/b", True),
        ("file:/a/b/", "file:/a/b", True),
        ("s3://x/a", "s3://x/a", True),
        ("s3://x/a", "s3://x/ab", False),
        (None, None, True),
        (None, "file:/a", False),
    ],
)
def test_same_snapshot(one: str | None, other: str | None, same: bool) -> None:
    assert same_snapshot(one, other) is same
