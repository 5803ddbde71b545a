"""Comparison of the state of two lines: equal, different, and not comparable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat import state
from airflow_flinkcompat.deploy.rehearsal import rows, sequence
from airflow_flinkcompat.deploy.rehearsal.report import Rehearsal
from airflow_flinkcompat.deploy.rehearsal.rows import compare_state_rows
from airflow_flinkcompat.model import RehearsalFinding
from airflow_flinkcompat.savepoint.binary import KeyedStateKind
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedState
from dev.measure.savepoint_fixtures import SAVEPOINTS
from tests.support.savepoint.savepoints import edited
from tests.unit.deploy.rehearsal import test_sequence as staged

SCRIPT = "INSERT INTO k SELECT a, SUM(b) FROM orders GROUP BY a;"


def savepoint(name: str, line: str = "2.3") -> Path:
    return next((SAVEPOINTS / line / name).rglob("_metadata")).parent


def without_names(savepoint: Any) -> Any:
    """The savepoint as Flink 1.20 writes it."""
    return replace(savepoint, operators=tuple(replace(each, name="") for each in savepoint.operators))


def with_another_number(folder: Path) -> Path:
    folder.mkdir()
    seen: list[bytes] = []

    def change(store: KeyedState, entry: Entry) -> Entry:
        if store.kind is not KeyedStateKind.VALUE or seen:
            return entry
        seen.append(entry.key)
        return entry._replace(value=entry.value[:12] + b"\x63" + entry.value[13:])

    return edited(savepoint("tumble"), folder, change)


def test_equal_state_without_names_of_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    group = str(savepoint("group"))
    opened = iter((without_names(state.open_savepoint(group)), state.open_savepoint(group)))
    monkeypatch.setattr(state, "open_savepoint", lambda _path: next(opened))
    assert compare_state_rows(SCRIPT, group, group) == ("", "the rows of 3 states, after both lines read the same rows")


def test_a_different_row_is_counted(tmp_path: Path) -> None:
    old, new = str(savepoint("tumble")), str(with_another_number(tmp_path / "new"))
    difference, _ = compare_state_rows(SCRIPT, old, new)
    assert difference.startswith(
        "from the same rows, both lines computed different rows of the state window-aggs of GlobalWindowAggregate: "
        "1 changed (columns: field_0). The difference is no fault if"
    )


@pytest.mark.parametrize(
    ("script", "old", "words"),
    [
        (SCRIPT, "1.20", "new rows arrived, so both jobs read different rows"),
        (SCRIPT.replace("SUM(b)", "MAX(NOW())"), "2.3", "the script uses NOW"),
    ],
)
def test_other_rows_and_clocks_are_not_compared(script: str, old: str, words: str) -> None:
    found = compare_state_rows(script, str(savepoint("group", old)), str(savepoint("group")))
    assert found == ("", f"the rows of the state were not compared: {words}")


def test_large_and_missing_savepoints_are_not_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    group = str(savepoint("group"))
    assert compare_state_rows(SCRIPT, group, str(tmp_path))[1].startswith("the rows of the state were not compared: ")
    monkeypatch.setattr(rows, "_MOST_BYTES", 10)
    assert compare_state_rows(SCRIPT, group, group)[1].endswith("exceed the limit of 10 bytes")


@pytest.mark.parametrize(
    ("version", "finding"), [("2.3", RehearsalFinding.REFUSED), ("1.20", RehearsalFinding.RESTORED)]
)
def test_a_different_row_between_lines_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch, version: str, finding: RehearsalFinding
) -> None:
    monkeypatch.setattr(sequence, "compare_state_rows", lambda script, old, new: ("1 different row", f"{old}, {new}"))
    monkeypatch.setattr(staged, "OLD_SIDE", replace(staged.OLD_SIDE, engine_version="1.20.3"))
    monkeypatch.setattr(staged, "NEW_SIDE", replace(staged.NEW_SIDE, engine_version=version))
    result: Rehearsal = staged.found(staged.PlannedRestoreTest(), monkeypatch)
    assert result.finding is finding
    if finding is RehearsalFinding.REFUSED:
        assert (result.at, result.reason) == ("rows", "1 different row")
        assert result.lines()[:2] == (
            "REHEARSAL: wrong rows: the new line computes other state than the old line from the same rows",
            "  reason: 1 different row",
        )
