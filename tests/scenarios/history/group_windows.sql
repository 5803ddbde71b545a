-- As cases.sql, of the older group windows, whose state says which of them had not been sent.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: metrics are added to an older window
-- computed: MAX(d), AVG((b * d)), COUNT(DISTINCT c), distinct values of c
--- old
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), COUNT(*) FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), COUNT(*), MAX(d), AVG(b * d), COUNT(DISTINCT c)
FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: a metric takes the place of another one in an older window
-- computed: MIN(c)
--- old
SELECT a, TUMBLE_END(ts, INTERVAL '2' MINUTE), SUM(b), MAX(b) FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '2' MINUTE);
--- new
SELECT a, TUMBLE_END(ts, INTERVAL '2' MINUTE), SUM(b), MIN(c) FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '2' MINUTE);
