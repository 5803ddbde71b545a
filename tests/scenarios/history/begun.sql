-- Scripts of jobs that have never run and whose operators do not store how far time has come; see test_on_flink.py.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '30' SECOND
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/late', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: the first row by event time is kept
--- sql
SELECT a, b, d, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts) AS n FROM orders) WHERE n = 1;
--- case: the first row by event time of another key
--- sql
SELECT c, a FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY c ORDER BY ts) AS n FROM orders WHERE b > 2) WHERE n = 1;
--- case: the older windows tumble
--- sql
SELECT a, TUMBLE_END(ts, INTERVAL '1' MINUTE), SUM(b), AVG(d) FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: the older windows count distinct values
--- sql
SELECT a, TUMBLE_START(ts, INTERVAL '40' SECOND), COUNT(DISTINCT c), MAX(b)
FROM orders WHERE d > 1 GROUP BY a, TUMBLE(ts, INTERVAL '40' SECOND);
