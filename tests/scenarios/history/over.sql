-- OVER from the beginning by processing time; see cases.sql.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, came AS PROCTIME()
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: an OVER adds up another column
-- computed: all
--- old
SELECT a, b, SUM(b) OVER w, COUNT(*) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY came);
--- new
SELECT a, b, SUM(d) OVER w, MAX(b) OVER w, COUNT(c) OVER w FROM orders WINDOW w AS (PARTITION BY a ORDER BY came);
--- case: an OVER goes by another key
-- computed: all
--- old
SELECT a, b, AVG(b) OVER (PARTITION BY a ORDER BY came) FROM orders;
--- new
SELECT a, b, AVG(b) OVER (PARTITION BY c ORDER BY came) FROM orders;
--- case: an OVER of rows from the beginning has more metrics
-- computed: all
--- old
SELECT a, b, SUM(b) OVER w
FROM orders WINDOW w AS (PARTITION BY a ORDER BY came ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, SUM(d) OVER w, COUNT(*) OVER w
FROM orders WINDOW w AS (PARTITION BY a ORDER BY came ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
