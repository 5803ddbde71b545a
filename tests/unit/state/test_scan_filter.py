"""A query with a filter on the key finds the rows that it would find without, and reads only their key groups."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, reduce
from operator import and_
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from upath import UPath

from airflow_flinkcompat.savepoint.batches import EntryForm, EntryPart, StoredColumn
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import Field, field_writer, write_row
from airflow_flinkcompat.savepoint.keyed_state import (
    Entry,
    KeyedFileWriter,
    KeyedHeader,
    group_ranges,
    key_group,
    open_keyed,
)
from airflow_flinkcompat.savepoint.metadata import Inline, KeyedForm, KeyGroups, StateFile
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.state import OpenSavepoint, StateTable, open_savepoint, query
from airflow_flinkcompat.state.scan_filter import ScanFilter
from dev.measure.savepoint_fixtures import FOLDER, SAVEPOINTS
from dev.stored_rows import write_entries

STORED = sorted(path.parent for path in SAVEPOINTS.rglob("_metadata"))
PARALLELISM, MAX_PARALLELISM = 3, 16
DAY, HOUR = 86_400_000_000, 3_600_000
"""A day in microseconds, an hour in milliseconds."""


@dataclass(frozen=True)
class Kind:
    """A type of keys: its values as :func:`field_writer` takes them, and their literals in SQL."""

    values: st.SearchStrategy[Any]
    literal: Callable[[Any], str] = str


def texts(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def moment(micros: int, type: str = "TIMESTAMP") -> str:
    return f"make_timestamp({micros}::BIGINT)::{type}"


def numbers(bits: int) -> Kind:
    return Kind(st.integers(-(1 << bits - 1), (1 << bits - 1) - 1))


def decimals(precision: int) -> Kind:
    most = 10**precision - 1
    values = st.integers(-most, most).map(lambda unscaled: Decimal(f"{unscaled}e-2"))
    return Kind(values, lambda value: f"{value:f}::DECIMAL({precision},2)")


SHORT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
MICROS = st.integers(-30_000 * DAY, 30_000 * DAY)
MILLIS = MICROS.map(lambda micros: micros // 1000 * 1000)
KINDS = {
    "BOOLEAN": Kind(st.booleans()),
    "TINYINT": numbers(8),
    "SMALLINT": numbers(16),
    "INT NOT NULL": numbers(32),
    "BIGINT": numbers(64),
    "FLOAT": Kind(st.floats(width=32) | st.sampled_from([0.0, -0.0]), lambda value: f"'{value!r}'::FLOAT"),
    "DOUBLE": Kind(st.floats() | st.sampled_from([0.0, -0.0]), lambda value: f"'{value!r}'::DOUBLE"),
    "DATE": Kind(st.integers(-30_000, 30_000), lambda days: f"(DATE '1970-01-01' + {days})"),
    "TIME(0)": Kind(st.integers(0, 24 * HOUR - 1), lambda millis: f"(TIME '00:00:00' + INTERVAL '{millis} ms')"),
    "DECIMAL(10, 2)": decimals(10),
    "DECIMAL(38, 2)": decimals(38),
    "VARCHAR(2147483647)": Kind(SHORT, texts),
    "CHAR(3)": Kind(SHORT, texts),
    "BYTES": Kind(st.binary(max_size=9), lambda value: f"unhex('{value.hex()}')"),
    "TIMESTAMP(3)": Kind(MILLIS, lambda micros: moment(micros, "TIMESTAMP_MS")),
    "TIMESTAMP(6)": Kind(MICROS, moment),
    "TIMESTAMP_LTZ(6)": Kind(MICROS, lambda micros: f"make_timestamptz({micros}::BIGINT)"),
}


@cache
def header() -> KeyedHeader:
    """The header of a real file, of which tables only compare the names of the states."""
    path = str(FOLDER / "hopping-windows-become-tumbling-ones" / "old")
    keyed = next(
        subtask.keyed
        for operator in read_metadata(path).operators
        for subtask in operator.subtasks or ()
        if subtask.keyed is not None
    )
    with open_keyed(keyed, path) as file:
        return file.header.with_compression(False)


def table(types: Sequence[str], keys: Sequence[Sequence[Any]], folder: Path | None = None) -> StateTable:
    """A state with one value for each key, its number, in a file for each subtask, or in no file without a folder."""
    columns = [StoredColumn(f"k{place}", type, EntryPart.KEY, place) for place, type in enumerate(types)]
    columns.append(StoredColumn("number", "BIGINT", EntryPart.WHOLE))
    groups: dict[int, list[Entry]] = {}
    for number, key in enumerate(keys):
        row = write_row([field_writer(type)(value) for type, value in zip(types, key, strict=True)])
        group = key_group(row, MAX_PARALLELISM)
        stored_key = bytes([group]) + struct.pack(">I", len(row)) + row + b"\0"
        groups.setdefault(group, []).append(Entry(0, stored_key, struct.pack(">q", number)))
    stored = []
    for own in group_ranges(MAX_PARALLELISM, PARALLELISM):
        if folder is None:
            content, begins = bytearray(header().stored), []
            for group in own:
                begins.append(len(content) if group in groups else 0)
                content += write_entries(groups.get(group, []))
            handle = Inline("state", bytes(content))
            stored.append(KeyGroups(KeyedForm.SAVEPOINT_KEY_GROUPS, own.start, tuple(begins), handle))
        else:
            with KeyedFileWriter(UPath(folder), header(), own) as writer:
                for group in own:
                    writer.group(group, [write_entries(groups.get(group, []))])
                stored.append(writer.finish())
    form = EntryForm(0, 1, tuple(columns), (len(types), 0, 0))
    names = tuple(state.name for state in header().states)
    return StateTable(
        "t", "operator", "id", "state", "value", False, {}, form, MAX_PARALLELISM, str(folder), tuple(stored), names
    )


def rows_of(table: StateTable, sql: str) -> list[dict[str, Any]]:
    with query(OpenSavepoint("savepoint", (), 0, (table,), {}), sql) as result:
        return result.reader().read_all().to_pylist()


@st.composite
def stored_keys(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Types of a key, the stored keys, and keys to look for, most of which are stored."""
    types = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    key = st.tuples(*(st.none() | KINDS[type].values for type in types))
    keys = draw(st.lists(key, min_size=1, max_size=12, unique_by=repr))
    wanted = draw(st.lists(st.sampled_from(keys) | key, min_size=1, max_size=3))
    return types, keys, wanted


@given(stored_keys(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_every_row_is_found_with_the_filter(
    drawn: tuple[list[str], list[tuple[Any, ...]], list[tuple[Any, ...]]], lists: bool
) -> None:
    """One condition for each key, or a list of values for each column."""
    types, keys, wanted = drawn
    stored = table(types, keys)

    def equals(place: int, value: Any) -> str:
        return f"k{place} IS NULL" if value is None else f"k{place} = {KINDS[types[place]].literal(value)}"

    def among(place: int, values: list[Any]) -> str:
        literals = [KINDS[types[place]].literal(value) for value in values if value is not None]
        listed = [f"k{place} IN ({', '.join(literals)})"] if literals else []
        return f"({' OR '.join(listed + [f'k{place} IS NULL'] * (None in values))})"

    if lists:
        condition = " AND ".join(among(place, [key[place] for key in wanted]) for place in range(len(types)))
    else:
        condition = " OR ".join(
            f"({' AND '.join(equals(place, value) for place, value in enumerate(key))})" for key in wanted
        )
    everything = "WITH everything AS MATERIALIZED (FROM t) SELECT * FROM everything"
    order = "ORDER BY number"
    expected = rows_of(stored, f"{everything} WHERE {condition} {order}")
    assert repr(rows_of(stored, f"FROM t WHERE {condition} {order}")) == repr(expected)
    assert all(any(row["number"] == number for row in expected) for number, key in enumerate(keys) if key in wanted)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM t WHERE k0 = 'key-7'",
        "SELECT sum(number) FROM t WHERE 'key-7' = k0 AND number > 3",
        "WITH c AS (SELECT k0 AS key, number FROM t) SELECT * FROM c WHERE key IN ('key-7') ORDER BY number LIMIT 1",
        "SELECT a.number FROM t AS a JOIN t AS b ON a.k0 = b.k0 WHERE b.k0 = 'key-7'",
    ],
)
def test_files_and_groups_of_other_keys_are_not_read(sql: str, tmp_path: Path) -> None:
    keys = [(f"key-{number}",) for number in range(3000)]
    stored = table(["STRING"], keys, tmp_path)
    expected = rows_of(stored, sql)
    assert len(expected) == 1
    group = key_group(write_row([field_writer("STRING")("key-7")]), MAX_PARALLELISM)
    for each in stored.stored:
        assert isinstance(each.handle, StateFile)
        file = tmp_path / each.handle.path
        if group not in each.numbers:
            file.unlink()
            continue
        content = bytearray(file.read_bytes())
        for other, begin in zip(each.numbers, each.begins, strict=True):
            end = next((after for after in sorted(each.begins) if after > begin), len(content))
            content[begin:end] = content[begin:end] if other == group else b"\xff" * (end - begin)
        file.write_bytes(content)
    assert rows_of(stored, sql) == expected
    for other in ("FROM t WHERE k0 = 'key-7' OR number < 5", "SELECT count(*) FROM t"):
        with pytest.raises(SavepointUnreadable):
            rows_of(stored, other)


def test_a_timestamp_with_nanoseconds_is_not_looked_up() -> None:
    """The digits after the sixth are missing in the column, but not in the stored key."""
    types = ["TIMESTAMP(9)"]
    stored = table(types, [(1_000_001,)])
    row = write_row([Field(False, struct.pack("<II", 1_789, 0), struct.pack("<q", 1_000))])
    group = key_group(row, MAX_PARALLELISM)
    entry = Entry(0, bytes([group]) + struct.pack(">I", len(row)) + row + b"\0", struct.pack(">q", 5))
    content = header().stored + write_entries([entry])
    handle = Inline("state", content)
    keyed = KeyGroups(KeyedForm.SAVEPOINT_KEY_GROUPS, group, (len(header().stored),), handle)
    assert rows_of(replace(stored, stored=(keyed,)), "FROM t WHERE k0 = make_timestamp(1000001)")[0]["number"] == 5


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_key_groups_of_real_keys(path: Path) -> None:
    """Every key that Flink wrote is in the key group that the values of its columns select."""
    for each in open_savepoint(str(path)).tables:
        names = [column.name for column in each.key]
        for group in {group for stored in each.stored for group in stored.filled} if names else ():
            for batch in each.batches(names, {group}):
                for place in range(len(batch)):
                    same = [equals(name, batch.column(name)[place]) for name in names]
                    found = ScanFilter.read(reduce(and_, same)).key_groups(each.key, each.max_parallelism)
                    if any(column.type == "TIMESTAMP(9)" for column in each.key):
                        assert found is None
                    else:
                        assert found is not None
                        assert group in found


def equals(name: str, value: pa.Scalar) -> pc.Expression:
    return pc.field(name) == value if value.is_valid else pc.field(name).is_null()


def test_a_condition_on_a_field_of_a_row_reads_its_column() -> None:
    savepoint = open_savepoint(str(SAVEPOINTS / "2.3" / "join-types"))
    sql = (
        "SELECT map_key_0, map_key_4[1].value FROM join__left_records WHERE map_key_6['EXPR$2'] IN (3, 5) ORDER BY ALL"
    )
    with query(savepoint, sql) as result:
        assert result.relation.fetchall() == [("x", 3), ("x", 5), ("x", 5), ("y", 3)]
