"""Runs from the earliest rows, on a target whose jobs with stand-ins have other operator ids."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_flinkcompat.deploy.rehearsal.restoring import Inconclusive
from airflow_flinkcompat.deploy.shadow.reference import FromStoredState, ReferenceRuns
from airflow_flinkcompat.exec_graph.stand_ins import StandInIds, StandIns
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.savepoint.metadata import OperatorState, SavepointMetadata
from airflow_flinkcompat.savepoint.replay import write_renamed
from airflow_flinkcompat.savepoint.store import read_metadata
from tests.unit.savepoint.test_replay import topics

DISCARDING, STORING, WRITER = "d" * 32, "e" * 32, "f" * 32


class WithStandIns:
    """A target and its runner, which records the operators of each savepoint from which a job starts."""

    def __init__(self, last: str, aggregate: str) -> None:
        self._last, self._aggregate = last, aggregate
        self.started: list[dict[str, bool]] = []
        self.skipped: frozenset[str] = frozenset()

    def catch_up_run(self, _job: JobSpec, _private: str) -> Any:
        return SimpleNamespace(watermarks=False)

    def shadow_run(self, _job: JobSpec, _private: str, _rows: str) -> Any:
        return SimpleNamespace(sinks=("totals",))

    def savepoint_at(self, location: str) -> str:
        return location

    def location(self, savepoint: str) -> str:
        return savepoint

    def left_aside(self, _job: str) -> frozenset[str]:
        return self.skipped

    def _start(self, savepoint: str) -> None:
        self.started.append({each.id: each.has_state for each in read_metadata(savepoint, headers=True).operators})

    def read_to_end(self, _t: Any, _w: Any, _c: Any, _name: str, savepoint: str, folder: str, _s: float) -> Any:
        """The job's own savepoint, in which the operators have the ids of a job that discards rows."""
        self._start(savepoint)
        own = f"{folder}/own"
        write_renamed(self._last, own, lambda id: DISCARDING if id == self._aggregate else id)
        head = read_metadata(own, headers=True)
        _write(own, replace(head, operators=(*map(_named, head.operators), replace(head.operators[0], id=WRITER))))
        return SimpleNamespace(savepoint=own)

    def run_to_end(self, _w: Any, _c: Any, _name: str, savepoint: str, _seconds: float) -> str:
        self._start(savepoint)
        return "job"


def _named(operator: OperatorState) -> OperatorState:
    return replace(operator, name="GroupAggregate[3]") if operator.id == DISCARDING else operator


def _write(folder: str, head: SavepointMetadata) -> None:
    (Path(folder) / "_metadata").write_bytes(head.to_bytes())


def test_state_gets_the_ids_of_each_kind_of_stand_ins(tmp_path: Path) -> None:
    first, last = topics(tmp_path, (3, 8))
    source, aggregate = (each.id for each in read_metadata(last).operators if each.has_state)
    ids = {
        StandIns.DISCARDING: StandInIds({source: source, aggregate: DISCARDING}, {WRITER}),
        StandIns.STORING: StandInIds({source: source, aggregate: STORING}, frozenset()),
    }
    target: Any = WithStandIns(last, aggregate)
    runs = ReferenceRuns(target, target, None, first, last, str(tmp_path), "run", "1", 1.0, print)  # type: ignore[arg-type]
    script = FromStoredState(JobSpec("SELECT 1"), (), ids)
    assert runs._rows(script, "new", {source: source}) == [("totals", f"{tmp_path}/reference-new/0")]
    beginning, replay = target.started
    assert beginning == {source: True}
    assert {id for id, has_state in replay.items() if has_state} == {source, STORING}
    assert WRITER not in replay, "the stand-in of the first run"
    target.skipped = frozenset({STORING})
    with pytest.raises(Inconclusive, match="does not restore all of its own state"):
        runs._rows(script, "new", {source: source})
