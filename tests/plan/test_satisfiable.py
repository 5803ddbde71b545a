"""Conditions that a planner may decide by themselves, against those that hold for some rows and not for others."""

from __future__ import annotations

import pytest

from airflow_flinkcompat import Side
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.origins import SourceColumn
from airflow_flinkcompat.plan.satisfiable import may_be_decided

ORDERS = (
    "CREATE TABLE orders (a STRING, b BIGINT, d BIGINT, n BIGINT NOT NULL, ts TIMESTAMP(3)) "
    "WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');\nSELECT a FROM orders WHERE "
)
OPEN = [
    "b > 1",
    "b > 1 AND b < 9",
    "b > 1 AND b <> 5 AND d = b",
    "(b = 1 OR b = 2) AND b = 2",
    "a = 'x' OR a = 'y'",
    "b IN (1, 2) AND b NOT IN (2, 3)",
    "b IS NULL OR b > 3",
    "CASE WHEN b > 1 THEN 1 ELSE 2 END = 2",
    "COALESCE(b, 0) > 1",
    "b IS DISTINCT FROM d",
    "UPPER(a) = 'X'",
    "CHAR_LENGTH(a) < 0",
    "ts > CURRENT_TIMESTAMP - INTERVAL '1' DAY",
    "b > 1 OR NOT b > 1",
    "(b > 1) IS NOT TRUE",
]
DECIDED = [
    "b > CAST(NULL AS BIGINT)",
    "b + CAST(NULL AS BIGINT) > 1",
    "b + NULLIF(2, 2) > 1",
    "b = NULLIF(1, 1)",
    "(b = 1 OR b = 2) AND b = 3",
    "b = d AND b <> d",
    "b > d AND d > b",
    "b IN (1, 2) AND b NOT IN (1, 2)",
    "CASE WHEN b > 1 THEN 1 ELSE 2 END = 3",
    "b IS NULL AND b = 2",
    "b IS NULL OR b IS NOT NULL",
    "n > 1 OR n <= 1",
    "b IS DISTINCT FROM b",
    "(b > 1) IS FALSE AND b > 1",
    "UPPER(a) = 'X' AND UPPER(a) = 'Y'",
    "a = SUBSTRING('abc', 7)",
]


def _conditions(text: str) -> tuple[Expression, ...]:
    [output] = Side(ORDERS + text, engine="flink").outputs[0].values()
    return output.segment.filters


def _never_null(part: Expression) -> bool:
    return isinstance(part, SourceColumn) and part.column == "n"


@pytest.mark.parametrize("text", OPEN)
def test_what_holds_of_some_rows_alone_is_decided_by_no_planner(text: str) -> None:
    assert not may_be_decided(_conditions(text), _never_null)


@pytest.mark.parametrize("text", DECIDED)
def test_what_holds_of_all_rows_or_none_may_be_decided(text: str) -> None:
    assert may_be_decided(_conditions(text), _never_null)
