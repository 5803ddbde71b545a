"""Each normalising pass makes one of two spellings that Flink's planner plans alike, and without it they differ."""

from __future__ import annotations

from types import ModuleType

import pytest

from airflow_flinkcompat.plan import build_program, conditions, lineage, origins
from airflow_flinkcompat.plan.lineage import PASSES, resolve_operators
from airflow_flinkcompat.plan.operators import Output
from airflow_flinkcompat.sql import parse_script

STAGES: tuple[tuple[ModuleType, str], ...] = (
    (origins, "CALL_PASSES"),
    (conditions, "CONDITION_PASSES"),
    (lineage, "NODE_PASSES"),
    (lineage, "FILTER_PASSES"),
    (lineage, "OUTPUT_PASSES"),
)
TABLES = """
CREATE TABLE t (k STRING, a INT, b INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'x');
CREATE TABLE u (k STRING, c INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'x');
"""
SUM = "SELECT k, SUM(a) FROM t GROUP BY k"
QUERIES = {
    "in-list": tuple(f"SELECT k, a IN ({values}) FROM t" for values in ("1, 2", "2, 1, 2")),
    "constant-last": tuple(f"SELECT k, {condition} FROM t" for condition in ("a > 5", "5 < a")),
    "always-true": tuple(f"SELECT k FROM t WHERE {condition}" for condition in ("a > 5", "a > 5 AND 1 = 1")),
    "spelling": tuple(f"SELECT k FROM t WHERE {condition}" for condition in ("a = 1 OR b = 2", "b = 2 OR a = 1")),
    "where-of-join": tuple(
        f"SELECT t.k FROM {tables} t.k = u.k AND t.ts BETWEEN u.ts AND u.ts + INTERVAL '1' HOUR"
        for tables in ("t, u WHERE", "t JOIN u ON")
    ),
    "filter-into-join": (
        "SELECT k FROM (SELECT t.k, c FROM t JOIN u ON t.k = u.k) WHERE c > 5",
        "SELECT t.k FROM t JOIN (SELECT * FROM u WHERE c > 5) AS u ON t.k = u.k",
    ),
    "filter-below-aggregation": (
        f"{SUM} HAVING k = 'a'",
        SUM.replace("GROUP", "WHERE k = 'a' GROUP"),
    ),
    "pruning": ("SELECT k, s FROM (SELECT k, SUM(a) AS s, MAX(a) AS m FROM t GROUP BY k)", SUM),
}


def outputs(name: str) -> tuple[Output, Output]:
    one, other = (resolve_operators(build_program(parse_script(TABLES + q)).pipelines[0].sink) for q in QUERIES[name])
    return one, other


def test_every_pass_has_an_example_and_is_listed_once() -> None:
    listed = [each.name for module, stage in STAGES for each in getattr(module, stage)]
    assert listed == [each.name for each in PASSES]
    assert sorted(listed) == sorted(QUERIES)


@pytest.mark.parametrize("name", QUERIES)
def test_a_pass_makes_one_of_two_spellings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = outputs(name)
    assert one == other
    for module, stage in STAGES:
        monkeypatch.setattr(module, stage, tuple(each for each in getattr(module, stage) if each.name != name))
    one, other = outputs(name)
    assert one != other
