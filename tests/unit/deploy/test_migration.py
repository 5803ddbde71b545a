"""What rewrites the savepoint of a redeploy: what it refuses, and what it writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side as Script
from airflow_flinkcompat.deploy import DeployRefused, savepoint_writing
from airflow_flinkcompat.deploy import migration as module
from airflow_flinkcompat.deploy.errors import DeployError, SavepointFailed, TargetError
from airflow_flinkcompat.deploy.migration import SavepointMigration
from airflow_flinkcompat.deploy.savepoint_writing import SavepointWriting
from airflow_flinkcompat.deploy.target import Operation, SnapshotStats, Verb, VertexState
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.deploy.warm_restart import WarmRestart
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.migration.downtime import Downtime
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.store import read_metadata
from tests.unit.deploy.rehearsal.test_restoring import Watched

FOLDER = Path(__file__).parents[2] / "fixtures" / "migrations"
ADDED = FOLDER / "a-metric-is-added-to-a-tumbling-window"


def of(
    monkeypatch: pytest.MonkeyPatch,
    old: Path = ADDED,
    at_least: MigrationExtent = MigrationExtent.PARTIAL,
    jobs: int = 1,
) -> Any:
    """A migration between scripts of fixtures, whose plans and template stand for a target's own."""
    plans = tuple(
        (read_plan((case / f"{side}.json").read_text("utf-8")),) for case, side in ((old, "old"), (ADDED, "new"))
    )
    monkeypatch.setattr(savepoint_writing, "explain_plans", lambda *_, **__: (plans[0] * jobs, plans[1]))
    monkeypatch.setattr(savepoint_writing, "kept_template", lambda *_: ADDED / "template")
    sides = (
        Script((case / f"{side}.sql").read_text("utf-8"), engine="flink")
        for case, side in ((old, "old"), (ADDED, "new"))
    )
    target = SimpleNamespace(describe=lambda _: None, slots=lambda: SimpleNamespace(free=4, total=4))
    cluster: Any = SimpleNamespace(
        target=target, restore_test_target=target, location=TargetLocation(), temporary=False
    )
    said: list[str] = []
    made = SavepointMigration(*sides, cluster, None, at_least=at_least, plan_dir=None, rehearsed=False, log=said.append)
    return made, said


def test_it_says_what_is_kept_and_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, said = of(monkeypatch)
    made.prepare()
    assert "    begins now MAX(d)" in said
    kept = made.write(str(ADDED / "old"), f"{tmp_path}/new", None)
    assert (kept["kept"], [each.split()[0] for each in kept["entries"]]) == ("partial", ["global-window-aggregate"])
    (sums,) = kept["sums"].values()
    assert {len(each) for each in sums.values()} == {32}
    assert set(*map(set, kept["entries"].values())) <= set(sums)
    assert read_metadata(f"{tmp_path}/new").operators
    assert said[-1].endswith("entries rewritten, read back and found equal")
    assert made.rehearse("anything") == "not rehearsed"


def test_less_than_was_decided_on_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = of(monkeypatch, at_least=MigrationExtent.WHOLE)
    with pytest.raises(
        DeployRefused, match=r"keeps less state than was decided \(partial, not whole\): global-window-agg"
    ):
        made.prepare()


def test_what_cannot_be_kept_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = of(monkeypatch, FOLDER / "a-metric-is-added-to-sessions")
    with pytest.raises(DeployRefused, match="its rows, windows or conditions changed"):
        made.prepare()


def test_one_job_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = of(monkeypatch, jobs=2)
    with pytest.raises(DeployRefused, match="one of the scripts defines several"):
        made.prepare()


def test_a_savepoint_that_cannot_be_read_is_no_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = of(monkeypatch)
    with pytest.raises(DeployError, match=r"nowhere/_metadata cannot be read from here"):
        made.write(str(tmp_path / "nowhere"), f"{tmp_path}/new", None)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_is_no_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The former job has stopped by then, and goes on where this is told as an error of the deployment."""
    made, _ = of(monkeypatch)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(DeployError, match=r"file/new cannot be written from here \(NotADirectoryError"):
        made.write(str(ADDED / "old"), f"{tmp_path}/file/new", None)


def test_a_plan_that_is_not_understood_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = of(monkeypatch)

    def unknown(*_: object, **_more: object) -> None:
        raise InputError("written in an unknown way")

    monkeypatch.setattr(module, "migrations", unknown)
    with pytest.raises(DeployRefused, match="written in an unknown way"):
        made.prepare()


def test_a_planner_elsewhere_is_told_what_the_cluster_of_the_job_is_set_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is opened once; one that was started for this alone is the same each time, so its template is kept."""
    made, said = of(monkeypatch)
    made._cluster.target.cluster_options = lambda _=None: {
        "table.exec.state.ttl": "1 d",
        "pipeline.max-parallelism": "64",
        "pipeline.jars": "/opt/a.jar",
        "rest.port": "1",
    }
    planner: Any = SimpleNamespace(target="the planner", location=TargetLocation("planner"), temporary=True)
    opened: list[str] = []
    made._planner = lambda: opened.append("opened") or planner
    plan, asked = savepoint_writing.explain_plans, []
    monkeypatch.setattr(
        savepoint_writing, "explain_plans", lambda *given, **more: asked.append(given) or plan(*given, **more)
    )
    monkeypatch.setattr(savepoint_writing, "kept_template", lambda *given: asked.append(given) or ADDED / "template")
    made.prepare()
    made.write(str(ADDED / "old"), f"{tmp_path}/new", None)
    (old, new, planned_by), (side, where, options, *_), *_ = asked
    assert (planned_by, opened) == ("the planner", ["opened"])
    assert old.settings == new.settings == side.settings == {
        "table.exec.state.ttl": "1 d", "pipeline.max-parallelism": "64",
    }  # fmt: skip
    assert (where, options) == (None, {})
    assert said[0] == "the planner compiles both scripts to find the state that can be kept"


class Live:
    """A target that takes a savepoint of the live job, which lies at ``place``; None: it fails to."""

    def __init__(self, place: Path | None, watcher: Watched) -> None:
        self.place, self.watcher, self.disposed = place, watcher, list[str]()

    def savepoint(self, job: str, request_id: str, directory: str | None) -> Operation:
        assert self.watcher.started.operations == {request_id: Operation(Verb.SAVEPOINT, request_id, job)}
        if self.place is None:
            raise TargetError("the job restarts")
        return Operation(Verb.SAVEPOINT, request_id, job, directory=directory)

    def poll(self, operation: Operation) -> Operation:
        if self.place is None:
            raise SavepointFailed("there is no such savepoint")
        return replace(operation, snapshot=str(self.place))

    def _never(self, *_: Any) -> Any:
        raise AssertionError("only savepoints of the live job are taken")

    engine = validate = start = stop = status = running = cancel = restored_from = _never

    def location(self, snapshot: str) -> str:
        return snapshot

    def dispose(self, snapshot: str) -> None:
        self.disposed.append(snapshot)

    def savepoint_root(self) -> None: ...

    def final_savepoint(self, job: str) -> None: ...

    def savepoint_at(self, location: str) -> str:
        return location

    def describe(self, job: str) -> None: ...

    def snapshot_stats(self, job: str, kind: str) -> SnapshotStats:
        assert kind == "completed"
        return SnapshotStats("chk-7", {"a": VertexState("orders", 2, 200), "b": VertexState("totals", 4, 12 << 30)})

    def request_checkpoint(self, job: str) -> None: ...

    def slots(self) -> SimpleNamespace:
        return SimpleNamespace(free=4, total=4)


def with_live_job(made: Any, place: Path | None, monkeypatch: pytest.MonkeyPatch) -> Live:
    made._live, watcher = "job-1", Watched()
    monkeypatch.setattr(module, "Watcher", lambda _, *, own: own and watcher)
    made._cluster.target = made._cluster.restore_test_target = target = Live(place, watcher)
    return target


def test_the_plan_is_compared_with_a_savepoint_of_the_live_job(monkeypatch: pytest.MonkeyPatch) -> None:
    made, said = of(monkeypatch)
    target = with_live_job(made, ADDED / "old", monkeypatch)
    assert made.prepare() is None
    assert said[-3:-1] == [
        "taking a savepoint of job job-1, which keeps running",
        "the savepoint of job job-1 contains the state that its plan predicts",
    ]
    assert re.match(r"Expected downtime: about \d+ s for [\d,]+ bytes of state \(stop 1 s, rewrite", said[-1])
    assert target.disposed == [str(ADDED / "old")]


def test_the_savepoint_of_the_live_job_is_announced_until_it_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process deletes it if this process is killed before it is complete, or while it is read."""
    made, _ = of(monkeypatch)
    target = with_live_job(made, ADDED / "old", monkeypatch)
    with made.compared() as place:
        (announced,) = target.watcher.started.operations.values()
        assert (announced.snapshot, place, target.disposed) == (str(ADDED / "old"), str(ADDED / "old"), [])
    assert not target.watcher.started.operations


@pytest.mark.parametrize(
    ("when", "rewrite", "rehearse", "caught_up"),
    [
        (True, 2.5, 0, False),
        (True, 2.7, 0, True),
        (True, 0.1, 8, True),
        ("always", 0.1, 0, True),
        (False, 90, 90, False),
    ],
)
def test_a_job_catches_up_if_that_takes_less_time_than_a_migration_after_the_stop(
    when: bool | str, rewrite: float, rehearse: float, caught_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, said = of(monkeypatch)
    with_live_job(made, ADDED / "old", monkeypatch)
    monkeypatch.setattr(module, "expected_downtime", lambda *_, **__: Downtime(1 << 20, 1, rewrite, rehearse, 2))
    monkeypatch.setattr(SavepointMigration, "_prepare_catch_up", lambda *_: "rounds")
    made._catch_up, made._hold = when, print
    assert made.prepare() == ("rounds" if caught_up else None)
    numbers = "the savepoint of the stop is migrated, because this takes about 2.5 s, and a catch-up 2.6 s"
    assert (numbers in said) == (when is True and not caught_up)


def test_state_from_history_catches_up_whatever_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of its computation is not predicted."""
    made, _ = of(monkeypatch)
    monkeypatch.setattr(SavepointMigration, "_computes", True)
    made._expected = Downtime(0, 0, 0, 0, 0)
    assert made._pays_off()


def test_a_live_savepoint_that_holds_something_else_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = of(monkeypatch)
    target = with_live_job(made, FOLDER / "a-metric-is-added-to-sessions" / "old", monkeypatch)
    with pytest.raises(
        DeployRefused, match=r"the job keeps running, .*the old plan has this operator, .*, but the savepoint"
    ):
        made.prepare()
    assert len(target.disposed) == 1


def test_a_template_that_holds_something_else_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = of(monkeypatch)
    monkeypatch.setattr(savepoint_writing, "kept_template", lambda *_: ADDED / "old")
    with pytest.raises(
        DeployRefused, match=r"the job keeps running, .*the new plan predicts .*, but the template contains"
    ):
        made.prepare()


def test_where_no_live_savepoint_can_be_had_the_one_of_the_stop_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, said = of(monkeypatch)
    with_live_job(made, None, monkeypatch)
    assert made.prepare() is None
    assert said[-2] == "the plan is compared later, with the savepoint of the stop: the job restarts"
    assert re.match(r"Expected downtime: about \d+ min for 12\.0 GB of state \(stop ", said[-1])
    other = FOLDER / "a-metric-is-added-to-sessions" / "old"
    with pytest.raises(DeployError, match=r"the old plan has this operator, .*, but the savepoint does not"):
        made.write(str(other), f"{tmp_path}/new", None)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("error", [InputError, NotMigratable, ValueError])
def test_a_restart_whose_history_cannot_be_read_stops_nothing(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read for the first time before that."""

    class Unreadable:
        @contextmanager
        def ready(self) -> Iterator[None]:
            raise error("orders: there is no such topic")
            yield

    monkeypatch.setattr(WarmRestart, "_start", Unreadable())
    monkeypatch.setattr(SavepointWriting, "prepare", lambda self: None)
    cluster: Any = SimpleNamespace(target=None)
    with ExitStack() as opened:
        restart = WarmRestart(
            Script("SELECT 1", engine="flink"),
            cluster,
            None,
            lambda *_: pytest.fail("it is made already"),
            plan_dir=None,
            rehearsed=False,
            hold=opened.enter_context,
            log=print,
        )
        with pytest.raises(DeployRefused, match=r"the job keeps running, because .*: orders: there is no such topic"):
            restart.prepare()
