"""Runs from the earliest rows: operator ids of jobs with stand-ins, and columns that may differ as in the control."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airflow_flinkcompat.deploy import JobStatus
from airflow_flinkcompat.deploy.rehearsal import restoring
from airflow_flinkcompat.deploy.rehearsal.restoring import Inconclusive, RestoreRunner, Timeouts
from airflow_flinkcompat.deploy.rehearsal.waiting import Journal
from airflow_flinkcompat.deploy.shadow import reference
from airflow_flinkcompat.deploy.shadow.reference import FromStoredState, ReferenceRuns
from airflow_flinkcompat.deploy.shadow.report import StateComparison
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding
from airflow_flinkcompat.deploy.target import JobRef, Operation, SinkTable, Snapshot, Verb
from airflow_flinkcompat.exec_graph.stand_ins import UNKNOWN_IDS, StandInIds, StandIns
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.savepoint.metadata import OperatorState, SavepointMetadata
from airflow_flinkcompat.savepoint.replay import write_renamed
from airflow_flinkcompat.savepoint.store import read_metadata
from tests.unit.savepoint.test_replay import topics

DISCARDING, STORING, WRITER = "d" * 32, "e" * 32, "f" * 32


class WithStandIns:
    """A target and its watcher, which records the operators of each savepoint from which a job starts."""

    def __init__(self, last: str, aggregate: str) -> None:
        self._last, self._aggregate = last, aggregate
        self.started: list[dict[str, bool]] = []
        self.announced: list[str] = []
        self.skipped: frozenset[str] = frozenset()

    def catch_up_run(self, _job: JobSpec, _private: str) -> Any:
        return SimpleNamespace(watermarks=False, start=self._start)

    def shadow_run(self, _job: JobSpec, _private: str, _rows: str) -> Any:
        return SimpleNamespace(sinks=("totals",), start=self._start)

    def announce(self, _operation: Operation) -> None: ...

    def submitting(self, _start: Operation) -> AbstractContextManager[None]:
        return nullcontext()

    def announce_folder(self, folder: str) -> None:
        self.announced.append(folder)

    def status(self, job: JobRef) -> JobStatus:
        return JobStatus(job, "run", "RUNNING" if "earliest" in job else "FINISHED", tasks_running=True)

    def cancel(self, job: JobRef) -> None: ...

    def savepoint_at(self, location: str) -> str:
        return location

    def location(self, savepoint: str) -> str:
        return savepoint

    def left_aside(self, _job: str) -> frozenset[str]:
        return self.skipped

    def _start(self, name: str, savepoint: str, request: str, *, ignore_unclaimed: bool) -> Operation:
        assert ignore_unclaimed
        self.started.append({each.id: each.has_state for each in read_metadata(savepoint, headers=True).operators})
        return Operation(Verb.START, request, JobRef(name))

    def native_savepoint(self, job: JobRef, request: str, folder: str) -> None:
        """The job's own savepoint, in which the operators have the ids of a job that discards rows."""
        own = f"{folder}/own"
        write_renamed(self._last, own, lambda id: DISCARDING if id == self._aggregate else id)
        head = read_metadata(own, headers=True)
        _write(own, replace(head, operators=(*map(_named, head.operators), replace(head.operators[0], id=WRITER))))
        self._own = own

    def poll(self, asked: Operation) -> Operation:
        return replace(asked, snapshot=Snapshot(self._own))


def _named(operator: OperatorState) -> OperatorState:
    return replace(operator, name="GroupAggregate[3]") if operator.id == DISCARDING else operator


def _write(folder: str, head: SavepointMetadata) -> None:
    (Path(folder) / "_metadata").write_bytes(head.to_bytes())


def test_state_gets_the_ids_of_each_kind_of_stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "reached_end", lambda _: True)
    first, last = topics(tmp_path, (3, 8))
    source, aggregate = (each.id for each in read_metadata(last).operators if each.has_state)
    ids = {
        StandIns.DISCARDING: StandInIds({source: source, aggregate: DISCARDING}, {WRITER}),
        StandIns.STORING: StandInIds({source: source, aggregate: STORING}, frozenset()),
    }
    target: Any = WithStandIns(last, aggregate)
    runner = RestoreRunner(target, Timeouts(), Journal())
    runs = ReferenceRuns(target, runner, target, first, last, str(tmp_path), "run", "1", 1.0, print)
    script = FromStoredState(JobSpec("SELECT 1"), (), ids)
    assert runs._rows(script, "new", {source: source}) == [("totals", f"{tmp_path}/reference-new/0")]
    beginning, replay = target.started
    assert beginning == {source: True}
    assert {id for id, has_state in replay.items() if has_state} == {source, STORING}
    assert WRITER not in replay, "the stand-in of the first run"
    assert [Path(each).name[:-33] for each in target.announced] == ["beginning-new", "replay-new"], "the renamed copies"
    target.skipped = frozenset({STORING})
    with pytest.raises(Inconclusive, match="does not restore all state of the query"):
        runs._rows(script, "new", {source: source})


# --- columns that may differ, as the run of the old script shows ---
COLUMNS = {"who": "VARCHAR(2147483647)", "revenue": "INT", "updated": "VARCHAR(2147483647)"}
KEYED, KEYLESS = (SinkTable(("c", "d", "totals"), COLUMNS, key) for key in (("who",), ()))
OTHER = SinkTable(("c", "d", "others"), COLUMNS, ("who",))
Rows = Sequence[tuple[int, str]]
JOB = JobSpec("", engine="flink", engine_version="2.3.0", source="a.sql")


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compares rows of both scripts, each from the stored state and from all rows."""
    monkeypatch.setattr(reference, "read_metadata", lambda _: SimpleNamespace(operators=[]))
    monkeypatch.setattr(reference, "source_ids", lambda *_: {})
    runs = ReferenceRuns(cast(Any, None), cast(Any, None), cast(Any, None), "", "", "", "", "", 1.0, print)

    def written(name: str, tables: Sequence[tuple[SinkTable, Rows]]) -> list[tuple[SinkTable, str]]:
        for number, (_, rows) in enumerate(tables):
            folder = tmp_path / name / str(number)
            folder.mkdir(parents=True)
            changes = [
                {"before": None, "after": {"who": f"w{at}", "revenue": revenue, "updated": updated}, "op": "c"}
                for at, (revenue, updated) in enumerate(rows)
            ]
            (folder / "part-a-0-0").write_text("".join(f"{json.dumps(each)}\n" for each in changes))
        return [(sink, str(tmp_path / name / str(number))) for number, (sink, _) in enumerate(tables)]

    def compare(
        old: Sequence[tuple[SinkTable, Rows, Rows]],
        new: Sequence[tuple[SinkTable, Rows, Rows]],
        expected: Sequence[str] = ("revenue", "updated"),
    ) -> StateComparison:
        stored = {
            role: written(f"stored {role}", [(sink, rows) for sink, rows, _ in tables])
            for role, tables in (("old", old), ("new", new))
        }
        again = {
            role: written(f"again {role}", [(sink, rows) for sink, _, rows in tables])
            for role, tables in (("old", old), ("new", new))
        }
        monkeypatch.setattr(ReferenceRuns, "_rows", lambda _self, _script, role, _ids: again[role])
        first, second = (FromStoredState(JOB, stored[role], UNKNOWN_IDS) for role in ("old", "new"))
        return runs.compare(first, second, ({}, {}), expected)

    return compare


CLOCK = ([(5, "12:00")], [(5, "12:01")])


@pytest.mark.parametrize("sink", [KEYED, KEYLESS])
def test_an_expected_column_that_is_equal_in_the_control_must_be_equal(compared: Any, sink: SinkTable) -> None:
    found = compared([(sink, *CLOCK)], [(sink, [(1007, "12:00")], [(7, "12:02")])])
    assert found.finding is ShadowFinding.DIFFERS
    assert found.sinks[0].expected == ("updated",)


@pytest.mark.parametrize("sink", [KEYED, KEYLESS])
def test_a_column_that_differs_in_the_control_may_differ(compared: Any, sink: SinkTable) -> None:
    found = compared([(sink, *CLOCK)], [(sink, [(7, "12:00")], [(7, "12:02")])])
    assert found.finding is ShadowFinding.EXPECTED
    assert found.headline == (
        "STATE: differs as expected: only in columns of --expect that also differ for the old script"
    )


def test_a_column_may_differ_only_in_the_sink_of_the_control(compared: Any) -> None:
    same = ([(5, "12:00")], [(5, "12:00")])
    found = compared([(KEYED, *CLOCK), (OTHER, *same)], [(KEYED, *CLOCK), (OTHER, *CLOCK)])
    assert [each.finding for each in found.sinks] == [ShadowFinding.EXPECTED, ShadowFinding.DIFFERS]
    assert found.finding is ShadowFinding.DIFFERS


def test_columns_that_differ_only_together_are_not_all_excused(compared: Any) -> None:
    crossed = ([(1, "a"), (2, "b")], [(1, "b"), (2, "a")])
    sink = SinkTable(KEYLESS.path, {name: kind for name, kind in COLUMNS.items() if name != "who"})
    found = compared([(sink, *crossed)], [(sink, *crossed)])
    assert found.finding is ShadowFinding.EXPECTED
    assert len(found.sinks[0].expected) == 1


def test_rows_that_differ_in_other_columns_have_no_control(compared: Any) -> None:
    found = compared([(KEYED, *CLOCK)], [(KEYED, *CLOCK)], ("revenue",))
    assert found.finding is ShadowFinding.INCONCLUSIVE
    assert "even the old script writes other rows" in found.reason


def test_without_rows_nothing_is_known_about_the_state(compared: Any) -> None:
    found = compared([(KEYED, *CLOCK)], [(KEYED, [], [])])
    assert found.finding is ShadowFinding.INCONCLUSIVE
    assert "wrote no row" in found.reason
