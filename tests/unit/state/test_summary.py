"""Summaries of real savepoints equal those of a reader of one entry at a time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_flinkcompat.migration.entries import StoredKey
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.keyed_state import open_keyed, read_entries
from airflow_flinkcompat.state import StateTable, open_savepoint, summarize
from dev.benchmarks.generated_savepoints import generate
from dev.measure.savepoint_fixtures import FOLDER, SAVEPOINTS

STORED = sorted(path.parent for path in [*SAVEPOINTS.rglob("_metadata"), *FOLDER.rglob("_metadata")])
HOP = FOLDER / "hopping-windows-become-tumbling-ones" / "old"


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_numbers_are_those_of_single_entries(path: Path) -> None:
    savepoint = open_savepoint(str(path))
    found = {each.table: each for each in summarize(savepoint)}
    assert found.keys() == {table.name for table in savepoint.tables}
    for table in savepoint.tables:
        each = found[table.name]
        assert (each.entries, each.bytes, each.keys, each.windows, each.accesses) == slow_numbers(table)


def slow_numbers(table: StateTable) -> tuple[object, ...]:
    """The numbers of a table, by the reader of single entries."""
    size, keys, accesses = 0, [], []
    for stored in table.stored:
        with open_keyed(stored, table.path) as file:
            for _, group in file.groups():
                for number, stored_key, value in read_entries(group):
                    if number != table.form.number:
                        continue
                    key = StoredKey.read(stored_key[table.form.prefix :], table.form.timers)
                    size += 8 + len(stored_key) + len(value)
                    keys.append(key.row)
                    if table.time_to_live:
                        accesses.append(int.from_bytes(value[table.form.flag :][:8], "big", signed=True))
    return len(keys), size, len(set(keys)), slow_windows(table), (min(accesses), max(accesses)) if accesses else None


def slow_windows(table: StateTable) -> tuple[int, int] | None:
    """The first and the last moment in the columns of windows."""
    names = [name for name in ("window_start", "window_end") if name in table.schema.names]
    rows = table.reader().read_all()
    if not names or not rows.num_rows:
        return None
    first, *_, last = [rows[name].cast(pa.int64()).to_pylist() for name in (names[0], names[-1])]
    return min(first), max(last)


def test_only_the_files_of_named_operators_are_read(tmp_path: Path) -> None:
    folder = generate(HOP, 3000, tmp_path / "large")
    for path in folder.iterdir():
        if path.name != "_metadata":
            path.rename(tmp_path / path.name)
    with pytest.raises(SavepointUnreadable, match="cannot be read from here"):
        open_savepoint(str(folder))
    assert summarize(open_savepoint(str(HOP)), ()) == ()


def test_an_entry_of_an_undeclared_state_is_damage(tmp_path: Path) -> None:
    shutil.copytree(HOP, tmp_path / "copy")
    metadata = tmp_path / "copy" / "_metadata"
    content = metadata.read_bytes()
    savepoint = open_savepoint(str(tmp_path / "copy"))
    (table, *_) = savepoint.tables
    with open_keyed(table.stored[0], table.path) as file:
        _, group = next(iter(file.groups()))
    metadata.write_bytes(content.replace(group, b"\0\x09" + group[2:], 1))
    with pytest.raises(SavepointUnreadable, match="belongs to state 9, which the file's header does not declare"):
        summarize(open_savepoint(str(tmp_path / "copy")))
