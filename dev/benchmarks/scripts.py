"""Scripts of any size to be timed: tables, views over them and over each other, windowed INSERTs."""

from __future__ import annotations

SMALL = """\
CREATE TABLE orders (customer STRING, amount BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH ('connector' = 'x');
INSERT INTO totals
SELECT customer, SUM(amount)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '1' MINUTE))
GROUP BY customer, window_start, window_end;
"""
"""Five lines."""

_TABLES = """\
-- shop {n}
CREATE TABLE orders_{n} (
  order_id BIGINT,
  customer STRING,
  item STRING,
  region STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'orders_{n}', 'properties.bootstrap.servers' = 'broker:9092');
CREATE TABLE totals_{n} (
  customer STRING, item STRING, window_start TIMESTAMP(3), total DECIMAL(38, 2), n DECIMAL(38, 2)
)
WITH ('connector' = 'kafka', 'topic' = 'totals_{n}', 'properties.bootstrap.servers' = 'broker:9092');

"""
_VIEW = """\
CREATE TEMPORARY VIEW step_{n}_{level} AS
SELECT
  order_id, UPPER(TRIM(customer)) AS customer, COALESCE(item, 'level {level}') AS item, region, order_time,
  CASE WHEN amount > {level} THEN amount ELSE amount * 2 END AS amount
FROM {below}
WHERE region <> 'R{level}';
"""
_INSERT = """\
INSERT INTO totals_{n}
SELECT customer, item, window_start, SUM(amount), COUNT(order_id)
FROM TABLE(TUMBLE(TABLE step_{n}_{top}, DESCRIPTOR(order_time), INTERVAL '10' MINUTE))
GROUP BY customer, item, window_start, window_end;

"""
LEVELS = 5
"""Views above each table: what a query reads is five views deep, and reads ``amount`` 3 to the 5th times."""
LINES = 50
"""Of one table, its views, its sink and the query into it."""


def large(lines: int) -> str:
    """A script of about that many lines: chains of five views, each from a table of its own into a sink of its own."""
    return "".join(_block(n) for n in range(max(1, round(lines / LINES))))


def _block(n: int) -> str:
    below = [f"orders_{n}", *(f"step_{n}_{level}" for level in range(1, LEVELS))]
    views = "".join(_VIEW.format(n=n, level=level, below=name) for level, name in enumerate(below, start=1))
    return _TABLES.format(n=n) + views + _INSERT.format(n=n, top=LEVELS)


def changed(script: str) -> str:
    """The script with its first query's metrics changed."""
    return script.replace("COUNT(order_id)", "MAX(amount)", 1).replace(
        "SUM(amount)\n", "SUM(amount), COUNT(amount)\n", 1
    )
