-- area: from one line of Flink to another: window aggregations, joins and Top-N
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
--- case: tumble
-- about: TUMBLE, nothing changed
--- old
SELECT a, window_start, window_end, SUM(b) AS s, MAX(c) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b) AS s, MAX(c) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: tumble-one-phase
-- about: TUMBLE in one phase, nothing changed
-- settings-old: table.optimizer.agg-phase-strategy=ONE_PHASE
-- settings-new: table.optimizer.agg-phase-strategy=ONE_PHASE
--- old
SELECT a, window_start, window_end, SUM(b) AS s, MAX(c) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b) AS s, MAX(c) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: tumble-distinct
-- about: TUMBLE with COUNT(DISTINCT), AVG and FILTER, nothing changed
--- old
SELECT a, window_start, window_end, COUNT(DISTINCT c) AS n, AVG(b) AS v, SUM(b) FILTER (WHERE d > 1) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, COUNT(DISTINCT c) AS n, AVG(b) AS v, SUM(b) FILTER (WHERE d > 1) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: tumble-stddev
-- about: TUMBLE with STDDEV_POP, nothing changed
--- old
SELECT a, window_start, window_end, STDDEV_POP(CAST(b AS DOUBLE)) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, STDDEV_POP(CAST(b AS DOUBLE)) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: hop
-- about: HOP, nothing changed
--- old
SELECT a, window_start, window_end, SUM(b) AS s, MAX(c) AS m
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b) AS s, MAX(c) AS m
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: cumulate
-- about: CUMULATE, nothing changed
--- old
SELECT a, window_start, window_end, SUM(b) AS s, MAX(c) AS m
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b) AS s, MAX(c) AS m
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: session
-- about: SESSION, nothing changed
--- old
SELECT a, window_start, window_end, SUM(b) AS s, MAX(c) AS m
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b) AS s, MAX(c) AS m
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- case: legacy-tumble
-- about: TUMBLE in GROUP BY, nothing changed
--- old
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS w, SUM(b) AS s, MAX(c) AS m FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- new
SELECT a, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS w, SUM(b) AS s, MAX(c) AS m FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE);
--- case: size-changed
-- about: windows of one minute become windows of two
--- old
SELECT a, window_start, window_end, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: metrics-exchanged
-- about: two metrics of one type change places
--- old
SELECT a, window_start, window_end, SUM(b) AS s, MAX(d) AS m
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, MAX(d) AS m, SUM(b) AS s
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: top-n
-- about: Top-2 of each window, nothing changed
--- old
SELECT a, window_end, s, n FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS n
  FROM (SELECT a, window_start, window_end, SUM(b) AS s
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end)
) WHERE n <= 2;
--- new
SELECT a, window_end, s, n FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS n
  FROM (SELECT a, window_start, window_end, SUM(b) AS s
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end)
) WHERE n <= 2;
--- case: join
-- about: INNER window join, nothing changed
--- old
SELECT o.a, o.b, k.b AS kb, o.window_end
FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) AS o
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) AS k
ON o.a = k.a AND o.window_start = k.window_start AND o.window_end = k.window_end;
--- new
SELECT o.a, o.b, k.b AS kb, o.window_end
FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) AS o
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) AS k
ON o.a = k.a AND o.window_start = k.window_start AND o.window_end = k.window_end;
