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
--- case: step-longer
-- about: step 20 s → 30 s
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: step-shorter
-- about: step 20 s → 10 s
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: size-longer
-- about: size 1 min → 2 min
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- case: size-shorter
-- about: size 2 min → 1 min
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '2' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: size-respelled
-- about: size '1' MINUTE → '60' SECOND
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '60' SECOND))
GROUP BY a, window_start, window_end;
--- case: offset-added
-- about: offset 20 s added
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE, INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- case: offset-of-a-whole-size
-- about: offset 1 min on a size of 1 min: the same windows
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: min-added
-- about: MIN(d) added
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d), MIN(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: max-removed
-- about: MAX(d) removed
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: sum-to-max
-- about: SUM(b) → MAX(b)
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MAX(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: calls-swapped
-- about: SUM(b), MAX(d) → MAX(d), SUM(b)
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MAX(d), SUM(b)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: window-start-out
-- about: window_start beside window_end
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- case: keys-reordered
-- about: window_start, window_end before the key
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, a;
--- case: to-tumble
-- about: CUMULATE → TUMBLE of the same size
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
