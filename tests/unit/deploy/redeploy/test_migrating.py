"""A redeploy that rewrites the savepoint between stop and start: its entries, its retries, its way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployRefused, Ledger, Options, RolledBack, StartFailed, deploy
from airflow_flinkcompat.deploy.errors import DeployError, SubmissionUnknown
from airflow_flinkcompat.deploy.ledger.entries import MigratedEntry, MigratingEntry, Review, StoppedEntry
from airflow_flinkcompat.deploy.redeploy import migrating
from airflow_flinkcompat.deploy.redeploy.sequence import surplus
from airflow_flinkcompat.deploy.target import Snapshot, SnapshotStats, VertexState
from airflow_flinkcompat.testing.fake_target import FakeTarget
from tests.support.deploy.fake_cluster import FakeCluster
from tests.unit.deploy.redeploy.test_redeploy import V1, V2, kinds, no_pauses, run  # noqa: F401

KEPT = {"kept": "whole", "operators": [], "entries": {"window": {"accs": 3}}}
STEPS = ["deploying", "stopping", "stopped", "migrating", "migrated", "starting", "started", "deployed"]


@dataclass
class Rewriting:
    """A migration that writes a file; ``before`` runs before a step, and may raise."""

    done: list[tuple[str, ...]] = field(default_factory=list)
    before: dict[str, Callable[[], Any]] = field(default_factory=dict)

    def _step(self, name: str, *rest: str) -> None:
        self.done.append((name, *rest))
        if name in self.before:
            self.before.pop(name)()

    writes = "migrated"

    def prepare(self) -> str:
        self._step("prepare")
        return "prepared"

    def write(self, savepoint: str, folder: str, prepared: str | None) -> Mapping[str, Any]:
        place = Path(folder.removeprefix("file:"))
        place.mkdir(parents=True)
        (place / "part").write_text("written")
        assert prepared == "prepared"
        self._step("write", savepoint, folder)
        return KEPT

    def rehearse(self, savepoint: Snapshot) -> str:
        self._step("rehearse", savepoint)
        return "rehearsed"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger", "orders")


@pytest.fixture
def target(ledger: Ledger) -> FakeCluster:
    cluster = FakeCluster()
    run(cluster, ledger, V1)
    return cluster


@pytest.fixture(autouse=True)
def numbered(no_pauses: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    numbers = iter(range(1, 100))
    monkeypatch.setattr(migrating, "new_id", lambda: str(next(numbers)))


def migrated(target: FakeCluster, ledger: Ledger, migration: Rewriting, **options: Any) -> Any:
    root = f"file:{ledger.directory.parent / 'savepoints'}"
    options = {"savepoint_directory": root, **options}
    return run(target, ledger, V2, start_mode="migrated", migration=migration, options=options)


def raising(error: BaseException) -> Callable[[], None]:
    def step() -> None:
        raise error

    return step


def test_every_step_is_an_entry_and_the_job_starts_from_what_was_written(target: FakeCluster, ledger: Ledger) -> None:
    migration = Rewriting()
    entry = migrated(target, ledger, migration)
    assert kinds(ledger)[4:] == STEPS
    stopped = next(each for each in ledger.entries() if isinstance(each, StoppedEntry)).stop.savepoint
    folder = f"{str(stopped).rpartition('/')[0]}/migrated-1"
    assert migration.done == [("prepare",), ("write", stopped, folder), ("rehearse", folder)]
    assert (entry.start.start_mode, entry.start.savepoint, entry.start.migrated_from) == ("migrated", folder, stopped)
    assert target.starts[-1][1].savepoint == folder
    done = next(each for each in ledger.entries() if isinstance(each, MigratedEntry))
    assert (done.savepoint, done.migrated_to, done.migration, done.evidence) == (stopped, folder, KEPT, ("rehearsed",))
    assert entry.evidence[0] == f"restored from {folder}"


def test_what_cannot_be_kept_is_said_before_anything_is_touched(target: FakeCluster, ledger: Ledger) -> None:
    migration = Rewriting(before={"prepare": raising(DeployRefused("less is kept"))})
    with pytest.raises(DeployRefused, match="less is kept"):
        migrated(target, ledger, migration)
    assert target.now == {"job-1": "RUNNING"}
    assert kinds(ledger)[4:] == []


def test_savepoints_that_lie_nowhere_are_said_before_anything_is_touched(ledger: Ledger) -> None:
    """A platform that names them by numbers keeps them to itself."""
    target, migration = FakeTarget(), Rewriting()
    given: Any = {"owner": "me", "options": Options(settle_seconds=0)}
    first = deploy(target, ledger, V1, checked_old_sha256=None, **given)
    with pytest.raises(
        DeployRefused,
        match=r"the state .* cannot be migrated: the path of a savepoint cannot be determined on this target \(the",
    ):
        deploy(
            target, ledger, V2, start_mode="migrated", checked_old_sha256=first.sha256, migration=migration,
            review=Review("incompatible"), **given,
        )  # fmt: skip
    assert (target.running("orders"), ledger.head(), migration.done) == ((first.job_id,), first, [])


@pytest.mark.parametrize("step", ["write", "rehearse"])
def test_the_former_job_goes_on_from_its_own_savepoint(step: str, target: FakeCluster, ledger: Ledger) -> None:
    migration = Rewriting(before={step: raising(DeployError("sums differ"))})
    with pytest.raises(RolledBack, match=r"the savepoint was not migrated: sums differ\.\nRolled back: the script of"):
        migrated(target, ledger, migration)
    assert kinds(ledger)[7:] == ["migrating", "failed", "rolling-back", "rolled-back"]
    head, stopped = ledger.head(), next(each for each in ledger.entries() if isinstance(each, StoppedEntry))
    assert head is not None
    assert head.start.savepoint == stopped.stop.savepoint == target.starts[-1][1].savepoint
    assert target.starts[-1][0] == V1.script


@pytest.mark.parametrize("where", ["submit", "restore"])
def test_a_start_that_fails_goes_back_to_the_savepoint_of_the_stop(
    where: str, target: FakeCluster, ledger: Ledger
) -> None:
    target.fail = where
    if where == "submit":  # the first time only: the way back works

        def once() -> None:
            target.before["submit"] = lambda: setattr(target, "fail", "")

        target.before["submit"] = once
    with pytest.raises((RolledBack, StartFailed)):
        migrated(target, ledger, Rewriting())
    stopped = next(each for each in ledger.entries() if isinstance(each, StoppedEntry)).stop.savepoint
    assert target.starts[-1][1].savepoint == stopped
    failed = next(each for each in ledger.entries() if each.kind == "failed")
    assert failed.start.way_back == stopped  # type: ignore[attr-defined]
    assert failed.start.savepoint != stopped  # type: ignore[attr-defined]


@pytest.mark.parametrize("step", ["write", "rehearse"])
def test_a_retry_after_a_kill_writes_another_folder_and_deletes_the_first(
    step: str, target: FakeCluster, ledger: Ledger
) -> None:
    with pytest.raises(KeyboardInterrupt):
        migrated(target, ledger, Rewriting(before={step: raising(KeyboardInterrupt())}))
    first = next(each for each in ledger.entries() if isinstance(each, MigratingEntry)).migrated_to
    migration = Rewriting()
    entry = migrated(target, ledger, migration)
    assert [name for name, *_ in migration.done] == ["write", "rehearse"], "the job has stopped already"
    assert entry.start.savepoint == first.replace("migrated-1", "migrated-2")
    assert not Path(first.removeprefix("file:")).exists()
    assert sum(each.kind == "stopping" for each in ledger.entries()) == 1


def test_a_retry_after_a_kill_takes_what_was_written_whole(target: FakeCluster, ledger: Ledger) -> None:
    target.before["submit"] = raising(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        migrated(target, ledger, Rewriting())
    # The start was written down: it is taken up, whatever a migration would say now.
    migration = Rewriting()
    assert migrated(target, ledger, migration).start.savepoint.endswith("migrated-1")
    assert migration.done == []


def test_an_overtaken_start_finds_the_savepoint_that_was_written(target: FakeCluster, ledger: Ledger) -> None:
    migration = Rewriting()
    real = Ledger.append

    def dies(self: Ledger, entry: Any, **more: Any) -> Any:
        if entry.kind == "starting":
            raise KeyboardInterrupt
        return real(self, entry, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "append", dies)
        with pytest.raises(KeyboardInterrupt):
            migrated(target, ledger, migration)
    again = Rewriting()
    assert migrated(target, ledger, again).start.savepoint.endswith("migrated-1")
    assert again.done == []


def test_a_target_that_does_not_answer_is_asked_again(target: FakeCluster, ledger: Ledger) -> None:
    with pytest.raises(SubmissionUnknown):
        migrated(target, ledger, Rewriting(before={"write": raising(SubmissionUnknown("no answer"))}))
    assert kinds(ledger)[-1] == "migrating"
    assert migrated(target, ledger, Rewriting()).start.start_mode == "migrated"


def test_the_sizes_of_rewritten_state_say_nothing(target: FakeCluster, ledger: Ledger) -> None:
    """Operators may have other ids: what the former job's vertices held is not looked for in the new ones."""
    target.states["job-2", "completed"] = SnapshotStats("c", {"w": VertexState("sum", 1, 0)})
    target.states["job-1", "savepoint"] = SnapshotStats("s", {"v": VertexState("sum", 1, 100)})
    entry = migrated(target, ledger, Rewriting())
    assert "state sizes: not compared, because the former job's state was rewritten" in entry.evidence


def test_start_mode_and_migration_belong_together(target: FakeCluster, ledger: Ledger) -> None:
    with pytest.raises(DeployRefused, match="start mode migrated requires a migration"):
        run(target, ledger, V2, start_mode="migrated")
    with pytest.raises(DeployRefused, match="and no other start mode accepts a migration"):
        run(target, ledger, V2, start_mode="savepoint", migration=Rewriting())


def test_what_was_never_deployed_has_no_state_to_migrate(tmp_path: Path) -> None:
    with pytest.raises(DeployRefused, match="was never deployed"):
        migrated(FakeCluster(), Ledger(tmp_path / "empty", "orders"), Rewriting())


def test_a_rewritten_savepoint_goes_with_the_one_it_was_made_of(target: FakeCluster, ledger: Ledger) -> None:
    migrated(target, ledger, Rewriting(), keep_savepoints=1)
    (stopped,) = {each.stop.savepoint for each in ledger.entries() if isinstance(each, StoppedEntry)}
    assert surplus(ledger.entries(), 1) == (), "the way back, and what the job started from"
    run(target, ledger, V1, options={"savepoint_directory": "file:/elsewhere"})
    head = ledger.head()
    assert head is not None
    assert surplus(ledger.entries(), 1) == (stopped, f"{str(stopped).rpartition('/')[0]}/migrated-1")
