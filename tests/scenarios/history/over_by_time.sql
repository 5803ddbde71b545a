-- OVER by event time, of which rows wait for the watermark when the job is stopped; see cases.sql.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '30' SECOND
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE shuffled (  -- its rows came out of order, and none of them late
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '90' SECOND
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/late', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: an OVER by event time adds up another column
-- computed: all
--- old
SELECT a, b, SUM(b) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY ts);
--- new
SELECT a, b, SUM(d) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY ts);
--- case: an OVER by event time goes by another key, with more metrics
-- computed: all
--- old
SELECT a, b, AVG(b) OVER (PARTITION BY a ORDER BY ts) FROM orders WHERE d < 9;
--- new
SELECT a, c, d, AVG(b) OVER w, COUNT(*) OVER w, MIN(a) OVER w, COUNT(DISTINCT a) OVER w
FROM orders WHERE d < 9 WINDOW w AS (PARTITION BY c ORDER BY ts);
--- case: an OVER by event time goes by no key
-- computed: all
--- old
SELECT a, b, MAX(b) OVER (PARTITION BY a ORDER BY ts) FROM shuffled;
--- new
SELECT a, b, MAX(b) OVER (ORDER BY ts) FROM shuffled;
--- case: an OVER of rows from the beginning adds up another column
-- computed: all
--- old
SELECT a, b, SUM(b) OVER w
FROM shuffled WINDOW w AS (PARTITION BY a ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- new
SELECT a, ts, SUM(d) OVER w, COUNT(*) OVER w
FROM shuffled WINDOW w AS (PARTITION BY a ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- case: an OVER of two rows has more metrics
-- computed: all
--- old
SELECT a, b, SUM(b) OVER w
FROM orders WINDOW w AS (PARTITION BY a ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, SUM(b) OVER w, MIN(d) OVER w, MAX(c) OVER w, AVG(d) OVER w
FROM orders WINDOW w AS (PARTITION BY a ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW);
--- case: an OVER of two rows is one of three, by another key
-- computed: all
--- old
SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM shuffled;
--- new
SELECT c, b, SUM(b) OVER (PARTITION BY c ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM shuffled;
--- case: an OVER from the beginning is one of three rows
-- computed: all
--- old
SELECT a, b, COUNT(c) OVER (PARTITION BY a ORDER BY ts) FROM orders;
--- new
SELECT a, b, COUNT(c) OVER (PARTITION BY a ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM orders;
--- case: an OVER of half a minute has more metrics
-- computed: all
--- old
SELECT a, b, SUM(b) OVER w FROM shuffled
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, SUM(b) OVER w, MAX(d) OVER w, COUNT(*) OVER w FROM shuffled
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW);
--- case: an OVER of half a minute is one of a minute
-- computed: all
--- old
SELECT a, b, COUNT(*) OVER w FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW);
--- new
SELECT a, d, COUNT(*) OVER w, AVG(b) OVER w FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW);
