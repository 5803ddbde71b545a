"""Tables of real savepoints contain what a reader of one entry at a time finds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path

import pytest

from airflow_flinkcompat.exec_graph.exec_node import read_plan, row_type
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state, job_state
from airflow_flinkcompat.exec_graph.from_savepoint import layout_of
from airflow_flinkcompat.exec_graph.layout import NamedState
from airflow_flinkcompat.exec_graph.model import StateSpec
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.migration.entries import StoredKey, counted_row, stored_rows
from airflow_flinkcompat.savepoint.binary_row import Field, FieldForm, field_form, field_reader, read_row
from airflow_flinkcompat.savepoint.keyed_state import open_keyed, read_entries
from airflow_flinkcompat.state import StateTable, open_savepoint
from dev.measure.savepoint_fixtures import CASES, FOLDER, SAVEPOINTS, SINKS

STORED = sorted(path.parent for path in SAVEPOINTS.rglob("_metadata"))
ACCUMULATORS = ("org.apache.flink.table.runtime.functions.aggregate.", "ROW<`firstValue` ", "ROW<`lastValue` ")
HOP = "hopping-windows-become-tumbling-ones"


def predicted(name: str) -> tuple[StateSpec, ...]:
    symbols = Symbols()
    plan = read_plan((FOLDER / name / "old.json").read_text("utf-8"))
    return job_state(compiled_state(plan, symbols, {}, SINKS), symbols).specs


def test_columns_of_a_window_have_their_names_in_sql() -> None:
    (table, *timers) = open_savepoint(str(FOLDER / HOP / "old"), predicted(HOP)).tables
    assert (table.name, table.operator, table.kind) == ("printed", "GlobalWindowAggregate", "value")
    assert table.columns == (
        "a", "window_end", "sum_b", "min_d", "avg_b_sum", "avg_b_count", "count_all", "avg_b",
    )  # fmt: skip
    assert [each.name for each in timers] == ["printed__processing_timers", "printed__timers"]


@pytest.mark.parametrize(
    ("name", "table", "columns"),
    [
        ("session", "windowaggregate", ("stored_window_start", "stored_window_end")),
        ("session", "windowaggregate__session_window_mapping",
         ("window_start", "window_end", "stored_window_start", "stored_window_end")),
        ("top-n-counted", "rank", ("position",)),
        ("retracting-values", "groupaggregate__agg2_list", ("value", "position")),
        ("first-row", "deduplicate__already_emitted_state_boolean", ("value",)),
    ],
)  # fmt: skip
def test_columns_outside_of_the_result_have_names(name: str, table: str, columns: tuple[str, ...]) -> None:
    found = {each.name: each for each in open_savepoint(str(SAVEPOINTS / "2.3" / name)).tables}[table]
    assert set(columns) <= set(found.columns)
    assert "BYTES" not in found.describe()["columns"].values()


def test_a_script_of_another_job_gives_no_names() -> None:
    (table, *_) = open_savepoint(str(FOLDER / HOP / "old"), predicted(CASES[0])).tables
    assert table.columns[:3] == ("key_0", "window_end", "field_0")


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_rows_are_those_of_single_entries(path: Path) -> None:
    """Keys and the fields of rows, read one at a time by the slow reader."""
    savepoint = open_savepoint(str(path))
    assert not savepoint.unreadable
    for table in savepoint.tables:
        rows = [row for batch in table.batches() for row in zip(*(column.to_pylist() for column in batch), strict=True)]
        keys = [column.name for column in table.form.columns if column.name.startswith("key_")]
        counted = ("map_key_", "count") if table.form.arities[1] and "count" in table.schema.names else ()
        fields = [name for name in table.schema.names if name.startswith(("field_", *counted))]
        places = [table.schema.names.index(name) for name in (*keys, *fields)]
        found = sorted(repr([plain(row[place]) for place in places]) for row in rows)
        assert found == sorted(map(repr, slow_rows(table)))


def slow_rows(table: StateTable) -> list[list[object]]:
    """The keys and fields of all rows of a table."""
    found = []
    for stored in table.stored:
        with open_keyed(stored, table.path) as file:
            layout = layout_of(file.header)
            state = next((each for each in layout.states if each.name == table.state), None)
            for _, group in file.groups():
                for number, stored_key, value in read_entries(group):
                    if number != table.form.number:
                        continue
                    key = StoredKey.read(stored_key[table.form.prefix :], table.kind == "timers")
                    names = values(key.row, [each.type for each in layout.key])
                    if state is not None and of_rows(state):
                        times, row, _ = counted_row(state, key.rest, value)
                        found.append([*names, *values(row, [each.type for each in state.row]), times])
                        continue
                    if state is not None and state.value.form == "List<value>":
                        found += [names for _ in texts(value)]
                        continue
                    if state is None or not state.framing:
                        found.append(names)
                        continue
                    head = table.form.flag + 8 * table.form.stamp
                    types = [each.type for each in state.value.fields]
                    found += [[*names, *values(row, types)] for row, _ in stored_rows(value[head:], state)]
    return found


def texts(value: bytes) -> Iterator[bytes]:
    """The elements of a list of texts, which a comma separates."""
    while value:
        size = int.from_bytes(value[:4], "big")
        yield value[4 : 4 + size]
        value = value[5 + size :]


def test_a_list_of_texts_has_a_row_for_each_text() -> None:
    tables = open_savepoint(str(SAVEPOINTS / "2.3" / "retracting-values")).tables
    (found,) = (table.reader().read_all() for table in tables if table.state == "agg2$list")
    rows = [tuple(row[name] for name in ("key_0", "position", "value")) for row in found.to_pylist()]
    assert sorted(rows) == [(1, 0, "w"), (1, 1, "u"), (1, 2, "v"), (3, 0, "y"), (5, 0, "x")]


def of_rows(state: NamedState) -> bool:
    """True for a map from rows to their count."""
    return state.counts_rows and state.map_key is not None and state.map_key.form == "row"


def values(row: bytes, types: list[str]) -> list[object]:
    """The values of the fields of a row, without views, by the slow reader."""
    found: list[object] = []
    for type, field in zip(types, read_row(row, list(map(field_form, types))), strict=True):
        if type.startswith(ACCUMULATORS):
            size = int.from_bytes(field.word[:4], "little")
            found += values((field.variable_part or b"")[:size], [*row_type(type)[1]])
        elif not type.startswith("RAW("):
            found.append(field_value(type, field))
    return found


def field_value(type: str, field: Field) -> object:
    if field_form(type) is FieldForm.VARIABLE:
        size = int.from_bytes(field.word[:4], "little")
        return None if field.null else (field.variable_part or b"")[:size]
    return field_reader(type)(field)


def plain(value: object) -> object:
    """A value of Arrow as the slow reader returns it."""
    match value:
        case datetime():
            return (value.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        case date():
            return (value - date(1970, 1, 1)).days
        case time():
            return (value.hour * 3600 + value.minute * 60 + value.second) * 1000 + value.microsecond // 1000
    return value
