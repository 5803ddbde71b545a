-- As cases.sql, of windows that the clock of a zone cuts; in Europe/Berlin it goes forward while they are open.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ms BIGINT, t STRING, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/moments', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: windows of moments become days of a zone
-- settings: table.local-time-zone=Europe/Berlin
-- computed: all
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, window_time, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY a, window_start, window_end, window_time;
--- case: a metric is added to hopping windows of moments
-- settings: table.local-time-zone=Europe/Berlin
-- computed: MAX(d), COUNT(DISTINCT c), distinct values of c
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' MINUTE, INTERVAL '1' HOUR))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d), COUNT(DISTINCT c)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' MINUTE, INTERVAL '1' HOUR))
GROUP BY a, window_start, window_end;
--- case: windows of moments cumulate with an offset
-- settings: table.local-time-zone=Asia/Tokyo
-- computed: all
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), MIN(c)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' MINUTE, INTERVAL '1' DAY, INTERVAL '10' MINUTE))
GROUP BY a, window_start, window_end;
--- case: the gap of sessions of moments becomes longer
-- settings: table.local-time-zone=UTC
-- computed: all
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '30' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '70' MINUTE)) GROUP BY a, window_start, window_end;
