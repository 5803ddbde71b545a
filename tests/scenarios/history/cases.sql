-- Changes whose state is computed from history, each run on a real Flink by test_on_flink.py: all rows of the job that
-- starts from the written savepoint equal those of the new SQL over all input, whole rows.
-- computed: the metrics that are computed beside what is kept; "all" where the whole state is.
-- refused: why it is not, in place of it.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: metrics are added to a tumbling window
-- computed: MAX(d), AVG(b), MIN(c)
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(*), MAX(d), AVG(b), MIN(c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: a tumbling window becomes longer
-- computed: all
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '3' MINUTE)) GROUP BY a, window_start, window_end;
--- case: a tumbling window hops now
-- computed: all
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: a hopping window cumulates now
-- computed: all
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), AVG(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '3' MINUTE))
GROUP BY a, window_start, window_end;
--- case: a metric is added to a hopping window
-- computed: MIN(d)
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MIN(d)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: metrics are added to a cumulating window
-- computed: COUNT(d), MAX(c)
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(d), SUM(b), MAX(c)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: metrics are added to an aggregation
-- computed: AVG(d), MIN(c), MAX(b)
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), AVG(d), COUNT(*), MIN(c), MAX(b) FROM orders GROUP BY a;
--- case: an aggregation has a key more
-- computed: all
--- old
SELECT a, SUM(b), COUNT(*) FROM orders GROUP BY a;
--- new
SELECT a, c, SUM(b), COUNT(*) FROM orders GROUP BY a, c;
--- case: an aggregation has other keys
-- computed: all
--- old
SELECT a, SUM(b) FROM orders GROUP BY a;
--- new
SELECT c, MAX(d), SUM(b) FROM orders GROUP BY c;
--- case: another condition lets rows into an aggregation
-- computed: all
--- old
SELECT a, SUM(b), COUNT(*) FROM orders WHERE b > 3 GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(*) FROM orders WHERE b > 1 GROUP BY a;
--- case: another condition lets rows into a window
-- computed: all
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) WHERE d > 1 GROUP BY a, window_start, window_end;
--- case: metrics with a condition of their own are added to an aggregation over all rows
-- computed: SUM(d) FILTER (WHERE (b > 2)), MAX(c)
--- old
SELECT COUNT(*), SUM(b) FROM orders;
--- new
SELECT COUNT(*), SUM(b), SUM(d) FILTER (WHERE b > 2), MAX(c) FROM orders;
--- case: distinct values are counted in an aggregation
-- computed: COUNT(DISTINCT c), SUM(DISTINCT d), COUNT(DISTINCT c) FILTER (WHERE (b > 4)), distinct values of c, distinct values of d
--- old
SELECT a, SUM(b) FROM orders GROUP BY a;
--- new
SELECT a, SUM(b), COUNT(DISTINCT c), SUM(DISTINCT d), COUNT(DISTINCT c) FILTER (WHERE b > 4) FROM orders GROUP BY a;
--- case: distinct values are counted in a tumbling window
-- computed: COUNT(DISTINCT c), distinct values of c
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(DISTINCT c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- case: distinct values are counted in hopping windows
-- computed: all
--- old
SELECT a, window_end, COUNT(DISTINCT c)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(DISTINCT c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: a deduplication gets a column
-- computed: all
--- old
SELECT a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders) WHERE n = 1;
--- new
SELECT a, b, c, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders) WHERE n = 1;
--- case: a deduplication goes by another key
-- computed: all
--- old
SELECT a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM orders) WHERE n = 1;
--- new
SELECT a, c, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY c ORDER BY ts DESC) AS n FROM orders) WHERE n = 1;
--- case: more ranks are kept
-- computed: all
--- old
SELECT a, b, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM orders) WHERE n <= 2;
--- new
SELECT a, b, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM orders) WHERE n <= 4;
--- case: the greatest becomes the least
-- computed: all
--- old
SELECT a, b, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM orders) WHERE n = 1;
--- new
SELECT a, b, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS n FROM orders) WHERE n = 1;
--- case: ranks are told and go by two columns
-- computed: all
--- old
SELECT a, b, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY d DESC) AS n FROM orders) WHERE n <= 2;
--- new
SELECT a, b, d, n
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY d, b DESC) AS n FROM orders) WHERE n <= 3;
--- case: more ranks are kept of a window
-- computed: all
--- old
SELECT a, b, window_end FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY b DESC) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
) WHERE n <= 2;
--- new
SELECT a, b, d, window_end FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY b DESC) AS n
  FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
) WHERE n <= 3;
--- case: a deduplication in windows keeps the last row
-- computed: all
--- old
SELECT a, b, window_end FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a, window_start, window_end ORDER BY ts) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
) WHERE n = 1;
--- new
SELECT a, b, c, window_end FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a, window_start, window_end ORDER BY ts DESC) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '2' MINUTE))
) WHERE n = 1;
--- case: metrics are added to sessions
-- computed: MIN(d), COUNT(*)
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MIN(d), SUM(b), COUNT(*)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND)) GROUP BY a, window_start, window_end;
--- case: the gap of sessions becomes longer
-- computed: all
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '40' SECOND)) GROUP BY a, window_start, window_end;
--- case: a tumbling window becomes a session
-- computed: all
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), MAX(c)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '30' SECOND)) GROUP BY a, window_start, window_end;
--- case: rows of one table are joined within another interval
-- computed: all
--- old
SELECT o.a, o.b, p.d FROM orders AS o JOIN orders AS p
ON o.a = p.a AND o.ts BETWEEN p.ts - INTERVAL '30' SECOND AND /* -- the watermark is held back */ p.ts;
--- new
SELECT o.a, o.b, p.b AS other, p.d, p.ts FROM orders AS o JOIN orders AS p
ON o.a = p.a AND o.ts BETWEEN p.ts - INTERVAL '2' MINUTE AND /* -- the watermark is held back */ p.ts;
