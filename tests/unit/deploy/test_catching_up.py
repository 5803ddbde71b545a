"""Rounds in which a changed script catches up with the live job, and the fallback after the stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_flinkcompat.deploy import catching_up as module
from airflow_flinkcompat.deploy.catching_up import CatchUp, folder_of_rounds, latest_round
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.migration import SavepointMigration
from airflow_flinkcompat.deploy.rehearsal.restoring import Inconclusive
from airflow_flinkcompat.deploy.savepoint_writing import SavepointWriting
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.exec_graph.migration import Migration, OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.stand_ins import UNKNOWN_IDS
from tests.unit.deploy.rehearsal.test_restoring import Watched
from tests.unit.deploy.test_migration import Live

NEW: Any = SimpleNamespace(source="new.sql")
CLUSTER: Any = SimpleNamespace(shadow_target=SimpleNamespace(jobs=lambda: ()))


@pytest.fixture
def advance(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, str, str]]]:
    """Replace a round by one that takes ``seconds`` and writes an empty savepoint."""

    def replaced(*seconds: float) -> list[tuple[str, str, str]]:
        done: list[tuple[str, str, str]] = []
        times = iter([time for each in seconds for time in (0.0, each)])
        monkeypatch.setattr(module.time, "monotonic", lambda: next(times))

        def advanced(self: CatchUp, state: str, last: str, folder: str, seconds: float) -> None:
            done.append((state[-1], last[-1], folder[-1]))
            Path(folder).mkdir()
            (Path(folder) / "_metadata").touch()

        monkeypatch.setattr(CatchUp, "advance", advanced)
        return done

    return replaced


def caught_up(base: Path) -> list[str]:
    """Run all rounds. Return the lines about their progress."""
    said: list[str] = []
    (base / "0").mkdir(parents=True)
    taken = iter("abcde")

    def savepoint() -> str:
        folder = base / next(taken)
        folder.mkdir()
        return str(folder)

    CatchUp(CLUSTER, "live", NEW, Migration(()), UNKNOWN_IDS, said.append).rounds(str(base), savepoint)
    return said


def test_the_last_round_is_short(tmp_path: Path, advance: Callable[..., list[tuple[str, str, str]]]) -> None:
    done = advance(100, 40, 5)
    assert len(caught_up(tmp_path / "base")) == 3
    assert done == [("0", "a", "1"), ("1", "b", "2"), ("2", "c", "3")]
    assert sorted(each.name for each in (tmp_path / "base").iterdir()) == ["3", "c"], "the last round needs both"
    assert latest_round(str(tmp_path / "base")) == f"{tmp_path}/base/3"


@pytest.mark.parametrize(("seconds", "rounds"), [((100, 60), 2), ((900, 400, 190, 90, 40), 5)])
def test_more_rounds_do_not_help(
    seconds: tuple[float, ...], rounds: int, tmp_path: Path, advance: Callable[..., list[tuple[str, str, str]]]
) -> None:
    done = advance(*seconds)
    caught_up(tmp_path / "base")
    assert len(done) == rounds


def test_a_source_with_watermarks_is_refused() -> None:
    made = CatchUp(CLUSTER, "live", NEW, Migration(()), UNKNOWN_IDS, print)
    made.__dict__["_run"] = SimpleNamespace(watermarks=True)
    with pytest.raises(Inconclusive, match="a source has watermarks"):
        made.check()


def state(name: str, kind: StateKind = StateKind.OPERATOR) -> OperatorMigration:
    spec = StateSpec(kind, name, "1")
    return OperatorMigration(RestoreEffect.RIGHT, spec, spec, "")


@pytest.mark.parametrize("name", ["interval-join", "over-aggregate", "lookup-join", "group-window-aggregate", "new"])
def test_operators_that_emit_by_timers_are_refused(name: str) -> None:
    lines = state("orders", StateKind.POSITIONS), state("group-aggregate"), state("join")
    made = CatchUp(CLUSTER, "live", NEW, Migration(lines), UNKNOWN_IDS, print)
    made.__dict__["_run"] = SimpleNamespace(watermarks=False)
    made.check()
    made = replace(made, migration=Migration((*lines, state(name))))
    made.__dict__["_run"] = SimpleNamespace(watermarks=False)
    with pytest.raises(Inconclusive, match=f"^{name} can emit rows by processing time or wait for answers"):
        made.check()


@pytest.mark.parametrize("fails", ["check", "rounds"])
def test_a_script_that_cannot_catch_up_is_migrated_after_the_stop(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(*_: Any) -> None:
        raise Inconclusive("a source has watermarks")

    monkeypatch.setattr(CatchUp, "check", lambda self: None)
    monkeypatch.setattr(CatchUp, fails, raises)
    monkeypatch.setattr(SavepointMigration, "_missing_slots", lambda self: "")
    monkeypatch.setattr(SavepointWriting, "write", lambda self, *given: Path(given[1]).mkdir(parents=True))
    said: list[str] = []
    with ExitStack() as opened:
        made = migration(said, opened)
        made._cluster = SimpleNamespace(location=TargetLocation(), target=Live(None, Watched()))
        assert made._prepare_catch_up(opened.enter_context, f"{tmp_path}/savepoint") is None
    assert said == [
        "the savepoint of the stop is migrated, because the new script cannot catch up: a source has watermarks"
    ]
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("folders", [(), ("0",), ("0", "base", "x")])
def test_no_round_is_complete(folders: tuple[str, ...], tmp_path: Path) -> None:
    for each in folders:
        (tmp_path / each).mkdir()
        (tmp_path / each / "_metadata").touch()
    assert latest_round(str(tmp_path)) is None
    assert latest_round(f"{tmp_path}/absent") is None


def test_folders_of_killed_runs_are_deleted(tmp_path: Path) -> None:
    left, other = folder_of_rounds(str(tmp_path), "orders/1"), folder_of_rounds(str(tmp_path), "orders/10")
    for each in (left, other):
        Path(each, "0").mkdir(parents=True)
    assert folder_of_rounds(str(tmp_path), "orders/1") not in (left, other)
    assert [str(each) for each in tmp_path.iterdir()] == [other]


def migration(said: list[str], opened: ExitStack) -> Any:
    """A migration that catches up, without its plans."""
    made: Any = object.__new__(SavepointMigration)
    made._catch_up, made._caught_up, made._hold, made._log = True, False, opened.enter_context, said.append
    made._prepared, made._history, made._live = None, None, "orders"
    made.__dict__["_catching_up"] = CatchUp(CLUSTER, "live", NEW, Migration(()), UNKNOWN_IDS, said.append)
    return made


def test_the_savepoint_of_the_stop_is_migrated_if_the_script_does_not_catch_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The retry of a killed run finds the prepared state, and deletes it in the end."""
    base, folder, said = tmp_path / "base", tmp_path / "migrated", list[str]()
    (base / "1").mkdir(parents=True)
    (base / "1" / "_metadata").touch()

    def fails(self: CatchUp, state: str, last: str, folder: str, seconds: float) -> None:
        assert state == f"{base}/1"
        Path(folder).mkdir()
        raise DeployError("no free slots")

    monkeypatch.setattr(CatchUp, "advance", fails)
    monkeypatch.setattr(SavepointWriting, "write", lambda self, *given: {"written": given, "left": folder.exists()})
    with ExitStack() as opened:
        found = migration(said, opened).write("stop", str(folder), str(base))
        assert base.exists()
    assert found == {"written": ("stop", str(folder), None), "left": False}
    assert said == [
        "the whole savepoint of the stop is migrated, because the new script did not catch up: no free slots"
    ]
    assert not base.exists()
