-- area: from one line of Flink to another together with an edit of the query
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
CREATE TABLE clicks (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/clicks', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: having
-- about: another condition above a group aggregation
--- old
SELECT a, SUM(b) AS s FROM orders GROUP BY a HAVING SUM(b) > 1;
--- new
SELECT a, SUM(b) AS s FROM orders GROUP BY a HAVING SUM(b) > 5;
--- case: output
-- about: another computation above a group aggregation
--- old
SELECT a, SUM(b) + 1 AS s FROM orders GROUP BY a;
--- new
SELECT UPPER(a) AS a, SUM(b) * 2 AS s FROM orders GROUP BY a;
--- case: join-output
-- about: another computation above a regular join
--- old
SELECT o.a, o.b + k.b AS n FROM orders AS o JOIN clicks AS k ON o.a = k.a;
--- new
SELECT o.a, o.b - k.b AS n FROM orders AS o JOIN clicks AS k ON o.a = k.a;
--- case: rank-output
-- about: another computation above a Top-N
--- old
SELECT a, b FROM (
  SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM orders
) WHERE n <= 3;
--- new
SELECT a, b * 10 AS b FROM (
  SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM orders
) WHERE n <= 3;
--- case: window-having
-- about: a condition comes above a window aggregation
--- old
SELECT a, SUM(b) AS s FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start,
  window_end;
--- new
SELECT a, SUM(b) AS s FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start,
  window_end HAVING SUM(b) > 2;
--- case: over-narrower
-- about: a narrower range of an OVER aggregation
--- old
SELECT a, b, SUM(b) OVER w AS s FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '45' SECOND PRECEDING AND CURRENT ROW);
--- new
SELECT a, b, SUM(b) OVER w AS s FROM orders
WINDOW w AS (PARTITION BY a ORDER BY ts RANGE BETWEEN INTERVAL '12' SECOND PRECEDING AND CURRENT ROW);
--- case: spelling
-- about: a condition below a group aggregation in another spelling
--- old
SELECT a, SUM(b) AS s FROM orders WHERE d IN (1, 2, 6) GROUP BY a;
--- new
SELECT a, SUM(b) AS s FROM orders WHERE d = 1 OR d = 2 OR d = 6 GROUP BY a;
--- case: condition
-- about: another condition below a group aggregation
--- old
SELECT a, SUM(b) AS s FROM orders WHERE d > 1 GROUP BY a;
--- new
SELECT a, SUM(b) AS s FROM orders WHERE d > 3 GROUP BY a;
--- case: time-to-live
-- about: a time to live comes
-- settings-new: table.exec.state.ttl=1 h
--- old
SELECT a, SUM(b) AS s FROM orders GROUP BY a;
--- new
SELECT a, SUM(b) AS s FROM orders GROUP BY a;
