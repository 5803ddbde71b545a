-- area: OVER and sorts: clocks, columns passed on by processing time
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: unchanged
-- about: nothing changed, by processing time
--- old
SELECT a, b, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY p RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY p RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- case: passed-on-other
-- about: d is passed on instead of b, by processing time
--- old
SELECT a, b, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY p RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- new
SELECT a, d, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY p RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- case: passed-on-added
-- about: one more column is passed on, by processing time
--- old
SELECT a, b, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY p RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, d, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY p RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- case: passed-on-added-rows
-- about: one more column is passed on, ROWS by processing time
--- old
SELECT a, b, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY p ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, d, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY p ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- case: clock
-- about: ORDER BY the event time → the processing time
--- old
SELECT a, b, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY p RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- case: sort-clock
-- about: a sort by event time → by processing time
--- old
SELECT a, b FROM orders ORDER BY ts;
--- new
SELECT a, b FROM orders ORDER BY p;
--- case: limit-column-added
-- about: one more column under a LIMIT
--- old
SELECT a, b FROM orders LIMIT 20;
--- new
SELECT a, b, d FROM orders LIMIT 20;
--- case: output-computed
-- about: the sum is doubled as it is put out, by event time
--- old
SELECT a, b, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, SUM(b) OVER w * 2 FROM orders WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- case: output-computed-rows
-- about: the sum is doubled as it is put out, ROWS by event time
--- old
SELECT a, b, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, SUM(b) OVER w * 2 FROM orders WINDOW w AS (PARTITION BY a ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW);
