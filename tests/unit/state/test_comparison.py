"""Differences of savepoints whose keys and values are known."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from airflow_flinkcompat.migration import migrate_savepoint
from airflow_flinkcompat.savepoint.binary import KeyedStateKind
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedState
from airflow_flinkcompat.state import compare, open_savepoint
from dev.measure.savepoint_fixtures import FOLDER, NOW, SAVEPOINTS, change
from tests.support.savepoint.savepoints import edited

STORED = sorted(path.parent for path in SAVEPOINTS.rglob("_metadata"))
ADDED = "a-metric-is-added-to-a-tumbling-window"


def with_a_removed_and_a_changed_entry(folder: Path) -> Path:
    """The fixture without its first entry, and with another number in its second one."""
    seen = count(1)

    def change(state: KeyedState, entry: Entry) -> Entry | None:
        number = next(seen) if state.kind is KeyedStateKind.VALUE else 0
        return {1: None, 2: entry._replace(value=entry.value[:-8] + b"\x63" + bytes(7))}.get(number, entry)

    return edited(FOLDER / ADDED / "old", folder, change)


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_savepoint_equals_itself(path: Path) -> None:
    savepoint = open_savepoint(str(path))
    assert not any(compare(savepoint, savepoint))


def test_a_removed_and_a_changed_key(tmp_path: Path) -> None:
    first, second = (
        open_savepoint(str(path)) for path in (FOLDER / ADDED / "old", with_a_removed_and_a_changed_entry(tmp_path))
    )
    (found, *equal) = compare(first, second)
    assert (found.added, found.removed, found.changed, dict(found.columns)) == (0, 1, 1, {"field_1": 1})
    assert not any(equal)
    assert found.rows is not None
    by_change = {row["change"]: row for row in found.rows.to_pylist()}
    assert by_change["changed"]["field_1 (second)"] == 99
    assert by_change["removed"]["field_1 (second)"] is None
    (back, *_) = compare(second, first)
    assert (back.added, back.removed, back.changed) == (1, 0, 1)


def with_keys_of_a_microsecond(folder: Path, first: int) -> Path:
    """A fixture whose keys differ in their nanoseconds alone, which begin with ``first``."""
    keys: dict[bytes, bytes] = {}

    def change(state: KeyedState, entry: Entry) -> Entry:
        begin = 1 + 4 + 8 + 8  # key group, length, NULL bits, and the word of the first field
        (head, last) = next(iter(keys), entry.key)[:begin], next(iter(keys), entry.key)[begin + 4 :]
        nanos = (first + len(keys)).to_bytes(4, "little")
        return entry._replace(key=keys.setdefault(entry.key, head + nanos + last))

    folder.mkdir()
    return edited(SAVEPOINTS / "2.3" / "group-types", folder, change)


def test_keys_of_one_microsecond_differ(tmp_path: Path) -> None:
    first, second = (open_savepoint(str(with_keys_of_a_microsecond(tmp_path / str(each), each))) for each in (1, 2))
    (table, *_) = first.tables
    assert table.reader().read_all().num_rows > 1
    assert not any(compare(first, first))
    (found, *_) = compare(first, second, 100)
    assert (found.added, found.removed) == (1, 1)
    assert found.rows is not None
    assert {row["key_1 nanoseconds"] for row in found.rows.to_pylist()} >= {1, table.reader().read_all().num_rows + 1}


def test_a_migrated_savepoint_has_a_new_column_alone(tmp_path: Path) -> None:
    old, template, new = FOLDER / ADDED / "old", FOLDER / ADDED / "template", tmp_path / "new"
    migrate_savepoint(str(old), str(template), str(new), change(ADDED), NOW)
    (found, *equal) = compare(open_savepoint(str(old)), open_savepoint(str(new)))
    assert (found.added, found.removed, found.changed, found.new_columns) == (0, 0, 0, ("field_2",))
    assert not any(equal)
