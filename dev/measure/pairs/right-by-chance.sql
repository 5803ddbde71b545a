-- area: changes that one measurement restored right by chance, over rows that tell
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '20' SECOND
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: average-of-nothing-to-sum
-- about: AVG → SUM and COUNT, of a key that has had no value: an average begins with 0, a sum with NULL
--- old
SELECT a, AVG(n), COUNT(*) FROM (SELECT a, CASE WHEN a <> 'w' THEN b END AS n FROM orders) GROUP BY a;
--- new
SELECT a, SUM(n), COUNT(n), COUNT(*) FROM (SELECT a, CASE WHEN a <> 'w' THEN b END AS n FROM orders) GROUP BY a;
--- case: waiting-first-row-column-swapped
-- about: another column of the first row by event time, of which one waits for its watermark
-- flink: 2.3
--- old
SELECT a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts ASC) AS rn FROM orders) WHERE rn = 1;
--- new
SELECT a, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts ASC) AS rn FROM orders) WHERE rn = 1;
--- case: reached-limit-raised
-- about: LIMIT 6 → 8, of which all 6 had come: the rows behind them are gone
-- rows-before: 6
--- old
SELECT a, b FROM orders LIMIT 6;
--- new
SELECT a, b FROM orders LIMIT 8;
