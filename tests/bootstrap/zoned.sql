-- As cases.sql, of rows whose event time is a moment.
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, t TIMESTAMP(3), ts AS CAST(t AS TIMESTAMP_LTZ(3)), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: a window over moments becomes longer
-- settings: table.local-time-zone=UTC
-- computed: all
--- old
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), COUNT(*)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '3' MINUTE)) GROUP BY a, window_start, window_end;
--- case: a metric is added to hopping windows over moments
-- settings: table.local-time-zone=UTC
-- computed: MAX(d)
--- old
SELECT a, window_end, SUM(b)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
