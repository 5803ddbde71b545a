-- area: SESSION with PARTITION BY
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
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- case: gap-longer
-- about: gap 20 s → 40 s
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '40' SECOND))
GROUP BY a, window_start, window_end;
--- case: gap-shorter
-- about: gap 20 s → 12 s
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '12' SECOND))
GROUP BY a, window_start, window_end;
--- case: min-added
-- about: MIN(d) added
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d), MIN(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- case: max-removed
-- about: MAX(d) removed
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- case: sum-to-max
-- about: SUM(b) → MAX(b)
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, MAX(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- case: distinct-added
-- about: COUNT(d) → COUNT(DISTINCT d)
--- old
SELECT a, window_end, COUNT(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, COUNT(DISTINCT d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- case: key-added
-- about: partition and group key c added
-- flink: 2.3
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY (a, c), DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, c, window_start, window_end;
--- case: key-replaced
-- about: partition and group key a → c, both STRING
--- old
SELECT window_end, SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT window_end, SUM(b)
FROM TABLE(SESSION(TABLE orders PARTITION BY c, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY c, window_start, window_end;
--- case: window-start-out
-- about: window_start beside window_end
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_start, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- case: having-added
-- about: HAVING over an aggregate
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end
HAVING SUM(b) > 20;
--- case: filter-added
-- about: filter below
--- old
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
GROUP BY a, window_start, window_end;
--- new
SELECT a, window_end, SUM(b), MAX(d)
FROM TABLE(SESSION(TABLE orders PARTITION BY a, DESCRIPTOR(ts), INTERVAL '20' SECOND))
WHERE d > 2
GROUP BY a, window_start, window_end;
