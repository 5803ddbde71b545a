-- area: FILTER clauses
--- given
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/orders', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
--- case: unchanged
-- about: nothing changed
--- old
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: added
-- about: SUM(b) → SUM(b) FILTER (WHERE d > 2), the first one
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: removed
-- about: SUM(b) FILTER (WHERE d > 2) → SUM(b), the only one
--- old
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: value-changed
-- about: FILTER d > 2 → d > 1
--- old
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b) FILTER (WHERE d > 1), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: other-column
-- about: FILTER d > 2 → b > 2
--- old
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b) FILTER (WHERE b > 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: respelled
-- about: FILTER d > 2 → 2 < d
--- old
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b) FILTER (WHERE 2 < d), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: on-a-second-call
-- about: MAX(d) → MAX(d) FILTER (WHERE d > 2) beside a FILTER
--- old
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d) FILTER (WHERE d > 2)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: moved-to-where
-- about: FILTER on the only call → WHERE
--- old
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE d > 2
GROUP BY a, window_start, window_end;
--- case: as-case
-- about: FILTER → CASE WHEN inside the call
--- old
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(CASE WHEN d > 2 THEN b END), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: count-added
-- about: COUNT(*) FILTER (WHERE d > 2) added
--- old
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b) FILTER (WHERE d > 2), MAX(d), COUNT(*) FILTER (WHERE d > 2)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
