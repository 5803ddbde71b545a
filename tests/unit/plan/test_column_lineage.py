"""From which columns a sink's columns come."""
# ruff: noqa: E501 -- one case a line

from __future__ import annotations

import pytest

from airflow_flinkcompat.plan import build_program
from airflow_flinkcompat.plan.column_lineage import column_origins
from airflow_flinkcompat.plan.lineage import resolve_operators
from airflow_flinkcompat.sql import parse_script

TABLES = """
CREATE TABLE o (id INT, shop STRING, price DOUBLE, n INT, gross AS price * n, ts TIMESTAMP(3), p AS PROCTIME(),
  WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka');
CREATE TABLE c (shop STRING, city STRING, price DOUBLE) WITH ('connector' = 'kafka');
CREATE TABLE d (shop STRING, city STRING) WITH ('connector' = 'jdbc');
CREATE TABLE t (a STRING, b STRING, x STRING) PARTITIONED BY (x) WITH ('connector' = 'kafka');
CREATE VIEW v AS SELECT shop AS s, price * 2 AS double_price, UPPER(shop) AS big FROM o;
"""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("INSERT INTO t SELECT shop, gross, 'x' FROM o", {"a": ["o.shop"], "b": ["o.price", "o.n"], "x": []}),
        ("INSERT INTO t (b, x, a) SELECT s, double_price, big FROM v",
         {"b": ["o.shop"], "x": ["o.price"], "a": ["o.shop"]}),
        ("INSERT INTO t PARTITION (x = '1') SELECT shop, price FROM o", {"a": ["o.shop"], "b": ["o.price"]}),
        ("INSERT INTO t SELECT shop, SUM(price) FILTER (WHERE n > 1), COUNT(*) FROM o GROUP BY shop",
         {"a": ["o.shop"], "b": ["o.price", "o.n"], "x": []}),
        ("INSERT INTO t SELECT o.shop, c.city, o.price + c.price FROM o JOIN c ON o.shop = c.shop",
         {"a": ["o.shop"], "b": ["c.city"], "x": ["o.price", "c.price"]}),
        ("INSERT INTO t SELECT o.shop, d.city, '' FROM o JOIN d FOR SYSTEM_TIME AS OF o.p ON o.shop = d.shop",
         {"a": ["o.shop"], "b": ["d.city"], "x": []}),
        ("INSERT INTO t SELECT shop, price, '' FROM (SELECT id, shop, price FROM o UNION ALL SELECT 1, city, price FROM c)",
         {"a": ["o.shop", "c.city"], "b": ["o.price", "c.price"], "x": []}),
        ("INSERT INTO t SELECT shop, window_end, MAX(price) FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
         "GROUP BY shop, window_start, window_end", {"a": ["o.shop"], "b": ["o.ts"], "x": ["o.price"]}),
        ("INSERT INTO t SELECT shop, SUM(price) OVER (PARTITION BY shop ORDER BY ts), r FROM "
         "(SELECT shop, price, ts, n AS r FROM o)", {"a": ["o.shop"], "b": ["o.price"], "x": ["o.n"]}),
        ("INSERT INTO t SELECT shop, price, r FROM (SELECT shop, price, ROW_NUMBER() OVER "
         "(PARTITION BY shop ORDER BY price DESC) AS r FROM o) WHERE r <= 3",
         {"a": ["o.shop"], "b": ["o.price"], "x": []}),
        ("INSERT INTO t SELECT shop, MAX(total), '' FROM (SELECT shop, n, SUM(price) AS total FROM o GROUP BY shop, n) "
         "GROUP BY shop", {"a": ["o.shop"], "b": ["o.price"], "x": []}),
        # Kept whole: no guess.
        ("INSERT INTO t SELECT * FROM o MATCH_RECOGNIZE (PARTITION BY shop ORDER BY ts MEASURES A.shop AS b, A.shop AS x "
         "PATTERN (A) DEFINE A AS A.price > 1)", {}),
    ],
)  # fmt: skip
def test_each_column_of_a_sink_has_its_origins(query: str, expected: dict[str, list[str]]) -> None:
    (pipeline,) = build_program(parse_script(f"{TABLES}{query};")).pipelines
    found = column_origins(pipeline.sink, resolve_operators(pipeline.sink))
    assert {name: [".".join(each) for each in origins] for name, origins in found.items()} == expected
