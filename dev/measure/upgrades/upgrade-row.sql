-- area: from one line of Flink to another: deduplication, Top-N and OVER
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: first-row
-- about: the first row by event time, nothing changed
--- old
SELECT a, b, c FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts) AS n FROM orders
) WHERE n = 1;
--- new
SELECT a, b, c FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts) AS n FROM orders
) WHERE n = 1;
--- case: last-row
-- about: the last row by event time, nothing changed
--- old
SELECT a, b, c FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders
) WHERE n = 1;
--- new
SELECT a, b, c FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders
) WHERE n = 1;
--- case: first-row-processing
-- about: the first row by processing time, nothing changed
--- old
SELECT a, b, c FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY p) AS n FROM orders
) WHERE n = 1;
--- new
SELECT a, b, c FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY p) AS n FROM orders
) WHERE n = 1;
--- case: last-row-processing
-- about: the last row by processing time, nothing changed
--- old
SELECT a, b, c FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY p DESC) AS n FROM orders
) WHERE n = 1;
--- new
SELECT a, b, c FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY p DESC) AS n FROM orders
) WHERE n = 1;
--- case: top-n
-- about: Top-2 over rows, nothing changed
--- old
SELECT a, b, c, n FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM orders
) WHERE n <= 2;
--- new
SELECT a, b, c, n FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM orders
) WHERE n <= 2;
--- case: top-n-groups
-- about: Top-2 over groups, nothing changed
--- old
SELECT a, s FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY s DESC) AS n FROM (SELECT a, SUM(b) AS s FROM orders GROUP BY a)
) WHERE n <= 2;
--- new
SELECT a, s FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY s DESC) AS n FROM (SELECT a, SUM(b) AS s FROM orders GROUP BY a)
) WHERE n <= 2;
--- case: top-n-wider
-- about: Top-2 becomes Top-3
-- on-this-data: the third row, which Top-2 has forgotten, is told only where it is among the first three
--- old
SELECT a, b, c FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM orders
) WHERE n <= 2;
--- new
SELECT a, b, c FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM orders
) WHERE n <= 3;
--- case: over-rows
-- about: OVER ROWS, unbounded, nothing changed
--- old
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM orders;
--- new
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM orders;
--- case: over-rows-bounded
-- about: OVER ROWS, bounded, nothing changed
--- old
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM orders;
--- new
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM orders;
--- case: over-range
-- about: OVER RANGE, unbounded, nothing changed
--- old
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM orders;
--- new
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM orders;
--- case: over-range-bounded
-- about: OVER RANGE, bounded, nothing changed
--- old
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW) AS s FROM orders;
--- new
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW) AS s FROM orders;
--- case: over-frame-changed
-- about: OVER ROWS over three rows becomes two
--- old
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM orders;
--- new
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM orders;
