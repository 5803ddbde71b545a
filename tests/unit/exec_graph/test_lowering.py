"""What Flink's planner may simplify away is not told for certain."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Side, check
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.exec_graph.model import ExecGraph
from tests.unit.exec_graph.test_from_script import state_of

TABLES = """
CREATE TABLE k (a STRING, b BIGINT, n INT NOT NULL) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
CREATE TABLE s (a STRING, b BIGINT, n INT) WITH ('connector' = 'kafka', 'topic' = 'u', 'format' = 'json');
INSERT INTO s
"""


def state(query: str) -> ExecGraph | Unknown:
    return state_of(Side(f"{TABLES}{query};", engine="flink"))


@pytest.mark.parametrize(
    "condition",
    [
        *("1 = 0", "n IS NOT NULL", "n IS NULL", "b = b", "b = NULL", "b > 3 AND NOT (b > 3)", "a LIKE '%'"),
        *("b > 3 AND b <= 3", "b = 1 AND b = 2", "b = 1 AND b > 2", "a < 'x' AND a > 'y'", "n > 3 OR NOT n > 3"),
        *("n > 3 OR n < 9", "a = 'x' AND b = 1 AND NOT (a = 'x' AND b = 1)", "b > n AND NOT n < b"),
    ],
)
def test_a_condition_that_may_hold_of_all_rows_or_of_none_tells_nothing(condition: str) -> None:
    found = state(f"SELECT a, b, n FROM k WHERE {condition}")
    assert isinstance(found, Unknown)
    assert "true or false for every row" in found.reason


ALSO = ("b IN (1, 2)", "b > 3 AND b < 9", "b < 3 OR b > 9", "b NOT IN (1, 2)")


@pytest.mark.parametrize("condition", ["b > 3", "a LIKE 'x%'", "b IS NOT NULL", "b = 1 OR n = 2", *ALSO])
def test_any_other_condition_is_a_calc(condition: str) -> None:
    found = state(f"SELECT a, b, n FROM k WHERE {condition}")
    assert isinstance(found, ExecGraph)
    assert [[node.kind for node in graph.nodes][1] for graph in found.graphs] == ["calc"]


@pytest.mark.parametrize("column", ["CAST(b AS BIGINT)", "b + 0", "COALESCE(b, 1)"])
def test_a_call_that_may_come_to_its_column_leaves_a_calc_open(column: str) -> None:
    found = state(f"SELECT a, {column}, n FROM k")
    assert isinstance(found, ExecGraph)
    assert len(found.graphs) == 2


def test_any_other_call_is_a_calc() -> None:
    found = state("SELECT UPPER(a), b, n FROM k")
    assert isinstance(found, ExecGraph)
    assert len(found.graphs) == 1


LOOKED_UP = """
CREATE TABLE k (a STRING, n INT NOT NULL, pt AS PROCTIME()) WITH ('connector' = 'kafka', 'format' = 'json');
CREATE TABLE d (c STRING, m INT NOT NULL) WITH ('connector' = 'jdbc');
CREATE TABLE s (a STRING, c STRING) WITH ('connector' = 'print');
INSERT INTO s SELECT k.a, d.c FROM k JOIN d FOR SYSTEM_TIME AS OF k.pt ON k.a = d.c WHERE
"""


@pytest.mark.parametrize(
    ("condition", "told"),
    [("k.a IS NOT NULL", True), ("d.c LIKE 'x%'", True), ("k.n IS NULL", False), ("d.m IS NULL", False)],
)
def test_a_condition_above_a_lookup(condition: str, told: bool) -> None:
    assert isinstance(state_of(Side(f"{LOOKED_UP}{condition};", engine="flink")), ExecGraph) is told


@pytest.mark.parametrize(("condition", "outcome"), [("d.m IS NULL", "unknown"), ("k.a IS NOT NULL", "compatible")])
def test_what_a_lookup_hands_on_is_never_null_where_its_table_says_so(condition: str, outcome: str) -> None:
    old, new = (Side(f"{LOOKED_UP}{asked};", engine="flink") for asked in ("k.n = 3", condition))
    assert check(old, new).outcome == outcome
