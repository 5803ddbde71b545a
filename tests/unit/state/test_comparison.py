"""Differences of savepoints whose keys and values are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.migration import migrate_savepoint
from airflow_flinkcompat.savepoint.keyed_state import Entry, open_keyed, read_entries
from airflow_flinkcompat.savepoint.metadata import Inline
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.state import compare, open_savepoint
from dev.measure.savepoint_fixtures import FOLDER, NOW, SAVEPOINTS, change
from dev.stored_rows import write_entries

STORED = sorted(path.parent for path in SAVEPOINTS.rglob("_metadata"))
ADDED = "a-metric-is-added-to-a-tumbling-window"


def edited(tmp_path: Path) -> Path:
    """The fixture without its first entry, and with another number in its second one."""
    metadata = read_metadata(str(FOLDER / ADDED / "old"))
    operators = []
    seen = 0
    for operator in metadata.operators:
        subtasks = []
        for subtask in operator.subtasks or ():
            if subtask.keyed is None:
                subtasks.append(subtask)
                continue
            with open_keyed(subtask.keyed, str(FOLDER / ADDED / "old")) as file:
                content, begins = bytearray(file.header.stored), [0] * len(subtask.keyed.begins)
                for number, group in file.groups():
                    entries = []
                    for entry in read_entries(group):
                        seen += entry.state == 0
                        if entry.state == 0 and seen == 1:
                            continue
                        changed = entry.state == 0 and seen == 2
                        entries.append(Entry(*entry[:2], entry.value[:-8] + b"\x63" + bytes(7)) if changed else entry)
                    if entries:
                        begins[number - subtask.keyed.first] = len(content)
                        content += write_entries(entries)
            keyed = replace(subtask.keyed, begins=tuple(begins), handle=Inline("keyed", bytes(content)))
            subtasks.append(replace(subtask, keyed=keyed))
        operators.append(replace(operator, subtasks=tuple(subtasks)))
    (tmp_path / "_metadata").write_bytes(replace(metadata, operators=tuple(operators)).to_bytes())
    return tmp_path


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_savepoint_equals_itself(path: Path) -> None:
    savepoint = open_savepoint(str(path))
    assert not any(compare(savepoint, savepoint))


def test_a_removed_and_a_changed_key(tmp_path: Path) -> None:
    first, second = (open_savepoint(str(path)) for path in (FOLDER / ADDED / "old", edited(tmp_path)))
    (found, *equal) = compare(first, second)
    assert (found.added, found.removed, found.changed, dict(found.columns)) == (0, 1, 1, {"field_1": 1})
    assert not any(equal)
    assert found.rows is not None
    by_change = {row["change"]: row for row in found.rows.to_pylist()}
    assert by_change["changed"]["field_1 (second)"] == 99
    assert by_change["removed"]["field_1 (second)"] is None
    (back, *_) = compare(second, first)
    assert (back.added, back.removed, back.changed) == (1, 0, 1)


def test_a_migrated_savepoint_has_a_new_column_alone(tmp_path: Path) -> None:
    old, template, new = FOLDER / ADDED / "old", FOLDER / ADDED / "template", tmp_path / "new"
    migrate_savepoint(str(old), str(template), str(new), change(ADDED), NOW)
    (found, *equal) = compare(open_savepoint(str(old)), open_savepoint(str(new)))
    assert (found.added, found.removed, found.changed, found.new_columns) == (0, 0, 0, ("field_2",))
    assert not any(equal)
