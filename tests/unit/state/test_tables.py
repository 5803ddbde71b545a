"""Tables of real savepoints contain what a reader of one entry at a time finds."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state, job_state
from airflow_flinkcompat.exec_graph.model import StateSpec
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.savepoint.binary import KeyedStateKind
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedState
from airflow_flinkcompat.state import open_savepoint, summarize
from dev.measure.savepoint_fixtures import CASES, FOLDER, SAVEPOINTS, SINKS
from dev.measure.stored_state import rows_of, slow_rows
from tests.support.savepoint.savepoints import edited

STORED = sorted(path.parent for path in SAVEPOINTS.rglob("_metadata"))
HOP = "hopping-windows-become-tumbling-ones"


def predicted(name: str) -> tuple[StateSpec, ...]:
    symbols = Symbols()
    plan = read_plan((FOLDER / name / "old.json").read_text("utf-8"))
    return job_state(compiled_state(plan, symbols, {}, SINKS), symbols).specs


def test_columns_of_a_window_have_their_names_in_sql() -> None:
    (table, *timers) = open_savepoint(str(FOLDER / HOP / "old"), predicted(HOP)).tables
    assert (table.name, table.operator, table.kind) == ("printed", "GlobalWindowAggregate", "value")
    assert table.columns == (
        "a", "window_end", "sum_b", "min_d", "avg_b_sum", "avg_b_count", "count_all", "avg_b", "window_start",
    )  # fmt: skip
    assert [each.name for each in timers] == ["printed__processing_timers", "printed__timers"]


@pytest.mark.parametrize(
    ("name", "table", "columns"),
    [
        ("session", "windowaggregate", ("stored_window_start", "stored_window_end")),
        ("session", "windowaggregate__session_window_mapping",
         ("window_start", "window_end", "stored_window_start", "stored_window_end")),
        ("top-n-counted", "rank", ("position",)),
        ("first-row", "deduplicate__already_emitted_state_boolean", ("value",)),
    ],
)  # fmt: skip
def test_columns_outside_of_the_result_have_names(name: str, table: str, columns: tuple[str, ...]) -> None:
    found = {each.name: each for each in open_savepoint(str(SAVEPOINTS / "2.3" / name)).tables}[table]
    assert set(columns) <= set(found.columns)
    assert "BYTES" not in found.describe()["columns"].values()


@pytest.mark.parametrize(
    ("name", "state", "column"),
    [
        ("over", "inputState", "map_key"),
        ("over", "lastTriggeringTsState", "value"),
        ("over", "cleanupTsState", "value"),
        ("over-expiring", "RowTimeUnboundedOverCleanupTime", "value"),
        ("interval-join", "IntervalJoinLeftCache", "map_key"),
        ("interval-join", "IntervalJoinLeftTimerState", "value"),
        ("temporal-join", "right", "map_key"),
        ("temporal-join-expiring", "cleanup-timestamp", "value"),
        ("matched", "eventQueuesStateName", "map_key"),
        ("sorted", "dataState", "map_key"),
    ],
)
def test_a_time_that_is_stored_as_a_number_is_a_timestamp(name: str, state: str, column: str) -> None:
    tables = open_savepoint(str(SAVEPOINTS / "2.3" / name)).tables
    (table,) = (table for table in tables if table.state == state)
    assert table.describe()["columns"][column] == "TIMESTAMP(3)"
    assert all(summary.windows is None for summary in summarize(open_savepoint(table.path)))


def test_numbers_of_rows_are_no_times() -> None:
    for name, state, column in (("temporal-join", "left", "map_key"), ("temporal-join", "next-index", "value")):
        tables = open_savepoint(str(SAVEPOINTS / "2.3" / name)).tables
        (table,) = (table for table in tables if table.state == state)
        assert table.describe()["columns"][column] == "BIGINT"


def test_a_script_of_another_job_gives_no_names() -> None:
    (table, *_) = open_savepoint(str(FOLDER / HOP / "old"), predicted(CASES[0])).tables
    assert table.columns[:3] == ("key_0", "window_end", "field_0")


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_rows_are_those_of_single_entries(path: Path) -> None:
    """All columns, read one entry and one field at a time."""
    savepoint = open_savepoint(str(path))
    assert not savepoint.unreadable
    for table in savepoint.tables:
        assert list(map(repr, rows_of(table))) == list(map(repr, slow_rows(table)))


@pytest.mark.parametrize("name", ["group-distinct", "left-join", "interval-join", "kept-for-an-hour", "session"])
def test_a_null_value_of_a_map_is_a_row_without_values(name: str, tmp_path: Path) -> None:
    """Flink writes a flag, then whatever the serializer of the values writes for NULL."""
    seen = count()

    def change(state: KeyedState, entry: Entry) -> Entry:
        of_map = state.kind is KeyedStateKind.MAP and next(seen) % 2 == 0
        return entry._replace(value=(b"\1", b"\1\0")[len(entry.key) % 2]) if of_map else entry

    source = SAVEPOINTS / "2.3" / name
    stored, savepoint = (open_savepoint(str(path)) for path in (source, edited(source, tmp_path, change)))
    rows = [row for table in savepoint.tables for row in map(repr, rows_of(table))]
    assert rows == [row for table in savepoint.tables for row in map(repr, slow_rows(table))]
    assert rows != [row for table in stored.tables for row in map(repr, rows_of(table))]
    numbers, former = ([each.entries for each in summarize(each)] for each in (savepoint, stored))
    assert numbers == former


def test_a_list_of_texts_has_a_row_for_each_text() -> None:
    tables = open_savepoint(str(SAVEPOINTS / "2.3" / "retracting-values")).tables
    (found,) = (table.reader().read_all() for table in tables if table.state == "agg2$list")
    rows = [tuple(row[name] for name in ("key_0", "position", "value")) for row in found.to_pylist()]
    assert sorted(rows) == [(1, 0, "w"), (1, 1, "u"), (1, 2, "v"), (3, 0, "y"), (5, 0, "x")]
