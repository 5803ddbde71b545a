"""Columns that a change names, by the compiled plans of measured pairs."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns, changed_columns
from dev.measure.measured import planned

ROWS = "other rows"


def named(pair: str) -> dict[str, object]:
    found = changed_columns(*planned()[pair])
    return {path[-1]: ROWS if each.rows else {*each.columns} for path, each in found.items()}


@pytest.mark.parametrize(
    ("pair", "columns"),
    [
        pytest.param("w-mod-max-min", {"EXPR$2"}, id="another aggregate"),
        pytest.param("ga-nested-inner-mod", {"EXPR$1"}, id="another aggregate below an aggregate"),
        pytest.param("rj-output-expr", {"EXPR$2", "lv"}, id="an expression in place of a column"),
        pytest.param("w-add-agg", {"EXPR$3"}, id="a new column"),
        pytest.param("w-distinct-keep-reorder", {"EXPR$1", "EXPR$2"}, id="columns change places"),
        pytest.param("ij-between-to-cmp", set(), id="the same condition in other words"),
        pytest.param("x-inline-view", set(), id="a view becomes a subquery"),
        pytest.param("w-size-1to2-ws", ROWS, id="longer windows"),
        pytest.param("ga-key-del", ROWS, id="a key less"),
        pytest.param("oa-where-add", ROWS, id="a filter"),
        pytest.param("tn-n-up", ROWS, id="more ranks"),
    ],
)
def test_columns_of_a_pair(pair: str, columns: object) -> None:
    assert named(pair) == {"flinkcompat_query": columns}


def test_sinks_are_compared_one_by_one() -> None:
    assert named("ms-mod-one") == {"S1": set(), "S2": {"f1"}}


def test_a_second_insert_into_a_sink_writes_other_rows() -> None:
    once, _ = planned()["ga-unchanged"]
    (found,) = changed_columns(once, (*once, *once)).values()
    assert found == ChangedColumns(frozenset({"a", "EXPR$1", "EXPR$2"}), rows=True)
