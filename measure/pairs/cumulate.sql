-- area: CUMULATE
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: unchanged
-- about: nothing changed
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: step-30
-- about: step 20 s → 30 s
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: max-added
-- about: MIN(d) added
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d), MIN(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
