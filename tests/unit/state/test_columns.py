"""Names of columns and tables, and averages in SQL."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext

import duckdb
import pytest

from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.savepoint.batches import EntryForm, EntryPart, StoredColumn
from airflow_flinkcompat.state.columns import average, distinct, window_begin

SUMS = ("0", "1", "-1", "10", "7.5", "2", "-2", "22.0001", "-10.5", "0.01")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a_2", "a_3"]),
        (["a", "a", "a_2"], ["a", "a_3", "a_2"]),
        (["a_2", "a", "a"], ["a_2", "a", "a_3"]),
    ],
)
def test_names_differ(names: list[str], expected: list[str]) -> None:
    assert distinct(names) == expected


@pytest.mark.parametrize(
    ("windows", "end", "begin"),
    [
        (SlicedWindow(WindowKind.TUMBLE, 60_000, 60_000), 120_000, 60_000),
        (SlicedWindow(WindowKind.TUMBLE, 60_000, 60_000, 5_000), -55_000, -115_000),
        (SlicedWindow(WindowKind.HOP, 60_000, 20_000), 40_000, 20_000),
        (SlicedWindow(WindowKind.CUMULATE, 60_000, 20_000), 140_000, 120_000),
        (SlicedWindow(WindowKind.CUMULATE, 60_000, 20_000), 180_000, 120_000),
        (SlicedWindow(WindowKind.CUMULATE, 60_000, 20_000, 10_000), -30_000, -50_000),
    ],
)
def test_a_window_that_is_stored_by_its_end_has_a_begin(windows: SlicedWindow, end: int, begin: int) -> None:
    stored = StoredColumn("window_end", "TIMESTAMP(3)", EntryPart.NAMESPACE)
    computed = window_begin(EntryForm(0, 1, (stored,), (1, 0, 0), namespace=8), windows)["window_start"]
    sql = f"SELECT epoch_ms({computed}) FROM (SELECT CAST(epoch_ms({end}) AS TIMESTAMP_MS) AS window_end)"
    assert duckdb.sql(sql).fetchall() == [(begin,)]
    assert window_begin(EntryForm(0, 1, (stored,), (1, 0, 0), namespace=8), None) == {}


@pytest.mark.parametrize("scale", [0, 2, 6, 9])
def test_averages_of_decimals_are_rounded_half_up(scale: int) -> None:
    largest = "9" * (38 - scale)
    column = StoredColumn("total", f"DECIMAL(38, {scale})", EntryPart.VALUE)
    unit, digits = Decimal(1).scaleb(-scale), Decimal(1).scaleb(-max(scale, 6))
    with localcontext(prec=100), duckdb.connect() as connection:
        connection.execute(f'CREATE TABLE sums ("total" DECIMAL(38, {scale}), "count" BIGINT)')
        for total in (*SUMS, largest):
            for count in (0, 1, 3, 7, 9_999_999_999):
                connection.execute("INSERT INTO sums VALUES (?, ?)", [str(Decimal(total).quantize(unit)), count])
        sql = f'SELECT "total", "count", {average(column, chr(34) + "count" + chr(34))} FROM sums'
        for total, count, found in connection.sql(sql).fetchall():
            expected = (total / count).quantize(digits, ROUND_HALF_UP) if count else None
            # Flink has no digits left for a larger average.
            fits = expected is not None and abs(expected) < Decimal(10) ** 38 * digits
            assert found == (expected if fits else None)


def test_averages_of_integers_are_truncated() -> None:
    sql = average(StoredColumn("total", "BIGINT", EntryPart.VALUE), '"count"')
    rows = duckdb.sql(f"SELECT {sql} FROM (VALUES (7, 2), (-7, 2), (3, 0), (NULL, 1)) AS sums(total, count)").fetchall()
    assert rows == [(3,), (-3,), (None,), (None,)]
