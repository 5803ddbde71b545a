-- area: offsets of equal assignment
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: tumble-negative
-- about: offset 20 s → -40 s on a size of 1 min
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '-40' SECOND))
GROUP BY a, window_start, window_end;
--- case: hop-whole-slide
-- about: offset 5 s → 25 s on a slide of 20 s
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE, INTERVAL '5' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE, INTERVAL '25' SECOND))
GROUP BY a, window_start, window_end;
--- case: hop-negative
-- about: offset 5 s → -15 s on a slide of 20 s
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE, INTERVAL '5' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE, INTERVAL '-15' SECOND))
GROUP BY a, window_start, window_end;
--- case: tumble-other
-- about: offset 20 s → 30 s: other windows
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '30' SECOND))
GROUP BY a, window_start, window_end;
