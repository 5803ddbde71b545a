-- As moments.sql, of moments that are stored; the clock goes back behind the savepoint, and shows an hour twice.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ms BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/moments_twice', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: windows of moments become shorter
-- settings: table.local-time-zone=Europe/Berlin
-- computed: all
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' MINUTE)) GROUP BY a, window_start, window_end;
--- case: metrics are added to hopping windows whose moments come twice
-- settings: table.local-time-zone=Europe/Berlin
-- computed: AVG(d), MIN(c)
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '2' HOUR))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), AVG(d), MIN(c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '2' HOUR))
GROUP BY a, window_start, window_end;
--- case: a deduplication in windows of moments keeps the last row
-- settings: table.local-time-zone=Europe/Berlin
-- computed: all
--- old
SELECT a, b, window_end FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a, window_start, window_end ORDER BY ts) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR))
) WHERE n = 1;
--- new
SELECT a, b, c, ts, window_end FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY a, window_start, window_end ORDER BY ts DESC) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '2' HOUR))
) WHERE n = 1;
--- case: more ranks are kept of a window of moments
-- settings: table.local-time-zone=Europe/Berlin
-- computed: all
--- old
SELECT a, b, window_end FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY b DESC) AS n
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR))
) WHERE n <= 2;
--- new
SELECT a, b, c, ts, window_start, window_end FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY b DESC) AS n
  FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' MINUTE, INTERVAL '1' HOUR))
) WHERE n <= 3;
